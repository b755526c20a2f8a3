"""AWS::CloudWatch::Alarm, CompositeAlarm and Dashboard."""

import json
import re
from typing import Any

from ultracluster.localaws.handlers.common import as_list, tag_changes
from ultracluster.localaws.resources import Context, Handler, HandlerError, Properties, Resource, handler, tag_map

_PARAMETERS = (
    *("ActionsEnabled", "AlarmActions", "AlarmDescription", "ComparisonOperator", "DatapointsToAlarm", "Dimensions"),
    *("EvaluationPeriods", "InsufficientDataActions", "MetricName", "Metrics", "Namespace", "OKActions", "Period"),
    *("Statistic", "Threshold", "TreatMissingData", "Unit"),
)
_ACTIONS = ("AlarmActions", "InsufficientDataActions", "OKActions")

# CloudWatch User Guide, "Metrics Insights query components and syntax" (2026)
_NAME = r"(?:\"[^\"]+\"|[A-Za-z_]\w*)"
_WHERE = rf" WHERE {_NAME} ?!?= ?'[^']+'(?: AND {_NAME} ?!?= ?'[^']+')*"
_ORDER = r" ORDER BY (?:AVG|COUNT|MAX|MIN|SUM)\(\)(?: ASC| DESC)?"
_SELECT = rf"SELECT (?:AVG|COUNT|MAX|MIN|SUM)\({_NAME}\)"
_QUERY = re.compile(
    rf"{_SELECT} FROM (?:{_NAME}|SCHEMA\({_NAME}(?:, ?{_NAME})*\))(?:{_WHERE})?"
    rf"(?: GROUP BY {_NAME}(?:, ?{_NAME})*)?(?:{_ORDER})?(?: LIMIT \d+)?"
)
_PERIODS = (10, 20, 30)


class _NamedAlarm(Handler):
    """What both kinds of alarms share. Ref gives the name."""

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
        raise NotImplementedError


@handler
class Alarm(_NamedAlarm):
    """Ref gives the name. An update sets every parameter again (CloudWatch API reference, PutMetricAlarm, 2026)."""

    type = "AWS::CloudWatch::Alarm"
    supported_properties = frozenset({*_PARAMETERS, "AlarmName", "Tags"})

    def _put(self, context: Context, name: str, properties: Properties) -> Resource:
        _check_actions(context, properties)
        _check_metrics(properties)
        given: dict[str, Any] = {key: properties[key] for key in _PARAMETERS if key in properties}
        tags = {**tag_map(properties.get("Tags")), **context.tags}
        cloudwatch = context.client("cloudwatch")
        cloudwatch.put_metric_alarm(AlarmName=name, Tags=as_list(tags), **given)
        (found,) = cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"]
        return Resource(name, {"Arn": found["AlarmArn"]})


@handler
class CompositeAlarm(_NamedAlarm):
    """An alarm on the states of others. Ref gives the name."""

    type = "AWS::CloudWatch::CompositeAlarm"
    supported_properties = frozenset(
        {"ActionsEnabled", "AlarmDescription", "AlarmName", "AlarmRule", *_ACTIONS, "Tags"}
    )

    def _put(self, context: Context, name: str, properties: Properties) -> Resource:
        _check_actions(context, properties)
        cloudwatch, rule = context.client("cloudwatch"), properties["AlarmRule"]
        plain = re.sub(r"\b(ALARM|OK|INSUFFICIENT_DATA)\(\s*\"?([^\")]+)\"?\s*\)|\b(TRUE|FALSE)\b", "", rule)
        if rest := re.sub(r"\b(AND|OR|NOT)\b|[()\s]", "", plain):
            raise HandlerError(f"AlarmRule must not contain {rest!r}")
        for alarm in re.findall(r"\b(?:ALARM|OK|INSUFFICIENT_DATA)\(\s*\"?([^\")]+?)\"?\s*\)", rule):
            known = cloudwatch.describe_alarms(
                AlarmNames=[alarm.rpartition(":alarm:")[2]], AlarmTypes=["MetricAlarm", "CompositeAlarm"]
            )
            if not known["MetricAlarms"] and not known["CompositeAlarms"]:
                raise HandlerError(f"AlarmRule refers to alarm {alarm}, which does not exist")
        given = {key: value for key, value in properties.items() if key not in ("AlarmName", "Tags")}
        tags = {**tag_map(properties.get("Tags")), **context.tags}
        cloudwatch.put_composite_alarm(AlarmName=name, Tags=as_list(tags), **given)
        (found,) = cloudwatch.describe_alarms(AlarmNames=[name], AlarmTypes=["CompositeAlarm"])["CompositeAlarms"]
        return Resource(name, {"Arn": found["AlarmArn"]})


