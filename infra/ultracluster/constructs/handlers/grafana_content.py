"""Puts data sources and dashboards into a Grafana workspace, with a token that is deleted when the call ends.

The dashboards are files beside this code, in `dashboards`. Whatever else is in the workspace stays untouched.
"""

import json
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import boto3

FOLDER = Path(__file__).parent / "dashboards"
TOKEN_SECONDS = 900
"""Life of the token if nothing deletes it: the time that the function may run."""
ATTEMPTS, WAIT_SECONDS, TIMEOUT_SECONDS = 30, 5, 30
LAST_SECONDS = 60
"""Kept of the time that the function may run, to delete the service account and to answer CloudFormation."""
BUSY = (429, 500, 502, 503, 504)
NOTHING = "none"
INCOMPLETE = "/incomplete"
"""End of the id of a resource whose creation failed. CloudFormation sends Delete for it, which must not fail too: what
Grafana refused at the creation it may still refuse, and the stack could neither roll back nor be deleted."""


def handler(event: dict[str, Any], context: Any) -> None:
    """Answers CloudFormation. The resource is its workspace and folder, so another workspace is another resource."""
    request, properties = event["RequestType"], event["ResourceProperties"]
    resource = f"{properties['WorkspaceId']}/{properties['FolderUid']}"
    if request == "Delete":
        resource = event["PhysicalResourceId"]
    old = event.get("OldResourceProperties") or {}
    ends = time.monotonic() + context.get_remaining_time_in_millis() / 1000 - LAST_SECONDS
    try:
        step = serve(request, properties, earlier=old.get("Dashboards", ()), ends=ends)
    except Exception as error:
        logging.exception("Grafana content")
        if request == "Create":
            resource += INCOMPLETE
        status = "SUCCESS" if request == "Delete" and resource.endswith(INCOMPLETE) else "FAILED"
        respond(event, context, status, resource, str(error))
        return
    respond(event, context, "SUCCESS", resource, "", {"ManualStep": step})


def serve(request: str, properties: dict[str, Any], *, earlier: Collection[str], ends: float) -> str:
    """Creates, updates or deletes until `ends`, a time of the monotonic clock. Returns the manual step.

    The content of a workspace that the stack owns is deleted with the workspace. `earlier` are uids of the dashboards
    before an update.
    """
    workspace = properties["WorkspaceId"]
    if request == "Delete" and (properties["Owned"] == "true" or not exists(workspace)):
        return NOTHING
    with token(workspace, f"ultracluster-{properties['FolderUid']}") as secret:
        grafana = Grafana(properties["Url"], secret, ends)
        if request == "Delete":
            remove(grafana, properties)
            return NOTHING
        return provide(grafana, properties, earlier)


def exists(workspace: str) -> bool:
    """Whether the workspace is still there."""
    client = boto3.client("grafana")
    try:
        client.describe_workspace(workspaceId=workspace)
    except client.exceptions.ResourceNotFoundException:
        return False
    return True


@contextmanager
def token(workspace: str, name: str) -> Iterator[str]:
    """The token of a service account that is an admin. Deleting the account, whatever happens, deletes the token.

    An account of this name is what a call left that Lambda stopped; it is deleted first.
    """
    client = boto3.client("grafana")
    pages = client.get_paginator("list_workspace_service_accounts").paginate(workspaceId=workspace)
    for left in (account for page in pages for account in page["serviceAccounts"] if account["name"] == name):
        client.delete_workspace_service_account(workspaceId=workspace, serviceAccountId=left["id"])
    made = client.create_workspace_service_account(workspaceId=workspace, name=name, grafanaRole="ADMIN")
    account = {"workspaceId": workspace, "serviceAccountId": made["id"]}
    try:
        given = client.create_workspace_service_account_token(name=name, secondsToLive=TOKEN_SECONDS, **account)
        yield given["serviceAccountToken"]["key"]
    finally:
        client.delete_workspace_service_account(**account)


class Refused(RuntimeError):
    """A call that Grafana refuses. `status` is that of HTTP, 0 without an answer that a further attempt may change."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Grafana:
    """Calls of Grafana's HTTP API until `ends`. A new workspace or token may take a minute, so calls wait for them."""

    def __init__(self, url: str, secret: str, ends: float) -> None:
        self.url, self.secret, self.ends, self.known = url, secret, ends, False

    def call(self, method: str, path: str, body: Any = None, *, accept: Collection[int] = ()) -> Any:
        """The answer, or None for a status in `accept`. Refused for other errors that do not pass."""
        failure, status = "nothing", 0
        for attempt in range(ATTEMPTS):
            if self.ends - time.monotonic() < WAIT_SECONDS:
                raise Refused(f"no time is left to try {method} {path} again, which Grafana answers with {failure}", 0)
            if attempt:
                time.sleep(WAIT_SECONDS)
            try:
                found = self._send(method, path, body)
            except urllib.error.HTTPError as error:
                if error.code in accept:
                    return None
                failure, status = f"{error.code} {error.read().decode(errors='replace')[:500]}", error.code
                if error.code not in BUSY and (error.code != 401 or self.known):
                    break
            except OSError as error:
                failure, status = str(error), 0
            else:
                self.known = True
                return found
        raise Refused(f"Grafana answers {method} {path} with {failure}", status)

    def _send(self, method: str, path: str, body: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.secret}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310 - see GrafanaContent
        seconds = max(1.0, min(TIMEOUT_SECONDS, self.ends - time.monotonic()))
        with urllib.request.urlopen(request, timeout=seconds) as answer:  # noqa: S310
            text = answer.read()
        return json.loads(text) if text else {}


