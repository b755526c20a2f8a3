"""The Kubernetes API for the node that a program runs on: its taints and labels, its pods and its events.

Environment: NODE, PLATFORM (namespaces of the platform's pods), KUBERNETES_SERVICE_HOST and _PORT. File descriptor 9 is
the folder of the service account's token.
"""

import json
import os
import ssl
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

NOT_ACCEPTED, DIAGNOSTICS = "ultracluster/not-accepted", "ultracluster/diagnostics"
TYPE, GROUP = "node.kubernetes.io/instance-type", "ultracluster/node-group"
NAME = "app.kubernetes.io/name"
DEVICES = ("nvidia.com/", "vpc.amazonaws.com/efa")
"""Prefixes of the resources by which pods get devices of a node."""
CHANGE_SECONDS = 5
"""Time between two attempts to patch the node."""
env = os.environ
Node = dict[str, Any]


def secret(name: str) -> str:
    """Content of a file of the service account, read anew each time: the kubelet renews the token."""
    with open(os.open(name, os.O_RDONLY, dir_fd=9)) as file:
        return file.read()


def api(method: str, path: str, body: Any = None, *, seconds: float = 30) -> Any:
    """Calls the API server: the open response. Raises urllib.error.URLError."""
    trust = ssl.create_default_context(cadata=secret("ca.crt")) if env.get("SCHEME") != "http" else None
    host, port = env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"]
    host = f"[{host}]" if ":" in host else host
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    request = urllib.request.Request(
        f"{env.get('SCHEME', 'https')}://{host}:{port}{path}",
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={"Authorization": f"Bearer {secret('token').strip()}", "Content-Type": kind},
    )
    return urllib.request.urlopen(request, timeout=seconds, context=trust)


def read_node() -> Node:
    """The node as the API server has it. Raises urllib.error.URLError."""
    with api("GET", f"/api/v1/nodes/{env['NODE']}") as answer:
        node: Node = json.load(answer)
        return node


def taints(node: Node) -> dict[str, str]:
    """Values of the node's taints by key."""
    return {taint["key"]: taint.get("value", "") for taint in node["spec"].get("taints") or ()}


def patch_node(edit: Callable[[Node], dict[str, Any]]) -> None:
    """Patches the node with the merge patch that `edit` makes of it, until the API server accepts it.

    It retries without a limit, since diagnostics would have to run again if their result were lost.
    """
    while True:
        try:
            node = read_node()
            body = edit(node)
            body.setdefault("metadata", {})["resourceVersion"] = node["metadata"]["resourceVersion"]
            api("PATCH", f"/api/v1/nodes/{env['NODE']}", body).close()
            return
        except OSError as problem:  # such as a conflict: the node has changed since it was read
            print(f"{problem!r}", file=sys.stderr, flush=True)
            time.sleep(CHANGE_SECONDS)


def set_taint(key: str, value: str | None) -> None:
    """Sets a taint of the node, or removes it if `value` is None."""

    def edit(node: Node) -> dict[str, Any]:
        others = [each for each in node["spec"].get("taints") or () if each["key"] != key]
        mine = [] if value is None else [{"key": key, "value": value, "effect": "NoSchedule"}]
        return {"spec": {"taints": [*others, *mine] or None}}

    patch_node(edit)


def set_label(key: str, value: str | None) -> None:
    """Sets a label of the node, or removes it if `value` is None."""
    patch_node(lambda _: {"metadata": {"labels": {key: value}}})


def active_pods() -> list[Any]:
    """Pods of the node that have neither succeeded nor failed."""
    fields = f"spec.nodeName={env['NODE']},status.phase!=Succeeded,status.phase!=Failed"
    with api("GET", f"/api/v1/pods?fieldSelector={urllib.parse.quote(fields)}") as answer:
        found: list[Any] = json.load(answer)["items"]
        return found


def holds_devices(pod: Any) -> bool:
    """Whether diagnostics must wait for a pod: its containers run, and have devices of the node.

    A pod that only tolerates the taint does not count, nor one that waits for devices, which are not there yet.
    """
    spec, status = pod["spec"], pod.get("status", {})
    states = (*status.get("containerStatuses", ()), *status.get("initContainerStatuses", ()))
    if not any("running" in each.get("state", {}) for each in states):
        return False
    containers = (*spec["containers"], *spec.get("initContainers", ()))
    limits = (name for each in containers for name in each.get("resources", {}).get("limits") or ())
    return bool(spec.get("resourceClaims")) or any(name.startswith(DEVICES) for name in limits)


def has_workload(pods: list[Any], name: str) -> bool:
    """Whether one of the pods is of the platform and has the label app.kubernetes.io/name with this value."""
    own = (pod["metadata"] for pod in pods if pod["metadata"]["namespace"] in env["PLATFORM"].split(","))
    return any(metadata.get("labels", {}).get(NAME) == name for metadata in own)


def create_event(kind: str, reason: str, message: str) -> None:
    """Creates an event of the node, of the type Normal or Warning. A failure is only logged."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    body = {
        "metadata": {"generateName": f"{env['NODE']}.", "namespace": "default"},
        "involvedObject": {"kind": "Node", "apiVersion": "v1", "name": env["NODE"], "uid": env["NODE"]},
        "type": kind,
        "reason": reason,
        "message": message[:1000],
        "source": {"component": "ultracluster-health", "host": env["NODE"]},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
    try:
        api("POST", "/api/v1/namespaces/default/events", body).close()
    except OSError as problem:
        print(f"event: {problem}", file=sys.stderr, flush=True)
