"""Metric filters and alarms: read back through their APIs, changed in place, deleted."""

import pytest

from localaws.resources import HandlerError

FILTER, ALARM = "AWS::Logs::MetricFilter", "AWS::CloudWatch::Alarm"
FAILED = {"MetricNamespace": "Ultracluster/PCS", "MetricName": "BootstrapFailed", "MetricValue": "1"}
BY_GROUP = {**FAILED, "Dimensions": [{"Key": "Group", "Value": "$.group"}]}
DEFINITION = {
    "Namespace": "Ultracluster/PCS",
    "MetricName": "BootstrapFailed",
    "Dimensions": [{"Name": "Group", "Value": "pcs_1"}],
    "Statistic": "Sum",
    "Period": 3600,
    "EvaluationPeriods": 1,
    "Threshold": 3,
    "ComparisonOperator": "GreaterThanOrEqualToThreshold",
    "TreatMissingData": "notBreaching",
}


@pytest.fixture
def settings(stack):
    """Properties of a filter on a log group that exists."""
    stack.make("AWS::Logs::LogGroup", LogGroupName="/pcs")
    return {"LogGroupName": "/pcs", "FilterPattern": '{ $.reason = "X" }', "MetricTransformations": [BY_GROUP]}


def test_a_metric_filter_is_read_back_changed_and_deleted(stack, settings):
    made = stack.make(FILTER, **settings)
    (found,) = stack.client("logs").describe_metric_filters(logGroupName="/pcs")["metricFilters"]
    assert found["filterPattern"] == '{ $.reason = "X" }'
    assert found["metricTransformations"][0]["dimensions"] == {"Group": "$.group"}
    stack.update(FILTER, made, settings, {**settings, "FilterPattern": '{ $.reason = "Y" }'})
    (found,) = stack.client("logs").describe_metric_filters(logGroupName="/pcs")["metricFilters"]
    assert found["filterPattern"] == '{ $.reason = "Y" }'
    stack.delete(FILTER, made, **settings)
    assert stack.client("logs").describe_metric_filters(logGroupName="/pcs")["metricFilters"] == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"LogGroupName": "/none"}, "log group /none does not exist"),
        ({"MetricTransformations": [{**BY_GROUP, "DefaultValue": 0}]}, "takes no default value"),
        ({"MetricTransformations": [{**FAILED, "MetricNamespace": "AWS/PCS"}]}, "must not start with AWS/"),
    ],
)
def test_a_metric_filter_that_logs_refuses(stack, settings, change, said):
    with pytest.raises(HandlerError, match=said):
        stack.make(FILTER, **{**settings, **change})


def test_an_alarm_is_read_back_changed_and_deleted(stack):
    made = stack.make(ALARM, **DEFINITION)
    (found,) = stack.client("cloudwatch").describe_alarms(AlarmNames=[made])["MetricAlarms"]
    assert {key: found[key] for key in DEFINITION} == DEFINITION
    stack.update(ALARM, made, DEFINITION, {**DEFINITION, "Threshold": 5})
    (found,) = stack.client("cloudwatch").describe_alarms(AlarmNames=[made])["MetricAlarms"]
    assert found["Threshold"] == 5
    stack.delete(ALARM, made)
    assert stack.client("cloudwatch").describe_alarms()["MetricAlarms"] == []
