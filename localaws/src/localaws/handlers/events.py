"""AWS::Events::Rule on the default event bus."""

from localaws.handlers.common import require_only
from localaws.handlers.sqs import require_queue
from localaws.resources import (
    Context,
    HandlerError,
    Properties,
    require,
    require_role,
)
from localaws.rows.handler import register
from localaws.rows.row import Row

_TARGET = {"Arn", "DeadLetterConfig", "Id", "Input", "InputPath", "RetryPolicy", "RoleArn"}


def _check_targets(context: Context, _: Properties, properties: Properties) -> None:
    """HandlerError when a target does not exist or its type is not supported."""
    for target in properties.get("Targets", ()):
        require_only(target, _TARGET, "a target of AWS::Events::Rule")
        arn = target["Arn"]
        service = arn.split(":")[2]
        if service == "sqs":
            require_queue(context, arn)
        elif service == "lambda":
            lambdas = context.client("lambda")
            require(lambda: lambdas.get_function(FunctionName=arn), f"function {arn} does not exist")  # noqa: B023
        elif service == "sns":
            sns = context.client("sns")
            require(lambda: sns.get_topic_attributes(TopicArn=arn), f"topic {arn} does not exist")  # noqa: B023
        else:
            raise HandlerError(f"the embedded AWS supports only queues, topics and functions as targets, not {arn}")
        if "RoleArn" in target:
            require_role(context, target["RoleArn"])


def _set_targets(context: Context, old: Properties, new: Properties) -> None:
    events, targets = context.client("events"), new.get("Targets", ())
    if targets:
        events.put_targets(Rule=new["ref"], Targets=targets)
    kept = {target["Id"] for target in targets}
    if gone := [target["Id"] for target in old.get("Targets", ()) if target["Id"] not in kept]:
        events.remove_targets(Rule=new["ref"], Ids=gone)


register(
    Row(
        type="AWS::Events::Rule",
        service="events",
        ignored="EventBusName RoleArn",
        name=("Name", 64),
        create="PutRule",
        read="DescribeRule",
        update="PutRule",
        resets={"State": "ENABLED"},
        attributes={"RuleName": "{ref}"},
        by_hand="Targets",
        hook=_set_targets,
        hook_on_delete=True,
        check=_check_targets,
    ),
)
