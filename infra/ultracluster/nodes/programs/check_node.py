"""Checks a node: its GPUs, NVLink, EFA devices, file systems and the kernel's log. `check-node LEVEL`.

`fast` takes seconds, and may run beside a job. `full` also runs DCGM's diagnostics, NCCL and the memory's bandwidth
against a floor, which takes the GPUs for minutes; `quarantine` runs DCGM's longest levels too, which takes hours.
`clear` has later checks ignore XIDs of before, and the prolog that a new node was not accepted.

It prints nothing and ends with 0 if the node may take jobs. Otherwise it prints one line, the reason, and ends with 1.
Each finding has a verdict, and the worst one counts: `monitor` takes no node out. The others do: `reset` (of the GPUs),
`reboot`, `isolate` (a person looks at it) and `replace` (a new instance). A finding is a line of JSON in the log, and a
metric for node exporter.

The node's facts are NAME=VALUE lines of health.conf; NVIDIA's XIDs and the floors are in tables.json.
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
from ultracluster.nodes.programs.findings import VERDICTS, Facts, Failed, Finding, Slow, output, passes, place, worst

FAST_SECONDS = 45
"""Limit of the fast checks together: Slurm kills a health check after 60 seconds, our prolog a part of it."""
SMI_SECONDS = 25
MOUNT_SECONDS = 10

RECOVERY = {
    "none": "ok",
    "drain p2p": "isolate",
    "drain and reset": "reset",
    "reset": "reset",
    "gpu reset required": "reset",
    "pf flr": "reset",
    "reboot": "reboot",
    "node reboot required": "reboot",
    "os reboot": "reboot",
}
"""Verdict by what NVIDIA's driver asks for: nvidia-smi's gpu_recovery_action, and the message of XID 154."""

XID = re.compile(r"NVRM: Xid \((?:PCI:)?([^)]+)\): (\d+),?\s*(.*)")


class Late(BaseException):
    """The fast checks together take too long. No check may take it for an error of its own."""


def gpus(facts: Facts) -> Iterator[Finding]:
    """What nvidia-smi says of each GPU: number, row remapping, fabric, clocks, and what the driver asks for."""
    expected = int(facts.get("gpus", "0"))
    if not expected:
        return
    try:
        text = output(["nvidia-smi", "-q", "-x"], SMI_SECONDS)
        # it may warn before or after the report
        report = re.search(r"<nvidia_smi_log>.*</nvidia_smi_log>", text, re.DOTALL)
        found = ElementTree.fromstring(report[0] if report else "").findall("gpu")
    except Failed as problem:
        yield Finding("gpus", "reboot", str(problem))
        return
    except ElementTree.ParseError as problem:
        yield Finding("gpus", "reboot", f"nvidia-smi prints no report: {problem}")
        return
    if len(found) != expected:
        yield Finding("gpus", "reboot", f"{len(found)} of {expected} GPUs answer")
    for gpu in found:
        yield from one_gpu(gpu, joined=facts.get("nvlink") == "1")


def one_gpu(gpu: ElementTree.Element, *, joined: bool) -> Iterator[Finding]:
    """Findings about one GPU of nvidia-smi's XML, `joined` to others by a fabric of NVLink."""
    name = f"GPU {gpu.get('id', '?')}"
    action = gpu.findtext("gpu_recovery_action", "None").strip()
    if (verdict := RECOVERY.get(action.lower(), "ok" if action in ("N/A", "") else "isolate")) != "ok":
        yield Finding("gpus", verdict, f"{name}: the driver asks for {action}")
    if gpu.findtext("remapped_rows/remapped_row_failure", "").strip() == "Yes":
        yield Finding("memory", "replace", f"{name}: remapping a row failed")
    elif gpu.findtext("remapped_rows/remapped_row_pending", "").strip() == "Yes":
        yield Finding("memory", "reset", f"{name}: a row waits to be remapped")
    state, status = (gpu.findtext(f"fabric/{each}", "N/A").strip() for each in ("state", "status"))
    if not joined:
        pass
    elif state not in ("N/A", "Completed"):
        yield Finding("fabric", "reboot", f"{name}: the NVLink fabric is {state}")
    elif state == "Completed" and status not in ("N/A", "Success"):
        yield Finding("fabric", "replace", f"{name}: the NVLink fabric says {status}")
    for reason, verdict in (("hw_thermal_slowdown", "isolate"), ("hw_power_brake_slowdown", "isolate")):
        # drivers before 545 call them throttle reasons
        for kind in ("clocks_event_reason", "clocks_throttle_reason"):
            if gpu.findtext(f"{kind}s/{kind}_{reason}", "").strip() == "Active":
                yield Finding("clocks", verdict, f"{name}: {reason.replace('_', ' ')}")


