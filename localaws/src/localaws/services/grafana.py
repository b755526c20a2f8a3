"""Amazon Managed Grafana for moto: workspaces, authentication, configuration, versions, validation."""

import copy
import datetime
import functools
import json
import secrets
from typing import Any, cast

from moto.core.responses import ActionResult, EmptyResult

from localaws.services.grafana_access import PATHS, AccessActions
from localaws.services.references import References
from localaws.services.service import Backend, Refusal, add_service

VERSIONS: tuple[str, ...] = ("8.4", "9.4", "10.4", "12.4")
MAX_LISTED = 5  # prefix lists, and VPC endpoints, of network access control

# Names of a workspace's members in requests, where responses have other names.
_RENAMED = {
    "workspaceDataSources": "dataSources",
    "workspaceDescription": "description",
    "workspaceName": "name",
    "workspaceNotificationDestinations": "notificationDestinations",
    "workspaceOrganizationalUnits": "organizationalUnits",
}
_ASIDE = {
    *("authenticationProviders", "clientToken", "configuration", "removeNetworkAccessConfiguration"),
    *("removeVpcConfiguration", "tags", "workspaceId"),
}


class GrafanaBackend(Backend):
    """Workspaces of one account and Region, as DescribeWorkspace and other actions return them."""

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.workspaces: dict[str, dict[str, Any]] = {}
        self.saml: dict[str, dict[str, Any]] = {}
        self.sso_clients: dict[str, str] = {}
        self.configurations: dict[str, dict[str, Any]] = {}
        self.inside: dict[str, dict[str, dict[Any, Any]]] = {}
        self.references = References(account_id, region_name, self.partition)

    def find(self, workspace_id: str) -> dict[str, Any]:
        """The workspace; Refusal when it does not exist."""
        if workspace_id not in self.workspaces:
            raise _missing(f"Workspace {workspace_id} was not found.", workspace_id)
        return self.workspaces[workspace_id]

    def arn_of(self, workspace_id: str) -> str:
        """The ARN of a workspace, whose id is a path after the account."""
        return self.arn("grafana", f"/workspaces/{workspace_id}")


