"""Amazon Managed Grafana: users of a workspace, service accounts and their tokens."""

import datetime
import secrets
from typing import Any

from moto.core.responses import ActionResult

from localaws.services.service import Refusal, TagActions

MAX_TOKENS = 100
"""Tokens of a service account, expired ones included (Amazon Managed Grafana User Guide, "Service quotas", 2026)."""

OLDEST = ("8.4",)
"""Versions without service accounts (Amazon Managed Grafana API, CreateWorkspaceServiceAccount, 2026)."""


class AccessActions(TagActions):
    """Actions on permissions, service accounts and tokens. The subclass finds the workspace."""

    # users and groups

    def update_permissions(self) -> ActionResult:
        """Add and revoke roles. An instruction that fails is listed, and the others take effect."""
        workspace = self._workspace()
        if "AWS_SSO" not in workspace["authentication"]["providers"]:
            raise _invalid("workspaceId", "the workspace does not use IAM Identity Center.")
        granted, errors = self._kept("permissions"), []
        for instruction in self.params["updateInstructionBatch"]:
            for user in instruction["users"]:
                key, role = (user["id"], user["type"]), instruction["role"]
                message = None
                if instruction["action"] == "ADD":
                    if granted.get(key, role) != role:
                        message = f"the user has the role {granted[key]}."
                    else:
                        granted[key] = role
                elif granted.get(key) == role:
                    del granted[key]
                else:
                    message = f"the user does not have the role {role}."
                if message:
                    errors.append({"code": 400, "message": message, "causedBy": {**instruction, "users": [user]}})
        return ActionResult({"errors": errors})

    def list_permissions(self) -> ActionResult:
        """The roles of users and groups."""
        self._workspace()
        found = [
            {"user": {"id": name, "type": kind}, "role": role}
            for (name, kind), role in self._kept("permissions").items()
        ]
        return self.page("permissions", found)

    # service accounts

    def create_workspace_service_account(self) -> ActionResult:
        """Create a service account; its name is unique."""
        workspace, accounts = self._workspace(), self._kept("accounts")
        name = self.params["name"]
        if workspace["grafanaVersion"] in OLDEST:
            raise _invalid("workspaceId", "service accounts need version 9 or later.")
        if any(account["name"] == name for account in accounts.values()):
            raise _conflict(f"A service account named {name} exists already.", name)
        new_id = str(max(map(int, accounts), default=0) + 1)
        accounts[new_id] = {"id": new_id, "name": name, "grafanaRole": self.params["grafanaRole"], "tokens": {}}
        return ActionResult({**_shown(accounts[new_id]), "workspaceId": workspace["id"]})

    def list_workspace_service_accounts(self) -> ActionResult:
        """The service accounts of a workspace."""
        workspace = self._workspace()
        accounts = [{**_shown(account), "isDisabled": "false"} for account in self._kept("accounts").values()]
        page = self.page("serviceAccounts", accounts)
        return ActionResult({**page.result, "workspaceId": workspace["id"]})

    def delete_workspace_service_account(self) -> ActionResult:
        """Delete a service account with its tokens."""
        workspace, account = self._workspace(), self._account()
        del self._kept("accounts")[account["id"]]
        return ActionResult({"serviceAccountId": account["id"], "workspaceId": workspace["id"]})

    # tokens

    def create_workspace_service_account_token(self) -> ActionResult:
        """Create a token. Only this response contains its key."""
        workspace, account = self._workspace(), self._account()
        tokens, name = account["tokens"], self.params["name"]
        if any(token["name"] == name for token in tokens.values()):
            raise _conflict(f"A token named {name} exists already.", name)
        if len(tokens) >= MAX_TOKENS:
            members = {"resourceId": account["id"], "resourceType": _KIND, "serviceCode": "grafana"}
            message = f"The service account has {MAX_TOKENS} tokens, which is the limit."
            raise Refusal("ServiceQuotaExceededException", message, **members, quotaCode="tokens")
        now = datetime.datetime.now(datetime.UTC)
        new_id, key = str(len(tokens) + 1), f"glsa_{secrets.token_hex(16)}"
        life = datetime.timedelta(seconds=self.params["secondsToLive"])
        tokens[new_id] = {"id": new_id, "name": name, "createdAt": now, "expiresAt": now + life, "key": key}
        made = {"id": new_id, "name": name, "key": key}
        return ActionResult(
            {"serviceAccountToken": made, "serviceAccountId": account["id"], "workspaceId": workspace["id"]}
        )

    def list_workspace_service_account_tokens(self) -> ActionResult:
        """The tokens of a service account, without their keys."""
        workspace, account = self._workspace(), self._account()
        tokens = [
            {name: value for name, value in token.items() if name != "key"} for token in account["tokens"].values()
        ]
        page = self.page("serviceAccountTokens", tokens)
        return ActionResult({**page.result, "serviceAccountId": account["id"], "workspaceId": workspace["id"]})

    def delete_workspace_service_account_token(self) -> ActionResult:
        """Delete a token."""
        workspace, account, token = self._workspace(), self._account(), self.params["tokenId"]
        if account["tokens"].pop(token, None) is None:
            raise _missing(f"Token {token} was not found.", token)
        return ActionResult({"tokenId": token, "serviceAccountId": account["id"], "workspaceId": workspace["id"]})

    # helpers

    def _workspace(self) -> dict[str, Any]:
        raise NotImplementedError

    def _kept(self, what: str) -> dict[Any, Any]:
        """State of the workspace that the service's descriptions do not show."""
        raise NotImplementedError

    def _account(self) -> dict[str, Any]:
        accounts, wanted = self._kept("accounts"), self.params["serviceAccountId"]
        if wanted not in accounts:
            raise _missing(f"Service account {wanted} was not found.", wanted)
        found: dict[str, Any] = accounts[wanted]
        return found


PATHS = (
    "/permissions",
    "/serviceaccounts",
    r"/serviceaccounts/(?P<account_id>[^/]+)",
    r"/serviceaccounts/(?P<account_id>[^/]+)/tokens",
    r"/serviceaccounts/(?P<account_id>[^/]+)/tokens/(?P<token_id>[^/]+)",
)
"""Paths of these actions below that of a workspace."""

_KIND = "AWS::Grafana::Workspace"


def _shown(account: dict[str, Any]) -> dict[str, Any]:
    return {name: account[name] for name in ("id", "name", "grafanaRole")}


def _invalid(field: str, message: str) -> Refusal:
    listed = [{"name": field, "message": message}]
    return Refusal("ValidationException", f"{field}: {message}", reason="FIELD_VALIDATION_FAILED", fieldList=listed)


def _missing(message: str, resource_id: str) -> Refusal:
    return Refusal("ResourceNotFoundException", message, resourceId=resource_id, resourceType=_KIND)


def _conflict(message: str, resource_id: str) -> Refusal:
    return Refusal("ConflictException", message, resourceId=resource_id, resourceType=_KIND)
