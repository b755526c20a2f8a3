"""Amazon Managed Service for Prometheus in place of moto's: workspaces, rules, alerts, logging and scrapers."""

import copy
import datetime
import functools
import uuid
from typing import Any

from moto.core.responses import ActionResult, EmptyResult

from localaws.services import aps_alerting as alerting
from localaws.services import aps_scrapers as scrapers
from localaws.services.actions import Actions, add_service
from localaws.services.service import invalid
from localaws.services.store import Call, Item, Kind, Rule

MAX_WORKSPACES = 25  # per account and region
LIMITS = {"retentionPeriodInDays": 1095, "outOfOrderTimeWindowInSeconds": 600}
DEFAULTS = {"retentionPeriodInDays": 150, "outOfOrderTimeWindowInSeconds": 60, "ruleQueryOffsetInSeconds": 60}
ACTIVE = {"statusCode": "ACTIVE"}


def _configure(call: Call) -> None:
    region, workspace = call.store.region_name, call.target
    workspace.owned["configuration"] = dict(DEFAULTS)
    endpoint = f"https://aps-workspaces.{region}.amazonaws.com/workspaces/{workspace.id}/"
    workspace.description["prometheusEndpoint"] = endpoint


def _decode(call: Call) -> None:
    call.new["data"] = alerting.text_of(call.request["data"]).encode()


def _starts_with(member: str, identifier: str) -> Any:
    def listed(call: Call, item: Item) -> bool:
        return str(item.description.get(identifier) or "").startswith(call.request.get(member) or "")

    return listed


WORKSPACE = Kind(
    noun="Workspace",
    address="workspaceId",
    new_id=lambda _: f"ws-{uuid.uuid4()}",
    arn="workspace/{workspaceId}",
    quota=MAX_WORKSPACES,
    full="The Region has {limit} workspaces, which is the limit.",
    made=_configure,
    listed=_starts_with("alias", "alias"),
)
RULE_GROUPS = Kind(
    noun="RuleGroupsNamespace",
    address="name",
    arn="rulegroupsnamespace/{workspaceId}/{name}",
    parent=WORKSPACE,
    describe=_decode,
    listed=_starts_with("name", "name"),
    missing="Rule groups namespace {id} was not found.",
    taken="Rule groups namespace {name} exists already.",
)


def _one_of(noun: str, word: str, **more: Any) -> Kind:
    """A kind of which a workspace has at most one."""
    return Kind(
        noun=noun,
        type="AWS::APS::Workspace",
        id="workspace",
        parent=WORKSPACE,
        missing=f"The workspace has no {word}.",
        taken=f"The workspace has {'an' if word.startswith('a') else 'a'} {word} already.",
        **more,
    )


ALERT_MANAGER = _one_of("AlertManagerDefinition", "alert manager definition", describe=_decode)
LOGGING = _one_of("LoggingConfiguration", "logging configuration")
QUERY_LOGGING = _one_of("QueryLoggingConfiguration", "queryLogging configuration")


def _key(call: Call) -> None:
    key = call.request.get("kmsKeyArn")
    found = call.references.key(key) if key else None
    if key and (found is None or not found.enabled):
        raise invalid("kmsKeyArn", f"KMS key {key} does not exist or is not enabled.")


def _retention(call: Call) -> None:
    for name, most in LIMITS.items():
        if call.request.get(name, 0) > most:
            raise invalid(name, f"at most {most}, not {call.request[name]}.")


def _log_groups(call: Call) -> None:
    request = call.request
    destinations = [*request.get("destinations", ()), request.get("loggingDestination", {})]
    named = [request.get("logGroupArn"), *(each.get("cloudWatchLogs", {}).get("logGroupArn") for each in destinations)]
    for arn in filter(None, named):
        if call.references.log_group(arn) is None:
            raise invalid("logGroupArn", f"{arn} is not a log group of this account and Region.")


