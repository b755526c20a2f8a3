"""Amazon Managed Grafana for moto: workspaces, authentication, configuration, users, service accounts and tokens."""

import copy
import datetime
import functools
import json
import secrets
from typing import Any

from moto.core.responses import ActionResult, EmptyResult

from localaws.services.actions import Actions, add_service
from localaws.services.service import invalid
from localaws.services.store import Call, Item, Kind, Rule, Store

VERSIONS: tuple[str, ...] = ("8.4", "9.4", "10.4", "12.4")
MAX_LISTED = 5  # prefix lists, and VPC endpoints, of network access control
MAX_TOKENS = 100
"""Tokens of a service account, expired ones included (Amazon Managed Grafana User Guide, "Service quotas", 2026)."""


class GrafanaStore(Store):
    """Grafana in one account and Region, with the settings and the contents of the workspaces by id."""

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.configurations: dict[str, dict[str, Any]] = {}
        self.inside: dict[str, dict[str, dict[Any, Any]]] = {}

    def kept(self, workspace: Item, what: str) -> dict[Any, Any]:
        """Contents of one sort, such as accounts and dashboards."""
        return self.inside.setdefault(workspace.id, {}).setdefault(what, {})


# hooks


def _workspace(call: Call) -> None:
    """The version of a new workspace; the settings that an update removes."""
    if call.item is None:
        call.new.setdefault("grafanaVersion", VERSIONS[-1])
    for flag, member in (
        ("removeVpcConfiguration", "vpcConfiguration"),
        ("removeNetworkAccessConfiguration", "networkAccessControl"),
    ):
        if call.request.get(flag):
            if member in call.request:
                raise invalid(flag, f"{member} cannot be set and removed at once.")
            call.new.pop(member, None)


def _open(call: Call) -> None:
    workspace, request = call.target, call.request
    workspace.description["endpoint"] = f"{workspace.id}.grafana-workspace.{call.store.region_name}.amazonaws.com"
    settings = configured(request.get("configuration"), workspace["grafanaVersion"], {})
    call.store.configurations[workspace.id] = settings
    _authenticate(workspace, request["authenticationProviders"])


def _close(call: Call) -> None:
    call.store.configurations.pop(call.target.id)
    call.store.inside.pop(call.target.id, None)


def _authenticate(workspace: Item, providers: list[str]) -> None:
    owned = workspace.owned
    if "SAML" not in providers:
        owned.pop("saml", None)
    if "AWS_SSO" in providers:
        owned.setdefault("sso", f"ins-{secrets.token_hex(8)}")
    else:
        owned.pop("sso", None)
    summary: dict[str, Any] = {"providers": list(providers)}
    if "SAML" in providers:
        summary["samlConfigurationStatus"] = "CONFIGURED" if "saml" in owned else "NOT_CONFIGURED"
    workspace.description["authentication"] = summary


def _next_number(call: Call) -> str:
    return str(max((int(item.id) for item in call.others), default=0) + 1)


def _add_account(call: Call) -> None:
    call.store.kept(call.within, "accounts")[call.target.id] = call.target


def _remove_account(call: Call) -> None:
    call.store.kept(call.within, "accounts").pop(call.target.id, None)


def _add_token(call: Call) -> None:
    """Only the response of the creation shows the key."""
    token, life = call.target, datetime.timedelta(seconds=call.request["secondsToLive"])
    token.description |= {"expiresAt": token["createdAt"] + life, "key": f"glsa_{secrets.token_hex(16)}"}
    call.within["tokens"][token.id] = token.description


def _remove_token(call: Call) -> None:
    del call.within["tokens"][call.target.id]


WORKSPACE = Kind(
    noun="Workspace",
    address="workspaceId",
    id="id",
    new_id=lambda _: f"g-{secrets.token_hex(5)}",
    arn="/workspaces/{id}",
    defaults={"dataSources": [], "notificationDestinations": [], "ipAddressType": "IPv4"},
    describe=_workspace,
    made=_open,
    removed=_close,
)
ACCOUNT = Kind(
    noun="WorkspaceServiceAccount",
    type="AWS::Grafana::Workspace",
    word="service account",
    address="serviceAccountId",
    id="id",
    new_id=_next_number,
    name="name",
    parent=WORKSPACE,
    defaults={"isDisabled": "false", "tokens": {}},
    made=_add_account,
    removed=_remove_account,
    missing="Service account {id} was not found.",
    taken="A service account named {name} exists already.",
)
TOKEN = Kind(
    noun="WorkspaceServiceAccountToken",
    type="AWS::Grafana::Workspace",
    word="token",
    address="tokenId",
    id="id",
    new_id=_next_number,
    name="name",
    parent=ACCOUNT,
    quota=MAX_TOKENS,
    full="The service account has {limit} tokens, which is the limit.",
    made=_add_token,
    removed=_remove_token,
    missing="Token {id} was not found.",
    taken="A token named {name} exists already.",
)


