"""`<env>-observability`: metrics, and the topic that alerts go to."""

from typing import TYPE_CHECKING

from constructs import Construct

from ultracluster.config.environment import Environment
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.metrics import MetricsWorkspace
from ultracluster.constructs.names import REGION, own_arn
from ultracluster.stacks.base import EnvironmentStack
from ultracluster.telemetry.alertmanager import definition

if TYPE_CHECKING:
    from ultracluster.constructs.alerts import AlertTopic
    from ultracluster.constructs.scraper import ScraperRoles

ALERTS, REPAIRS = "alerts", "repairs"
"""Names of the topics, after that of the environment."""


class ObservabilityStack(EnvironmentStack):
    """A Prometheus workspace with its alert manager and, where the file asks for alerts, an SNS topic.

    `topics` are the ARNs of all topics that get alerts: the new one, and that of the file. `repair_topic_arn` is the
    ARN of the topic of alerts that have nodes drained, None where none are. They are made of the topics' names: other
    stacks that imported them would keep this one from deleting a topic that the file no longer asks for.
    """

    def __init__(self, scope: Construct, environment: Environment) -> None:
        super().__init__(scope, "observability", environment, stateful=True)
        settings = environment.observability
        self._name = environment.name
        self._key = DataKey(self, "Key", description=f"Metrics of {environment.name}")
        topic = self._topic(environment)
        given = settings.alerts.sns_topic_arn if settings.alerts else None
        self.topics = tuple(arn for arn in (self._arn(ALERTS) if topic else None, given) if arn)
        own = tuple(arn for arn in (topic.topic_arn if topic else None, given) if arn)
        repairs = self._repairs(environment)
        self.metrics = MetricsWorkspace(
            self,
            "Metrics",
            settings=settings,
            key=self._key,
            environment=environment.name,
            alert_manager=definition(
                environment,
                topics=own,
                region=REGION,
                repair_topic=repairs.topic_arn if repairs and settings.drains_on_alerts else None,
            ),
        )
        # exported at all times: CloudFormation deletes no export that a Grafana stack, no longer in the file, imports
        for imported in (self.metrics.prometheus_endpoint, self._key.key_arn):
            self.export_value(imported)
        if repairs:
            repairs.grant_publish_alerts(self.metrics)
        self.repair_topic_arn = self._arn(REPAIRS) if repairs and settings.drains_on_alerts else None
        if topic:
            topic.grant_publish_alerts(self.metrics)
        self.scraper_roles = self._scraper_roles(environment)

    def _scraper_roles(self, environment: Environment) -> "ScraperRoles | None":
        """The roles of the scraper, which are created while EKS creates the cluster."""
        if environment.control_plane.type != "eks":
            return None
        from ultracluster.constructs.scraper import ScraperRoles

        return ScraperRoles(self, "Scraper", workspace=self.metrics)

    def _arn(self, topic: str) -> str:
        return own_arn("sns", f"{self._name}-{topic}")

    def _repairs(self, environment: Environment) -> "AlertTopic | None":
        """The topic of alerts that have nodes drained. EKS repairs nodes itself.

        Without `auto_repair` nothing is sent to it. SNS deletes a topic together with its subscriptions, and the stack
        that drains nodes, which the CDK CLI leaves when it is no longer in the app, would not subscribe again.
        """
        if environment.control_plane.type != "pcs":
            return None
        from ultracluster.constructs.alerts import AlertTopic

        return AlertTopic(self, "Repairs", key=self._key, name=f"{environment.name}-{REPAIRS}")

    def _topic(self, environment: Environment) -> "AlertTopic | None":
        """The new topic: for e-mail, and for alarms of CloudWatch where no topic is given."""
        alerts = environment.observability.alerts
        if alerts is None or (alerts.sns_topic_arn and not alerts.email):
            return None
        # imported here: most environments have no topic
        from ultracluster.constructs.alerts import AlertTopic

        return AlertTopic(self, "Alerts", key=self._key, email=alerts.email, name=f"{environment.name}-{ALERTS}")
