"""The HTTP API inside an Amazon Managed Grafana workspace: organisation, plugins, data sources, folders, dashboards.

Sources: Amazon Managed Grafana User Guide, "Grafana HTTP APIs", version 12; Grafana 12 HTTP API (2026).
"""

import copy
import datetime
import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

MAX_DASHBOARDS = MAX_SOURCES = 2000
"""Amazon Managed Grafana User Guide, "Service quotas" (2026)."""

BUILT_IN = frozenset({"cloudwatch", "prometheus", "loki", "xray"})
CATALOGUE = frozenset({"grafana-amazonprometheus-datasource", "grafana-athena-datasource"})
"""Plugins in every workspace, and those that can be installed."""

UID = re.compile(r"[a-zA-Z0-9_-]{1,40}")


class Answer(NamedTuple):
    """Status and JSON of a response."""

    status: int
    body: Any


class _Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def answer(
    backend: Any, workspace_id: str, method: str, target: str, headers: Mapping[str, str], body: bytes | None
) -> Answer:
    """Answers one request to a workspace. `backend` is the Grafana backend of moto that has the workspace."""
    inside = backend.inside.setdefault(workspace_id, {})
    try:
        _authorize(inside, headers)
        admin = backend.configurations[workspace_id]["plugins"]["pluginAdminEnabled"]
        found = _Workspace(inside, plugin_admin=admin).route(method, target, json.loads(body) if body else {})
    except _Refused as refused:
        return Answer(refused.status, {"message": str(refused)})
    except ValueError:
        return Answer(400, {"message": "bad request data"})
    return Answer(200, found)


def _authorize(inside: dict[str, dict[Any, Any]], headers: Mapping[str, str]) -> None:
    given = {name.lower(): value for name, value in headers.items()}.get("authorization", "")
    for account in inside.get("accounts", {}).values():
        for token in account["tokens"].values():
            if given == f"Bearer {token['key']}":
                if token["expiresAt"] < datetime.datetime.now(datetime.UTC):
                    raise _Refused(401, "Expired API key")
                if account["grafanaRole"] != "ADMIN":
                    raise _Refused(403, "You'll need additional permissions to perform this action.")
                return
    raise _Refused(401, "Invalid API key")


