"""The agent that accepts new nodes, run against real servers: with its own token, rights and admission policy."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.kubernetes.fleet import fleet_file
from tests.servers.api import Denied, Object
from tests.servers.control_plane import API_SERVER, ControlPlane
from tests.servers.fleets import Fleet, beside_policy, running
from tests.servers.nodes import node
from ultracluster.config.health import Health
from ultracluster.kubernetes.acceptance import NAME, NAMESPACE, acceptance_objects
from ultracluster.kubernetes.diagnostics import NAME as DIAGNOSTICS
from ultracluster.kubernetes.diagnostics import TOOLS
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.labels import EFA, GPU, GPU_TAINT, NODE_GROUP, NOT_ACCEPTED

CHECK = """
import os, sys
with open(os.environ["FOLDER"] + "/levels", "a") as file:
    file.write(sys.argv[1] + "\\n")
"""
"""check_node.py on a node without faults: it records its level."""

NEW = "new-node"
TOLERANT = {"tolerations": [{"operator": "Exists"}], "nodeSelector": {NODE_GROUP: "train"}}
"""A pod of a team cannot name its node, since Kueue holds it back until it has quota; the node is the only one."""


@pytest.fixture(scope="module")
def fleet(control_plane: ControlPlane) -> Iterator[Fleet]:
    """A fleet with full acceptance, whose only node has just joined."""
    environment = fleet_file(jobs=["jobset"]).model_copy(update={"health": Health(accept="full")})
    (group,) = environment.node_groups
    new = node(NEW, group, leaf="leaf", taints=(GPU_TAINT, NOT_ACCEPTED))
    with running(control_plane, environment, [new]) as found:
        for obj in items(environment, "DaemonSet"):
            if obj["metadata"]["name"] == DIAGNOSTICS:
                found.api.apply(obj)
        yield found
        found.api.delete("apps/v1", "DaemonSet", DIAGNOSTICS, NAMESPACE)


@pytest.fixture
def agent(fleet: Fleet, tmp_path: Path) -> Iterator[Callable[[], Path]]:
    """Starts the agent of the new node with short waits; returns its folder."""
    (files,) = items(fleet.environment, "ConfigMap")
    for name, text in files["data"].items():
        (tmp_path / name).write_text(text)
    (tmp_path / "check_node.py").write_text(CHECK)
    text = files["data"]["accept_node.py"].replace("/usr/bin/python3", sys.executable)
    text = text.replace("START_SECONDS = 30, 600, 3000, 1800", "START_SECONDS = 0.1, 1, 10, 600")
    (tmp_path / "accept_node.py").write_text(text.replace("\nWAIT_SECONDS = 300", "\nWAIT_SECONDS = 0"))
    (daemon_set,) = (obj for obj in items(fleet.environment, "DaemonSet") if obj["metadata"]["name"] == NAME)
    (container,) = daemon_set["spec"]["template"]["spec"]["containers"]
    account = pod(NAMESPACE, "agent", serviceAccountName=NAME, nodeName=NEW)
    token = tmp_path / "token"
    token.mkdir()
    (token / "token").write_text(fleet.api.token(fleet.api.create(account)))
    (token / "ca.crt").write_bytes(fleet.plane.authority.certificate.read_bytes())
    started: list[subprocess.Popen[bytes]] = []

    def start() -> Path:
        variables = {each["name"]: each["value"] for each in container["env"] if "value" in each}
        server = {"KUBERNETES_SERVICE_HOST": fleet.plane.address, "KUBERNETES_SERVICE_PORT": str(API_SERVER)}
        own = {"NODE": NEW, "FOLDER": str(tmp_path), "PATH": os.environ["PATH"], **server}
        command = f"exec 9< {token}; exec {sys.executable} -IS {tmp_path}/accept_node.py"
        with (tmp_path / "log").open("wb") as log:
            started.append(
                subprocess.Popen(
                    ["bash", "-c", command], env={**variables, **own}, stdout=log, stderr=log, start_new_session=True
                )
            )
        return tmp_path

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for place in (NAMESPACE, "monitoring", "research"):
        for each in fleet.api.list("v1", "Pod", place):
            gone(fleet, each)
    fleet.until(lambda: not fleet.api.list("v1", "Pod", "research"), "no pod of research")
    fleet.deploy()


def items(environment: object, kind: str) -> list[Object]:
    """Objects of one kind of the acceptance."""
    view = EksEnvironment.from_environment(environment)  # type: ignore[arg-type]
    return [obj for part in acceptance_objects(view) for obj in part.items if obj["kind"] == kind]


def pod(namespace: str, name: str, *, label: str = "", devices: bool = False, **spec: object) -> Object:
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {GPU: 8, EFA: 16} if devices else {}}
    container = {"name": "a", "image": "a", "resources": resources}
    metadata = {"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/name": label} if label else {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def gone(fleet: Fleet, obj: Object) -> None:
    with suppress(Denied):
        fleet.api.delete("v1", "Pod", obj["metadata"]["name"], obj["metadata"]["namespace"])


def tainted(fleet: Fleet) -> bool:
    taints = fleet.api.get("v1", "Node", NEW)["spec"].get("taints") or ()
    return any(taint["key"] == NOT_ACCEPTED["key"] for taint in taints)


def taint(fleet: Fleet) -> None:
    """The node as it was when it joined."""
    accepted = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NEW}}
    fleet.api.patch(accepted, {"spec": {"taints": [GPU_TAINT, NOT_ACCEPTED]}})


def running_pods(fleet: Fleet, namespace: str, name: str) -> list[Object]:
    found = fleet.api.list("v1", "Pod", namespace, fieldSelector=f"spec.nodeName={NEW},status.phase=Running")
    return [each for each in found if each["metadata"]["name"].startswith(name)]


def serve_tools(fleet: Fleet, folder: Path) -> None:
    """What the containers of node-diagnostics do once they run: they wait for commands."""
    fleet.until(lambda: running_pods(fleet, NAMESPACE, DIAGNOSTICS), "diagnostics on the new node")
    for tool in TOOLS:
        (folder / "tools" / tool / "request").touch()


def levels(folder: Path) -> list[str]:
    return (folder / "levels").read_text().split() if (folder / "levels").exists() else []


def events(fleet: Fleet, reason: str) -> list[str]:
    found = fleet.api.list("v1", "Event", "default", fieldSelector=f"reason={reason}")
    return [event["message"] for event in found]


def test_the_agent_accepts_a_new_node_beside_a_pod_that_tolerates_everything(fleet, agent):
    taint(fleet)
    beside_policy(fleet, pod("research", "intruder", label="dcgm-exporter", **TOLERANT))
    fleet.until(lambda: running_pods(fleet, "research", "intruder"), "a pod of a team on the new node")
    folder = agent()
    serve_tools(fleet, folder)
    fleet.until(lambda: not tainted(fleet), "an accepted node")
    assert levels(folder) == ["fast", "full"]
    fleet.until(lambda: "the full checks passed" in events(fleet, "NodeAccepted"), "an event of the acceptance")
    fleet.until(lambda: not running_pods(fleet, NAMESPACE, DIAGNOSTICS), "diagnostics that leave")


def test_a_pod_that_has_gpus_holds_the_checks_up_and_an_event_names_it(fleet, agent):
    """The same pod with devices, which no node that is not accepted offers."""
    taint(fleet)
    beside_policy(fleet, pod("research", "holder", devices=True, **TOLERANT))
    fleet.until(lambda: running_pods(fleet, "research", "holder"), "a pod with GPUs on the new node")
    folder = agent()
    fleet.until(lambda: any("research/holder" in each for each in events(fleet, "DiagnosticsWait")), "an event")
    assert tainted(fleet)
    assert "full" not in levels(folder)
    gone(fleet, pod("research", "holder"))
    serve_tools(fleet, folder)
    fleet.until(lambda: not tainted(fleet), "an accepted node")


def test_without_its_right_to_patch_nodes_the_agent_accepts_none(fleet, agent):
    taint(fleet)
    role = fleet.api.get("rbac.authorization.k8s.io/v1", "ClusterRole", NAME)
    reading = [{**rule, "verbs": [verb for verb in rule["verbs"] if verb != "patch"]} for rule in role["rules"]]
    fleet.api.patch(role, {"rules": reading})
    folder = agent()
    fleet.until(lambda: "403" in (folder / "log").read_text(), "a refusal in the agent's log")
    assert tainted(fleet)
