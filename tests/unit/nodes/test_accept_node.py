"""The agent that accepts Kubernetes nodes, against an API server of one node."""

import ast
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.kubernetes.environments import P5, eks_environment
from tests.unit.nodes.test_check_node import NCCL, Node, watched
from tests.unit.nodes.test_check_node import diagnostics as report
from ultracluster.config.health import Health
from ultracluster.kubernetes.acceptance import TOOL, acceptance_objects, facts
from ultracluster.kubernetes.diagnostics import NAME, TOOLS
from ultracluster.kubernetes.labels import DIAGNOSTICS, EFA, GPU, GPU_TAINT, NODE_GROUP, NOT_ACCEPTED
from ultracluster.nodes.health_programs import program, tables

CHECK = """
import os, shutil, subprocess, sys, time
folder, level = os.environ["FOLDER"], sys.argv[1]
facts = open(os.environ["CHECK_NODE_FACTS"]).read().split()
assert facts == ["type=p5.48xlarge", "gpus=8", "nvlink=1", "efa=32"], facts
with open(folder + "/levels", "a") as file:
    file.write(level + "\\n")
if level != "fast":
    subprocess.run(["dcgmi", "diag", "-r", "1"], stdout=sys.stderr, check=True)
while os.path.exists(folder + "/slow"):
    time.sleep(0.1)
for name in ("fault", "fault-" + level):
    if os.path.exists(folder + "/" + name):
        print("health: replace: memory: remapping a row failed")
        sys.exit(1)
sys.exit(os.path.exists(folder + "/crash"))
"""


def pod(name="job-1", *, limits=None, claims=(), node="node-1", labels=None, namespace="pretrain", runs=True):
    """A pod of a team, unless it is in another namespace; of a DaemonSet, or not, makes no difference."""
    states = [{"state": {"running": {}}}] if runs else [{"state": {"waiting": {}}}]
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "status": {"containerStatuses": states},
        "spec": {
            "nodeName": node,
            "containers": [{"resources": {"limits": limits or {}}}, {}],
            **({"resourceClaims": list(claims)} if claims else {}),
        },
    }


class Api(ThreadingHTTPServer):
    """Serves one node: to read, to patch with the right version, and to watch; lists pods; and takes events.

    It knows how often the agent has read the node and listed its pods, and from which version on it watches the node.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        labels = {NODE_GROUP: "train", "node.kubernetes.io/instance-type": "p5.48xlarge"}
        metadata = {"name": "node-1", "labels": labels, "annotations": {}, "resourceVersion": "1"}
        self.node = {"metadata": metadata, "spec": {}, "status": {"conditions": []}}
        self.events: list[tuple[str, str, str]] = []
        self.pods: list[dict] = []
        self.changed = threading.Condition()
        self.on_label = lambda wanted: None
        self.read, self.listed, self.watched = 0, 0, ""

    def change(self, taints):
        self.patch({"spec": {"taints": taints or None}})

    def patch(self, body):
        with self.changed:
            metadata = self.node["metadata"]
            if "taints" in body.get("spec", {}):
                self.node["spec"] = {"taints": body["spec"]["taints"]} if body["spec"]["taints"] else {}
            for kind in ("labels", "annotations"):
                for key, value in body.get("metadata", {}).get(kind, {}).items():
                    metadata[kind].pop(key, None)
                    metadata[kind].update({key: value} if value is not None else {})
                    if key == DIAGNOSTICS:
                        self.on_label(value)
            metadata["resourceVersion"] = str(int(self.version) + 1)
            self.changed.notify_all()

    @property
    def version(self):
        return self.node["metadata"]["resourceVersion"]

    @property
    def taints(self):
        return {taint["key"]: taint["value"] for taint in self.node["spec"].get("taints", [])}

    @property
    def keys(self):
        return list(self.taints)

    @property
    def reasons(self):
        return [reason for _, reason, _ in self.events]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        assert self.headers["Authorization"] == "Bearer secret"
        place = urlsplit(self.path)
        if place.path == "/api/v1/pods":
            fields = parse_qs(place.query)["fieldSelector"][0].split(",")
            assert fields == ["spec.nodeName=node-1", "status.phase!=Succeeded", "status.phase!=Failed"]
            self.server.listed += 1
            self.answer({"items": self.server.pods})
            return
        if "watch=1" not in self.path:
            self.server.read += 1
            self.answer(self.server.node)
            return
        # what has changed since the agent read the node is told at once
        [seen] = parse_qs(place.query)["resourceVersion"]
        with self.server.changed:
            self.server.watched = seen
            self.server.changed.wait_for(lambda: self.server.version != seen, 20)
        self.answer({"type": "MODIFIED", "object": self.server.node})

    def do_PATCH(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.changed:
            current = body["metadata"]["resourceVersion"] == self.server.version
            if current:
                self.server.patch(body)
        self.answer(self.server.node, 200 if current else 409)

    def do_POST(self):
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.events.append((event["type"], event["reason"], event["message"]))
        self.answer(event, 201)

    def answer(self, what, status=200):
        with self.server.changed:
            body = json.dumps(what).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Says nothing."""


