"""A fleet's series in a real Prometheus: every target of every node scraped, every rule evaluated, and what that takes.

All nodes serve the same text, so that a fleet of 1,000 costs no more memory here than one node; the label of the target
tells them apart.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from tests.telemetry.engines import Engines, Prometheus
from tests.telemetry.fake_exporter import exposition, serving
from ultracluster.telemetry.budget import Fleet, collected, entities
from ultracluster.telemetry.labels import NODE_JOBS, ScrapeJob
from ultracluster.telemetry.metrics import Metric
from ultracluster.telemetry.scrape import job_metrics, metric_relabel_configs

LABEL_OF = {
    "gpu": "gpu",
    "efa": "device",
    "cpu": "cpu",
    "controller": "controller",
    "filesystem": "mountpoint",
    "disk": "device",
    "raid": "device",
    "interface": "device",
    "unit": "name",
    "file": "file",
    "collector": "collector",
    "lustre": "target",
    "lustre_server": "server",
    "partition": "partition",
}
"""Label that tells apart what a metric is `per`."""

FURTHER = {"lustre_stats_total": "operation", "node_health_verdict": "check", "node_md_disks": "state"}
"""Label that tells apart the further series of a set; `network` for the others that have one."""

FIRST_SCRAPES = 1200
"""Seconds that a busy machine may take to index the series of a large fleet."""

JOB_NODES = 16
"""Nodes of a job."""

AS_LONG_AS_REAL = {
    "UUID": "GPU-3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "pci_bus_id": "00000000:53:00.0",
    "modelName": "NVIDIA H100 80GB HBM3",
    "file": "/var/lib/node_exporter/textfile/lustre.prom",
    "mountpoint": "/var/lib/containerd",
    "name": "nvidia-fabricmanager.service",
    "target": "fsx-abcdefgh",
    "server": "OST0000-osc-ffff9a0c0305e82c",
}
"""Label values for which the length matters more than the value."""

HEALTHY = {
    "node_health_verdict": 0.0,
    "DCGM_FI_DEV_GPU_TEMP": 55.0,
    "DCGM_FI_DEV_MEMORY_TEMP": 60.0,
    "DCGM_FI_DEV_SLOWDOWN_TEMP": 87.0,
    "DCGM_FI_DEV_FABRIC_MANAGER_STATUS": 3.0,
    "DCGM_FI_DEV_FABRIC_HEALTH_MASK": 0xAA,
    "DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY": 1.0,
    "DCGM_FI_DEV_GPU_UTIL": 98.0,
    "DCGM_FI_DEV_POWER_USAGE": 620.0,
    "node_amazonefa_port_state": 4.0,
    "node_filesystem_avail_bytes": 0.9,
    "lustre_available_kibibytes": 0.9,
    "lustre_free_kibibytes": 0.9,
}
UP = (
    "node_network_up",
    "node_timex_sync_status",
    "lustre_mounted",
    "lustre_import_full",
    "node_scrape_collector_success",
)
NOTHING = ("bool", "code", "mask", "events", "errors", "nanoseconds", "rows", "pages", "bit/s")


@dataclass(frozen=True)
class Measured:
    """What a run took.

    Times in seconds; `rules` is the wall time of each group's last evaluation. `bytes` is the memory of the process and
    `cpu_per_minute` its CPU seconds, scrapes and rules together, which other work on the machine does not change.
    """

    series: int
    scrapes_failed: int
    samples_per_second: float
    slowest_scrape: float
    rules: Mapping[str, float]
    rule_errors: tuple[str, ...]
    firing: int
    recorded: int
    bytes: int
    cpu_per_minute: float

    @property
    def rules_total(self) -> float:
        """Evaluation time of all groups."""
        return sum(self.rules.values())


def measure(
    engines: Engines, folder: Path, fleet: Fleet, rules: Mapping[str, str], *, interval: int, seconds: int
) -> Measured:
    """Scrapes `fleet` on PCS every `interval` seconds for `seconds`, with `rules` (YAML by name) evaluated."""
    texts = node_texts(fleet)
    slurm = exposition(job_metrics("slurm"), labels=lambda each: _slurm(each, fleet), value=_healthy)
    paths = {**{f"/{job}": text for job, text in texts.items()}, "/slurm": slurm}
    names = {f"{name}.yaml": text for name, text in rules.items()}
    with (
        serving(paths) as address,
        engines.prometheus(folder, config=yaml.safe_dump(_config(fleet, address, interval)), rules=names) as server,
    ):
        _wait(server, f"count(up == 1) == {len(texts) * fleet.nodes + 1}", FIRST_SCRAPES)
        before, began = _cpu_seconds(server), time.time()
        time.sleep(seconds)
        cpu = 60 * (_cpu_seconds(server) - before) / seconds
        until = time.monotonic() + FIRST_SCRAPES
        while not all(_evaluated(group) > began for group in server.get("rules")["groups"]):
            assert time.monotonic() < until, "a rule group was not evaluated"
            time.sleep(1)
        return _measured(server, interval, cpu)


def _cpu_seconds(server: Prometheus) -> float:
    """CPU time of the process so far; fields 14 and 15 of proc(5)'s stat, whose second may hold blanks."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _evaluated(group: Mapping[str, Any]) -> float:
    """When a group was last evaluated; before all times if never."""
    at = str(group["lastEvaluation"])
    return 0 if at.startswith("0001-") else datetime.fromisoformat(at).timestamp()