class ApsActions(Actions):
    """The actions of the AMP API."""

    service = "amp"
    kinds = (WORKSPACE, RULE_GROUPS, ALERT_MANAGER, LOGGING, QUERY_LOGGING, scrapers.SCRAPER)
    rules = (
        Rule("CreateWorkspace", _key, "API Reference, CreateWorkspace"),
        Rule("UpdateWorkspaceConfiguration", _retention, "User Guide, service quotas"),
        Rule("CreateRuleGroupsNamespace PutRuleGroupsNamespace", alerting.check_rules, "User Guide, rules files"),
        Rule(
            "CreateAlertManagerDefinition PutAlertManagerDefinition",
            alerting.check_definition,
            "User Guide, alert manager configuration",
        ),
        Rule("CreateLoggingConfiguration UpdateLoggingConfiguration", _log_groups, "API Reference"),
        Rule("CreateQueryLoggingConfiguration UpdateQueryLoggingConfiguration", _log_groups, "API Reference"),
        Rule("UpdateScraperLoggingConfiguration", _log_groups, "API Reference"),
        *scrapers.RULES,
    )

    def update_workspace_alias(self) -> ActionResult:
        """Rename a workspace."""
        self.call("Update", WORKSPACE).target.change({"alias": self.params.get("alias")})
        return EmptyResult()

    def describe_workspace_configuration(self) -> ActionResult:
        """Retention, windows and limits of a workspace."""
        configuration = self.call("Describe", WORKSPACE).target.owned["configuration"]
        return ActionResult({"workspaceConfiguration": {"status": ACTIVE, **configuration}})

    def update_workspace_configuration(self) -> ActionResult:
        """Update the members in the request."""
        call = self.call("Update", WORKSPACE)
        self.check(call)
        change = {name: value for name, value in self.params.items() if name not in ("workspaceId", "clientToken")}
        call.target.owned["configuration"] |= copy.deepcopy(change)
        return ActionResult({"status": ACTIVE})

    def update_scraper_logging_configuration(self) -> ActionResult:
        """Send the scraper's own logs to a log group."""
        call, names = self.call("Put", scrapers.SCRAPER), ("loggingDestination", "scraperComponents")
        self.check(call)
        kept = {name: copy.deepcopy(self.params[name]) for name in names}
        call.target.owned["logging"] = {**kept, "modifiedAt": datetime.datetime.now(datetime.UTC)}
        return ActionResult({"status": ACTIVE})

    def describe_scraper_logging_configuration(self) -> ActionResult:
        """Where the scraper's own logs go."""
        scraper = self.call("Describe", scrapers.SCRAPER).target
        if "logging" not in scraper.owned:
            message = f"Scraper {scraper.id} has no logging configuration."
            raise self.store.refusal(scraper.kind, "ResourceNotFoundException", message, scraper.id)
        return ActionResult({"status": ACTIVE, "scraperId": scraper.id, **scraper.owned["logging"]})

    def delete_scraper_logging_configuration(self) -> ActionResult:
        """Stop the scraper's own logs."""
        self.call("Delete", scrapers.SCRAPER).target.owned.pop("logging", None)
        return EmptyResult()


@functools.cache
def activate() -> Any:
    """Add AMP to moto. Returns the stores by account and Region."""
    workspace, scraper = "/workspaces/(?P<workspace_id>[^/]+)", "/scrapers/(?P<scraper_id>[^/]+)"
    below = ("", "/alias", "/configuration", "/logging", "/logging/query", "/alertmanager/definition")
    rules = ("/rulegroupsnamespaces", "/rulegroupsnamespaces/(?P<name>[^/]+)")
    paths = ["/workspaces", "/scrapers", scraper, f"{scraper}/logging-configuration", "/tags/(?P<arn>.+)"]
    return add_service("APS", ApsActions, *paths, *(workspace + path for path in (*below, *rules)), host="aps")