@handler
class Dashboard(Handler):
    """A CloudWatch dashboard. Ref gives its name."""

    type = "AWS::CloudWatch::Dashboard"
    supported_properties = frozenset({"DashboardBody", "DashboardName", "Tags"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the dashboard."""
        name = properties.get("DashboardName") or context.physical_name(255)
        return self._put(context, name, {}, properties)

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Replace the dashboard."""
        return self._put(context, physical_id, old, new)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the dashboard."""
        context.client("cloudwatch").delete_dashboards(DashboardNames=[physical_id])

    def _put(self, context: Context, name: str, old: Properties, properties: Properties) -> Resource:
        """CloudWatch API reference, PutDashboard (2026)."""
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,255}", name):
            raise HandlerError(f"the dashboard name {name} may have letters, digits, - and _ only")
        try:
            body = json.loads(properties["DashboardBody"])
            widgets = body["widgets"]
            fits = isinstance(widgets, list) and all({"type", "properties"} <= each.keys() for each in widgets)
        except (ValueError, KeyError, TypeError, AttributeError):
            fits = False
        if not fits:
            raise HandlerError("The field DashboardBody must be a valid JSON object with a list of widgets")
        cloudwatch = context.client("cloudwatch")
        cloudwatch.put_dashboard(DashboardName=name, DashboardBody=properties["DashboardBody"])
        arn = cloudwatch.get_dashboard(DashboardName=name)["DashboardArn"]
        added, removed = tag_changes(old, properties)
        if removed:
            cloudwatch.untag_resource(ResourceARN=arn, TagKeys=removed)
        if added:
            cloudwatch.tag_resource(ResourceARN=arn, Tags=as_list(added))
        return Resource(name, {})


def _check_actions(context: Context, properties: Properties) -> None:
    """Actions are in the Region of the alarm. CloudWatch does not test whether they exist.

    Source: CloudWatch User Guide, "Using Amazon CloudWatch alarms", "Common features of CloudWatch alarms" (2026).
    """
    for arn in (arn for name in _ACTIONS for arn in properties.get(name, ())):
        if arn.split(":")[3] not in (context.region, ""):
            region = arn.split(":")[3]
            raise HandlerError(f"Invalid region {region} specified. Only {context.region} is supported.")


def _check_metrics(properties: Properties) -> None:
    """Of a list of metrics one is returned, and its queries are those of Metrics Insights.

    Source: CloudWatch API reference, PutMetricAlarm (2026).
    """
    metrics = properties.get("Metrics", ())
    if metrics and sum(bool(metric.get("ReturnData", True)) for metric in metrics) != 1:
        raise HandlerError("exactly one of the Metrics must have ReturnData true")
    for metric in metrics:
        query = metric.get("Expression", "")
        if ("Expression" in metric) == ("MetricStat" in metric):
            raise HandlerError("each of the Metrics has either Expression or MetricStat")
        if query.upper().startswith("SELECT") and not _QUERY.fullmatch(query):
            raise HandlerError(f"Metrics Insights cannot parse {query!r}")
        period = metric.get("Period")
        if "Expression" in metric and period is not None and period % 60 and period not in _PERIODS:
            raise HandlerError(f"a period of {period} s is not 10, 20, 30 or a multiple of 60")
