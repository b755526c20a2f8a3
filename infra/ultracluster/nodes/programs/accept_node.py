"""Agent of a Kubernetes node with GPUs: accepts the new node, and quarantines it when its GPUs are reported faulty.

Accept: a new node has the startup taint NOT_ACCEPTED until the checks of check_node.py pass, at the level ACCEPT.

Quarantine: a node whose condition AcceleratedHardwareReady turns false (AWS's node monitoring agent sets it) gets the
taint QUARANTINE, so that no further pod of a team starts. Once running pods have ended, the agent runs the checks of
the level `quarantine`. The taint is removed if they pass, and gets the value `failed` if they fail.

Replace: with ON_FAILURE=replace a node that fails powers off, and its node group launches another.

The agent runs in a pod of a DaemonSet, as root, with the root file system of the node. DCGM and NCCL tests are in
another pod, of the DaemonSet node-diagnostics, which the label DIAGNOSTICS schedules on the node; the programs in
FOLDER/bin run their commands there.

Environment: NODE, ACCEPT (fast or full), QUARANTINE (none or full), ON_FAILURE (drain or replace), FOLDER of the
programs and tables, KUBERNETES_SERVICE_HOST and _PORT. File descriptor 9 is the folder of the pod's service account
token, which is not below the node's root. Runs on Python 3.9, that of Amazon Linux 2023.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

from ultracluster.nodes.programs.this_node import (
    CONDITION,
    DIAGNOSTICS,
    GROUP,
    NAME,
    NOT_ACCEPTED,
    QUARANTINE,
    TYPE,
    Node,
    active_pods,
    api,
    create_event,
    env,
    has_workload,
    is_job,
    read_node,
    reported_condition,
    set_label,
    set_taint,
    taints,
)

TOOLS = ("all_reduce_perf", "dcgmi")
RETRY_SECONDS, GIVE_UP_SECONDS, WATCH_SECONDS, START_SECONDS = 30, 600, 3000, 1800
"""START_SECONDS is the limit for the pod with the diagnostics to start: its images have several gigabytes."""
LIMITS = {"fast": 60, "full": 3600, "quarantine": 21600}
"""Time limit of each level in seconds, above the sum of the limits of its checks."""


class Released(Exception):
    """A person removed the taint, so the checks are to stop."""


def folder(*names: str) -> str:
    """A path in FOLDER."""
    return os.path.join(env["FOLDER"], *names)


def pending_task(node: Node) -> str:
    """What the node needs: `quarantine`, `accept` or `isolate`; empty for nothing.

    A taint with the value `failed` needs nothing until a reboot removes the file that records the failure.
    """
    values, recorded = taints(node), os.path.exists(folder("failed"))
    quarantines = env["QUARANTINE"] == "full"
    for key, name in ((QUARANTINE, "quarantine" if quarantines else ""), (NOT_ACCEPTED, "accept")):
        if key in values:
            return "" if values[key] == "failed" and recorded else name
    return "isolate" if quarantines and reported_condition(node) else ""


def fleet_facts() -> dict[str, Any]:
    """Content of facts.json: GPUs and NVLink by instance type, EFA devices and quarantine limit by node group."""
    with open(folder("facts.json")) as file:
        content: dict[str, Any] = json.load(file)
        return content


def node_label(node: Node, key: str) -> str:
    """Value of a label of the node; empty without it."""
    value: str = node["metadata"].get("labels", {}).get(key, "")
    return value


def quarantine_slots(node: Node) -> int:
    """How many more nodes of the node's group may go into quarantine."""
    group = node_label(node, GROUP)
    selector = urllib.parse.quote(f"{QUARANTINE},{GROUP}={group}")
    with api("GET", f"/api/v1/nodes?labelSelector={selector}") as answer:
        return int(fleet_facts()["quarantine"].get(group, 1)) - len(json.load(answer)["items"])


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
    deadline = time.monotonic() + LIMITS[level]
    try:
        while time.monotonic() < deadline:
            try:
                reason, _ = process.communicate(timeout=min(RETRY_SECONDS, LIMITS[level]))
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
    """Raises Released if the node no longer has a taint of this agent."""
    try:
        if not {NOT_ACCEPTED, QUARANTINE} & set(taints(read_node())):
            raise Released
    except OSError as problem:
        print(f"{problem!r}", file=sys.stderr, flush=True)


def run_diagnostics(node: Node, level: str, report: Callable[[str, str, str], None]) -> str | None:
    """Runs a level with diagnostics on an idle node: the reason why the node fails, empty if it passes.

    None if they cannot run yet. `report` makes an event of the node. Raises Released.
    """
    pods = active_pods()
    if has_workload(pods, "node-diagnostics"):
        # left by an agent that ended meanwhile
        set_label(DIAGNOSTICS, None)
        return None
    if jobs := [pod["metadata"]["name"] for pod in pods if is_job(pod)]:
        print(f"diagnostics wait for {', '.join(jobs)}", flush=True)
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
                report("Warning", "DiagnosticsDoNotStart", command)
                return None
            time.sleep(min(RETRY_SECONDS, 5))
            raise_if_released()
        return None if any(is_job(pod) for pod in pods) else run_checks(node, level)
    finally:
        set_label(DIAGNOSTICS, None)


