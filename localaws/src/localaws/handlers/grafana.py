"""AWS::Grafana::Workspace: workspace, authentication and configuration are three APIs of one resource."""

import json
from typing import Any

from localaws.handlers.common import retag, undo_on_failure
from localaws.resources import (
    Context,
    Handler,
    NotUpdatable,
    Properties,
    Resource,
    changed,
    handler,
    lower_first,
    pick,
    tag_map,
)

_PARAMETERS = {
    "AccountAccessType": "accountAccessType",
    "DataSources": "workspaceDataSources",
    "Description": "workspaceDescription",
    "Name": "workspaceName",
    "NetworkAccessControl": "networkAccessControl",
    "NotificationDestinations": "workspaceNotificationDestinations",
    "OrganizationRoleName": "organizationRoleName",
    "OrganizationalUnits": "workspaceOrganizationalUnits",
    "PermissionType": "permissionType",
    "RoleArn": "workspaceRoleArn",
    "StackSetName": "stackSetName",
    "VpcConfiguration": "vpcConfiguration",
}
# Parameters of UpdateWorkspace for properties that the template no longer sets.
_REMOVALS: dict[str, Properties] = {
    "DataSources": {"workspaceDataSources": []},
    "Description": {"workspaceDescription": ""},
    "NetworkAccessControl": {"removeNetworkAccessConfiguration": True},
    "NotificationDestinations": {"workspaceNotificationDestinations": []},
    "OrganizationalUnits": {"workspaceOrganizationalUnits": []},
    "VpcConfiguration": {"removeVpcConfiguration": True},
}
_AUTHENTICATION = {"AuthenticationProviders", "SamlConfiguration"}
_CONFIGURATION = {"GrafanaVersion", "PluginAdminEnabled"}


@handler
class Workspace(Handler):
    """AWS::Grafana::Workspace; Ref gives its id."""

    type = "AWS::Grafana::Workspace"
    supported_properties = frozenset({*_PARAMETERS, *_AUTHENTICATION, *_CONFIGURATION, "ClientToken", "Tags"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the workspace, then configure SAML."""
        grafana = context.client("grafana")
        parameters = _parameters(properties)
        parameters |= lower_first(pick(properties, "AuthenticationProviders", "ClientToken", "GrafanaVersion"))
        if "PluginAdminEnabled" in properties:
            parameters["configuration"] = _configuration(properties)
        workspace_id = grafana.create_workspace(**parameters, tags=tag_map(properties.get("Tags")))["workspace"]["id"]
        with undo_on_failure(lambda: grafana.delete_workspace(workspaceId=workspace_id)):
            if "SamlConfiguration" in properties:
                _authenticate(grafana, workspace_id, properties)
            return _describe(grafana, workspace_id)

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Send the changes to each of the three APIs."""
        grafana, names = context.client("grafana"), changed(old, new)
        dropped = names - new.keys() - {"SamlConfiguration", "PluginAdminEnabled", "GrafanaVersion", "Tags"}
        if fixed := dropped - _REMOVALS.keys():
            raise NotUpdatable(self.type, fixed)
        parameters = _parameters(pick(new, *names))
        for name in dropped:
            parameters |= _REMOVALS[name]
        if parameters:
            grafana.update_workspace(workspaceId=physical_id, **parameters)
        if names & _AUTHENTICATION:
            _authenticate(grafana, physical_id, new)
        if names & _CONFIGURATION:
            version = lower_first(pick(new, "GrafanaVersion"))
            grafana.update_workspace_configuration(
                workspaceId=physical_id, configuration=_configuration(new), **version
            )
        retag(context.client("grafana"), context.arn("grafana", f"/workspaces/{physical_id}"), old, new)
        return _describe(grafana, physical_id)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the workspace."""
        context.client("grafana").delete_workspace(workspaceId=physical_id)


def _parameters(properties: Properties) -> dict[str, Any]:
    """Parameters of both CreateWorkspace and UpdateWorkspace."""
    parameters = {_PARAMETERS[name]: value for name, value in properties.items() if name in _PARAMETERS}
    for name in ("networkAccessControl", "vpcConfiguration"):
        if name in parameters:
            parameters[name] = lower_first(parameters[name])
    if "networkAccessControl" in parameters:  # the API requires both lists, a template may set one
        parameters["networkAccessControl"] = {"prefixListIds": [], "vpceIds": [], **parameters["networkAccessControl"]}
    return parameters


def _configuration(properties: Properties) -> str:
    return json.dumps({"plugins": {"pluginAdminEnabled": properties.get("PluginAdminEnabled", False)}})


def _authenticate(grafana: Any, workspace_id: str, properties: Properties) -> None:
    saml = lower_first(pick(properties, "SamlConfiguration"))
    providers = properties["AuthenticationProviders"]
    grafana.update_workspace_authentication(workspaceId=workspace_id, authenticationProviders=providers, **saml)


def _describe(grafana: Any, workspace_id: str) -> Resource:
    found = grafana.describe_workspace(workspaceId=workspace_id)["workspace"]
    sign_in = grafana.describe_workspace_authentication(workspaceId=workspace_id)["authentication"]
    attributes = {
        "Id": found["id"],
        "Endpoint": found["endpoint"],
        "GrafanaVersion": found["grafanaVersion"],
        "Status": found["status"],
        "SamlConfigurationStatus": found["authentication"].get("samlConfigurationStatus", "NOT_CONFIGURED"),
        "SsoClientId": sign_in.get("awsSso", {}).get("ssoClientId", ""),
        "CreationTimestamp": found["created"].isoformat(),
        "ModificationTimestamp": found["modified"].isoformat(),
    }
    return Resource(workspace_id, attributes)