class GrafanaResponse(AccessActions):
    """The actions of the Grafana API."""

    def __init__(self) -> None:
        super().__init__(service_name="grafana")

    @property
    def grafana(self) -> GrafanaBackend:
        """The state of the caller's account and Region."""
        return cast("GrafanaBackend", activate()[self.current_account][self.region])

    # workspaces

    def create_workspace(self) -> ActionResult:
        """Validate the request and create the workspace."""
        request, backend = self.params, self.grafana
        version = request.get("grafanaVersion") or VERSIONS[-1]
        if version not in VERSIONS:
            raise _invalid("grafanaVersion", f"{version} cannot be created; choose one of {', '.join(VERSIONS)}.")
        new_id = f"g-{secrets.token_hex(5)}"
        now = datetime.datetime.now(datetime.UTC)
        workspace = {
            "dataSources": [],
            "notificationDestinations": [],
            "ipAddressType": "IPv4",
            **self._members(),
            "id": new_id,
            "status": "ACTIVE",
            "created": now,
            "modified": now,
            "endpoint": f"{new_id}.grafana-workspace.{self.region}.amazonaws.com",
            "grafanaVersion": version,
        }
        configuration = _configuration(request.get("configuration"), version, {})
        providers = _providers(request["authenticationProviders"])
        self._check(workspace)
        backend.workspaces[new_id], backend.configurations[new_id] = workspace, configuration
        backend.tags[backend.arn_of(new_id)] = dict(request.get("tags") or {})
        self._authenticate(workspace, providers)
        return ActionResult({"workspace": self._description(workspace)})

    def describe_workspace(self) -> ActionResult:
        """One workspace."""
        return ActionResult({"workspace": self._description(self._workspace())})

    def list_workspaces(self) -> ActionResult:
        """All workspaces of the Region."""
        return self.page("workspaces", [self._description(workspace) for workspace in self.grafana.workspaces.values()])

    def update_workspace(self) -> ActionResult:
        """Update the members in the request."""
        workspace = self._workspace()
        new = {**workspace, **self._members(), "modified": datetime.datetime.now(datetime.UTC)}
        for flag, member in (
            ("removeVpcConfiguration", "vpcConfiguration"),
            ("removeNetworkAccessConfiguration", "networkAccessControl"),
        ):
            if self.params.get(flag):
                if member in self.params:
                    raise _invalid(flag, f"{member} cannot be set and removed at once.")
                new.pop(member, None)
        self._check(new)
        self.grafana.workspaces[workspace["id"]] = new
        return ActionResult({"workspace": self._description(new)})

    def delete_workspace(self) -> ActionResult:
        """Delete a workspace."""
        workspace, backend = self._workspace(), self.grafana
        shown = {**self._description(workspace), "status": "DELETING"}
        for kept in (backend.workspaces, backend.saml, backend.sso_clients, backend.configurations, backend.inside):
            kept.pop(workspace["id"], None)
        del backend.tags[backend.arn_of(workspace["id"])]
        return ActionResult({"workspace": shown})

    # authentication

    def describe_workspace_authentication(self) -> ActionResult:
        """The authentication settings."""
        return ActionResult({"authentication": self._authentication(self._workspace())})

    def update_workspace_authentication(self) -> ActionResult:
        """Set the providers. Only SAML takes a SAML configuration."""
        workspace, saml = self._workspace(), self.params.get("samlConfiguration")
        providers = _providers(self.params["authenticationProviders"])
        if saml is not None:
            if "SAML" not in providers:
                raise _invalid("samlConfiguration", "SAML is not among the authenticationProviders.")
            self.grafana.saml[workspace["id"]] = copy.deepcopy(saml)
        self._authenticate(workspace, providers)
        return ActionResult({"authentication": self._authentication(workspace)})

    # configuration and versions

    def describe_workspace_configuration(self) -> ActionResult:
        """The settings of the workspace as JSON."""
        workspace = self._workspace()
        configuration = json.dumps(self.grafana.configurations[workspace["id"]])
        return ActionResult({"configuration": configuration, "grafanaVersion": workspace["grafanaVersion"]})

    def update_workspace_configuration(self) -> ActionResult:
        """Change settings or upgrade the version."""
        workspace = self._workspace()
        version = self.params.get("grafanaVersion") or workspace["grafanaVersion"]
        reachable = _newer(workspace["grafanaVersion"])
        if version not in (workspace["grafanaVersion"], *reachable):
            words = f"to one of {', '.join(reachable)}" if reachable else "no further"
            raise _invalid("grafanaVersion", f"a {workspace['grafanaVersion']} workspace can be upgraded {words}.")
        current = self.grafana.configurations[workspace["id"]]
        new = _configuration(self.params["configuration"], version, current)
        self.grafana.configurations[workspace["id"]] = new
        workspace |= {"grafanaVersion": version, "modified": datetime.datetime.now(datetime.UTC)}
        return EmptyResult()

    def list_versions(self) -> ActionResult:
        """Versions that can be created, or that a workspace can be upgraded to."""
        found = VERSIONS
        if "workspaceId" in self.params:
            found = _newer(self._workspace()["grafanaVersion"])
        return ActionResult({"grafanaVersions": list(found)})

    # tags

    def requested_tags(self) -> dict[str, str]:
        """The tags of the requested workspace."""
        arn = self.params["resourceArn"]
        if arn not in self.grafana.tags:
            raise _missing(f"Resource {arn} was not found.", arn)
        return self.grafana.tags[arn]

    # helpers

    def _workspace(self) -> dict[str, Any]:
        return self.grafana.find(self.params["workspaceId"])

    def _kept(self, what: str) -> dict[Any, Any]:
        return self.grafana.inside.setdefault(self.params["workspaceId"], {}).setdefault(what, {})

    def _members(self) -> dict[str, Any]:
        given = {name: value for name, value in self.params.items() if name not in _ASIDE}
        return {_RENAMED.get(name, name): copy.deepcopy(value) for name, value in given.items()}

    def _authenticate(self, workspace: dict[str, Any], providers: list[str]) -> None:
        backend, name = self.grafana, workspace["id"]
        if "SAML" not in providers:
            backend.saml.pop(name, None)
        if "AWS_SSO" in providers:
            backend.sso_clients.setdefault(name, f"ins-{secrets.token_hex(8)}")
        else:
            backend.sso_clients.pop(name, None)
        summary: dict[str, Any] = {"providers": providers}
        if "SAML" in providers:
            summary["samlConfigurationStatus"] = "CONFIGURED" if name in backend.saml else "NOT_CONFIGURED"
        workspace["authentication"] = summary

    def _authentication(self, workspace: dict[str, Any]) -> dict[str, Any]:
        summary, saml = workspace["authentication"], self.grafana.saml.get(workspace["id"])
        answer: dict[str, Any] = {"providers": summary["providers"]}
        if "samlConfigurationStatus" in summary:
            answer["saml"] = {"status": summary["samlConfigurationStatus"]}
            if saml is not None:
                answer["saml"]["configuration"] = saml
        if client := self.grafana.sso_clients.get(workspace["id"]):
            answer["awsSso"] = {"ssoClientId": client}
        return answer

    def _description(self, workspace: dict[str, Any]) -> dict[str, Any]:
        return {**workspace, "tags": self.grafana.tags[self.grafana.arn_of(workspace["id"])]}

    def _check(self, workspace: dict[str, Any]) -> None:
        references = self.grafana.references
        role, key = workspace.get("workspaceRoleArn"), workspace.get("kmsKeyId")
        if workspace["permissionType"] == "CUSTOMER_MANAGED" and not role:
            raise _invalid("workspaceRoleArn", "permissionType CUSTOMER_MANAGED needs a role.")
        if role and references.role(role) is None:
            raise _invalid("workspaceRoleArn", f"role {role} does not exist.")
        if key and references.key(key) is None:
            raise _invalid("kmsKeyId", f"KMS key {key} does not exist.")
        if workspace["ipAddressType"] == "DualStack" and _index(workspace["grafanaVersion"]) < _index("10.4"):
            raise _invalid("ipAddressType", "DualStack needs version 10 or later.")
        _check_vpc(references, workspace.get("vpcConfiguration"))
        _check_access(references, workspace.get("networkAccessControl"))