def until(holds):
    """Waits until `holds`, on a busy machine too."""
    ends = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < ends, "never"
        time.sleep(0.02)


def again(server, count):
    """Waits until the agent has read the node, or listed its pods, thrice more: it has judged what there is now."""
    before = getattr(server, count)
    until(lambda: getattr(server, count) >= before + 3)


def rests(server):
    """Waits until the agent has read the node as it is now and found nothing to do."""
    until(lambda: server.watched == server.version)


@pytest.fixture
def server():
    api = Api()
    thread = threading.Thread(target=api.serve_forever, daemon=True)
    thread.start()
    yield api
    api.shutdown()
    api.server_close()


@pytest.fixture
def agent(server, tmp_path):
    """Starts the agent with short waits; the folder holds its programs."""
    token = tmp_path / "token"
    token.mkdir()
    (token / "token").write_text("secret\n")
    (tmp_path / "check_node.py").write_text(CHECK)
    (tmp_path / "facts.json").write_text(json.dumps(facts(eks_environment(P5))))
    (tmp_path / "tables.json").write_text(tables())
    (tmp_path / "systemctl").write_text(f"#!/bin/sh\necho $* >> {tmp_path}/called\n")
    (tmp_path / "systemctl").chmod(0o755)
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        (tmp_path / "bin" / tool).write_text(TOOL)
        (tmp_path / "bin" / tool).chmod(0o755)
    started = []

    def start(on_failure="drain", *, accept="fast", root="", start_seconds=600, wait_seconds=300):
        text = program("accept_node").replace("/usr/bin/python3", sys.executable)
        for old, new in (
            ("START_SECONDS = 30, 600, 3000, 1800", f"START_SECONDS = 0.1, 1, 10, {start_seconds}"),
            ("CHANGE_SECONDS = 5", "CHANGE_SECONDS = 0.1"),
            ("WAIT_SECONDS = 300", f"WAIT_SECONDS = {wait_seconds}"),
        ):
            assert text.count(old) == 1
            text = text.replace(old, new)
        (tmp_path / "accept_node.py").write_text(text)
        variables = {
            "NODE": "node-1",
            "ACCEPT": accept,
            "ON_FAILURE": on_failure,
            "PLATFORM": "kube-system,monitoring",
            "FOLDER": str(tmp_path),
            "SCHEME": "http",
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(server.server_port),
            "PATH": f"{tmp_path}:{root}/bin:/usr/bin:/bin",
            **({"CHECK_NODE_ROOT": str(root), "CHECK_NODE_FOLDER": str(tmp_path)} if root else {}),
        }
        command = f"exec 9< {token}; exec {sys.executable} -IS {tmp_path}/accept_node.py"
        started.append(subprocess.Popen(["bash", "-c", command], env=variables, start_new_session=True))
        return tmp_path

    start.processes = started
    yield start
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with the checks that it runs
        process.wait()


