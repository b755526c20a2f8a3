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
BUSY = (429, 500, 502, 503, 504)


def handler(event: dict[str, Any], context: Any) -> None:
    """Answers CloudFormation. The resource is its workspace and folder, so another workspace is another resource."""
    properties = event["ResourceProperties"]
    resource = f"{properties['WorkspaceId']}/{properties['FolderUid']}"
    try:
        serve(event["RequestType"], properties)
    except Exception as error:
        logging.exception("Grafana content")
        respond(event, context, "FAILED", resource, str(error))
        return
    respond(event, context, "SUCCESS", resource, "")


def serve(request: str, properties: dict[str, Any]) -> None:
    """Creates, updates or deletes. The content of a workspace that the stack owns is deleted with the workspace."""
    workspace = properties["WorkspaceId"]
    if request == "Delete" and (properties["Owned"] == "true" or not exists(workspace)):
        return
    with token(workspace, f"ultracluster-{properties['FolderUid']}") as secret:
        grafana = Grafana(properties["Url"], secret)
        if request == "Delete":
            remove(grafana, properties)
        else:
            provide(grafana, properties)


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


class Grafana:
    """Calls of Grafana's HTTP API. A new workspace or token may take a minute to work, so calls wait for them."""

    def __init__(self, url: str, secret: str) -> None:
        self.url, self.secret, self.known = url, secret, False

    def call(self, method: str, path: str, body: Any = None, *, accept: Collection[int] = ()) -> Any:
        """The answer, or None for a status in `accept`. RuntimeError for other errors that do not pass."""
        failure = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(WAIT_SECONDS)
            try:
                found = self._send(method, path, body)
            except urllib.error.HTTPError as error:
                if error.code in accept:
                    return None
                failure = f"{error.code} {error.read().decode(errors='replace')[:500]}"
                if error.code not in BUSY and (error.code != 401 or self.known):
                    break
            except OSError as error:
                failure = str(error)
            else:
                self.known = True
                return found
        raise RuntimeError(f"Grafana answers {method} {path} with {failure}")

    def _send(self, method: str, path: str, body: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.secret}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310 - see GrafanaContent
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310
            text = answer.read()
        return json.loads(text) if text else {}


def provide(grafana: Grafana, properties: dict[str, Any]) -> None:
    """Creates or updates everything, and deletes dashboards that an earlier version had."""
    grafana.call("GET", "/api/org")
    for plugin in properties["Plugins"]:
        install(grafana, plugin)
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
    retire(grafana, properties, keep={dashboard["uid"] for dashboard in wanted})


def remove(grafana: Grafana, properties: dict[str, Any]) -> None:
    """Deletes the dashboards and data sources, and the folder when nobody put anything else into it."""
    grafana.call("GET", "/api/org")
    retire(grafana, properties, keep=())
    for source in map(json.loads, properties["DataSources"]):
        grafana.call("DELETE", f"/api/datasources/uid/{source['uid']}", accept=[404])
    folder = properties["FolderUid"]
    if not grafana.call("GET", "/api/search?" + urlencode({"folderUIDs": folder, "limit": 1})):
        grafana.call("DELETE", f"/api/folders/{folder}", accept=[404])


def retire(grafana: Grafana, properties: dict[str, Any], *, keep: Collection[str]) -> None:
    """Deletes dashboards of this environment, known by uid and tag, but those in `keep` and copies that users made."""
    asked = {"type": "dash-db", "folderUIDs": properties["FolderUid"], "tag": properties["Tag"], "limit": 5000}
    for found in grafana.call("GET", "/api/search?" + urlencode(asked)):
        if found["uid"].startswith(properties["UidPrefix"]) and found["uid"] not in keep:
            grafana.call("DELETE", f"/api/dashboards/uid/{found['uid']}", accept=[404])


def install(grafana: Grafana, plugin: str) -> None:
    """Installs a plugin and waits until Grafana has loaded it. 409: somebody installs it already."""
    if grafana.call("GET", f"/api/plugins/{plugin}/settings", accept=[404]) is not None:
        return
    grafana.call("POST", f"/api/plugins/{plugin}/install", {}, accept=[409])
    for _ in range(ATTEMPTS):
        if grafana.call("GET", f"/api/plugins/{plugin}/settings", accept=[404]) is not None:
            return
        time.sleep(WAIT_SECONDS)
    raise RuntimeError(f"Grafana did not load the plugin {plugin} within {ATTEMPTS * WAIT_SECONDS} s")


def respond(event: dict[str, Any], context: Any, status: str, resource: str, reason: str) -> None:
    """Sends the result to CloudFormation, which waits for it at a presigned address."""
    answer = {
        "Status": status,
        "Reason": f"{reason[:1000]} (log: {context.log_group_name} {context.log_stream_name})",
        "PhysicalResourceId": resource,
        **{name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")},
    }
    request = urllib.request.Request(event["ResponseURL"], json.dumps(answer).encode(), method="PUT")  # noqa: S310
    request.add_header("Content-Type", "")
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS):  # noqa: S310
        pass
