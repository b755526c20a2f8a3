"""AWS::Events::Rule on the default event bus."""

from ultracluster.localaws.handlers.common import as_list, json_text, require_only, tag_changes, undo_on_failure
from ultracluster.localaws.handlers.sqs import require_queue
from ultracluster.localaws.resources import (
    Context,
    Handler,
    HandlerError,
    Properties,
    Resource,
    handler,
    pick,
    require,
    require_role,
)

_TARGET = {"Arn", "DeadLetterConfig", "Id", "Input", "InputPath", "RetryPolicy", "RoleArn"}


@handler
class Rule(Handler):
    """A rule with its targets. Ref gives its name."""

    type = "AWS::Events::Rule"
    supported_properties = frozenset(
        {"Description", "EventPattern", "Name", "ScheduleExpression", "State", "Tags", "Targets"}
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the rule, then its targets."""
        events, name = context.client("events"), properties.get("Name") or context.physical_name()
        _check_targets(context, properties)
        tags = [*properties.get("Tags", ()), *as_list(context.tags)]
        made = events.put_rule(**_rule(properties), Name=name, Tags=tags)
        with undo_on_failure(lambda: events.delete_rule(Name=name)):
            _put_targets(context, name, properties)
        return Resource(name, {"Arn": made["RuleArn"], "RuleName": name})

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Replace the rule and its targets."""
        events = context.client("events")
        _check_targets(context, new)
        made = events.put_rule(**_rule(new), Name=physical_id)
        _put_targets(context, physical_id, new)
        kept = {target["Id"] for target in new.get("Targets", ())}
        if gone := [target["Id"] for target in old.get("Targets", ()) if target["Id"] not in kept]:
            events.remove_targets(Rule=physical_id, Ids=gone)
        added, removed = tag_changes(old, new)
        if added:
            events.tag_resource(ResourceARN=made["RuleArn"], Tags=as_list(added))
        if removed:
            events.untag_resource(ResourceARN=made["RuleArn"], TagKeys=removed)
        return Resource(physical_id, {"Arn": made["RuleArn"], "RuleName": physical_id})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Remove the targets, then delete the rule."""
        events = context.client("events")
        if ids := [target["Id"] for target in properties.get("Targets", ())]:
            events.remove_targets(Rule=physical_id, Ids=ids)
        events.delete_rule(Name=physical_id)


def _rule(properties: Properties) -> Properties:
    rule = {"State": "ENABLED", **pick(properties, "Description", "ScheduleExpression", "State")}
    if "EventPattern" in properties:
        rule["EventPattern"] = json_text(properties["EventPattern"])
    return rule


def _check_targets(context: Context, properties: Properties) -> None:
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
        else:
            raise HandlerError(f"the embedded AWS supports only queues and functions as targets, not {arn}")
        if "RoleArn" in target:
            require_role(context, target["RoleArn"])


def _put_targets(context: Context, name: str, properties: Properties) -> None:
    if targets := properties.get("Targets"):
        context.client("events").put_targets(Rule=name, Targets=targets)