@pytest.fixture
def diagnostics(server, tmp_path):
    """The pod node-diagnostics, whose containers run while the node has the label; its tools record their arguments."""
    (tmp_path / "containers").mkdir()
    (tmp_path / "containers" / "nv-hostengine").write_text("#!/bin/sh\n")
    for name in ("dcgmi", "mpirun"):
        (tmp_path / "containers" / name).write_text(f'#!/bin/sh\necho "{name} $*" | tee -a {tmp_path}/ran\n')
    for file in (tmp_path / "containers").iterdir():
        file.chmod(0o755)
    running = []
    tools = pod("node-diagnostics-x", labels={"app.kubernetes.io/name": NAME}, namespace="kube-system")

    def label(wanted):
        if not wanted:
            for process in running:
                process.kill()
                process.wait()
            running.clear()
            server.pods = [each for each in server.pods if each is not tools]
            return
        server.pods = [*server.pods, tools]
        for name, tool in TOOLS.items():
            shell, options, script = tool["command"]
            variables = {"TOOL": name, **tool["env"], "PATH": f"{tmp_path}/containers:/usr/bin:/bin"}
            command = [shell, options, script.replace("/tools", str(tmp_path / "tools"))]
            running.append(subprocess.Popen(command, env=variables))

    server.on_label = label
    yield tmp_path
    with server.changed:  # the agent still runs, and may set the label
        server.on_label = lambda wanted: None
        label(None)


def test_a_healthy_node_loses_the_startup_taint_alone_and_again_when_it_gets_it_back(server, agent):
    server.change([GPU_TAINT, NOT_ACCEPTED])
    agent()
    until(lambda: server.keys == ["nvidia.com/gpu"])
    until(lambda: server.events == [("Normal", "NodeAccepted", "the fast checks passed")])
    rests(server)
    server.change([NOT_ACCEPTED])
    until(lambda: server.keys == [])


def test_a_node_with_a_fault_keeps_the_taint_and_says_why_once_until_the_fault_is_gone(server, agent, tmp_path):
    (tmp_path / "fault").touch()
    server.change([GPU_TAINT, NOT_ACCEPTED])
    folder = agent()
    until(lambda: server.events)
    again(server, "read")
    assert server.keys == ["nvidia.com/gpu", "ultracluster/not-accepted"]
    assert server.events == [("Warning", "NodeNotAccepted", "health: replace: memory: remapping a row failed")]
    (folder / "fault").unlink()
    until(lambda: server.keys == ["nvidia.com/gpu"])
    assert not (folder / "called").exists()


def test_a_node_that_is_to_be_replaced_powers_off(server, agent, tmp_path):
    (tmp_path / "fault").touch()
    server.change([NOT_ACCEPTED])
    folder = agent("replace")
    until((folder / "called").exists)
    until(lambda: (folder / "called").read_text().startswith("poweroff\n"))
    assert ("Warning", "NodePowersOff", "health: replace: memory: remapping a row failed") in server.events


def test_a_node_with_jobs_that_a_person_has_checked_again_powers_off_after_them(server, agent, tmp_path):
    server.pods = [pod(limits={GPU: "8"})]
    (tmp_path / "fault").touch()
    server.change([NOT_ACCEPTED])
    folder = agent("replace")
    until(lambda: server.reasons == ["NodeNotAccepted"])
    again(server, "listed")
    assert not (folder / "called").exists()
    server.pods = []
    until((folder / "called").exists)


def test_the_taint_and_labels_of_the_program_are_those_of_the_nodes():
    text = program("accept_node")
    assert f'NOT_ACCEPTED, DIAGNOSTICS = "{NOT_ACCEPTED["key"]}", "{DIAGNOSTICS}"' in text
    assert f'GROUP = "node.kubernetes.io/instance-type", "{NODE_GROUP}"' in text
    assert f"TOOLS = {tuple(sorted(TOOLS))}".replace("'", '"') in text
    assert f'DEVICES = ("{GPU.removesuffix("gpu")}", "{EFA}")' in text


def test_the_python_of_amazon_linux_2023_parses_the_program():
    ast.parse(program("accept_node"), feature_version=(3, 9))
    assert "\nfrom __future__ import annotations\n" in program("accept_node")


def test_without_acceptance_there_is_no_agent():
    view = eks_environment(P5)
    assert [part.name for part in acceptance_objects(view)] == ["node-acceptance"]
    without = type(view)(**{**vars(view), "health": Health(accept="none")})
    assert acceptance_objects(without) == ()


def levels(folder):
    return (folder / "levels").read_text().split()


