"""Accepts this Kubernetes node, and puts it into quarantine: startup taint, diagnostics, and what follows from them.

It runs with the node's files as root, in a pod of each node with GPUs. A new node has the taint NOT_ACCEPTED until the
checks of check_node.py pass, `fast` ones or `full` ones. A node whose accelerators AWS's node monitoring agent reports
gets the taint QUARANTINE, so that no further pod of a team starts; those that run go on. Once they have ended, it runs
the level `quarantine`: a node that passes loses the taint, of one that fails the value becomes `failed`.

What the node's image lacks is in a pod of the DaemonSet node-diagnostics, which a label of the node brings; the
programs of FOLDER/bin hand its commands over. A node that is to be replaced powers off, and its group launches another.

Environment: NODE, ACCEPT (fast or full), QUARANTINE (none or full), ON_FAILURE (drain or replace), FOLDER of the
programs and tables, and KUBERNETES_SERVICE_HOST and _PORT. File descriptor 9 is the folder of the pod's token, which
is outside this root. Python 3.9, which Amazon Linux 2023 has, runs it.
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
    api,
    busy,
    env,
    event,
    label,
    named,
    pods,
    read,
    reported,
    taint,
    taints,
)

TOOLS = ("all_reduce_perf", "dcgmi")
RETRY_SECONDS, GIVE_UP_SECONDS, WATCH_SECONDS, START_SECONDS = 30, 600, 3000, 1800
"""START_SECONDS is for the pod with the diagnostics, whose images have gigabytes."""
LIMITS = {"fast": 60, "full": 3600, "quarantine": 21600}
"""Seconds of a level, more than its parts may take together."""


class Released(Exception):
    """A person removed the taint, so the checks are of no use any more."""


def folder(*names: str) -> str:
    """A path in FOLDER."""
    return os.path.join(env["FOLDER"], *names)


def task(node: Node) -> str:
    """What to do: `quarantine`, `accept`, or `isolate` the node; empty if nothing. A reboot forgets a failure."""
    values, failed = taints(node), os.path.exists(folder("failed"))
    full = env["QUARANTINE"] == "full"
    for key, name in ((QUARANTINE, "quarantine" if full else ""), (NOT_ACCEPTED, "accept")):
        if key in values:
            return "" if values[key] == "failed" and failed else name
    return "isolate" if full and reported(node) else ""


def known(node: Node) -> tuple[dict[str, Any], str, str]:
    """The facts of the environment, the type of the node, and its group."""
    with open(folder("facts.json")) as file:
        labels = node["metadata"].get("labels", {})
        return json.load(file), labels.get(TYPE, ""), labels.get(GROUP, "")


def room(node: Node) -> int:
    """How many nodes of the group may still go to quarantine."""
    told, _, group = known(node)
    selector = urllib.parse.quote(f"{QUARANTINE},{GROUP}={group}")
    with api("GET", f"/api/v1/nodes?labelSelector={selector}") as answer:
        return int(told["quarantine"].get(group, 1)) - len(json.load(answer)["items"])


def facts(node: Node) -> list[str]:
    """What is expected of the node, NAME=VALUE: by its instance type, and by its group for EFA devices."""
    told, name, group = known(node)
    gpus, nvlink = told["types"].get(name, (0, 0))
    efa = told["efa"].get(group, 0)
    return [f"type={name}", f"gpus={gpus}", f"nvlink={nvlink}", f"efa={efa}"]


def checked(node: Node, level: str) -> str:
    """Why the node fails a level; empty if it passes. Raises Released."""
    path = folder("health.conf")
    with open(path, "w") as file:
        file.write("".join(f"{fact}\n" for fact in facts(node)))
    tools = "" if level == "fast" else f"{folder('bin')}:"
    ran = subprocess.Popen(
        ["/usr/bin/python3", "-IS", folder("check_node.py"), level],
        stdout=subprocess.PIPE,
        text=True,
        env={**env, "CHECK_NODE_FACTS": path, "PATH": tools + env["PATH"]},
    )
    ends = time.monotonic() + LIMITS[level]
    try:
        while time.monotonic() < ends:
            try:
                said, _ = ran.communicate(timeout=min(RETRY_SECONDS, LIMITS[level]))
            except subprocess.TimeoutExpired:
                released()
                continue
            crashed = f"health: isolate: limit: the checks end with {ran.returncode}"
            return (said.strip() or crashed) if ran.returncode else ""
        return "health: reboot: limit: the checks do not end"
    finally:
        if ran.poll() is None:
            # it ends what it has started
            ran.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                ran.wait(10)
            ran.kill()


def released() -> None:
    """Raises Released if the node has lost its taints."""
    try:
        if not {NOT_ACCEPTED, QUARANTINE} & set(taints(read())):
            raise Released
    except OSError as problem:
        print(f"{problem!r}", file=sys.stderr, flush=True)


def diagnosed(node: Node, level: str, tell: Callable[[str, str, str], None]) -> str | None:
    """Why the node fails a level of diagnostics; empty if it passes, None if they cannot run now. Raises Released."""
    found = pods()
    if named(found, "node-diagnostics"):
        label(DIAGNOSTICS, None)  # of an agent before this one
        return None
    if jobs := [pod["metadata"]["name"] for pod in found if busy(pod)]:
        print(f"diagnostics wait for {', '.join(jobs)}", flush=True)
        return None
    shutil.rmtree(folder("tools"), ignore_errors=True)
    for tool in TOOLS:
        os.makedirs(folder("tools", tool))
    label(DIAGNOSTICS, "wanted")
    try:
        ends = time.monotonic() + START_SECONDS
        # DCGM exporter, which holds the GPUs, leaves nodes with the label
        while not ready() or named(found := pods(), "dcgm-exporter"):
            if time.monotonic() > ends:
                see = f"kubectl -n kube-system describe pods -l {NAME}=node-diagnostics"
                tell("Warning", "DiagnosticsDoNotStart", see)
                return None
            time.sleep(min(RETRY_SECONDS, 5))
            released()
        return None if any(busy(pod) for pod in found) else checked(node, level)
    finally:
        label(DIAGNOSTICS, None)


def ready() -> bool:
    """Whether the pod with the diagnostics takes commands."""
    return all(os.path.exists(folder("tools", tool, "request")) for tool in TOOLS)


class Agent:
    """What it does to the node, and since when the node fails."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._told = ""

    def tell(self, kind: str, what: str, text: str) -> None:
        """An event of the node, once. Nothing depends on it."""
        if self._told == f"{what}: {text}":
            return
        self._told = f"{what}: {text}"
        print(self._told, flush=True)
        event(kind, what, text)

    def rest(self) -> None:
        """Nothing is to be done, so that events are news again."""
        self._since, self._told = None, ""

    def do(self, node: Node) -> None:
        """Does the task of the node."""
        {"accept": self.accept, "quarantine": self.quarantine, "isolate": self.isolate}[task(node)](node)

    def accept(self, node: Node) -> None:
        """Checks a node with the startup taint."""
        found: str | None = checked(node, "fast")
        fast = bool(found)
        if not fast and env["ACCEPT"] == "full":
            found = diagnosed(node, "full", self.tell)
        if found is None:
            return
        if not found:
            self._since = None
            taint(NOT_ACCEPTED, None)
            self.tell("Normal", "NodeAccepted", f"the {'full' if env['ACCEPT'] == 'full' else 'fast'} checks passed")
            return
        self.tell("Warning", "NodeNotAccepted", found)
        self._since = self._since or time.monotonic()
        # an NVLink fabric takes minutes to come up
        if fast and time.monotonic() - self._since < GIVE_UP_SECONDS:
            return
        self._since = None
        if env["ON_FAILURE"] == "replace":
            # a person can give the taint to a node with jobs, which run to their end
            if not any(busy(pod) for pod in pods()):
                self.power_off(found)
        elif env["QUARANTINE"] == "full":
            taint(QUARANTINE, "true", instead_of=NOT_ACCEPTED)
            self.tell("Warning", "NodeQuarantined", found)
        elif not fast:
            failed(NOT_ACCEPTED)

    def isolate(self, node: Node) -> None:
        """Puts a node in quarantine that AWS's node monitoring agent reports."""
        found = reported(node) or {}
        # nodes with a common cause see each other in quarantine
        time.sleep(random.uniform(0, RETRY_SECONDS))
        if room(node) < 1:
            why = f"{CONDITION} is false of too many nodes of the group, so that the cause may lie elsewhere"
            self.tell("Warning", "QuarantineFull", why)
            return
        taint(QUARANTINE, "true")
        told = (found.get(key, "") for key in ("reason", "message"))
        self.tell("Warning", "NodeQuarantined", ": ".join(filter(None, (CONDITION, *told))))

    def quarantine(self, node: Node) -> None:
        """Runs the diagnostics of a node in quarantine that has become idle."""
        found = diagnosed(node, "quarantine", self.tell)
        if found is None:
            return
        if not (found := found or checked(node, "fast")):
            taint(QUARANTINE, None)
            self.tell("Normal", "NodeReturned", "the quarantine passed")
            return
        self.tell("Warning", "QuarantineFailed", found)
        failed(QUARANTINE)
        if env["ON_FAILURE"] == "replace":
            self.power_off(found)

    def power_off(self, why: str) -> None:
        """Has the node's group launch another."""
        self.tell("Warning", "NodePowersOff", why)
        subprocess.run(["systemctl", "poweroff"], timeout=60, check=False)


