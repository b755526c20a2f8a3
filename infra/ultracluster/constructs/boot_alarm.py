"""An alarm for a PCS node group whose nodes fail to boot again and again.

PCS terminates a node on which a step fails and launches another, for ever if the cause is permanent: on reserved
capacity nothing else ends that. Its scaling logs name each such node with the reason BOOTSTRAP_FAILED.

Source: AWS PCS User Guide, "Scaling logs" (2026); CloudWatch Logs User Guide, "Creating metric filters" (2026).
"""

from aws_cdk import CfnResource
from aws_cdk import aws_logs as logs
from constructs import Construct

from ultracluster.constructs.acknowledgements import acknowledge

NAMESPACE, METRIC, DIMENSION = "Ultracluster/PCS", "BootstrapFailed", "ComputeNodeGroupId"
"""The metric: nodes that PCS terminated because they failed to boot, by node group."""

FAILED_NODES, PERIOD_SECONDS = 3, 7200
"""Failed nodes within one period that raise the alarm. PCS gives a node about 30 minutes to boot.

So a group of one node, which never finishes, fails three times in two hours, but only twice in one.
"""


def count_failed_boots(scope: Construct, log_group_name: str) -> None:
    """Counts nodes that failed to boot, from the scaling logs in a log group."""
    logs.CfnMetricFilter(
        scope,
        "BootstrapFailed",
        log_group_name=log_group_name,
        filter_pattern='{ $.reason_code = "BOOTSTRAP_FAILED" }',
        metric_transformations=[
            {
                "metricNamespace": NAMESPACE,
                "metricName": METRIC,
                "metricValue": "1",
                "unit": "Count",
                "dimensions": [{"key": DIMENSION, "value": "$.compute_node_group_id"}],
            }
        ],
    )


def boot_alarm(scope: Construct, *, name: str, compute_node_group_id: str) -> CfnResource:
    """The alarm of one node group. Its actions are left to the owner of the account."""
    # the module aws_cloudwatch takes a while to load
    alarm = CfnResource(
        scope,
        "BootAlarm",
        type="AWS::CloudWatch::Alarm",
        properties={
            "AlarmDescription": f"Nodes of {name} fail to boot again and again; see docs/operations.md",
            "Namespace": NAMESPACE,
            "MetricName": METRIC,
            "Dimensions": [{"Name": DIMENSION, "Value": compute_node_group_id}],
            "Statistic": "Sum",
            "Period": PERIOD_SECONDS,
            "EvaluationPeriods": 1,
            "Threshold": FAILED_NODES,
            "ComparisonOperator": "GreaterThanOrEqualToThreshold",
            "TreatMissingData": "notBreaching",
        },
    )
    reason = "Whom to notify is the choice of the account's owner, who subscribes to the alarm."
    acknowledge(alarm, {"NIST.800.53.R5-CloudWatchAlarmAction": reason})
    return alarm
