"""`<env>-alerts`: rules, and alarms on what only CloudWatch knows, in a stack whose failure keeps no metric out."""

from collections.abc import Sequence

from constructs import Construct

from ultracluster.config.environment import Environment
from ultracluster.constructs.alarms import Alarms, file_system_watches, workspace_watches
from ultracluster.constructs.alerts import RuleFiles
from ultracluster.constructs.capacity_blocks import capacity_block_watch
from ultracluster.constructs.metrics import PrometheusWorkspace
from ultracluster.stacks.base import EnvironmentStack
from ultracluster.stacks.storage import StorageStack
from ultracluster.telemetry.rules import rule_files


class AlertsStack(EnvironmentStack):
    """The rule files of the environment in the Prometheus workspace, and CloudWatch alarms that notify `topics`."""

    def __init__(
        self,
        scope: Construct,
        environment: Environment,
        *,
        metrics: PrometheusWorkspace,
        storage: StorageStack,
        topics: Sequence[str],
    ) -> None:
        super().__init__(scope, "alerts", environment, holds="Rules and alarms")
        settings, lustre = environment.observability, environment.storage.lustre
        # an existing workspace may have rules of other environments
        files = {f"{environment.name}-{name}": text for name, text in rule_files(environment).items()}
        RuleFiles(self, "Rules", metrics=metrics, files=files)
        pagerduty = settings.alerts is not None and settings.alerts.pagerduty is not None
        watches = workspace_watches(metrics.workspace_id, watchdog=settings.metrics is None, pagerduty=pagerduty)
        Alarms(self, "Metrics", name=f"metrics of {environment.name}", watches=[*watches], topics=topics)
        if lustre and storage.file_system:
            found = file_system_watches(storage.file_system.file_system_id, links=bool(lustre.links))
            name = f"file system of {environment.name}"
            Alarms(self, "FileSystem", name=name, watches=[*found], topics=topics)
        bought = (group.purchase for group in environment.node_groups if group.purchase.type == "capacity_block")
        if blocks := [reservation for purchase in bought for reservation in purchase.reservations]:
            ends = capacity_block_watch(self, name=environment.name, reservation_ids=blocks)
            Alarms(self, "CapacityBlocks", name=environment.name, watches=[ends], topics=topics)