def tools_ready() -> bool:
    """Whether the pod with the diagnostics accepts commands."""
    return all(os.path.exists(folder("tools", tool, "request")) for tool in TOOLS)


class Agent:
    """The tasks, with what they keep between attempts: when the fast checks first failed, and the last event."""

    def __init__(self) -> None:
        self._failing_since: float | None = None
        self._last_event = ""

    def report(self, kind: str, reason: str, message: str) -> None:
        """Logs and creates an event of the node, unless it is the same as the last one."""
        if self._last_event == f"{reason}: {message}":
            return
        self._last_event = f"{reason}: {message}"
        print(self._last_event, flush=True)
        create_event(kind, reason, message)

    def reset(self) -> None:
        """Forgets earlier attempts: the node has no task."""
        self._failing_since, self._last_event = None, ""

    def perform(self, node: Node) -> None:
        """Performs the pending task of the node."""
        {"accept": self.accept, "quarantine": self.quarantine, "isolate": self.isolate}[pending_task(node)](node)

    def accept(self, node: Node) -> None:
        """Checks a node with the startup taint, and removes the taint if it passes."""
        fast_reason = run_checks(node, "fast")
        reason: str | None = fast_reason
        if not fast_reason and env["ACCEPT"] == "full":
            reason = run_diagnostics(node, "full", self.report)
        if reason is None:
            return
        if not reason:
            self._failing_since = None
            set_taint(NOT_ACCEPTED, None)
            self.report("Normal", "NodeAccepted", f"the {'full' if env['ACCEPT'] == 'full' else 'fast'} checks passed")
            return
        self.report("Warning", "NodeNotAccepted", reason)
        self._failing_since = self._failing_since or time.monotonic()
        # an NVLink fabric takes minutes to come up
        if fast_reason and time.monotonic() - self._failing_since < GIVE_UP_SECONDS:
            return
        self._failing_since = None
        if env["ON_FAILURE"] == "replace":
            # a person can add the taint to a node with jobs, which run to their end
            if not any(is_job(pod) for pod in active_pods()):
                self.power_off(reason)
        elif env["QUARANTINE"] == "full":
            set_taint(QUARANTINE, "true", instead_of=NOT_ACCEPTED)
            self.report("Warning", "NodeQuarantined", reason)
        elif not fast_reason:
            mark_failed(NOT_ACCEPTED)

    def isolate(self, node: Node) -> None:
        """Puts a node into quarantine whose condition AWS's node monitoring agent has set to false."""
        condition = reported_condition(node) or {}
        # nodes that fail at the same time, of one cause, must count each other
        time.sleep(random.uniform(0, RETRY_SECONDS))
        if quarantine_slots(node) < 1:
            message = f"{CONDITION} is false of too many nodes of the group, so that the cause may lie elsewhere"
            self.report("Warning", "QuarantineFull", message)
            return
        set_taint(QUARANTINE, "true")
        details = (condition.get(key, "") for key in ("reason", "message"))
        self.report("Warning", "NodeQuarantined", ": ".join(filter(None, (CONDITION, *details))))

    def quarantine(self, node: Node) -> None:
        """Runs diagnostics on an idle node in quarantine, and returns the node if it passes."""
        reason = run_diagnostics(node, "quarantine", self.report)
        if reason is None:
            return
        if not (reason := reason or run_checks(node, "fast")):
            set_taint(QUARANTINE, None)
            self.report("Normal", "NodeReturned", "the quarantine passed")
            return
        self.report("Warning", "QuarantineFailed", reason)
        mark_failed(QUARANTINE)
        if env["ON_FAILURE"] == "replace":
            self.power_off(reason)

    def power_off(self, reason: str) -> None:
        """Powers the node off: its node group terminates it and launches another."""
        self.report("Warning", "NodePowersOff", reason)
        subprocess.run(["systemctl", "poweroff"], timeout=60, check=False)


def mark_failed(key: str) -> None:
    """Sets a taint to `failed`, and records it: the node keeps the taint until it reboots or a person removes it."""
    with open(folder("failed"), "w"):
        pass
    set_taint(key, "failed")


def wait_for_task(node: Node) -> None:
    """Watches the node, and returns when a task is pending, at the latest after WATCH_SECONDS."""
    version = node["metadata"]["resourceVersion"]
    query = f"watch=1&fieldSelector=metadata.name%3D{env['NODE']}&resourceVersion={version}"
    path = f"/api/v1/nodes?{query}&timeoutSeconds={WATCH_SECONDS}"
    with api("GET", path, seconds=WATCH_SECONDS + 60) as answer:
        for line in answer:
            event = json.loads(line)
            if event["type"] == "ERROR" or pending_task(event["object"]):
                return


def main() -> None:
    """Performs the tasks of the node for ever."""
    agent = Agent()
    while True:
        try:
            node = read_node()
            if not pending_task(node):
                agent.reset()
                # labels of a quarantine that a person has ended
                for key in {DIAGNOSTICS, QUARANTINE} & set(node["metadata"].get("labels", {})) - set(taints(node)):
                    set_label(key, None)
                wait_for_task(node)
                time.sleep(1)
                continue
            agent.perform(node)
        except Released:
            print("a person removed the taint", flush=True)
        except (OSError, ValueError, KeyError) as problem:
            print(f"{problem!r}", file=sys.stderr, flush=True)
        time.sleep(RETRY_SECONDS)


if __name__ == "__main__":
    main()