def node_texts(fleet: Fleet) -> dict[ScrapeJob, str]:
    """What the exporters of one healthy node answer, by scrape job."""
    one = replace(fleet, nodes=1)
    return {
        job: exposition(_served(job, fleet), labels=lambda each: _values(each, one), value=_healthy)
        for job in NODE_JOBS
        if _served(job, fleet)
    }


def _measured(server: Prometheus, interval: int, cpu: float) -> Measured:
    groups: list[dict[str, Any]] = server.get("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    recorded = {rule["name"] for rule in rules if rule["type"] == "recording"}
    own = sum(server.values(f'count({{__name__=~"{"|".join(recorded)}|ALERTS|ALERTS_FOR_STATE"}})')) if rules else 0
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    stored = sum(server.values("sum(scrape_samples_post_metric_relabeling)"))
    return Measured(
        series=int(stored),
        scrapes_failed=int(sum(server.values("count(up == 0)"))),
        samples_per_second=stored / interval,
        slowest_scrape=max(server.values("max(scrape_duration_seconds)")),
        rules={group["name"]: group["evaluationTime"] for group in groups},
        rule_errors=tuple(f"{rule['name']}: {rule['lastError']}" for rule in rules if rule.get("lastError")),
        firing=int(sum(server.values('count(ALERTS{alertstate="firing"})'))),
        recorded=int(own),
        bytes=1024 * int(status.partition("VmRSS:")[2].split()[0]),
        cpu_per_minute=cpu,
    )


def _config(fleet: Fleet, address: str, interval: int) -> dict[str, Any]:
    def target(index: int) -> dict[str, Any]:
        labels = {
            "node": f"node-{index}",
            "instance_type": fleet.instance_type.name,
            "node_group": "train",
            "team": f"team-{index // JOB_NODES % fleet.workloads % 4}",
            "workload": f"{1000 + index // JOB_NODES}",
        }
        return {"targets": [address], "labels": labels}

    jobs: list[dict[str, Any]] = [
        {
            "job_name": job,
            "metrics_path": f"/{job}",
            "static_configs": [target(index) for index in range(fleet.nodes)]
            if job in NODE_JOBS
            else [{"targets": [address]}],
            "metric_relabel_configs": metric_relabel_configs(job),
            "relabel_configs": [
                {"target_label": "cluster", "replacement": "prod"},
                {"target_label": "environment", "replacement": "prod"},
            ],
        }
        for job in (*NODE_JOBS, "slurm")
        if _served(job, fleet)
    ]
    return {
        "global": {"scrape_interval": f"{interval}s", "scrape_timeout": f"{interval}s", "evaluation_interval": "60s"},
        "scrape_configs": jobs,
    }


def _served(job: ScrapeJob, fleet: Fleet) -> tuple[Metric, ...]:
    """Metrics of a job, without those that training jobs write."""
    written = set(collected(fleet))
    return tuple(each for each in job_metrics(job) if each in written and each.exporter != "training")


def _values(each: Metric, one: Fleet) -> dict[str, tuple[str, ...]]:
    """Label values that give a metric as many series as the budget counts on one node."""
    values = {label: (AS_LONG_AS_REAL.get(label, label),) for label in each.labels if label not in each.only}
    number = entities(one)[each.per]
    if label := LABEL_OF.get(each.per):
        values[label] = tuple(f"{AS_LONG_AS_REAL.get(label, '')}{index}" for index in range(number))
    if each.times > 1 and not each.only:
        values[FURTHER.get(each.name, "network")] = tuple(str(index) for index in range(each.times))
    return values


def _slurm(each: Metric, fleet: Fleet) -> dict[str, tuple[str, ...]]:
    counts = {"node": fleet.nodes, "partition": fleet.queues}
    return {label: tuple(f"{label}-{index}" for index in range(counts[label])) for label in each.labels}


def _healthy(each: Metric, labels: Mapping[str, str]) -> float:
    """A value at which nothing is broken, so that few alerts fire."""
    if each.name in HEALTHY:
        return HEALTHY[each.name]
    if each.name == "node_systemd_unit_state":
        return float(labels["state"] == "active")
    return 0.0 if each.unit in NOTHING and each.name not in UP else 1.0


def _wait(server: Prometheus, expression: str, seconds: int) -> None:
    until = time.monotonic() + seconds
    while not server.query(expression):
        assert time.monotonic() < until, f"{expression} is not true after {seconds} s"
        time.sleep(1)