class _Workspace:
    """What a workspace holds, and the calls that change it."""

    def __init__(self, inside: dict[str, dict[Any, Any]], *, plugin_admin: bool) -> None:
        self._plugins = inside.setdefault("plugins", {})
        self._sources = inside.setdefault("sources", {})
        self._folders = inside.setdefault("folders", {})
        self._rules = inside.get("rules", {})  # alert rules, which only people make
        self._dashboards = inside.setdefault("dashboards", {})
        self._plugin_admin = plugin_admin

    def route(self, method: str, target: str, body: dict[str, Any]) -> Any:
        """The result of a call. 404 for a path that the API does not have."""
        address = urlsplit(target)
        calls: dict[str, Callable[..., Any]] = {
            "GET /api/org": self._org,
            "GET /api/search": self._search,
            r"GET /api/plugins/([^/]+)/settings": self._plugin,
            r"POST /api/plugins/([^/]+)/install": self._install,
            "POST /api/datasources": self._add_source,
            r"PUT /api/datasources/uid/([^/]+)": self._put_source,
            r"GET /api/datasources/uid/([^/]+)": partial(self._one, "Data source", self._sources),
            r"DELETE /api/datasources/uid/([^/]+)": partial(self._delete, "Data source", self._sources),
            "POST /api/folders": self._add_folder,
            r"GET /api/folders/([^/]+)": partial(self._one, "folder", self._folders),
            r"DELETE /api/folders/([^/]+)": self._delete_folder,
            "POST /api/dashboards/db": self._put_dashboard,
            r"GET /api/dashboards/uid/([^/]+)": self._get_dashboard,
            r"DELETE /api/dashboards/uid/([^/]+)": partial(self._delete, "Dashboard", self._dashboards),
        }
        for pattern, call in calls.items():
            if found := re.fullmatch(pattern, f"{method} {address.path}"):
                return call(*found.groups(), body=body, query=parse_qs(address.query))
        raise _Refused(404, "Not found")

    def _org(self, **_: Any) -> Any:
        return {"id": 1, "name": "Main Org."}

    # plugins

    def _plugin(self, plugin: str, **_: Any) -> Any:
        if plugin not in BUILT_IN and plugin not in self._plugins:
            raise _Refused(404, "Plugin not found, no installed plugin with that id")
        return {"id": plugin, "enabled": True}

    def _install(self, plugin: str, **_: Any) -> Any:
        if not self._plugin_admin:
            raise _Refused(403, "Plugin management is not enabled")
        if plugin in self._plugins or plugin in BUILT_IN:
            raise _Refused(409, "Plugin already installed")
        if plugin not in CATALOGUE:
            raise _Refused(404, f"Plugin {plugin} not found")
        self._plugins[plugin] = True
        return {}

    # data sources

    def _add_source(self, *, body: dict[str, Any], **_: Any) -> Any:
        self._check_source(body, None)
        if body["uid"] in self._sources:
            raise _Refused(409, "data source with the same uid already exists")
        if len(self._sources) >= MAX_SOURCES:
            raise _Refused(403, "Quota reached")
        return self._store(body)

    def _put_source(self, uid: str, *, body: dict[str, Any], **_: Any) -> Any:
        if uid not in self._sources:
            raise _Refused(404, "Data source not found")
        self._check_source({**body, "uid": uid}, uid)
        return self._store({**body, "uid": uid})

    def _store(self, body: dict[str, Any]) -> Any:
        self._sources[body["uid"]] = copy.deepcopy(body)
        return {"datasource": body, "message": "Datasource added", "name": body["name"]}

    def _check_source(self, body: dict[str, Any], own: str | None) -> None:
        """Grafana takes data sources of plugins that are not installed (grafana/grafana, prepareInstanceSettings)."""
        _need(body, "name", "type", "access", "uid")
        _check_uid(body["uid"])
        for uid, source in self._sources.items():
            if source["name"] == body["name"] and uid != own:
                raise _Refused(409, "data source with the same name already exists")

    # folders

    def _add_folder(self, *, body: dict[str, Any], **_: Any) -> Any:
        _need(body, "title", "uid")
        _check_uid(body["uid"])
        if body["uid"] in self._folders:
            raise _Refused(412, "the folder has been changed by someone else")
        self._folders[body["uid"]] = {"uid": body["uid"], "title": body["title"]}
        return self._folders[body["uid"]]

    def _delete_folder(self, uid: str, **_: Any) -> Any:
        self._one("folder", self._folders, uid)
        if any(rule["folderUid"] == uid for rule in self._rules.values()):
            raise _Refused(400, "Folder cannot be deleted: folder is not empty")
        del self._folders[uid]
        for name in [name for name, each in self._dashboards.items() if each["folderUid"] == uid]:
            del self._dashboards[name]  # Grafana deletes what is in a folder
        return {"message": "Folder deleted"}

    # dashboards

    def _put_dashboard(self, *, body: dict[str, Any], **_: Any) -> Any:
        dashboard, folder = body.get("dashboard") or {}, body.get("folderUid", "")
        if not dashboard.get("title"):
            raise _Refused(400, "Dashboard title cannot be empty")
        if folder and folder not in self._folders:
            raise _Refused(400, "folder not found")
        uid = dashboard.get("uid") or f"made-{len(self._dashboards)}"
        _check_uid(uid)
        if uid in self._dashboards and not body.get("overwrite"):
            raise _Refused(412, "The dashboard has been changed by someone else")
        if uid not in self._dashboards and len(self._dashboards) >= MAX_DASHBOARDS:
            raise _Refused(403, "Quota reached")
        version = self._dashboards[uid]["version"] + 1 if uid in self._dashboards else 1
        stored = {**copy.deepcopy(dashboard), "uid": uid, "version": version}
        self._dashboards[uid] = {"folderUid": folder, "version": version, "dashboard": stored}
        return {"uid": uid, "version": version, "status": "success", "url": f"/d/{uid}"}

    def _get_dashboard(self, uid: str, **_: Any) -> Any:
        found = self._one("Dashboard", self._dashboards, uid)
        return {"dashboard": found["dashboard"], "meta": {"folderUid": found["folderUid"]}}

    def _search(self, *, query: dict[str, list[str]], **_: Any) -> Any:
        """Dashboards and folders. Folders are left out where the query names a folder, as they are on the top level."""
        tags, inside = set(query.get("tag", [])), query.get("folderUIDs")
        found = [
            {"uid": uid, "type": "dash-db", "title": each["dashboard"]["title"], "folderUid": each["folderUid"]}
            for uid, each in self._dashboards.items()
            if (inside is None or each["folderUid"] in inside) and tags <= set(each["dashboard"].get("tags", []))
        ]
        if inside is None and query.get("type") != ["dash-db"]:
            found += [
                {"uid": uid, "type": "dash-folder", "title": each["title"]} for uid, each in self._folders.items()
            ]
        return found[: int(query.get("limit", ["1000"])[0])]

    def _one(self, what: str, kept: dict[Any, Any], uid: str, **_: Any) -> Any:
        if uid not in kept:
            raise _Refused(404, f"{what} not found")
        return kept[uid]

    def _delete(self, what: str, kept: dict[Any, Any], uid: str, **_: Any) -> Any:
        self._one(what, kept, uid)
        del kept[uid]
        return {"message": f"{what} deleted"}


def _need(body: dict[str, Any], *names: str) -> None:
    for name in names:
        if not body.get(name):
            raise _Refused(400, f"{name} is required")


def _check_uid(uid: str) -> None:
    """Grafana 12 enforces the format of uids."""
    if not UID.fullmatch(uid):
        raise _Refused(400, "uid contains illegal characters, or is longer than 40")
