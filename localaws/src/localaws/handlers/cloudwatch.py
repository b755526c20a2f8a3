"""CloudWatch: alarms, dashboards and Contributor Insights rules."""

import json
import re

from localaws.resources import Context, HandlerError, Properties
from localaws.rows.handler import register
from localaws.rows.row import Row

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


def _check_alarm(context: Context, _: Properties, new: Properties) -> None:
    _check_actions(context, new)
    _check_metrics(new)


def _check_composite(context: Context, _: Properties, new: Properties) -> None:
    _check_actions(context, new)
    cloudwatch, rule = context.client("cloudwatch"), new["AlarmRule"]
    plain = re.sub(r"\b(ALARM|OK|INSUFFICIENT_DATA)\(\s*\"?([^\")]+)\"?\s*\)|\b(TRUE|FALSE)\b", "", rule)
    if rest := re.sub(r"\b(AND|OR|NOT)\b|[()\s]", "", plain):
        raise HandlerError(f"AlarmRule must not contain {rest!r}")
    for alarm in re.findall(r"\b(?:ALARM|OK|INSUFFICIENT_DATA)\(\s*\"?([^\")]+?)\"?\s*\)", rule):
        known = cloudwatch.describe_alarms(
            AlarmNames=[alarm.rpartition(":alarm:")[2]], AlarmTypes=["MetricAlarm", "CompositeAlarm"]
        )
        if not known["MetricAlarms"] and not known["CompositeAlarms"]:
            raise HandlerError(f"AlarmRule refers to alarm {alarm}, which does not exist")


def _check_dashboard(_: Context, __: Properties, new: Properties) -> None:
    """CloudWatch API reference, PutDashboard (2026)."""
    name = new.get("DashboardName", "generated")
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,255}", name):
        raise HandlerError(f"the dashboard name {name} may have letters, digits, - and _ only")
    try:
        widgets = json.loads(new["DashboardBody"])["widgets"]
        fits = isinstance(widgets, list) and all({"type", "properties"} <= each.keys() for each in widgets)
    except (ValueError, KeyError, TypeError, AttributeError):
        fits = False
    if not fits:
        raise HandlerError("The field DashboardBody must be a valid JSON object with a list of widgets")


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


register(
    Row(
        type="AWS::CloudWatch::Alarm",
        service="cloudwatch",
        ignored="ActionConfiguration EvaluateLowSampleCountPercentile EvaluationCriteria EvaluationInterval "
        "EvaluationWindow ExtendedStatistic ThresholdMetricId WarmUpConfiguration",
        name=("AlarmName", 255),
        create="PutMetricAlarm",
        update="PutMetricAlarm",
        delete="DeleteAlarms",
        ref="{AlarmName}",
        ident={"AlarmName": "{ref}", "AlarmNames": "{ref}"},
        arn="{AlarmArn}",
        check=_check_alarm,
    ),
    Row(
        type="AWS::CloudWatch::CompositeAlarm",
        service="cloudwatch",
        ignored="ActionConfiguration ActionsSuppressor ActionsSuppressorExtensionPeriod ActionsSuppressorWaitPeriod",
        name=("AlarmName", 255),
        create="PutCompositeAlarm",
        read="DescribeAlarms",
        update="PutCompositeAlarm",
        delete="DeleteAlarms",
        ref="{AlarmName}",
        ident={"AlarmName": "{ref}", "AlarmNames": "{ref}", "AlarmTypes": "CompositeAlarm"},
        arn="{AlarmArn}",
        attributes={"Arn": "{AlarmArn}"},
        check=_check_composite,
    ),
    Row(
        type="AWS::CloudWatch::Dashboard",
        service="cloudwatch",
        name=("DashboardName", 255),
        create="PutDashboard",
        update="PutDashboard",
        delete="DeleteDashboards",
        ref="{DashboardName}",
        ident={"DashboardName": "{ref}", "DashboardNames": "{ref}"},
        arn="{DashboardArn}",
        tags_later=True,
        check=_check_dashboard,
    ),
    Row(
        type="AWS::CloudWatch::InsightRule",
        service="cloudwatch",
        ignored="ApplyOnTransformedLogs",
        create="PutInsightRule",
        update="PutInsightRule",
        delete="DeleteInsightRules",
        ref="arn:{partition}:cloudwatch:{region}:{account}:insight-rule/{RuleName}",
        ident={"RuleName": "{RuleName}", "RuleNames": "{ref/}"},
        renames={"RuleBody": "RuleDefinition"},
        arn="{ref}",
    ),
)
