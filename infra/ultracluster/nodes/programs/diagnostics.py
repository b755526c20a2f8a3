"""Diagnostics of idle GPUs: DCGM level by level, memory bandwidth, and NCCL, each against a floor of the type."""

import contextlib
import glob
import json
import re
import shutil
from collections.abc import Iterator
from typing import Any

from ultracluster.nodes.programs.findings import Facts, Failed, Finding, output, passes, place

NCCL_SECONDS = 300
DCGM_SECONDS = {"1": 300, "2": 1200, "memory_bandwidth": 600, "3": 3600, "4": 10800}
"""Limits of DCGM's levels and tests, which DCGM takes a fraction of on a node that works."""

SEVERITIES = {0: "ok", 1: "monitor", 2: "isolate", 3: "isolate", 4: "isolate", 5: "monitor", 6: "reset"}
"""Verdict by the severity of an error of DCGM: none, monitor, isolate, unknown, triage, configuration, reset."""


def dcgm(test: str, parameters: str = "") -> Iterator[Finding]:
    """Findings of one level, or one test, of DCGM's diagnostics."""
    command = ["dcgmi", "diag", "-r", test, "-j", *(["-p", parameters] if parameters else [])]
    try:
        # it fails for any finding, which its output tells
        text = output(command, DCGM_SECONDS[test], may_fail=True)
        report, _ = json.JSONDecoder().raw_decode(text[text.index("{") :])
        tests = [each for category in report["DCGM Diagnostic"]["test_categories"] for each in category["tests"]]
    except Failed as problem:
        yield Finding("dcgm", "isolate", f"dcgmi diag -r {test}: {problem}")
        return
    except (ValueError, KeyError, TypeError):
        yield Finding("dcgm", "isolate", f"dcgmi diag -r {test} gave no result: {' '.join(text.split())[:150]}")
        return
    for each in tests:
        for result in each.get("results", ()):
            if result.get("status", "").lower() != "fail":
                continue
            where = f"{result.get('entity_group', 'node')} {result.get('entity_id', '')}".strip()
            warnings = result.get("warnings") or [{"warning": "failed", "error_severity": 2}]
            for warning in warnings:
                verdict = SEVERITIES.get(warning.get("error_severity", 2), "isolate")
                text = f"{each.get('name', test)} on {where}: {warning.get('warning', 'failed')}"
                yield Finding("dcgm", verdict, text[:300])


def nccl(facts: Facts, floor: float) -> Iterator[Finding]:
    """all_reduce_perf of the GPUs of the node against a floor of its bus bandwidth in GB/s; 0 if none is known."""
    count = int(facts.get("gpus", "0"))
    # on EKS it is on the path
    programs = sorted(glob.glob(place("/usr/local/cuda*/efa/test-cuda*/all_reduce_perf")))
    programs = programs or [found for found in [shutil.which("all_reduce_perf")] if found]
    if count < 2:
        return
    if not programs:
        yield Finding("nccl", "monitor", "all_reduce_perf is not installed, so NCCL was not measured")
        return
    libraries = [f"/opt/amazon/{each}" for each in ("openmpi/lib", "efa/lib64", "ofi-nccl/lib")]
    path = ":".join([*libraries, "/usr/local/cuda/lib64"])
    command = [programs[-1], "-b", "8G", "-e", "8G", "-g", str(count), "-n", "20", "-w", "5"]
    try:
        text = output(command, NCCL_SECONDS, LD_LIBRARY_PATH=path)
        measured = float(re.findall(r"# Avg bus bandwidth\s*:\s*([0-9.]+)", text)[0])
    except Failed as problem:
        yield Finding("nccl", "isolate", str(problem))
        return
    except (IndexError, ValueError):
        yield Finding("nccl", "isolate", "all_reduce_perf prints no bandwidth")
        return
    if not floor:
        yield Finding("nccl", "monitor", f"all-reduce {measured} GB/s; no floor is known for this type")
    elif measured < floor:
        yield Finding("nccl", "isolate", f"all-reduce {measured} GB/s is below the floor of {floor} GB/s")


def full(facts: Facts, tables: dict[str, Any], level: str) -> Iterator[Finding]:
    """DCGM level by level, up to the first that finds a fault, memory bandwidth, and NCCL.

    It needs idle GPUs, and does not run on GPUs that are divided (MIG).
    """
    missing = "GPUs are divided (MIG)" if facts.get("mig") == "1" else "" if shutil.which("dcgmi") else "no dcgmi"
    if not int(facts.get("gpus", "0")):
        return
    if missing:
        # a quarantine without diagnostics tells nothing about the fault that it is for
        verdict = "isolate" if level == "quarantine" else "monitor"
        yield Finding("dcgm", verdict, f"{missing}, so DCGM's diagnostics did not run")
    if facts.get("mig") == "1":
        return
    floors = tables["floors"].get(facts.get("type", ""), {})
    minimum = floors.get("memory_mb_per_s")
    bandwidth = f"memory_bandwidth.minimum_bandwidth={minimum}" if minimum else ""
    tests = [("1", ""), ("2", ""), ("memory_bandwidth", bandwidth)]
    tests += [("3", ""), ("4", "")] if level == "quarantine" else []
    # DCGM exporter holds the GPUs open
    service("stop", "dcgm-exporter")
    service("start", "nvidia-dcgm")
    try:
        for test, parameters in [] if missing else tests:
            found = list(dcgm(test, parameters))
            yield from found
            if not passes(found):
                return
        yield from nccl(facts, floors.get("nccl_gb_per_s") or 0)
    finally:
        service("start", "dcgm-exporter")


def service(action: str, name: str) -> None:
    """Starts or stops a service, which the node may not have."""
    with contextlib.suppress(Failed):
        output(["systemctl", action, f"{name}.service"], 60)
