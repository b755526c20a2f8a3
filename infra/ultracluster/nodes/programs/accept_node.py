"""Agent of a Kubernetes node with GPUs: accepts the new node, once, before its first pod.

A new node has the startup taint NOT_ACCEPTED until the checks of check_node.py pass, at the level ACCEPT. From then on
AWS's node monitoring agent and EKS node repair own it. With ON_FAILURE=replace a node that fails powers off, and its
node group launches another; otherwise it keeps the taint. A person who sets the taint again has the node checked again.

The agent runs in a pod of a DaemonSet, as root, with the root file system of the node. DCGM and NCCL tests are in
another pod, of the DaemonSet node-diagnostics, which the label DIAGNOSTICS schedules on the node; the programs in
FOLDER/bin run their commands there.

Environment: NODE, ACCEPT (fast or full), ON_FAILURE (drain or replace), PLATFORM (namespaces of the platform's pods),
FOLDER of the programs and tables, KUBERNETES_SERVICE_HOST and _PORT. File descriptor 9 is the folder of the
pod's service account token, which is not below the node's root. Runs on Python 3.9, that of Amazon Linux 2023.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from typing import Any

from ultracluster.nodes.programs.this_node import (
    DIAGNOSTICS,
    GROUP,
    NAME,
    NOT_ACCEPTED,
    TYPE,
    Node,
    active_pods,
    api,
    create_event,
    env,
    has_workload,
    holds_devices,
    read_node,
    set_label,
    set_taint,
    taints,
)

TOOLS = ("all_reduce_perf", "dcgmi")
RETRY_SECONDS, GIVE_UP_SECONDS, WATCH_SECONDS, START_SECONDS = 30, 600, 3000, 1800
"""START_SECONDS is the limit for the pod with the diagnostics to start: its images have several gigabytes."""
WAIT_SECONDS = 300
"""Time after which an event says what diagnostics wait for."""


class Released(Exception):
    """A person removed the taint, so the checks are to stop."""


def folder(*names: str) -> str:
    """A path in FOLDER."""
    return os.path.join(env["FOLDER"], *names)


def is_pending(node: Node) -> bool:
    """Whether the node is to be accepted.

    A taint with the value `failed` waits for a person, or for a reboot, which removes the file that records it.
    """
    value = taints(node).get(NOT_ACCEPTED)
    return value is not None and not (value == "failed" and os.path.exists(folder("failed")))


def fleet_facts() -> dict[str, Any]:
    """Content of facts.json: GPUs and NVLink by instance type, EFA devices by node group."""
    with open(folder("facts.json")) as file:
        content: dict[str, Any] = json.load(file)
        return content


def node_label(node: Node, key: str) -> str:
    """Value of a label of the node; empty without it."""
    value: str = node["metadata"].get("labels", {}).get(key, "")
    return value


def expected_facts(node: Node) -> list[str]:
    """Lines of health.conf, NAME=VALUE: GPUs and NVLink of the instance type, EFA devices of the node group."""
    fleet, instance_type = fleet_facts(), node_label(node, TYPE)
    gpus, nvlink = fleet["types"].get(instance_type, (0, 0))
    efa = fleet["efa"].get(node_label(node, GROUP), 0)
    return [f"type={instance_type}", f"gpus={gpus}", f"nvlink={nvlink}", f"efa={efa}"]


def run_checks(node: Node, level: str) -> str:
    """Runs a level of check_node.py: the reason why the node fails, empty if it passes. Raises Released."""
    path = folder("health.conf")
    with open(path, "w") as file:
        file.write("".join(f"{fact}\n" for fact in expected_facts(node)))
    tools = "" if level == "fast" else f"{folder('bin')}:"
    process = subprocess.Popen(
        ["/usr/bin/python3", "-IS", folder("check_node.py"), level],
        stdout=subprocess.PIPE,
        text=True,
        env={**env, "CHECK_NODE_FACTS": path, "PATH": tools + env["PATH"]},
    )
    with open(folder("tables.json")) as file:
        limit = sum(runs * seconds for runs, seconds in json.load(file)["seconds"].values())
    deadline = time.monotonic() + limit
    try:
        while time.monotonic() < deadline:
            try:
                reason, _ = process.communicate(timeout=min(RETRY_SECONDS, limit))
            except subprocess.TimeoutExpired:
                raise_if_released()
                continue
            crashed = f"health: isolate: limit: the checks end with {process.returncode}"
            return (reason.strip() or crashed) if process.returncode else ""
        return "health: reboot: limit: the checks do not end"
    finally:
        if process.poll() is None:
            # SIGTERM first: it then restarts the services that it stopped
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()


def raise_if_released() -> None:
    """Raises Released if the node no longer has the taint."""
    try:
        if NOT_ACCEPTED not in taints(read_node()):
            raise Released
    except OSError as problem:
        print(f"{problem!r}", file=sys.stderr, flush=True)


def tools_ready() -> bool:
    """Whether the pod with the diagnostics accepts commands."""
    return all(os.path.exists(folder("tools", tool, "request")) for tool in TOOLS)


class Agent:
    """Accepts the node, and keeps what it knows between attempts: since when it fails or waits, and the last event."""

    def __init__(self) -> None:
        self._failing_since: float | None = None
        self._waiting_since: float | None = None
        self._last_event = ""

    def report(self, kind: str, reason: str, message: str) -> None:
        """Logs and creates an event of the node, unless it is the same as the last one."""
        if self._last_event == f"{reason}: {message}":
            return
        self._last_event = f"{reason}: {message}"
        print(self._last_event, flush=True)
        create_event(kind, reason, message)

    def reset(self) -> None:
        """Forgets earlier attempts: the node is accepted."""
        self._failing_since, self._waiting_since, self._last_event = None, None, ""

    def accept(self, node: Node) -> None:
        """Checks a node with the startup taint, and removes the taint if it passes."""
        fast_reason = run_checks(node, "fast")
        reason: str | None = fast_reason
        if not fast_reason and env["ACCEPT"] == "full":
            reason = self.run_diagnostics(node)
        if reason is None:
            return
        if not reason:
            set_taint(NOT_ACCEPTED, None)
            self.report("Normal", "NodeAccepted", f"the {env['ACCEPT']} checks passed")
            return
        self.report("Warning", "NodeNotAccepted", reason)
        self._failing_since = self._failing_since or time.monotonic()
        # an NVLink fabric takes minutes to come up
        if fast_reason and time.monotonic() - self._failing_since < GIVE_UP_SECONDS:
            return
        self._failing_since = None
        if env["ON_FAILURE"] == "replace":
            # a person can add the taint to a node with jobs, which run to their end
            if not any(holds_devices(pod) for pod in active_pods()):
                self.report("Warning", "NodePowersOff", reason)
                subprocess.run(["systemctl", "poweroff"], timeout=60, check=False)
        elif not fast_reason:
            with open(folder("failed"), "w"):
                pass
            set_taint(NOT_ACCEPTED, "failed")

    def run_diagnostics(self, node: Node) -> str | None:
        """Runs the full checks once no job has devices: the reason why the node fails, empty if it passes.

        None if they cannot run yet, of which an event tells after some minutes. Raises Released.
        """
        pods = active_pods()
        if has_workload(pods, "node-diagnostics"):
            # left by an agent that ended meanwhile
            set_label(DIAGNOSTICS, None)
            return None
        if jobs := names_of_jobs(pods):
            self.wait_for(jobs)
            return None
        shutil.rmtree(folder("tools"), ignore_errors=True)
        for tool in TOOLS:
            os.makedirs(folder("tools", tool))
        set_label(DIAGNOSTICS, "wanted")
        try:
            deadline = time.monotonic() + START_SECONDS
            # the label also removes DCGM exporter, which keeps the GPUs open
            while not tools_ready() or has_workload(pods := active_pods(), "dcgm-exporter"):
                if time.monotonic() > deadline:
                    command = f"kubectl -n kube-system describe pods -l {NAME}=node-diagnostics"
                    self.report("Warning", "DiagnosticsDoNotStart", command)
                    return None
                time.sleep(min(RETRY_SECONDS, 5))
                raise_if_released()
            return None if names_of_jobs(pods) else run_checks(node, "full")
        finally:
            set_label(DIAGNOSTICS, None)

    def wait_for(self, pods: str) -> None:
        """Says that diagnostics wait for pods; after some minutes in an event."""
        self._waiting_since = self._waiting_since or time.monotonic()
        print(f"diagnostics wait for {pods}", flush=True)
        if time.monotonic() - self._waiting_since >= WAIT_SECONDS:
            self.report("Warning", "DiagnosticsWait", f"they start once these pods have ended: {pods}")


def names_of_jobs(pods: list[Any]) -> str:
    """Names of the pods that have devices of the node, with their namespaces."""
    jobs = (pod["metadata"] for pod in pods if holds_devices(pod))
    return ", ".join(f"{each['namespace']}/{each['name']}" for each in jobs)


def wait_for_task(node: Node) -> None:
    """Watches the node, and returns when it is to be accepted, at the latest after WATCH_SECONDS."""
    version = node["metadata"]["resourceVersion"]
    query = f"watch=1&fieldSelector=metadata.name%3D{env['NODE']}&resourceVersion={version}"
    path = f"/api/v1/nodes?{query}&timeoutSeconds={WATCH_SECONDS}"
    with api("GET", path, seconds=WATCH_SECONDS + 60) as answer:
        for line in answer:
            event = json.loads(line)
            if event["type"] == "ERROR" or is_pending(event["object"]):
                return


def main() -> None:
    """Accepts the node whenever it has the taint, for ever."""
    agent = Agent()
    while True:
        try:
            node = read_node()
            if not is_pending(node):
                agent.reset()
                if DIAGNOSTICS in node["metadata"].get("labels", {}):
                    # left by an agent that ended meanwhile
                    set_label(DIAGNOSTICS, None)
                wait_for_task(node)
                time.sleep(1)
                continue
            agent.accept(node)
        except Released:
            print("a person removed the taint", flush=True)
        except (OSError, ValueError, KeyError) as problem:
            print(f"{problem!r}", file=sys.stderr, flush=True)
        time.sleep(RETRY_SECONDS)


if __name__ == "__main__":
    main()
