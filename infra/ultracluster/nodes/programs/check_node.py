"""Checks a node: its GPUs, NVLink, EFA devices and file systems. `check-node LEVEL`.

Verdicts on GPUs are those of NVIDIA's driver and of DCGM; the program itself counts devices and reads states.

Levels:
  fast  takes seconds and may run beside a job
  full  also runs DCGM's diagnostics, NCCL and memory bandwidth against floors: needs idle GPUs, for minutes

Exit status 0 without output: the node may take jobs. Exit status 1: the output is one line, the reason.
Each finding has a verdict, and the worst one counts. The node stays in service with `ok` and `monitor`, and leaves it
with `reset` (of the GPUs), `reboot`, `isolate` (a person must look at it) and `replace` (the instance).
Findings go to a log, one JSON object a line, and to node exporter's textfile collector as metrics.

health.conf holds the facts of the node as NAME=VALUE lines, tables.json the time limits of the checks and the floors.
"""

import contextlib
import glob
import json
import os
import re
import signal
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from typing import Any

from ultracluster.nodes.programs.diagnostics import full
from ultracluster.nodes.programs.findings import (
    VERDICTS,
    CommandFailed,
    Facts,
    Finding,
    TimedOut,
    node_path,
    output,
    passes,
    worst,
)

SMI_SECONDS = 25
SAMPLE_SECONDS = 5
"""Time between the two samples of the clocks that a fault takes."""
MOUNT_SECONDS = 10

RECOVERY = {
    "none": "ok",
    "n/a": "ok",
    "": "ok",
    "drain p2p": "isolate",
    "drain and reset": "reset",
    "reset": "reset",
    "reboot": "reboot",
}
"""Verdict by the driver's gpu_recovery_action; any other is `isolate`."""

FIELDS = (
    ("gpu_recovery_action",),
    ("remapped_rows",),
    ("clocks_event_reasons", "clocks_throttle_reasons"),
)
"""Elements of each GPU in nvidia-smi's XML that the checks read; of several names a driver has one."""


class FastChecksTimedOut(BaseException):
    """The fast checks exceed their time limit. A BaseException, so that no check handles it as an error of its own."""


def check_gpus(facts: Facts) -> Iterator[Finding]:
    """Number of GPUs; recovery action, row remapping, NVLink fabric and clocks of each, all from nvidia-smi."""
    expected = int(facts.get("gpus", "0"))
    if not expected:
        return
    try:
        gpus = read_gpus()
        slow = slowdowns(gpus)
        if slow:
            # one sample is no fault: a job that starts may reach a limit for a moment
            time.sleep(SAMPLE_SECONDS)
            slow &= slowdowns(read_gpus())
    except CommandFailed as problem:
        yield Finding("gpus", "reboot", str(problem))
        return
    except ElementTree.ParseError as problem:
        yield Finding("gpus", "reboot", f"nvidia-smi prints no report: {problem}")
        return
    if len(gpus) != expected:
        yield Finding("gpus", "reboot", f"{len(gpus)} of {expected} GPUs answer")
    nvlink = facts.get("nvlink") == "1"
    read = (*FIELDS, ("fabric",)) if nvlink else FIELDS
    for names in read:
        if gpus and all(gpu.find(name) is None for gpu in gpus for name in names):
            yield Finding("gpus", "monitor", f"this driver does not report {names[0]}, so it is not checked")
    for gpu in gpus:
        yield from check_gpu(gpu, nvlink=nvlink)
    for name, reason in sorted(slow):
        yield Finding("clocks", "isolate", f"{name}: {reason.replace('_', ' ')}")


def read_gpus() -> list[ElementTree.Element]:
    """GPU elements of nvidia-smi's XML. Raises CommandFailed and ElementTree.ParseError."""
    text = output(["nvidia-smi", "-q", "-x"], SMI_SECONDS)
    # nvidia-smi may print warnings before and after the report
    report = re.search(r"<nvidia_smi_log>.*</nvidia_smi_log>", text, re.DOTALL)
    return ElementTree.fromstring(report[0] if report else "").findall("gpu")


def slowdowns(gpus: list[ElementTree.Element]) -> set[tuple[str, str]]:
    """Names of GPUs whose clocks the hardware holds back now, each with the reason."""
    found = set()
    for gpu in gpus:
        for reason in ("hw_thermal_slowdown", "hw_power_brake_slowdown"):
            # drivers before 545 call them throttle reasons
            for kind in ("clocks_event_reason", "clocks_throttle_reason"):
                if gpu.findtext(f"{kind}s/{kind}_{reason}", "").strip() == "Active":
                    found.add((f"GPU {gpu.get('id', '?')}", reason))
    return found


