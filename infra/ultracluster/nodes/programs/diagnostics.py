"""Diagnostics of idle GPUs: DCGM's verdicts, and memory bandwidth and NCCL against floors of the instance type."""

import contextlib
import glob
import json
import re
import shutil
import signal
from collections.abc import Iterator
from typing import Any

from ultracluster.nodes.programs.findings import CommandFailed, Facts, Finding, node_path, output, passes

SEVERITIES = {0: "ok", 1: "monitor", 2: "isolate", 3: "isolate", 4: "isolate", 5: "monitor", 6: "reset"}
"""Verdict by DCGM's error severity: none, monitor, isolate, unknown, triage, configuration, reset."""


HEALTH = {"Healthy": "ok", "Warning": "monitor"}
"""Verdict by the overall health that `dcgmi health` reports; any other is `isolate`."""


def dcgm(test: str, seconds: float, parameters: str = "") -> Iterator[Finding]:
    """Findings of one level, or one test, of DCGM's diagnostics."""
    command = ["dcgmi", "diag", "-r", test, "-j", *(["-p", parameters] if parameters else [])]
    try:
        # dcgmi exits with an error for any finding; the findings are in its report
        text = output(command, seconds, may_fail=True)
        report, _ = json.JSONDecoder().raw_decode(text[text.index("{") :])
        tests = [each for category in report["DCGM Diagnostic"]["test_categories"] for each in category["tests"]]
    except CommandFailed as problem:
        yield Finding("dcgm", "isolate", f"dcgmi diag -r {test}: {problem}")
        return
    except (ValueError, KeyError, TypeError):
        yield Finding("dcgm", "isolate", f"dcgmi diag -r {test} gave no result: {' '.join(text.split())[:150]}")
        return
    for each in tests:
        for result in each.get("results", ()):
            if result.get("status", "").lower() == "fail":
                yield from failed_test(each.get("name", test), result)


def failed_test(name: str, result: dict[str, Any]) -> Iterator[Finding]:
    """Findings of a failed result in DCGM's report: one for each warning."""
    entity = f"{result.get('entity_group', 'node')} {result.get('entity_id', '')}".strip()
    for warning in result.get("warnings") or [{}]:
        verdict = SEVERITIES.get(warning.get("error_severity", 2), "isolate")
        yield Finding("dcgm", verdict, f"{name} on {entity}: {warning.get('warning', 'failed')}"[:300])


def dcgm_health(seconds: float) -> Iterator[Finding]:
    """What DCGM's health watches have noticed since they were set: PCIe, NVLink, memory, clocks, power, driver."""
    try:
        text = " ".join(output(["dcgmi", "health", "-c", "-j"], seconds).split())
    except CommandFailed as problem:
        yield Finding("dcgm", "isolate", f"dcgmi health: {problem}")
        return
    overall = re.search(r'"Overall Health" ?: ?(?:{ ?"value" ?: ?)?"([^"]+)"', text)
    if not overall:
        yield Finding("dcgm", "isolate", f"dcgmi health gave no result: {text[:150]}")
    elif (verdict := HEALTH.get(overall[1], "isolate")) != "ok":
        yield Finding("dcgm", verdict, f"dcgmi health: {overall[1]}: {text}"[:300])


def nccl(facts: Facts, floor: float, seconds: float) -> Iterator[Finding]:
    """Bus bandwidth of all_reduce_perf over the GPUs of the node against `floor` in GB/s; 0 if no floor is known."""
    count = int(facts.get("gpus", "0"))
    if count < 2:
        return
    installed = sorted(glob.glob(node_path("/usr/local/cuda*/efa/test-cuda*/all_reduce_perf")))
    # on EKS it is on the path
    program = installed[-1] if installed else shutil.which("all_reduce_perf")
    if not program:
        yield Finding("nccl", "isolate", "no all_reduce_perf, so NCCL was not measured")
        return
    libraries = [f"/opt/amazon/{each}" for each in ("openmpi/lib", "efa/lib64", "ofi-nccl/lib")]
    path = ":".join([*libraries, "/usr/local/cuda/lib64"])
    command = [program, "-b", "8G", "-e", "8G", "-g", str(count), "-n", "20", "-w", "5"]
    try:
        text = output(command, seconds, LD_LIBRARY_PATH=path)
        measured = float(re.findall(r"# Avg bus bandwidth\s*:\s*([0-9.]+)", text)[0])
    except CommandFailed as problem:
        yield Finding("nccl", "isolate", str(problem))
        return
    except (IndexError, ValueError):
        yield Finding("nccl", "isolate", "all_reduce_perf prints no bandwidth")
        return
    if not floor:
        yield Finding("nccl", "monitor", f"all-reduce {measured} GB/s; no floor is known for this type")
    elif measured < floor:
        yield Finding("nccl", "isolate", f"all-reduce {measured} GB/s is below the floor of {floor} GB/s")


def full(facts: Facts, tables: dict[str, Any]) -> Iterator[Finding]:
    """Findings of DCGM's diagnostics up to the first with a fault, of NCCL, and of DCGM's watches meanwhile.

    They need idle GPUs. `tables["seconds"]` has how often each command runs at most, and its time limit.
    """
    if not int(facts.get("gpus", "0")):
        return
    if not shutil.which("dcgmi"):
        yield Finding("dcgm", "isolate", "no dcgmi, so DCGM's diagnostics did not run")
        return
    seconds = {name: limit for name, (_, limit) in tables["seconds"].items()}
    floors = tables["floors"].get(facts.get("type", ""), {})
    minimum = floors.get("memory_mb_per_s")
    bandwidth = f"memory_bandwidth.minimum_bandwidth={minimum}" if minimum else ""
    try:
        # DCGM exporter keeps the GPUs open
        service("stop", "dcgm-exporter", seconds["services"])
        service("start", "nvidia-dcgm", seconds["services"])
        output(["dcgmi", "health", "-s", "a"], seconds["health"])
        # level 2 includes level 1
        for test, limit, parameters in (("2", "diagnostics", ""), ("memory_bandwidth", "bandwidth", bandwidth)):
            findings = list(dcgm(test, seconds[limit], parameters))
            yield from findings
            if not passes(findings):
                return
        yield from nccl(facts, floors.get("nccl_gb_per_s") or 0, seconds["nccl"])
        yield from dcgm_health(seconds["health"])
    except CommandFailed as problem:
        yield Finding("dcgm", "isolate", f"dcgmi health: {problem}")
    finally:
        # it would end the command that starts it
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        service("start", "dcgm-exporter", seconds["services"])


def service(action: str, name: str, seconds: float) -> None:
    """Starts or stops a service, if the node has it."""
    with contextlib.suppress(CommandFailed):
        output(["systemctl", action, f"{name}.service"], seconds)
