"""AWS::CloudWatch::Alarm on one metric."""

from typing import Any

from ultracluster.localaws.resources import Context, Handler, Properties, Resource, handler, tag_map

_PARAMETERS = (
    *("ActionsEnabled", "AlarmActions", "AlarmDescription", "ComparisonOperator", "DatapointsToAlarm", "Dimensions"),
    *("EvaluationPeriods", "MetricName", "Namespace", "OKActions", "Period", "Statistic", "Threshold"),
    "TreatMissingData",
)


@handler
class Alarm(Handler):
    """Ref gives the name. An update sets every parameter again (CloudWatch API reference, PutMetricAlarm, 2026)."""

    type = "AWS::CloudWatch::Alarm"
    supported_properties = frozenset({*_PARAMETERS, "AlarmName", "Tags"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the alarm."""
        name = properties.get("AlarmName") or context.physical_name(255)
        return self._put(context, name, properties)

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Replace the definition of the alarm."""
        return self._put(context, physical_id, new)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the alarm."""
        context.client("cloudwatch").delete_alarms(AlarmNames=[physical_id])

    def _put(self, context: Context, name: str, properties: Properties) -> Resource:
        given: dict[str, Any] = {key: properties[key] for key in _PARAMETERS if key in properties}
        tags = {**tag_map(properties.get("Tags")), **context.tags}
        cloudwatch = context.client("cloudwatch")
        cloudwatch.put_metric_alarm(
            AlarmName=name, Tags=[{"Key": key, "Value": value} for key, value in tags.items()], **given
        )
        (found,) = cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"]
        return Resource(name, {"Arn": found["AlarmArn"]})
