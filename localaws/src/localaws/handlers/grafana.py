"""Managed Grafana: a workspace, whose authentication and configuration are APIs of their own."""

from localaws.resources import Properties
from localaws.rows.handler import register
from localaws.rows.row import Row, Setting


def _prepared(properties: Properties) -> Properties:
    """The API requires both lists of a NetworkAccessControl, and takes the configuration as a document."""
    given = dict(properties)
    if "NetworkAccessControl" in given:
        given["NetworkAccessControl"] = {"PrefixListIds": [], "VpceIds": [], **given["NetworkAccessControl"]}
    if "PluginAdminEnabled" in given:
        given["PluginAdminEnabled"] = {"plugins": {"pluginAdminEnabled": given["PluginAdminEnabled"]}}
    return given


register(
    Row(
        type="AWS::Grafana::Workspace",
        service="grafana",
        read="DescribeWorkspace DescribeWorkspaceAuthentication",
        ref="{id}",
        renames={
            "DataSources": "workspaceDataSources",
            "NotificationDestinations": "workspaceNotificationDestinations",
            "OrganizationalUnits": "workspaceOrganizationalUnits",
            "PluginAdminEnabled": "configuration",
            "RoleArn": "workspaceRoleArn",
        },
        resets={"DataSources": [], "Description": "", "NotificationDestinations": [], "OrganizationalUnits": []},
        removals={
            "NetworkAccessControl": {"removeNetworkAccessConfiguration": True},
            "VpcConfiguration": {"removeVpcConfiguration": True},
        },
        settings=(
            Setting("AuthenticationProviders SamlConfiguration", put="UpdateWorkspaceAuthentication"),
            Setting(
                "GrafanaVersion PluginAdminEnabled",
                put="UpdateWorkspaceConfiguration",
                reset={"PluginAdminEnabled": {"plugins": {"pluginAdminEnabled": False}}},
                at_creation=False,
            ),
        ),
        attributes={
            "CreationTimestamp": "created",
            "GrafanaVersion": "grafanaVersion",
            "ModificationTimestamp": "modified",
            "SamlConfigurationStatus": "saml.status|NOT_CONFIGURED",
            "SsoClientId": "awsSso.ssoClientId|",
        },
        arn="arn:{partition}:grafana:{region}:{account}:/workspaces/{ref}",
        prepare=_prepared,
    ),
)