def nvlink(facts: Facts) -> Iterator[Finding]:
    """Every NVLink of a type whose GPUs are joined by NVLink is up."""
    if facts.get("nvlink") != "1":
        return
    try:
        text = output(["nvidia-smi", "nvlink", "--status"], SMI_SECONDS)
    except Failed as problem:
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


def kernel_log() -> Iterator[tuple[int, str]]:
    """Messages of the kernel since boot, each with its time in microseconds. The ring buffer loses the oldest."""
    try:
        log = os.open(place("/dev/kmsg"), os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return
    try:
        while True:
            try:
                record = os.read(log, 8192)
            except BlockingIOError:
                return
            except BrokenPipeError:
                continue  # overwritten while it was read; the next read goes on behind it
            except OSError:
                return
            if not record:
                return
            # priority,number,time,flags;message - a regular file, in tests, has many in one read
            for line in record.decode("ascii", "backslashreplace").splitlines():
                head, semicolon, message = line.partition(";")
                fields = head.split(",")
                if semicolon and len(fields) > 2 and fields[2].isdigit():
                    yield int(fields[2]), message
    finally:
        os.close(log)


def xids(facts: Facts, tables: dict[str, Any]) -> Iterator[Finding]:
    """XIDs since boot or the last `clear`, each kind once, by NVIDIA's meaning. Applications cause some."""
    if not int(facts.get("gpus", "0")):
        return
    seen: dict[tuple[str, str], Finding] = {}
    for when, message in kernel_log():
        if when > cleared() and (match := XID.search(message)):
            device, code, text = match.groups()
            verdict = tables["xids"].get(code, "monitor")
            if code == "154":
                asked = re.findall(r"\(([^()]+)\)", text) or [text.rpartition(" to ")[2]]
                verdict = RECOVERY.get(asked[-1].strip().lower(), "isolate")
            seen[device, code] = Finding("xids", verdict, f"XID {code} of GPU {device}: {text}"[:200])
    yield from (found for found in seen.values() if found.verdict != "ok")


def cleared() -> int:
    """Microseconds after boot before which XIDs no longer count."""
    try:
        with open(place("/run/ultracluster/health-cleared")) as file:
            return int(file.read())
    except (OSError, ValueError):
        return -1


def clear() -> None:
    """Has later checks ignore XIDs of before, and the prolog that a new node was not accepted."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(place("/run/ultracluster/not-accepted"))
    os.makedirs(place("/run/ultracluster"), exist_ok=True)
    with open(place("/run/ultracluster/health-cleared"), "w") as file:
        # by the clock of the kernel's log, which no other one keeps pace with
        file.write(str(max((when for when, _ in kernel_log()), default=-1)))


def efa(facts: Facts) -> Iterator[Finding]:
    """As many EFA devices as the node was launched with, each with an active port."""
    expected = int(facts.get("efa", "0"))
    active = 0
    for device in glob.glob(place("/sys/class/infiniband/*")):
        driver = os.path.basename(os.path.realpath(os.path.join(device, "device", "driver")))
        try:
            with open(os.path.join(device, "ports", "1", "state")) as file:
                active += driver == "efa" and file.read().startswith("4:")
        except OSError:
            continue
    if active < expected:
        yield Finding("efa", "replace", f"{active} of {expected} EFA devices are active")


def lustre(facts: Facts) -> Iterator[Finding]:
    """File systems of the node are mounted and answer, and LNet has EFA where it should."""
    wanted = [path for path in facts.get("lustre", "").split(",") if path]
    try:
        with open(place("/proc/mounts")) as file:
            mounted = {line.split()[1] for line in file if line.split()[2:3] == ["lustre"]}
    except OSError:
        mounted = set()
    for path in wanted:
        if path not in mounted:
            yield Finding("lustre", "reboot", f"{path} is not mounted")
            continue
        try:
            # in a process of its own, which the kernel may not let go
            output(["stat", "--file-system", "--format=%T", path], MOUNT_SECONDS)
        except Slow:
            yield Finding("lustre", "monitor", f"{path} does not answer in {MOUNT_SECONDS} s")
        except Failed as problem:
            yield Finding("lustre", "reboot", f"{path}: {problem}")
    if facts.get("lustre_efa") == "1":
        try:
            networks = output(["lnetctl", "net", "show", "--net", "efa"], MOUNT_SECONDS, may_fail=True)
        except Failed as problem:
            networks = str(problem)
        if "status: up" not in networks:
            yield Finding("lustre", "reboot", "LNet has no network over EFA that is up")


def check(level: str, facts: Facts, tables: dict[str, Any]) -> list[Finding]:
    """Findings of a level."""

    def late(*_: Any) -> None:
        raise Late

    findings: list[Finding] = []
    signal.signal(signal.SIGALRM, late)
    signal.alarm(FAST_SECONDS)
    try:
        # first those that nothing delays
        findings += each_of(xids(facts, tables), efa(facts), gpus(facts), nvlink(facts), lustre(facts))
    except Late:
        findings.append(Finding("limit", "reboot", f"the checks do not end in {FAST_SECONDS} s"))
    finally:
        signal.alarm(0)
    # what XIDs tell of the past does not keep diagnostics from telling of the present
    if level != "fast" and passes([found for found in findings if found.check in ("gpus", "fabric", "limit")]):
        findings += each_of(full(facts, tables, level))
        # diagnostics bring out XIDs too
        findings += [found for found in xids(facts, tables) if found not in findings]
    return findings


def each_of(*checks: Iterator[Finding]) -> Iterator[Finding]:
    """Findings of all checks; one that cannot read what it sees is a finding, and keeps no other from its turn."""
    for check in checks:
        try:
            yield from check
        except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as problem:
            yield Finding("limit", "isolate", f"a check fails: {problem!r}")


def metrics(level: str, findings: list[Finding]) -> str:
    """Metrics in the text format of Prometheus. The value of a verdict is its place in VERDICTS."""
    names = ["gpus", "memory", "fabric", "clocks", "nvlink", "xids", "efa", "lustre", "limit"]
    names += [] if level == "fast" else ["dcgm", "nccl"]
    lines = ["# HELP node_health_verdict Worst verdict of a health check", "# TYPE node_health_verdict gauge"]
    for name in names:
        value = VERDICTS.index(worst([found for found in findings if found.check == name]))
        lines.append(f'node_health_verdict{{level="{level}",check="{name}"}} {value}')
    return "".join(f"{line}\n" for line in lines)


def record(level: str, findings: list[Finding], seconds: float) -> None:
    """Writes the log and the metrics; a node without room for them is judged all the same."""
    try:
        os.makedirs(place("/var/log/ultracluster"), exist_ok=True)
        with open(place("/var/log/ultracluster/health.log"), "a") as log:
            head = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "level": level}
            if not findings and level != "fast":
                log.write(json.dumps({**head, "verdict": "ok", "seconds": round(seconds)}) + "\n")
            log.writelines(json.dumps({**head, **found._asdict()}) + "\n" for found in findings)
        folder = place("/var/lib/node_exporter/textfile")
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/health-{level}.new", "w") as file:
            file.write(metrics(level, findings))
        os.rename(f"{folder}/health-{level}.new", f"{folder}/health-{level}.prom")
    except OSError as problem:
        print(f"health: {problem}", file=sys.stderr)


def parsed(text: str) -> Facts:
    """NAME=VALUE lines; the values of a name that is given again are joined by commas."""
    facts: Facts = {}
    for name, equals, value in (line.partition("=") for line in text.splitlines()):
        if equals:
            facts[name] = f"{facts[name]},{value}" if name in facts else value
    return facts


def stop(*_: object) -> None:
    """Ends the program, which starts again what was stopped for diagnostics."""
    # timeout signals twice, then its whole group, where a command is until it has its own: commands inherit this
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(1)


def main(level: str) -> int:
    """Runs `level`; 0 if the node may take jobs."""
    signal.signal(signal.SIGTERM, stop)
    if level == "clear":
        clear()
        return 0
    folder = os.environ.get("CHECK_NODE_FOLDER", os.path.dirname(os.path.abspath(__file__)))
    with open(os.path.join(folder, "tables.json")) as file:
        tables = json.load(file)
    with open(os.environ.get("CHECK_NODE_FACTS", place("/etc/ultracluster/health.conf"))) as file:
        facts = parsed(file.read())
    began = time.monotonic()
    findings = check(level, facts, tables)
    record(level, findings, time.monotonic() - began)
    if passes(findings):
        if level != "fast":
            clear()
        return 0
    verdict = worst(findings)
    first = next(found for found in findings if found.verdict == verdict)
    print(" ".join(f"health: {verdict}: {first.check}: {first.detail}".split())[:240])
    return 1


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ("fast", "full", "quarantine", "clear"):
        sys.exit("usage: check-node fast|full|quarantine|clear")
    sys.exit(main(sys.argv[1]))
