"""The Kubernetes node that a program runs on, its pods and its events, through the API server.

Environment: NODE, and KUBERNETES_SERVICE_HOST and _PORT. File descriptor 9 is the folder of the pod's token.
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

NOT_ACCEPTED, QUARANTINE = "ultracluster/not-accepted", "ultracluster/quarantine"
DIAGNOSTICS, JUDGED = "ultracluster/diagnostics", "ultracluster/quarantined-for"
TYPE, GROUP = "node.kubernetes.io/instance-type", "ultracluster/node-group"
CONDITION = "AcceleratedHardwareReady"
"""Condition of a node by which AWS's node monitoring agent reports its GPUs."""
NAME = "app.kubernetes.io/name"
DEVICES = ("nvidia.com/", "vpc.amazonaws.com/efa")
"""Resources of pods that hold a node's devices."""
CHANGE_SECONDS = 5
"""Time between two attempts to change the node."""
env = os.environ
Node = dict[str, Any]


def secret(name: str) -> str:
    """A file of the pod's token, which the kubelet renews."""
    with open(os.open(name, os.O_RDONLY, dir_fd=9)) as file:
        return file.read()


def api(method: str, path: str, body: Any = None, *, seconds: float = 30) -> Any:
    """The open answer of the API server. Raises urllib.error.URLError."""
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


def read() -> Node:
    """The node. Raises urllib.error.URLError."""
    with api("GET", f"/api/v1/nodes/{env['NODE']}") as answer:
        node: Node = json.load(answer)
        return node


def taints(node: Node) -> dict[str, str]:
    """Values of the node's taints."""
    return {taint["key"]: taint.get("value", "") for taint in node["spec"].get("taints") or ()}


def reported(node: Node) -> dict[str, str] | None:
    """The condition that reports accelerators, unless it has already put the node into quarantine."""
    judged = node["metadata"].get("annotations", {}).get(JUDGED)
    for condition in node.get("status", {}).get("conditions", ()):
        if condition["type"] == CONDITION and condition["status"] == "False":
            found: dict[str, str] = condition
            return found if found["lastTransitionTime"] != judged else None
    return None


def change(edit: Callable[[Node], dict[str, Any]]) -> None:
    """Changes the node to what `edit` makes of its metadata and taints. The result of hours must not get lost."""
    while True:
        try:
            node = read()
            body = edit(node)
            body.setdefault("metadata", {})["resourceVersion"] = node["metadata"]["resourceVersion"]
            api("PATCH", f"/api/v1/nodes/{env['NODE']}", body).close()
            return
        except OSError as problem:  # also when the node has changed since it was read
            print(f"{problem!r}", file=sys.stderr, flush=True)
            time.sleep(CHANGE_SECONDS)


def taint(key: str, value: str | None, *, instead_of: str = "") -> None:
    """Sets or, without a value, removes a taint of the node. A label tells nodes in quarantine.

    A condition that reports accelerators by then has had its effect, whether the node is judged or a person returns it.
    """

    def edit(node: Node) -> dict[str, Any]:
        others = [each for each in node["spec"].get("taints") or () if each["key"] not in (key, instead_of)]
        mine = [] if value is None else [{"key": key, "value": value, "effect": "NoSchedule"}]
        body: dict[str, Any] = {"metadata": {}, "spec": {"taints": [*others, *mine] or None}}
        if key == QUARANTINE:
            body["metadata"]["labels"] = {QUARANTINE: value}
            if found := reported(node):
                body["metadata"]["annotations"] = {JUDGED: found["lastTransitionTime"]}
        return body

    change(edit)


def label(key: str, value: str | None) -> None:
    """Sets or, without a value, removes a label of the node: DIAGNOSTICS has the pod with the tools come, or go."""
    change(lambda _: {"metadata": {"labels": {key: value}}})


def pods() -> list[Any]:
    """Pods of the node that have not ended."""
    fields = f"spec.nodeName={env['NODE']},status.phase!=Succeeded,status.phase!=Failed"
    with api("GET", f"/api/v1/pods?fieldSelector={urllib.parse.quote(fields)}") as answer:
        found: list[Any] = json.load(answer)["items"]
        return found


def busy(pod: Any) -> bool:
    """Whether a pod is more than the node's own software: not of a DaemonSet, or holds devices of the node."""
    if all(owner["kind"] != "DaemonSet" for owner in pod["metadata"].get("ownerReferences", ())):
        return True
    spec = pod["spec"]
    containers = (*spec["containers"], *spec.get("initContainers", ()))
    limits = (name for each in containers for name in each.get("resources", {}).get("limits") or ())
    return bool(spec.get("resourceClaims")) or any(name.startswith(DEVICES) for name in limits)


def named(found: list[Any], name: str) -> bool:
    """Whether one of the pods is of this workload."""
    return any(pod["metadata"].get("labels", {}).get(NAME) == name for pod in found)


def event(kind: str, what: str, text: str) -> None:
    """An event of the node. Nothing depends on it."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    body = {
        "metadata": {"generateName": f"{env['NODE']}.", "namespace": "default"},
        "involvedObject": {"kind": "Node", "apiVersion": "v1", "name": env["NODE"], "uid": env["NODE"]},
        "type": kind,
        "reason": what,
        "message": text[:1000],
        "source": {"component": "ultracluster-health", "host": env["NODE"]},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
    try:
        api("POST", "/api/v1/namespaces/default/events", body).close()
    except OSError as problem:
        print(f"event: {problem}", file=sys.stderr, flush=True)