def check_gpu(gpu: ElementTree.Element, *, nvlink: bool) -> Iterator[Finding]:
    """Findings about one GPU element of nvidia-smi's XML; `nvlink` if GPUs of the type are connected by NVLink."""
    name = f"GPU {gpu.get('id', '?')}"
    action = gpu.findtext("gpu_recovery_action", "None").strip()
    if (verdict := RECOVERY.get(action.lower(), "isolate")) != "ok":
        yield Finding("gpus", verdict, f"{name}: the driver asks for {action}")
    if gpu.findtext("remapped_rows/remapped_row_failure", "").strip() == "Yes":
        yield Finding("memory", "replace", f"{name}: remapping a row failed")
    elif gpu.findtext("remapped_rows/remapped_row_pending", "").strip() == "Yes":
        yield Finding("memory", "reset", f"{name}: a row waits to be remapped")
    state, status = (gpu.findtext(f"fabric/{each}", "N/A").strip() for each in ("state", "status"))
    if nvlink and state not in ("N/A", "Completed"):
        yield Finding("fabric", "reboot", f"{name}: the NVLink fabric is {state}")
    elif nvlink and state == "Completed" and status not in ("N/A", "Success"):
        yield Finding("fabric", "replace", f"{name}: the NVLink fabric says {status}")


def check_nvlink(facts: Facts) -> Iterator[Finding]:
    """Every NVLink of every GPU is up, for types whose GPUs are connected by NVLink."""
    if facts.get("nvlink") != "1":
        return
    try:
        text = output(["nvidia-smi", "nvlink", "--status"], SMI_SECONDS)
    except CommandFailed as problem:
        yield Finding("nvlink", "reboot", f"NVLink: {problem}")
        return
    gpu, links = "", dict[str, list[str]]()
    for line in text.splitlines():
        if line.startswith("GPU "):
            gpu = line.partition(":")[0]
            links[gpu] = []
        elif match := re.match(r"\s+Link \d+:\s*(.*)", line):
            links.setdefault(gpu, []).append(match[1].strip())
    if len(links) < int(facts["gpus"]):
        yield Finding("nvlink", "reboot", f"nvidia-smi tells the NVLinks of {len(links)} of {facts['gpus']} GPUs")
    for name, states in links.items():
        down = sum(state.strip("<>").lower() == "inactive" or state.startswith("0 ") for state in states)
        if down or not states:
            yield Finding("nvlink", "replace", f"{name}: {down} of {len(states)} NVLinks are down")


def check_imex(facts: Facts) -> Iterator[Finding]:
    """Nodes of UltraServers have NVIDIA IMEX, which the prolog starts for each job."""
    if facts.get("imex") == "1":
        try:
            output(["systemctl", "cat", "nvidia-imex.service"], MOUNT_SECONDS)
        except CommandFailed:
            message = "the image has no nvidia-imex.service, so jobs get no NVLink between instances"
            yield Finding("fabric", "isolate", message)


def check_efa(facts: Facts) -> Iterator[Finding]:
    """The node has as many EFA devices with an active port as its launch template."""
    expected = int(facts.get("efa", "0"))
    active = 0
    for device in glob.glob(node_path("/sys/class/infiniband/*")):
        driver = os.path.basename(os.path.realpath(os.path.join(device, "device", "driver")))
        try:
            with open(os.path.join(device, "ports", "1", "state")) as file:
                active += driver == "efa" and file.read().startswith("4:")
        except OSError:
            continue
    if active < expected:
        yield Finding("efa", "replace", f"{active} of {expected} EFA devices are active")


def check_lustre(facts: Facts) -> Iterator[Finding]:
    """Lustre file systems are mounted and answer, and LNet has a network over EFA if one is expected."""
    expected = [path for path in facts.get("lustre", "").split(",") if path]
    try:
        with open(node_path("/proc/mounts")) as file:
            mounted = {line.split()[1] for line in file if line.split()[2:3] == ["lustre"]}
    except OSError:
        mounted = set()
    for path in expected:
        if path not in mounted:
            yield Finding("lustre", "reboot", f"{path} is not mounted")
            continue
        try:
            # in a process of its own, which may hang in the kernel
            output(["stat", "--file-system", "--format=%T", path], MOUNT_SECONDS)
        except TimedOut:
            yield Finding("lustre", "monitor", f"{path} does not answer in {MOUNT_SECONDS} s")
        except CommandFailed as problem:
            yield Finding("lustre", "reboot", f"{path}: {problem}")
    if facts.get("lustre_efa") == "1":
        try:
            networks = output(["lnetctl", "net", "show", "--net", "efa"], MOUNT_SECONDS, may_fail=True)
        except CommandFailed as problem:
            networks = str(problem)
        if "status: up" not in networks:
            yield Finding("lustre", "reboot", "LNet has no network over EFA that is up")