def test_checks_that_crash_accept_no_node(server, agent, tmp_path):
    (tmp_path / "crash").touch()
    server.change([NOT_ACCEPTED])
    agent()
    until(lambda: server.events)
    assert server.keys == ["ultracluster/not-accepted"]
    assert server.events == [("Warning", "NodeNotAccepted", "health: isolate: limit: the checks end with 1")]


def test_full_checks_accept_a_node_with_the_tools_of_the_pod_which_then_leaves(server, agent, diagnostics):
    server.change([GPU_TAINT, NOT_ACCEPTED])
    folder = agent(accept="full")
    until(lambda: server.keys == ["nvidia.com/gpu"])
    assert levels(folder) == ["fast", "full"]
    assert (folder / "ran").read_text() == "dcgmi diag -r 1\n"
    until(lambda: server.events == [("Normal", "NodeAccepted", "the full checks passed")])
    assert DIAGNOSTICS not in server.node["metadata"]["labels"]
    assert server.pods == []


@pytest.mark.parametrize(
    ("bus", "severity", "fault"),
    [
        ("450.5", None, ""),
        ("371.2", None, "health: isolate: nccl: all-reduce 371.2 GB/s is below the floor of 380.0 GB/s"),
        ("450.5", 2, "health: isolate: dcgm: memory on GPU 1: test failed"),
    ],
)
def test_the_checks_of_pcs_judge_what_the_tools_of_the_pod_measure(server, agent, diagnostics, bus, severity, fault):
    node = Node(diagnostics / "root")
    (diagnostics / "check_node.py").write_text(program("check_node"))
    (diagnostics / "facts.json").write_text(json.dumps({"types": {"p5.48xlarge": [2, 1]}, "efa": {"train": 2}}))
    (diagnostics / "report").write_text(report("Fail", severity) if severity else report())
    (diagnostics / "all-reduce").write_text(NCCL.format(bus=bus))
    (diagnostics / "health").write_text(watched())
    for name, file in (("dcgmi", "report"), ("mpirun", "all-reduce")):
        health = f'[ "$1" != health ] || {{ cat {diagnostics}/health; exit; }}'
        text = f'#!/bin/sh\necho "{name} $*" >> {diagnostics}/ran\n{health}\ncat {diagnostics}/{file}\n'
        (diagnostics / "containers" / name).write_text(text)
    server.change([NOT_ACCEPTED])
    agent(accept="full", root=node.root)
    until(lambda: server.events)
    assert server.events[0] == (
        ("Warning", "NodeNotAccepted", fault) if fault else ("Normal", "NodeAccepted", "the full checks passed")
    )
    ran = (diagnostics / "ran").read_text().splitlines()
    assert ran[:2] == ["dcgmi health -s a", "dcgmi diag -r 2 -j"]
    assert len(ran) == (2 if severity else 5)
    if not severity:
        assert ran[2].endswith("-p memory_bandwidth.minimum_bandwidth=2680000")
        assert ran[3].endswith(" -n 1 /opt/nccl-tests/build/all_reduce_perf -b 8G -e 8G -g 2 -n 20 -w 5")
        assert ran[4] == "dcgmi health -c -j"
    assert node.metric("dcgm", "full") == (4 if severity else 0)


def test_full_checks_begin_once_no_pod_has_devices(server, agent, diagnostics):
    claims = pod("claims", claims=[{"name": "gpus"}])
    held = [claims, pod("device", limits={GPU: "8"}), pod("fabric", limits={EFA: "32"})]
    server.pods = list(held)
    server.change([NOT_ACCEPTED])
    folder = agent(accept="full", wait_seconds=0)
    for each in held:
        again(server, "listed")
        assert "full" not in levels(folder)
        server.pods = [other for other in server.pods if other is not each]
    until(lambda: server.keys == [])
    assert "full" in levels(folder)
    # after some minutes an event names the pods
    names = "pretrain/claims, pretrain/device, pretrain/fabric"
    assert server.events[0] == ("Warning", "DiagnosticsWait", f"they start once these pods have ended: {names}")