# refusals


def _version(call: Call) -> None:
    version = call.new["grafanaVersion"]
    if version not in VERSIONS:
        raise invalid("grafanaVersion", f"{version} cannot be created; choose one of {', '.join(VERSIONS)}.")
    configured(call.request.get("configuration"), version, {})


def _providers(call: Call) -> None:
    providers = call.request["authenticationProviders"]
    if not providers or len(set(providers)) < len(providers):
        raise invalid("authenticationProviders", "one or more are needed, each once.")
    if call.request.get("samlConfiguration") and "SAML" not in providers:
        raise invalid("samlConfiguration", "SAML is not among the authenticationProviders.")


def _role_and_key(call: Call) -> None:
    role, key = call.new.get("workspaceRoleArn"), call.new.get("kmsKeyId")
    if call.new["permissionType"] == "CUSTOMER_MANAGED" and not role:
        raise invalid("workspaceRoleArn", "permissionType CUSTOMER_MANAGED needs a role.")
    if role and call.references.role(role) is None:
        raise invalid("workspaceRoleArn", f"role {role} does not exist.")
    if key and call.references.key(key) is None:
        raise invalid("kmsKeyId", f"KMS key {key} does not exist.")


def _network(call: Call) -> None:
    references, vpc, access = call.references, call.new.get("vpcConfiguration"), call.new.get("networkAccessControl")
    if call.new["ipAddressType"] == "DualStack" and _index(call.new["grafanaVersion"]) < _index("10.4"):
        raise invalid("ipAddressType", "DualStack needs version 10 or later.")
    if vpc:
        found = {name: references.subnet(name) for name in vpc["subnetIds"]}
        found |= {name: references.security_group(name) for name in vpc["securityGroupIds"]}
        for name, there in found.items():
            if there is None:
                raise invalid("vpcConfiguration", f"{name} does not exist.")
        if len({there.vpc_id for there in found.values()}) > 1:
            raise invalid("vpcConfiguration", "subnets and security groups must be in one VPC.")
    for name, look in (("prefixListIds", references.prefix_list), ("vpceIds", references.vpc_endpoint)):
        listed = (access or {}).get(name) or []
        if len(listed) > MAX_LISTED:
            raise invalid(f"networkAccessControl.{name}", f"at most {MAX_LISTED}, not {len(listed)}.")
        for one in listed:
            if look(one) is None:
                raise invalid(f"networkAccessControl.{name}", f"{one} does not exist.")


def _upgrade(call: Call) -> None:
    current = call.target["grafanaVersion"]
    reachable = _newer(current)
    if call.request.get("grafanaVersion", current) not in (current, *reachable):
        words = f"to one of {', '.join(reachable)}" if reachable else "no further"
        raise invalid("grafanaVersion", f"a {current} workspace can be upgraded {words}.")


def _has_accounts(call: Call) -> None:
    if call.within["grafanaVersion"] == "8.4":
        raise invalid("workspaceId", "service accounts need version 9 or later.")


def _uses_identity_center(call: Call) -> None:
    if "AWS_SSO" not in call.target["authentication"]["providers"]:
        raise invalid("workspaceId", "the workspace does not use IAM Identity Center.")


RULES = (
    Rule("CreateWorkspace", _version, "API Reference, ListVersions, CreateWorkspace"),
    Rule("CreateWorkspace UpdateWorkspaceAuthentication", _providers, "API Reference, UpdateWorkspaceAuthentication"),
    Rule("CreateWorkspace UpdateWorkspace", _role_and_key, "API Reference, CreateWorkspace"),
    Rule("CreateWorkspace UpdateWorkspace", _network, "API Reference, VpcConfiguration, NetworkAccessConfiguration"),
    Rule("UpdateWorkspaceConfiguration", _upgrade, "API Reference, UpdateWorkspaceConfiguration"),
    Rule("CreateWorkspaceServiceAccount", _has_accounts, "API Reference, CreateWorkspaceServiceAccount"),
    Rule("UpdatePermissions", _uses_identity_center, "API Reference, UpdatePermissions"),
)


def configured(text: str | None, version: str, current: dict[str, Any]) -> dict[str, Any]:
    """The settings after a change in JSON. From version 12 on, alerting cannot be disabled."""
    known = {"plugins": "pluginAdminEnabled", "unifiedAlerting": "enabled"}
    try:
        change = json.loads(text or "{}")
        fits = all(change[name].keys() == {known[name]} for name in change)
    except (AttributeError, KeyError, TypeError, ValueError):
        fits = False
    if not fits:
        raise invalid("configuration", "it must be JSON with plugins.pluginAdminEnabled and unifiedAlerting.enabled.")
    defaults = {"unifiedAlerting": {"enabled": False}, "plugins": {"pluginAdminEnabled": False}}
    new = {**defaults, **current, **change}
    if version == "8.4" and new["plugins"]["pluginAdminEnabled"]:
        raise invalid("configuration", "plugin management needs version 9 or later.")
    if _index(version) >= _index("12.4"):
        new["unifiedAlerting"] = {"enabled": True}
    return new