def check(level: str, facts: Facts, tables: dict[str, Any]) -> list[Finding]:
    """Findings of all checks of a level."""

    def time_out(*_: Any) -> None:
        raise FastChecksTimedOut

    findings: list[Finding] = []
    _, seconds = tables["seconds"]["fast"]
    signal.signal(signal.SIGALRM, time_out)
    signal.alarm(seconds)
    try:
        # the checks that cannot hang come first, so that their findings are not lost
        findings += findings_of(check_efa(facts))
        findings += findings_of(check_gpus(facts), check_nvlink(facts), check_imex(facts), check_lustre(facts))
    except FastChecksTimedOut:
        findings.append(Finding("limit", "reboot", f"the checks do not end in {seconds} s"))
    finally:
        signal.alarm(0)
    if level == "full" and passes(findings):
        findings += findings_of(full(facts, tables))
    return findings


def findings_of(*checks: Iterator[Finding]) -> Iterator[Finding]:
    """Findings of all checks. An error of a check is a finding too, and the next check runs."""
    for check in checks:
        try:
            yield from check
        except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as problem:
            yield Finding("limit", "isolate", f"a check fails: {problem!r}")


def metrics(level: str, findings: list[Finding]) -> str:
    """Metrics in the text format of Prometheus. The value of a verdict is its index in VERDICTS."""
    names = ["gpus", "memory", "fabric", "clocks", "nvlink", "efa", "lustre", "limit"]
    names += [] if level == "fast" else ["dcgm", "nccl"]
    lines = ["# HELP node_health_verdict Worst verdict of a health check", "# TYPE node_health_verdict gauge"]
    for name in names:
        value = VERDICTS.index(worst([each for each in findings if each.check == name]))
        lines.append(f'node_health_verdict{{level="{level}",check="{name}"}} {value}')
    return "".join(f"{line}\n" for line in lines)


def record(level: str, findings: list[Finding], seconds: float) -> None:
    """Writes findings to the log and the metrics. A full disk does not change the outcome of the checks."""
    try:
        os.makedirs(node_path("/var/log/ultracluster"), exist_ok=True)
        with open(node_path("/var/log/ultracluster/health.log"), "a") as log:
            head = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "level": level}
            if not findings and level != "fast":
                log.write(json.dumps({**head, "verdict": "ok", "seconds": round(seconds)}) + "\n")
            log.writelines(json.dumps({**head, **each._asdict()}) + "\n" for each in findings)
        folder = node_path("/var/lib/node_exporter/textfile")
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/health-{level}.new", "w") as file:
            file.write(metrics(level, findings))
        os.rename(f"{folder}/health-{level}.new", f"{folder}/health-{level}.prom")
    except OSError as problem:
        print(f"health: {problem}", file=sys.stderr)


def parse_facts(text: str) -> Facts:
    """Values of NAME=VALUE lines by name; a repeated name has its values joined by commas."""
    facts: Facts = {}
    for name, equals, value in (line.partition("=") for line in text.splitlines()):
        if equals:
            facts[name] = f"{facts[name]},{value}" if name in facts else value
    return facts


def stop(*_: object) -> None:
    """Handler of SIGTERM: exits through `finally` clauses, which restart the services that diagnostics stopped."""
    # timeout(1) signals this process and then its process group: the second signal must end neither the clean-up nor
    # the commands that it starts, which inherit SIG_IGN
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(1)


def main(level: str) -> int:
    """Runs `level`; 0 if the node may take jobs."""
    signal.signal(signal.SIGTERM, stop)
    folder = os.environ.get("CHECK_NODE_FOLDER", os.path.dirname(os.path.abspath(__file__)))
    with open(os.path.join(folder, "tables.json")) as file:
        tables = json.load(file)
    with open(os.environ.get("CHECK_NODE_FACTS", node_path("/etc/ultracluster/health.conf"))) as file:
        facts = parse_facts(file.read())
    began = time.monotonic()
    findings = check(level, facts, tables)
    record(level, findings, time.monotonic() - began)
    if passes(findings):
        if level == "full":
            # the prolog treats the node as accepted again
            with contextlib.suppress(FileNotFoundError):
                os.remove(node_path("/run/ultracluster/not-accepted"))
        return 0
    verdict = worst(findings)
    first = next(each for each in findings if each.verdict == verdict)
    print(" ".join(f"health: {verdict}: {first.check}: {first.detail}".split())[:240])
    return 1


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ("fast", "full"):
        sys.exit("usage: check-node fast|full")
    sys.exit(main(sys.argv[1]))