@functools.cache
def activate() -> Any:
    """Add Grafana to moto. Returns the backends by account and Region."""
    workspace = r"/workspaces/(?P<workspace_id>[^/]+)"
    paths = ("/workspaces", workspace, f"{workspace}/authentication", f"{workspace}/configuration", "/versions")
    return add_service(
        "grafana",
        GrafanaBackend,
        GrafanaResponse,
        (*paths, *(workspace + path for path in PATHS), r"/tags/(?P<arn>.+)"),
    )


def _check_vpc(references: References, vpc: dict[str, Any] | None) -> None:
    if vpc is None:
        return
    found = {name: references.subnet(name) for name in vpc["subnetIds"]}
    found |= {name: references.security_group(name) for name in vpc["securityGroupIds"]}
    for name, there in found.items():
        if there is None:
            raise _invalid("vpcConfiguration", f"{name} does not exist.")
    if len({there.vpc_id for there in found.values()}) > 1:
        raise _invalid("vpcConfiguration", "subnets and security groups must be in one VPC.")


def _check_access(references: References, access: dict[str, Any] | None) -> None:
    for name, look in (("prefixListIds", references.prefix_list), ("vpceIds", references.vpc_endpoint)):
        listed = (access or {}).get(name) or []
        if len(listed) > MAX_LISTED:
            raise _invalid(f"networkAccessControl.{name}", f"at most {MAX_LISTED}, not {len(listed)}.")
        for one in listed:
            if look(one) is None:
                raise _invalid(f"networkAccessControl.{name}", f"{one} does not exist.")


def _configuration(text: str | None, version: str, current: dict[str, Any]) -> dict[str, Any]:
    """The settings after a change in JSON. From version 12 on, alerting cannot be disabled."""
    known = {"plugins": "pluginAdminEnabled", "unifiedAlerting": "enabled"}
    try:
        change = json.loads(text or "{}")
        fits = all(change[name].keys() == {known[name]} for name in change)
    except (AttributeError, KeyError, TypeError, ValueError):
        fits = False
    if not fits:
        raise _invalid("configuration", "it must be JSON with plugins.pluginAdminEnabled and unifiedAlerting.enabled.")
    defaults = {"unifiedAlerting": {"enabled": False}, "plugins": {"pluginAdminEnabled": False}}
    new = {**defaults, **current, **change}
    if version == "8.4" and new["plugins"]["pluginAdminEnabled"]:
        raise _invalid("configuration", "plugin management needs version 9 or later.")
    if _index(version) >= _index("12.4"):
        new["unifiedAlerting"] = {"enabled": True}
    return new


def _providers(providers: list[str]) -> list[str]:
    if not providers or len(set(providers)) < len(providers):
        raise _invalid("authenticationProviders", "one or more are needed, each once.")
    return list(providers)


def _newer(version: str) -> tuple[str, ...]:
    return VERSIONS[_index(version) + 1 :]


def _index(version: str) -> int:
    return VERSIONS.index(version)


def _invalid(field: str, message: str) -> Refusal:
    listed = [{"name": field, "message": message}]
    return Refusal("ValidationException", f"{field}: {message}", reason="FIELD_VALIDATION_FAILED", fieldList=listed)


def _missing(message: str, resource_id: str) -> Refusal:
    kind = "AWS::Grafana::Workspace"
    return Refusal("ResourceNotFoundException", message, resourceId=resource_id, resourceType=kind)