def _newer(version: str) -> tuple[str, ...]:
    return VERSIONS[_index(version) + 1 :]


def _index(version: str) -> int:
    return VERSIONS.index(version)


class GrafanaActions(Actions):
    """The actions of the Grafana API."""

    service = "grafana"
    kinds = (WORKSPACE, ACCOUNT, TOKEN)
    rules = RULES
    store: GrafanaStore

    # authentication

    def describe_workspace_authentication(self) -> ActionResult:
        """The authentication settings."""
        return self._authentication(self.call("Describe", WORKSPACE).target)

    def update_workspace_authentication(self) -> ActionResult:
        """Set the providers. Only SAML takes a SAML configuration."""
        call = self.call("Put", WORKSPACE)
        self.check(call)
        if saml := self.params.get("samlConfiguration"):
            call.target.owned["saml"] = copy.deepcopy(saml)
        _authenticate(call.target, self.params["authenticationProviders"])
        return self._authentication(call.target)

    def _authentication(self, workspace: Item) -> ActionResult:
        summary, owned = workspace["authentication"], workspace.owned
        answer: dict[str, Any] = {"providers": summary["providers"]}
        if "samlConfigurationStatus" in summary:
            answer["saml"] = {"status": summary["samlConfigurationStatus"], "configuration": owned.get("saml")}
        if "sso" in owned:
            answer["awsSso"] = {"ssoClientId": owned["sso"]}
        return ActionResult({"authentication": answer})

    # configuration and versions

    def describe_workspace_configuration(self) -> ActionResult:
        """The settings of the workspace as JSON."""
        workspace = self.call("Describe", WORKSPACE).target
        configuration = json.dumps(self.store.configurations[workspace.id])
        return ActionResult({"configuration": configuration, "grafanaVersion": workspace["grafanaVersion"]})

    def update_workspace_configuration(self) -> ActionResult:
        """Change settings or upgrade the version."""
        call = self.call("Put", WORKSPACE)
        self.check(call)
        workspace, settings = call.target, self.store.configurations
        version = self.params.get("grafanaVersion") or workspace["grafanaVersion"]
        settings[workspace.id] = configured(self.params["configuration"], version, settings[workspace.id])
        workspace.change({"grafanaVersion": version})
        return EmptyResult()

    def list_versions(self) -> ActionResult:
        """Versions that can be created, or that a workspace can be upgraded to."""
        there = "workspaceId" in self.params
        found = _newer(self.call("Describe", WORKSPACE).target["grafanaVersion"]) if there else VERSIONS
        return ActionResult({"grafanaVersions": list(found)})

    # users and groups

    def update_permissions(self) -> ActionResult:
        """Add and revoke roles. An instruction that fails is listed, and the others take effect."""
        call = self.call("Put", WORKSPACE)
        self.check(call)
        granted, errors = self.store.kept(call.target, "permissions"), []
        for instruction in self.params["updateInstructionBatch"]:
            for user in instruction["users"]:
                key, role = (user["id"], user["type"]), instruction["role"]
                message = None
                if instruction["action"] == "ADD":
                    if granted.setdefault(key, role) != role:
                        message = f"the user has the role {granted[key]}."
                elif granted.get(key) == role:
                    del granted[key]
                else:
                    message = f"the user does not have the role {role}."
                if message:
                    errors.append({"code": 400, "message": message, "causedBy": {**instruction, "users": [user]}})
        return ActionResult({"errors": errors})

    def list_permissions(self) -> ActionResult:
        """The roles of users and groups."""
        granted = self.store.kept(self.call("Describe", WORKSPACE).target, "permissions")
        found = [{"user": {"id": name, "type": kind}, "role": role} for (name, kind), role in granted.items()]
        return self.page("permissions", found)


@functools.cache
def activate() -> Any:
    """Add Grafana to moto. Returns the stores by account and Region."""
    workspace, account = r"/workspaces/(?P<workspace_id>[^/]+)", r"/serviceaccounts/(?P<account_id>[^/]+)"
    below = ("", "/authentication", "/configuration", "/permissions", "/serviceaccounts", account, f"{account}/tokens")
    token = rf"{workspace}{account}/tokens/(?P<token_id>[^/]+)"
    paths = ("/workspaces", *(workspace + path for path in below), token, "/versions", r"/tags/(?P<arn>.+)")
    return add_service("Grafana", GrafanaActions, *paths, store=GrafanaStore)