@pytest.mark.parametrize(
    "intruder",
    [
        pod("tolerates-everything"),
        pod("of-a-job", limits={"cpu": "1"}),
        pod("waits-for-claims", claims=[{"name": "gpus"}], runs=False),
        pod("waits-for-gpus", limits={GPU: "8"}, runs=False),
        pod("wears-a-label", labels={"app.kubernetes.io/name": "node-diagnostics"}),
        pod("wears-another", labels={"app.kubernetes.io/name": "dcgm-exporter"}),
    ],
    ids=lambda each: each["metadata"]["name"],
)
def test_no_pod_of_a_team_keeps_a_new_node_unaccepted(server, agent, diagnostics, intruder):
    server.pods = [intruder]
    server.change([NOT_ACCEPTED])
    folder = agent(accept="full")
    until(lambda: server.keys == [])
    assert levels(folder) == ["fast", "full"]
    assert server.pods == [intruder]


def test_dcgm_exporter_leaves_before_the_diagnostics_start(server, agent, diagnostics):
    exporter = pod("exporter", labels={"app.kubernetes.io/name": "dcgm-exporter"}, namespace="monitoring")
    server.pods = [exporter]
    server.change([NOT_ACCEPTED])
    folder = agent(accept="full")
    until(lambda: DIAGNOSTICS in server.node["metadata"]["labels"])
    again(server, "listed")
    assert "full" not in levels(folder)
    server.pods = [each for each in server.pods if each is not exporter]
    until(lambda: server.keys == [])


def test_without_the_tools_no_node_is_judged_and_an_event_says_where_to_look(server, agent):
    server.change([NOT_ACCEPTED])
    folder = agent(accept="full", start_seconds=1)
    until(lambda: "DiagnosticsDoNotStart" in server.reasons)
    assert levels(folder)[0] == "fast"
    assert "full" not in levels(folder)
    assert server.keys == ["ultracluster/not-accepted"]


def test_a_new_node_that_fails_full_checks_waits_for_a_person_or_a_reboot(server, agent, diagnostics):
    (diagnostics / "fault-full").touch()
    server.change([NOT_ACCEPTED])
    folder = agent(accept="full")
    until(lambda: server.taints == {"ultracluster/not-accepted": "failed"})
    rests(server)
    assert levels(folder) == ["fast", "full"]
    (folder / "fault-full").unlink()
    (folder / "failed").unlink()  # the folder is empty after a reboot
    agent.processes[0].kill()
    agent(accept="full")
    until(lambda: server.keys == [])


def test_a_new_node_that_fails_full_checks_is_replaced_at_once(server, agent, diagnostics):
    (diagnostics / "fault-full").touch()
    server.change([NOT_ACCEPTED])
    folder = agent("replace", accept="full")
    until((folder / "called").exists)
    assert server.keys == ["ultracluster/not-accepted"]


def test_a_person_has_a_failed_node_checked_again_or_accepts_it_during_the_checks(server, agent, diagnostics):
    (diagnostics / "failed").touch()
    server.change([{**NOT_ACCEPTED, "value": "failed"}])
    folder = agent(accept="full")
    rests(server)
    assert not (folder / "levels").exists()
    (folder / "slow").touch()
    server.change([NOT_ACCEPTED])
    until((folder / "levels").exists)
    server.change([])
    until(lambda: server.watched == server.version and server.taints == {})
    assert DIAGNOSTICS not in server.node["metadata"]["labels"]


def test_an_accepted_node_is_not_ours_whatever_awss_agent_reports(server, agent):
    agent()
    rests(server)
    condition = {"type": "AcceleratedHardwareReady", "status": "False", "reason": "DCGMError"}
    with server.changed:
        server.node["status"]["conditions"] = [condition]
        server.patch({})
    rests(server)
    assert server.taints == {}
    assert server.events == []


def test_an_agent_that_starts_again_removes_the_label_of_the_one_before(server, agent, diagnostics):
    server.patch({"metadata": {"labels": {DIAGNOSTICS: "wanted"}}})
    agent(accept="full")
    until(lambda: DIAGNOSTICS not in server.node["metadata"]["labels"])
    server.patch({"metadata": {"labels": {DIAGNOSTICS: "wanted"}}})
    server.change([NOT_ACCEPTED])
    until(lambda: server.taints == {})
