"""Nodes without machines: what the API server knows of a GPU node, and a kubelet that lets pods run and end."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from tests.servers.api import Api, Denied, Object
from ultracluster.config.node_groups import NodeGroup
from ultracluster.kubernetes.labels import DEVICE_STACK, EFA, GPU, GPU_TAINT, HOSTNAME, NODE_GROUP, network_layer

NEVER = "2020-01-01T00:00:00Z"
"""A time that no condition changes at."""


def node(name: str, group: NodeGroup, *, leaf: str, taints: tuple[Mapping[str, str], ...] = (GPU_TAINT,)) -> Object:
    """An idle node of `group` below the switch `leaf`."""
    hardware = group.hardware
    labels = {HOSTNAME: name, NODE_GROUP: group.name, DEVICE_STACK: "gpu_operator"}
    labels["node.kubernetes.io/instance-type"] = hardware.name
    labels |= {network_layer(1): "spine", network_layer(2): "spine-1", network_layer(3): leaf}
    amounts = {
        "cpu": str(hardware.vcpus),
        "memory": f"{hardware.memory_gib}Gi",
        "pods": "100",
        "ephemeral-storage": "1000Gi",
        "hugepages-2Mi": "10256Mi",
        GPU: str(hardware.gpu_count),
        EFA: str(hardware.efa.max_interfaces),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [dict(taint) for taint in taints]},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [_ready()]},
    }


def _ready() -> Object:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "lastHeartbeatTime": now,
        "lastTransitionTime": NEVER,
    }


class Kubelet:
    """The kubelets of all nodes: nodes stay ready, bound pods run, deleted pods go. Pods of `ends` succeed or fail.

    `ends` maps a pod to Succeeded, Failed, or None for a pod that goes on running.
    """

    def __init__(self, api: Api, ends: Callable[[Object], str | None] = lambda pod: None) -> None:
        self._api, self.ends, self._over = api, ends, threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> "Kubelet":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def alive(self) -> None:
        """Raises the error that ended it."""
        if self._error:
            raise self._error

    def _serve(self) -> None:
        beaten = 0.0
        try:
            while not self._over.wait(0.2):
                if time.monotonic() - beaten > 10:
                    self._beat()
                    beaten = time.monotonic()
                for pod in self._api.list("v1", "Pod"):
                    if pod["spec"].get("nodeName"):
                        self._tend(pod)
        except Exception as error:  # noqa: BLE001 - the test that waits for it raises it
            self._error = error

    def _beat(self) -> None:
        for found in self._api.list("v1", "Node"):
            self._change({"apiVersion": "v1", "kind": "Node", **found}, {"conditions": [_ready()]})

    def _tend(self, pod: Object) -> None:
        pod = {"apiVersion": "v1", "kind": "Pod", **pod}
        phase, end = pod["status"].get("phase"), self.ends(pod)
        if "deletionTimestamp" in pod["metadata"]:
            self._delete(pod)
        elif phase == "Pending":
            self._change(pod, _status(pod, "Running", {"running": {"startedAt": NEVER}}))
        elif phase == "Running" and end:
            code = 0 if end == "Succeeded" else 1
            self._change(pod, _status(pod, end, {"terminated": {"exitCode": code, "finishedAt": NEVER}}))

    def _delete(self, pod: Object) -> None:
        metadata = pod["metadata"]
        try:
            self._api.delete("v1", "Pod", metadata["name"], metadata["namespace"], gracePeriodSeconds=0)
        except Denied as denied:
            if "not found" not in str(denied):
                raise

    def _change(self, obj: Object, status: Mapping[str, Any]) -> None:
        try:
            self._api.patch(obj, {"status": status}, part="/status")
        except Denied as denied:
            if "not found" not in str(denied):
                raise


def _status(pod: Object, phase: str, state: Object) -> Object:
    running = phase == "Running"
    conditions = [
        {"type": kind, "status": "True" if running or kind == "Initialized" else "False", "lastTransitionTime": NEVER}
        for kind in ("Initialized", "Ready", "ContainersReady")
    ]
    containers = [
        {
            "name": each["name"],
            "image": each["image"],
            "imageID": each["image"],
            "ready": running,
            "started": running,
            "restartCount": 0,
            "state": state,
        }
        for each in pod["spec"]["containers"]
    ]
    return {"phase": phase, "conditions": conditions, "containerStatuses": containers, "startTime": NEVER}