def provide(grafana: Grafana, properties: dict[str, Any], earlier: Collection[str]) -> str:
    """Creates or updates everything, and deletes dashboards that an earlier version had. Returns the manual step."""
    grafana.call("GET", "/api/org")
    steps = [step for plugin in properties["Plugins"] if (step := install(grafana, plugin))]
    for source in map(json.loads, properties["DataSources"]):
        if grafana.call("PUT", f"/api/datasources/uid/{source['uid']}", source, accept=[404]) is None:
            grafana.call("POST", "/api/datasources", source)
    folder = {"uid": properties["FolderUid"], "title": properties["FolderTitle"]}
    if grafana.call("GET", f"/api/folders/{folder['uid']}", accept=[404]) is None:
        grafana.call("POST", "/api/folders", folder)
    wanted = [json.loads(file.read_text("utf-8")) for file in sorted(FOLDER.glob("*.json"))]
    for dashboard in wanted:
        body = {"dashboard": {**dashboard, "id": None}, "folderUid": folder["uid"], "overwrite": True}
        grafana.call("POST", "/api/dashboards/db", body)
    keep = {dashboard["uid"] for dashboard in wanted}
    delete(grafana, {*earlier, *found(grafana, properties)} - keep)
    return " ".join(steps) or NOTHING


def remove(grafana: Grafana, properties: dict[str, Any]) -> None:
    """Deletes the dashboards and data sources, and the folder when nothing else is in it.

    A search may still list what was just deleted.
    """
    grafana.call("GET", "/api/org")
    deleted = {*properties.get("Dashboards", ()), *found(grafana, properties)}
    delete(grafana, deleted)
    for source in map(json.loads, properties["DataSources"]):
        grafana.call("DELETE", f"/api/datasources/uid/{source['uid']}", accept=[404])
    folder = properties["FolderUid"]
    inside = grafana.call("GET", "/api/search?" + urlencode({"folderUIDs": folder, "limit": 5000}))
    if all(each["uid"] in deleted for each in inside):
        # 400: the folder has alert rules, which the search does not find
        grafana.call("DELETE", f"/api/folders/{folder}", accept=[400, 404])


def found(grafana: Grafana, properties: dict[str, Any]) -> set[str]:
    """Uids of dashboards of this environment, known by uid and tag, without copies that users made."""
    asked = {"type": "dash-db", "folderUIDs": properties["FolderUid"], "tag": properties["Tag"], "limit": 5000}
    listed = grafana.call("GET", "/api/search?" + urlencode(asked))
    return {each["uid"] for each in listed if each["uid"].startswith(properties["UidPrefix"])}


def delete(grafana: Grafana, dashboards: Collection[str]) -> None:
    """Deletes dashboards by uid; those that are gone already are fine."""
    for uid in sorted(dashboards):
        grafana.call("DELETE", f"/api/dashboards/uid/{uid}", accept=[404])


def install(grafana: Grafana, plugin: str) -> str:
    """Installs a plugin and waits until Grafana has loaded it. Returns the manual step, if any.

    AWS documents the installation in the console of Grafana only, so a workspace may refuse it to a token. Grafana
    stores data sources of plugins that are not installed, and they work once the plugin is. 409: another installation
    is in progress.
    """
    if grafana.call("GET", f"/api/plugins/{plugin}/settings", accept=[404]) is not None:
        return ""
    step = (
        f"Install the plugin {plugin}: sign in to the workspace as an admin and choose Administration, Plugins. The "
        "data source for metrics works from then on."
    )
    try:
        grafana.call("POST", f"/api/plugins/{plugin}/install", {}, accept=[409])
    except Refused as error:
        if not 400 <= error.status < 500 or error.status == 401:
            raise
        logging.warning("%s %s", error, step)
        return f"{step} ({error})"
    for _ in range(ATTEMPTS):
        if grafana.call("GET", f"/api/plugins/{plugin}/settings", accept=[404]) is not None:
            return ""
        time.sleep(WAIT_SECONDS)
    logging.warning("Grafana did not load the plugin within %s s. %s", ATTEMPTS * WAIT_SECONDS, step)
    return f"Grafana did not load the plugin within {ATTEMPTS * WAIT_SECONDS} s. {step}"


def respond(
    event: dict[str, Any], context: Any, status: str, resource: str, reason: str, data: dict[str, str] | None = None
) -> None:
    """Sends the result to CloudFormation, which waits for it at a presigned address. `data` are attributes."""
    answer = {
        "Status": status,
        "Reason": f"{reason[:1000]} (log: {context.log_group_name} {context.log_stream_name})",
        "PhysicalResourceId": resource,
        "Data": {name: text[:900] for name, text in (data or {}).items()},
        **{name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")},
    }
    request = urllib.request.Request(event["ResponseURL"], json.dumps(answer).encode(), method="PUT")  # noqa: S310
    request.add_header("Content-Type", "")
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS):  # noqa: S310
        pass
