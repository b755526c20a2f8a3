"""Amazon Managed Service for Prometheus: KMS keys, workspace configuration, query logging and validation."""

import copy
import datetime
import functools
from typing import Any

from moto.amp import urls
from moto.amp.responses import PrometheusServiceResponse
from moto.core.responses import ActionResult, EmptyResult

from localaws.services.aps_alerting import Alerting
from localaws.services.aps_scrapers import ScraperActions, add_paths
from localaws.services.references import References
from localaws.services.service import Refusal

MAX_WORKSPACES = 25  # per account and region
MAX_RETENTION_DAYS = 1095
MAX_OUT_OF_ORDER_SECONDS = 600
DEFAULTS = {"retentionPeriodInDays": 150, "outOfOrderTimeWindowInSeconds": 60, "ruleQueryOffsetInSeconds": 60}
ACTIVE = {"statusCode": "ACTIVE"}


class ApsResponse(Alerting, ScraperActions, PrometheusServiceResponse):  # type: ignore[misc]  # moto is untyped
    """The AMP API: moto's class with some actions replaced and others added."""

    @property
    def references(self) -> References:
        """Look-ups in the other services of the caller's account and Region."""
        return References(self.current_account, self.region, self.partition)

    # workspaces

    def create_workspace(self) -> ActionResult:
        """Create a workspace, encrypted with a customer managed key if the request has one."""
        key = self.params.get("kmsKeyArn")
        if len(self.amp_backend.workspaces) >= MAX_WORKSPACES:
            members = {
                "resourceId": self.region,
                "resourceType": _KIND,
                "serviceCode": "aps",
                "quotaCode": "workspaces",
            }
            message = f"The Region has {MAX_WORKSPACES} workspaces, which is the limit."
            raise Refusal("ServiceQuotaExceededException", message, **members)
        if key is not None:
            found = self.references.key(key)
            if found is None or not found.enabled:
                raise _invalid("kmsKeyArn", f"KMS key {key} does not exist or is not enabled.")
        workspace = self.amp_backend.create_workspace(self.params.get("alias"), self.params.get("tags") or {})
        workspace.added = {"kmsKeyArn": key, "configuration": dict(DEFAULTS)}
        return ActionResult(self._description(workspace))

    def describe_workspace(self) -> ActionResult:
        """One workspace."""
        return ActionResult({"workspace": self._description(self._workspace())})

    def list_workspaces(self) -> ActionResult:
        """All workspaces, or those whose alias starts with `alias`."""
        wanted = self.params.get("alias") or ""
        found = [one for one in self.amp_backend.workspaces.values() if (one.alias or "").startswith(wanted)]
        return self.page("workspaces", [self._description(workspace) for workspace in found])

    def update_workspace_alias(self) -> ActionResult:
        """Rename a workspace."""
        self._workspace().alias = self.params.get("alias")
        return EmptyResult()

    def delete_workspace(self) -> ActionResult:
        """Delete a workspace."""
        del self.amp_backend.workspaces[self._workspace().workspace_id]
        return EmptyResult()

    # configuration

    def describe_workspace_configuration(self) -> ActionResult:
        """Retention, windows and limits of a workspace."""
        return ActionResult({"workspaceConfiguration": {"status": ACTIVE, **self._workspace().added["configuration"]}})

    def update_workspace_configuration(self) -> ActionResult:
        """Update the members in the request."""
        workspace = self._workspace()
        change = {name: value for name, value in self.params.items() if name not in ("workspaceId", "clientToken")}
        for name, most in (
            ("retentionPeriodInDays", MAX_RETENTION_DAYS),
            ("outOfOrderTimeWindowInSeconds", MAX_OUT_OF_ORDER_SECONDS),
        ):
            if change.get(name, 0) > most:
                raise _invalid(name, f"at most {most}, not {change[name]}.")
        workspace.added["configuration"] |= copy.deepcopy(change)
        return ActionResult({"status": ACTIVE})

    # logging of the service's own errors

    def create_logging_configuration(self) -> ActionResult:
        """Send the errors of rules and alerts to a log group."""
        return self._create("logging", {"logGroupArn": self._log_group(self.params["logGroupArn"])})

    def describe_logging_configuration(self) -> ActionResult:
        """The logging configuration."""
        return ActionResult({"loggingConfiguration": self._existing("logging")})

    def update_logging_configuration(self) -> ActionResult:
        """Change the log group."""
        return self._update("logging", {"logGroupArn": self._log_group(self.params["logGroupArn"])})

    def delete_logging_configuration(self) -> ActionResult:
        """Delete the configuration."""
        return self._delete("logging")

    # logging of queries

    def create_query_logging_configuration(self) -> ActionResult:
        """Send expensive queries to a log group."""
        return self._create("queryLogging", {"destinations": self._destinations()})

    def describe_query_logging_configuration(self) -> ActionResult:
        """The query logging configuration."""
        return ActionResult({"queryLoggingConfiguration": self._existing("queryLogging")})

    def update_query_logging_configuration(self) -> ActionResult:
        """Change the destinations."""
        return self._update("queryLogging", {"destinations": self._destinations()})

    def delete_query_logging_configuration(self) -> ActionResult:
        """Delete the configuration."""
        return self._delete("queryLogging")

    # helpers

    def _workspace(self) -> Any:
        workspace_id = self.params["workspaceId"]
        if workspace_id not in self.amp_backend.workspaces:
            raise _missing(f"Workspace {workspace_id} was not found.", workspace_id)
        return self.amp_backend.workspaces[workspace_id]

    def _description(self, workspace: Any) -> dict[str, Any]:
        key = workspace.added["kmsKeyArn"]
        return {**workspace.to_dict(), **({"kmsKeyArn": key} if key else {})}

    def _create(self, what: str, content: dict[str, Any]) -> ActionResult:
        workspace = self._workspace()
        if what in workspace.added:
            members = {"resourceId": workspace.workspace_id, "resourceType": _KIND}
            raise Refusal("ConflictException", f"The workspace has a {what} configuration already.", **members)
        now = datetime.datetime.now(datetime.UTC)
        kept = {"status": ACTIVE, "workspace": workspace.workspace_id, "createdAt": now, "modifiedAt": now}
        workspace.added[what] = {**kept, **content}
        return ActionResult({"status": ACTIVE})

    def _existing(self, what: str) -> dict[str, Any]:
        workspace = self._workspace()
        if what not in workspace.added:
            raise _missing(f"The workspace has no {what} configuration.", workspace.workspace_id)
        kept: dict[str, Any] = workspace.added[what]
        return kept

    def _update(self, what: str, content: dict[str, Any]) -> ActionResult:
        self._existing(what).update(content, modifiedAt=datetime.datetime.now(datetime.UTC))
        return ActionResult({"status": ACTIVE})

    def _delete(self, what: str) -> ActionResult:
        self._existing(what)
        del self._workspace().added[what]
        return EmptyResult()

    def _destinations(self) -> list[dict[str, Any]]:
        destinations: list[dict[str, Any]] = copy.deepcopy(self.params["destinations"])
        for destination in destinations:
            self._log_group(destination["cloudWatchLogs"]["logGroupArn"])
        return destinations

    def _log_group(self, arn: str) -> str:
        if self.references.log_group(arn) is None:
            raise _invalid("logGroupArn", f"{arn} is not a log group of this account and Region.")
        return arn


@functools.cache
def activate() -> None:
    """Replace moto's class by this one and add its paths."""
    workspace = "{0}/workspaces/(?P<workspace_id>[^/]+)"
    for path in (
        *urls.url_paths,
        f"{workspace}/configuration$",
        f"{workspace}/logging/query$",
        f"{workspace}/alertmanager/definition$",
    ):
        urls.url_paths[path] = ApsResponse.dispatch
    add_paths(ApsResponse.dispatch)


_KIND = "AWS::APS::Workspace"


def _invalid(field: str, message: str) -> Refusal:
    listed = [{"name": field, "message": message}]
    return Refusal("ValidationException", f"{field}: {message}", reason="FIELD_VALIDATION_FAILED", fieldList=listed)


def _missing(message: str, resource_id: str) -> Refusal:
    return Refusal("ResourceNotFoundException", message, resourceId=resource_id, resourceType=_KIND)
