"""`<env>-grafana`: dashboards, in a stack that cannot keep metrics from being stored or deleted."""

from aws_cdk import CfnOutput
from constructs import Construct

from ultracluster.config.environment import Environment
from ultracluster.constructs.grafana import GrafanaWorkspace, ManagedGrafana
from ultracluster.constructs.grafana_content import GrafanaContent, GrafanaUsers
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.metrics import PrometheusWorkspace
from ultracluster.stacks.base import EnvironmentStack
from ultracluster.telemetry.dashboards import cloudwatch_source_uid, dashboards, metrics_source_uid


class GrafanaStack(EnvironmentStack):
    """Dashboards of the environment in a Grafana workspace, new or existing. Never protected: it keeps no data."""

    def __init__(self, scope: Construct, environment: Environment, *, metrics: PrometheusWorkspace) -> None:
        super().__init__(scope, "grafana", environment)
        settings = environment.observability.grafana
        key = DataKey(self, "Key", description=f"Logs of Grafana functions of {environment.name}")
        self.grafana = self._workspace(environment, metrics)
        content = GrafanaContent(
            self,
            "Content",
            workspace=self.grafana,
            metrics=metrics,
            name=environment.name,
            dashboards={dashboard.uid: dashboard.text for dashboard in dashboards(environment)},
            sources=(metrics_source_uid(environment), cloudwatch_source_uid(environment)),
            tag=f"environment:{environment.name}",
            owned=not settings.existing,
            key=key,
            scrape_interval_seconds=environment.observability.scrape_interval_seconds,
        )
        CfnOutput(self, "ManualStep", value=content.manual_step, description="What to do by hand in Grafana")
        # data sources query with the workspace's role, so its policy comes first and goes last
        content.resource.add_resource_dependency(self.grafana.read_policy)
        if settings.auth == "identity_center" and (settings.admins or settings.editors):
            GrafanaUsers(
                self, "Users", workspace=self.grafana, admins=settings.admins, editors=settings.editors, key=key
            )

    def _workspace(self, environment: Environment, metrics: PrometheusWorkspace) -> ManagedGrafana:
        settings = environment.observability.grafana
        if settings.existing and settings.role_arn:
            return GrafanaWorkspace.from_workspace_id(
                self, "Grafana", settings.existing, role_arn=settings.role_arn, metrics=metrics
            )
        return GrafanaWorkspace(self, "Grafana", settings=settings, metrics=metrics)
