"""AWS::Scheduler::Schedule of the default group. The schedule never runs."""

import json
import re
import zoneinfo
from typing import Any

from botocore.exceptions import UnknownServiceError
from botocore.session import get_session

from localaws.resources import Context, HandlerError, Properties
from localaws.rows.existing import existing_target
from localaws.rows.handler import register
from localaws.rows.row import Row
from localaws.services.references import References
from localaws.services.trust import allows_service

# EventBridge Scheduler User Guide, "Schedule types" and "Universal targets" (2026).
EXPRESSIONS = (
    re.compile(r"at\(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\)"),
    re.compile(r"rate\([1-9]\d* (minute|hour|day)s?\)"),
    re.compile(r"cron\(\S+( \S+){5}\)"),
)
SDK_TARGET = re.compile(r"arn:[a-z-]+:scheduler:::aws-sdk:(?P<service>[a-z0-9-]+):(?P<action>[a-zA-Z0-9]+)")
_READ_ONLY = ("get", "describe", "list", "poll", "receive", "search", "scan", "query", "select", "read", "batchget")


def _check(context: Context, _: Properties, properties: Properties) -> None:
    """HandlerError when Scheduler would refuse the time or the target."""
    expression = properties["ScheduleExpression"]
    if not any(form.fullmatch(expression) for form in EXPRESSIONS):
        raise HandlerError(f"Invalid Schedule Expression {expression}.")
    zone = properties.get("ScheduleExpressionTimezone", "UTC")
    if zone not in zoneinfo.available_timezones():
        raise HandlerError(f"Invalid ScheduleExpressionTimezone {zone}.")
    window = properties["FlexibleTimeWindow"]
    if (window["Mode"] == "FLEXIBLE") != ("MaximumWindowInMinutes" in window):
        raise HandlerError("FlexibleTimeWindow needs MaximumWindowInMinutes with Mode FLEXIBLE, and only then.")
    _check_target(context, properties["Target"])


def _check_target(context: Context, target: Properties) -> None:
    role = References(context.account, context.region, context.partition).role(target["RoleArn"])
    if role is None or not allows_service(role, "scheduler.amazonaws.com"):
        raise HandlerError(
            f"The execution role you provide must allow AWS EventBridge Scheduler to assume the role: "
            f"{target['RoleArn']}."
        )
    arn, parts = target["Arn"], SDK_TARGET.fullmatch(target["Arn"])
    if parts:
        _check_call(arn, parts["service"], parts["action"], target.get("Input"))
    else:
        existing_target(context, arn, "sqs", "lambda")


def _check_call(arn: str, service: str, action: str, text: str | None) -> None:
    """A universal target names an API action that is not read-only, and passes its parameters as JSON."""
    try:
        operations = get_session().get_service_model(service).operation_names
    except UnknownServiceError as error:
        raise HandlerError(f"Target {arn} names no service.") from error
    if action[:1].upper() + action[1:] not in operations or action.lower().startswith(_READ_ONLY):
        raise HandlerError(f"Target {arn} names no action that Scheduler calls.")
    if not isinstance(_parsed(text or "{}"), dict):
        raise HandlerError(f"Input of target {arn} is not a JSON object.")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


register(
    Row(
        type="AWS::Scheduler::Schedule",
        service="scheduler",
        ignored="GroupName",
        name=("Name", 64),
        whole=True,
        resets={"State": "ENABLED"},
        tags=None,
        must_exist={"KmsKeyArn": "KMS key", "Target.DeadLetterConfig.Arn": "queue"},
        check=_check,
    ),
)
