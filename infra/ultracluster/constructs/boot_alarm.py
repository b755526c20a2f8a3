"""An alarm for a node group whose nodes fail to boot again and again.

A node on which a step fails is replaced, for ever if the cause is permanent: on reserved capacity nothing else ends
that. PCS terminates the node and names it in its scaling logs with the reason BOOTSTRAP_FAILED. On EKS the node
powers off, and its Auto Scaling group replaces it after an EC2 health check, which EventBridge hears of.

Source: AWS PCS User Guide, "Scaling logs" (2026); CloudWatch Logs User Guide, "Creating metric filters" (2026);
Amazon EC2 Auto Scaling User Guide, "Amazon EC2 Auto Scaling event reference" (2026); EventBridge User Guide,
"Monitoring Amazon EventBridge", MatchedEvents (2026).
"""

from collections.abc import Mapping, Sequence

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
    metric = {
        "Namespace": NAMESPACE,
        "MetricName": METRIC,
        "Dimensions": [{"Name": DIMENSION, "Value": compute_node_group_id}],
    }
    return _alarm(scope, f"Nodes of {name} fail to boot again and again; see docs/operations.md", metric)


def replacement_alarm(scope: Construct, *, nodegroup_name: str, subnet_ids: Sequence[str]) -> CfnResource:
    """The alarm of one managed node group of EKS. Its actions are left to the owner of the account.

    It counts nodes that stopped or vanished and were replaced: on Spot these are reclaimed nodes too. EKS names the
    Auto Scaling group `eks-`, the name of the node group, and a UUID; the subnets tell clusters apart whose groups have
    the same name. EventBridge counts the events that match a rule, even one without targets.
    """
    # the module aws_events takes a while to load
    rule = CfnResource(
        scope,
        "Replacements",
        type="AWS::Events::Rule",
        properties={
            "Description": f"Nodes of {nodegroup_name} that stopped and were replaced",
            "EventPattern": replacements(nodegroup_name, subnet_ids),
        },
    )
    metric = {
        "Namespace": "AWS/Events",
        "MetricName": "MatchedEvents",
        "Dimensions": [{"Name": "RuleName", "Value": rule.ref}],
    }
    return _alarm(scope, f"Nodes of {nodegroup_name} stop again and again; see docs/operations-kubernetes.md", metric)


def replacements(nodegroup_name: str, subnet_ids: Sequence[str]) -> dict[str, object]:
    """Pattern of the events of nodes that EC2 Auto Scaling replaced because they had stopped or vanished."""
    return {
        "source": ["aws.autoscaling"],
        "detail-type": ["EC2 Instance Terminate Successful"],
        "detail": {
            "AutoScalingGroupName": [{"prefix": f"eks-{nodegroup_name}-"}],
            "Cause": [{"wildcard": "*EC2 health check*"}],
            "Details": {"Subnet ID": list(subnet_ids)},
        },
    }


def _alarm(scope: Construct, description: str, metric: Mapping[str, object]) -> CfnResource:
    # the module aws_cloudwatch takes a while to load
    alarm = CfnResource(
        scope,
        "BootAlarm",
        type="AWS::CloudWatch::Alarm",
        properties={
            "AlarmDescription": description,
            **metric,
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
