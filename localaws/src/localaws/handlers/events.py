"""AWS::Events::Rule on the default event bus."""

from localaws.handlers.common import require_only
from localaws.resources import Context, Properties
from localaws.rows.existing import existing_target
from localaws.rows.handler import register
from localaws.rows.row import Row

_TARGET = {"Arn", "DeadLetterConfig", "Id", "Input", "InputPath", "RetryPolicy", "RoleArn"}


def _check_targets(context: Context, _: Properties, properties: Properties) -> None:
    """HandlerError when a target does not exist or its type is not supported."""
    for target in properties.get("Targets", ()):
        require_only(target, _TARGET, "a target of AWS::Events::Rule")
        existing_target(context, target["Arn"], "sqs", "sns", "lambda")


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
        update="PutRule",
        resets={"State": "ENABLED"},
        attributes={"RuleName": "{ref}"},
        by_hand="Targets",
        hook=_set_targets,
        hook_on_delete=True,
        must_exist={"Targets.RoleArn": "role"},
        check=_check_targets,
    ),
)
