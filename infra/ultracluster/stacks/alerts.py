"""`<env>-alerts`: rules, and alarms on metrics of CloudWatch, in a stack whose failure stops no collection."""

from collections.abc import Iterator, Sequence

from constructs import Construct

from ultracluster.config.environment import Environment
from ultracluster.config.file_systems import OpenZfs
from ultracluster.constructs.alarms import Alarms, Watch, file_system_watches, openzfs_watches, workspace_watches
from ultracluster.constructs.alerts import RuleFiles
from ultracluster.constructs.capacity_blocks import capacity_block_watch
from ultracluster.constructs.lustre import LustreFileSystem
from ultracluster.constructs.metrics import PrometheusWorkspace
from ultracluster.constructs.nfs import NfsFileSystem
from ultracluster.stacks.base import EnvironmentStack
from ultracluster.stacks.storage import StorageStack
from ultracluster.telemetry.rules import rule_files


class AlertsStack(EnvironmentStack):
    """The rule files of the environment in the Prometheus workspace, and CloudWatch alarms that notify `topics`.

    Without `metrics` there are only the alarms on metrics that services publish in CloudWatch.
    """

    def __init__(
        self,
        scope: Construct,
        environment: Environment,
        *,
        metrics: PrometheusWorkspace | None,
        storage: StorageStack,
        topics: Sequence[str],
    ) -> None:
        super().__init__(scope, "alerts", environment, holds="Rules and alarms")
        lustre = environment.storage.lustre
        if metrics:
            self._create_rules(environment, metrics, topics)
        if lustre and storage.file_system:
            found = file_system_watches(storage.file_system.file_system_id, links=bool(lustre.links))
            name = f"file system of {environment.name}"
            Alarms(self, "FileSystem", name=name, watches=[*found], topics=topics)
        for label, found in _further_watches(environment, storage):
            name = f"file system {label} of {environment.name}"
            Alarms(self, f"FileSystem-{label}", name=name, watches=[*found], topics=topics)
        if blocks := _capacity_blocks(environment):
            ends = capacity_block_watch(self, name=environment.name, reservation_ids=blocks)
            Alarms(self, "CapacityBlocks", name=environment.name, watches=[ends], topics=topics)

    def _create_rules(self, environment: Environment, metrics: PrometheusWorkspace, topics: Sequence[str]) -> None:
        """The rules, and alarms on the workspace that evaluates them."""
        settings = environment.observability
        # an existing workspace may have rules of other environments
        files = {f"{environment.name}-{name}": text for name, text in rule_files(environment).items()}
        RuleFiles(self, "Rules", metrics=metrics, files=files)
        pagerduty = settings.alerts is not None and settings.alerts.pagerduty is not None
        watchdog = settings.existing_workspace is None
        watches = workspace_watches(metrics.workspace_id, watchdog=watchdog, pagerduty=pagerduty)
        Alarms(self, "Metrics", name=f"metrics of {environment.name}", watches=[*watches], topics=topics)


def has_alarms(environment: Environment) -> bool:
    """Whether there are alarms without a workspace: on a file system with a capacity, or on a Capacity Block."""
    storage = environment.storage
    sized = (each for each in (storage.homes, *storage.more) if isinstance(each, OpenZfs) and each.capacity_gib)
    return bool(storage.all_lustre) or any(sized) or bool(_capacity_blocks(environment))


def _capacity_blocks(environment: Environment) -> list[str]:
    bought = (group.purchase for group in environment.node_groups if group.purchase.type == "capacity_block")
    return [reservation for purchase in bought for reservation in purchase.reservations]


def _further_watches(environment: Environment, storage: StorageStack) -> Iterator[tuple[str, Iterator[Watch]]]:
    """Alarms on homes and on further file systems, by name. EFS has no capacity, so it has none.

    An existing file system of Lustre has them too. Of an existing OpenZFS file system the capacity is not known here.
    """
    named: list[tuple[str, object, object]] = [("home", environment.storage.homes, storage.home)]
    named += [(each.name, each, storage.more[each.name]) for each in environment.storage.more]
    for name, settings, made in named:
        if isinstance(made, LustreFileSystem):
            yield name, file_system_watches(made.file_system_id, links=False)
        elif isinstance(settings, OpenZfs) and settings.capacity_gib and isinstance(made, NfsFileSystem):
            yield name, openzfs_watches(made.file_system_id, capacity_gib=settings.capacity_gib)
