"""CloudWatch alarms on what no rule of a Prometheus workspace can see: the workspace itself, and services of AWS."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from aws_cdk import CfnResource
from constructs import Construct

from ultracluster.constructs.acknowledgements import acknowledge
from ultracluster.constructs.references import expect_list

PERIOD_SECONDS = 300


class Watch(NamedTuple):
    """An alarm on a Metrics Insights query. The alarm goes off after `periods` of five minutes.

    A query finds a metric by the dimensions it names, whatever others the metric has.

    Source: CloudWatch User Guide, "Alarms on Metrics Insights queries" (2026).
    """

    id: str
    query: str
    description: str
    threshold: float
    periods: int = 1
    below: bool = False
    """Whether low values raise the alarm; missing ones then do, too."""


def workspace_watches(workspace_id: str, *, watchdog: bool = True, pagerduty: bool = False) -> Iterator[Watch]:
    """Alarms on an AMP workspace, which cannot report its own failure.

    `watchdog` is for a workspace with an alert that always fires. A missing metric is 0.

    Source: AMP User Guide, "Use CloudWatch metrics to monitor Amazon Managed Service for Prometheus resources" (2026).
    """
    where = f"FROM \"AWS/Prometheus\" WHERE Workspace = '{workspace_id}'"
    yield Watch("SamplesDiscarded", f"SELECT SUM(DiscardedSamples) {where}", "AMP discards samples", 0, 3)
    yield Watch("RulesFail", f"SELECT SUM(RuleEvaluationFailures) {where}", "Rules cannot be evaluated", 0, 2)
    missed = f"SELECT SUM(RuleGroupIterationsMissed) {where}"
    yield Watch("RulesLate", missed, "Rule groups take longer than their interval", 0, 3)
    failed, throttled = (f"SELECT SUM(AlertManagerNotifications{how}) {where}" for how in ("Failed", "Throttled"))
    yield Watch("AlertsNotDelivered", failed, "AMP could not deliver alerts to a receiver", 0)
    yield Watch("AlertsThrottled", throttled, "AMP throttles alerts to a receiver", 0, 2)
    if pagerduty:
        fetched = f"SELECT SUM(SecretFetchFailure) {where}"
        yield Watch("SecretNotRead", fetched, "AMP cannot read the secret of PagerDuty", 0)
    if watchdog:
        received = f"SELECT SUM(AlertManagerAlertsReceived) {where}"
        silent = "The alert that always fires did not arrive, so no other alert would"
        yield Watch("AlertsSilent", received, silent, 1, 4, below=True)


def file_system_watches(file_system_id: str, *, links: bool) -> Iterator[Watch]:
    """Alarms on an FSx for Lustre file system: capacity, busy servers and, with `links`, the queue of S3.

    Source: FSx for Lustre User Guide, "Monitoring with Amazon CloudWatch" (2026). The limits are our judgement.
    """
    where = f"FROM \"AWS/FSx\" WHERE FileSystemId = '{file_system_id}'"
    used = f"SELECT MAX(StorageCapacityUtilization) {where}"
    yield Watch("FileSystemFull", used, "The file system is more than 80 % full", 80, 2)
    yield Watch("FileSystemAlmostFull", used, "The file system is more than 90 % full", 90)
    for name, metric, what in (
        ("FileSystemDisks", "FileServerDiskThroughputUtilization", "A disk of a file server"),
        ("FileSystemNetwork", "NetworkThroughputUtilization", "The network of a file server"),
        ("MetadataServer", "CPUUtilization", "A metadata server"),
    ):
        yield Watch(name, f"SELECT MAX({metric}) {where}", f"{what} is more than 90 % busy for half an hour", 90, 6)
    if links:
        age = f"SELECT MAX(AgeOfOldestQueuedMessage) {where}"
        yield Watch("LinkQueue", age, "Changes wait for an hour to be imported from or exported to S3", 3600, 3)


def openzfs_watches(file_system_id: str, *, capacity_gib: int) -> Iterator[Watch]:
    """Alarms on an FSx for OpenZFS file system of `capacity_gib`: used capacity, and a busy server.

    FSx publishes no share of the capacity for this type, so the limit is in bytes. A query over the file system alone
    leaves out the metrics of single volumes.

    Source: FSx for OpenZFS User Guide, "Metrics and dimensions" (2026). The limits are our judgement.
    """
    where = f"FROM SCHEMA(\"AWS/FSx\", FileSystemId) WHERE FileSystemId = '{file_system_id}'"
    used, whole = f"SELECT AVG(UsedStorageCapacity) {where}", capacity_gib * 2**30
    yield Watch("FileSystemFull", used, "The file system is more than 80 % full", whole * 80 // 100, 2)
    yield Watch("FileSystemAlmostFull", used, "The file system is more than 90 % full", whole * 90 // 100)
    for name, metric, what in (
        ("FileSystemDisks", "FileServerDiskThroughputUtilization", "Disks of the file server are"),
        ("FileSystemNetwork", "NetworkThroughputUtilization", "The network of the file server is"),
    ):
        yield Watch(name, f"SELECT MAX({metric}) {where}", f"{what} more than 90 % busy for half an hour", 90, 6)


def notify(alarm: CfnResource | None, topics: Sequence[str]) -> None:
    """Has an alarm notify topics, when it goes off and when it ends."""
    if alarm and topics:
        alarm.add_property_override("AlarmActions", list(topics))
        alarm.add_property_override("OKActions", list(topics))


class Alarms(Construct):
    """CloudWatch alarms that notify the SNS topics in `topics`, when they go off and when they end.

    `name` is what the descriptions call the watched resource. Without topics the alarms only show their state.
    """

    def __init__(
        self, scope: Construct, id: str, *, name: str, watches: Sequence[Watch], topics: Sequence[str] = ()
    ) -> None:
        super().__init__(scope, id)
        expect_list(topics, "topics")
        for watch in watches:
            # the module aws_cloudwatch takes a while to load
            alarm = CfnResource(
                self,
                watch.id,
                type="AWS::CloudWatch::Alarm",
                properties={
                    "AlarmDescription": f"{watch.description} ({name}); see docs/observability.md",
                    "Metrics": [
                        {"Id": "watched", "Expression": watch.query, "Period": PERIOD_SECONDS, "ReturnData": True}
                    ],
                    "EvaluationPeriods": watch.periods,
                    "Threshold": watch.threshold,
                    "ComparisonOperator": "LessThanThreshold" if watch.below else "GreaterThanThreshold",
                    "TreatMissingData": "breaching" if watch.below else "notBreaching",
                    **({"AlarmActions": list(topics), "OKActions": list(topics)} if topics else {}),
                },
            )
            if not topics:
                reason = "The environment file names no receiver of alerts (observability.alerts)."
                acknowledge(alarm, {"NIST.800.53.R5-CloudWatchAlarmAction": reason})
