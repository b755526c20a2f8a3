"""AWS::APS::Workspace and AWS::APS::RuleGroupsNamespace: Ref gives the ARN."""

from typing import Any

from ultracluster.localaws.handlers.common import retag, undo_on_failure
from ultracluster.localaws.resources import Context, Handler, Properties, Resource, handler, lower_first, pick, tag_map

_DEFAULT_CONFIGURATION: dict[str, Any] = {
    "retentionPeriodInDays": 150,
    "outOfOrderTimeWindowInSeconds": 60,
    "ruleQueryOffsetInSeconds": 60,
    "limitsPerLabelSet": [],
}


@handler
class Workspace(Handler):
    """AWS::APS::Workspace with its logging, query logging, configuration and alert manager."""

    type = "AWS::APS::Workspace"
    supported_properties = frozenset(
        {
            *("AlertManagerDefinition", "Alias", "KmsKeyArn", "LoggingConfiguration", "QueryLoggingConfiguration"),
            *("WorkspaceConfiguration", "Tags"),
        }
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the workspace, then its logging and configuration."""
        amp = context.client("amp")
        parameters = lower_first(
            {name: value for name, value in pick(properties, "Alias", "KmsKeyArn").items() if value}
        )
        tags = {**tag_map(properties.get("Tags")), **context.tags}
        workspace_id = amp.create_workspace(**parameters, tags=tags)["workspaceId"]
        with undo_on_failure(lambda: amp.delete_workspace(workspaceId=workspace_id)):
            _configure(amp, workspace_id, {}, properties)
            return _describe(amp, workspace_id)

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Update alias, logging and configuration."""
        amp, workspace_id = context.client("amp"), _workspace_id(physical_id)
        if old.get("Alias") != new.get("Alias"):
            alias = {"alias": new["Alias"]} if new.get("Alias") else {}
            amp.update_workspace_alias(workspaceId=workspace_id, **alias)
        _configure(amp, workspace_id, old, new)
        retag(amp, physical_id, old, new)
        return _describe(amp, workspace_id)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the workspace with all its metrics."""
        context.client("amp").delete_workspace(workspaceId=_workspace_id(physical_id))


def _workspace_id(arn: str) -> str:
    return arn.rsplit("/", 1)[1]


def _configure(amp: Any, workspace_id: str, old: Properties, new: Properties) -> None:
    _set_logging(amp, workspace_id, "logging", _log_group(old), _log_group(new))
    before, after = (lower_first(version.get("QueryLoggingConfiguration") or {}) for version in (old, new))
    _set_logging(amp, workspace_id, "query_logging", before, after)
    if old.get("WorkspaceConfiguration") != new.get("WorkspaceConfiguration"):
        amp.update_workspace_configuration(workspaceId=workspace_id, **_configuration(new))
    definitions = [version.get("AlertManagerDefinition") or "" for version in (old, new)]
    if definitions[0] != definitions[1]:
        verb = "delete" if not definitions[1] else "put" if definitions[0] else "create"
        data = {"data": definitions[1].encode()} if definitions[1] else {}
        getattr(amp, f"{verb}_alert_manager_definition")(workspaceId=workspace_id, **data)


def _log_group(properties: Properties) -> dict[str, Any]:
    arn = (properties.get("LoggingConfiguration") or {}).get("LogGroupArn")
    return {"logGroupArn": arn} if arn else {}


def _set_logging(amp: Any, workspace_id: str, what: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Create, update or delete one of the two logging configurations."""
    if old == new:
        return
    verb = "delete" if not new else "update" if old else "create"
    getattr(amp, f"{verb}_{what}_configuration")(workspaceId=workspace_id, **new)


def _configuration(properties: Properties) -> dict[str, Any]:
    """WorkspaceConfiguration as the API takes it: labels as a map, and defaults for omitted members."""
    given = lower_first(properties.get("WorkspaceConfiguration") or {})
    limits = [
        {"limits": entry["limits"], "labelSet": {label["name"]: label["value"] for label in entry["labelSet"]}}
        for entry in given.pop("limitsPerLabelSets", [])
    ]
    return {**_DEFAULT_CONFIGURATION, **given, "limitsPerLabelSet": limits}


def _describe(amp: Any, workspace_id: str) -> Resource:
    found = amp.describe_workspace(workspaceId=workspace_id)["workspace"]
    attributes = {"Arn": found["arn"], "WorkspaceId": workspace_id, "PrometheusEndpoint": found["prometheusEndpoint"]}
    return Resource(found["arn"], attributes)


@handler
class RuleGroupsNamespace(Handler):
    """AWS::APS::RuleGroupsNamespace: a rule file of a workspace."""

    type = "AWS::APS::RuleGroupsNamespace"
    supported_properties = frozenset({"Data", "Name", "Tags", "Workspace"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the rule file."""
        made = context.client("amp").create_rule_groups_namespace(
            workspaceId=_workspace_id(properties["Workspace"]),
            name=properties["Name"],
            data=properties["Data"].encode(),
            tags={**tag_map(properties.get("Tags")), **context.tags},
        )
        return Resource(made["arn"], {"Arn": made["arn"]})

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Replace the file, then its tags."""
        amp, workspace_id = context.client("amp"), _workspace_id(new["Workspace"])
        if old["Data"] != new["Data"]:
            data = new["Data"].encode()
            amp.put_rule_groups_namespace(workspaceId=workspace_id, name=new["Name"], data=data)
        retag(amp, physical_id, old, new)
        return Resource(physical_id, {"Arn": physical_id})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the file."""
        workspace_id = _workspace_id(properties["Workspace"])
        context.client("amp").delete_rule_groups_namespace(workspaceId=workspace_id, name=properties["Name"])