def failed(key: str) -> None:
    """Records that the node stays as it is until it reboots or a person acts."""
    with open(folder("failed"), "w"):
        pass
    taint(key, "failed")


def wait(node: Node) -> None:
    """Returns when there is something to do, at the latest after WATCH_SECONDS."""
    version = node["metadata"]["resourceVersion"]
    query = f"watch=1&fieldSelector=metadata.name%3D{env['NODE']}&resourceVersion={version}"
    path = f"/api/v1/nodes?{query}&timeoutSeconds={WATCH_SECONDS}"
    with api("GET", path, seconds=WATCH_SECONDS + 60) as answer:
        for line in answer:
            event = json.loads(line)
            if event["type"] == "ERROR" or task(event["object"]):
                return


def main() -> None:
    """Does what the node waits for, now and whenever there is something."""
    agent = Agent()
    while True:
        try:
            node = read()
            if not task(node):
                agent.rest()
                for key in {DIAGNOSTICS, QUARANTINE} & set(node["metadata"].get("labels", {})) - set(taints(node)):
                    label(key, None)
                wait(node)
                time.sleep(1)
                continue
            agent.do(node)
        except Released:
            print("a person removed the taint", flush=True)
        except (OSError, ValueError, KeyError) as problem:
            print(f"{problem!r}", file=sys.stderr, flush=True)
        time.sleep(RETRY_SECONDS)


if __name__ == "__main__":
    main()
