"""A client of the API server that says what the server said."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import requests

from tests.servers.certificates import Authority

Object = dict[str, Any]
Result = TypeVar("Result")

PATIENCE = 300
"""Seconds after which a test gives up what takes a second or two: far more than a busy machine needs."""


class Denied(AssertionError):
    """The API server refused a request. The message is the server's."""


class Api:
    """An API server at `url`, asked by the user whose certificate the authority issued under the name `user`."""

    def __init__(self, url: str, authority: Authority, user: str) -> None:
        self.url, self._authority = url, authority
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.verify = str(authority.certificate)
        self._session.cert = (str(authority.folder / f"{user}.crt"), str(authority.folder / f"{user}.key"))
        self._kinds: dict[str, dict[str, tuple[str, bool]]] = {}

    def as_user(self, name: str, group: str) -> "Api":
        """The same server, asked by user `name` of `group`."""
        self._authority.user(name, group)
        return Api(self.url, self._authority, name)

    def token(self, pod: Object) -> str:
        """The token that the kubelet gives to the containers of `pod`: of its service account, naming pod and node."""
        metadata, account = pod["metadata"], pod["spec"]["serviceAccountName"]
        path = self.path("v1", "ServiceAccount", metadata["namespace"], account)
        bound = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"boundObjectRef": bound}}
        return str(self.call("POST", f"{path}/token", body=request)["status"]["token"])

    def as_pod(self, pod: Object) -> "Api":
        """The same server, asked by a container of `pod`."""
        asked = Api(self.url, self._authority, "admin")
        asked._session.cert = None
        asked._session.headers["Authorization"] = f"Bearer {self.token(pod)}"
        return asked

    def call(self, method: str, path: str, *, body: Any = None, content: str = "application/json", **query: str) -> Any:
        """The answer to a request. Raises Denied unless it succeeded."""
        data = None if body is None else json.dumps(body)
        answer = self._session.request(
            method, f"{self.url}{path}", params=query, data=data, headers={"Content-Type": content}, timeout=PATIENCE
        )
        if not answer.ok:
            raise Denied(_message(answer))
        return answer.json() if "json" in answer.headers.get("Content-Type", "") else answer.text

    def path(self, api_version: str, kind: str, namespace: str | None = None, name: str = "") -> str:
        """The path of a kind, or of one object."""
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        plural, namespaced = self._kind(root, kind)
        place = f"/namespaces/{namespace or 'default'}" if namespaced else ""
        return f"{root}{place}/{plural}" + (f"/{name}" if name else "")

    def create(self, obj: Object, *, dry_run: bool = False) -> Object:
        """Creates an object; unknown fields and duplicates are refused. A dry run does all but store it."""
        query = {"fieldValidation": "Strict", **({"dryRun": "All"} if dry_run else {})}
        path = self.path(obj["apiVersion"], obj["kind"], obj.get("metadata", {}).get("namespace"))
        created: Object = self.call("POST", path, body=obj, **query)
        return created

    def apply(self, obj: Object) -> Object:
        """Creates an object, or changes it to this."""
        metadata = obj["metadata"]
        path = self.path(obj["apiVersion"], obj["kind"], metadata.get("namespace"), metadata["name"])
        query = {"fieldManager": "test", "force": "true", "fieldValidation": "Strict"}
        applied: Object = self.call("PATCH", path, body=obj, content="application/apply-patch+yaml", **query)
        return applied

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object:
        """One object."""
        found: Object = self.call("GET", self.path(api_version, kind, namespace, name))
        return found

    def list(self, api_version: str, kind: str, namespace: str | None = None, **query: str) -> list[Object]:
        """Objects of a kind, in a namespace or, of namespaced kinds too, in the whole cluster."""
        path = self.path(api_version, kind, namespace)
        if namespace is None:
            path = path.replace("/namespaces/default", "")
        found: list[Object] = self.call("GET", path, **query)["items"]
        return found

    def patch(self, obj: Object, change: Mapping[str, Any], *, part: str = "") -> Object:
        """Changes an object, or its `part`, such as /status, by a strategic merge where the kind knows one."""
        metadata, custom = obj["metadata"], "." in obj["apiVersion"] and ".k8s.io/" not in obj["apiVersion"]
        path = self.path(obj["apiVersion"], obj["kind"], metadata.get("namespace"), metadata["name"])
        kind = "merge" if custom else "strategic-merge"
        changed: Object = self.call("PATCH", path + part, body=change, content=f"application/{kind}-patch+json")
        return changed

    def against_patch(self, obj: Object, change: Mapping[str, Any]) -> str:
        """What the server says against a change; empty if it is made."""
        try:
            self.patch(obj, change)
        except Denied as denied:
            return str(denied)
        return ""

    def delete(self, api_version: str, kind: str, name: str, namespace: str | None = None, **options: Any) -> None:
        """Deletes an object, and what belongs to it in the background."""
        body = {"propagationPolicy": "Background", **options}
        self.call("DELETE", self.path(api_version, kind, namespace, name), body=body)

    def _kind(self, root: str, kind: str) -> tuple[str, bool]:
        """Plural of a kind, and whether it is in namespaces, as the server says."""
        if kind not in self._kinds.get(root, {}):
            found = self.call("GET", root)["resources"]
            self._kinds[root] = {
                each["kind"]: (each["name"], each["namespaced"]) for each in found if "/" not in each["name"]
            }
        if kind not in self._kinds[root]:
            raise Denied(f"the server has no kind {kind} at {root}")
        return self._kinds[root][kind]


def _message(answer: requests.Response) -> str:
    try:
        return str(answer.json().get("message", answer.text))
    except ValueError:
        return f"{answer.status_code} {answer.text}"


def until(condition: Callable[[], Result], what: str, alive: Callable[[], None] = lambda: None) -> Result:
    """The first true result of `condition`. `alive` raises when waiting has become pointless."""
    given_up = time.monotonic() + PATIENCE
    while True:
        alive()
        if result := condition():
            return result
        if time.monotonic() > given_up:
            raise AssertionError(f"never: {what}")
        time.sleep(0.1)
