"""Configuration of the Prometheus agent that runs on each PCS node: what it scrapes, and how it writes to AMP.

Exporters listen on the loopback interface of the node. What a node has is in target files, so that one configuration
serves every node. Values that differ between environments and nodes are placeholders, which the node fills at boot.
Names of metrics are those of the exporters: Prometheus' remote write changes none.

Source: Prometheus 3.5, "Configuration", "Remote write tuning"; AMP User Guide, "Service quotas", "Set up ingestion from
a new Prometheus server", "Deduplicating high availability metrics" (2026).
"""

import json
from collections.abc import Sequence
from typing import Any

import yaml

from ultracluster.telemetry.labels import USER_JOBS, ScrapeJob
from ultracluster.telemetry.metrics import metrics_of
from ultracluster.telemetry.scrape import JOBS, SAMPLE_LIMIT, job_metrics, metric_relabel_configs

Rule = dict[str, Any]

PLACEHOLDERS = ("@URL@", "@REGION@", "@CLUSTER@", "@ENVIRONMENT@", "@INTERVAL@", "@SLURM_INTERVAL@", "@NODE@", "@DROP@")
"""What the node fills in: remote write URL, Region, cluster, environment, intervals in seconds, name of the
node, and the series that it does not send: nothing, or `|` and names separated by `|`."""

SLURM_INTERVAL_SECONDS = 60
"""Shortest interval for slurmctld, which locks its tables while it answers (Slurm, "Metrics Guide")."""

JOB_AND_TEAM = ";"
"""Separator of job and account in DCGM's job mapping, whose lines become the label hpc_job."""

MAX_SAMPLES_PER_SEND = 2_000
BATCH_SEND_DEADLINE_SECONDS = 15

QUEUE = {
    "capacity": 10_000,
    "max_samples_per_send": MAX_SAMPLES_PER_SEND,
    "min_shards": 1,
    "max_shards": 4,
    "batch_send_deadline": f"{BATCH_SEND_DEADLINE_SECONDS}s",
    "min_backoff": "1s",
    "max_backoff": "1m",
    "retry_on_http_429": True,
    "sample_age_limit": "50m",
}
"""Queue of remote write. A node with 8 GPUs and 32 EFA devices writes about 3,000 samples a scrape: at 30 seconds three
or four requests, so that 10,000 nodes stay below half of AMP's 3,000 requests a second. 2,000 samples are 0.73 MB
before compression; AMP takes 1 MB. AMP rejects samples that are older than an hour, so the agent drops them before.
What AMP throttles (429), Prometheus drops by default; here it is sent again. `budget.py` counts a fleet's requests."""


def agent_configuration(targets: str) -> str:
    """The configuration as YAML, with placeholders. `targets` is the folder of the files of targets, one for each job.

    Every login node scrapes Slurm, so that the metrics survive a login node. They are written with a replica label, of
    which AMP keeps one replica, in a queue of their own: AMP decides by request.
    """
    slurm = [{"source_labels": ["job"], "regex": "slurm"}]
    replica = {"target_label": "__replica__", "replacement": "@NODE@"}
    configuration = {
        "global": {
            "scrape_interval": "@INTERVAL@s",
            "scrape_timeout": "10s",
            "external_labels": {"cluster": "@CLUSTER@", "environment": "@ENVIRONMENT@"},
        },
        "remote_write": [
            _remote_write("nodes", [{**slurm[0], "action": "drop"}]),
            _remote_write("slurm", [{**slurm[0], "action": "keep"}, replica]),
        ],
        "scrape_configs": [
            _job("node", targets),
            _job("dcgm", targets, _job_labels()),
            _job("jobs", targets),
            {**_job("slurm", targets), "scrape_interval": "@SLURM_INTERVAL@s"},
        ],
    }
    without_aliases = json.loads(json.dumps(configuration))
    return yaml.dump(without_aliases, Dumper=yaml.CSafeDumper, sort_keys=False, width=1_000_000)


def slurm_paths() -> tuple[str, ...]:
    """Paths of slurmctld that serve metrics of the catalogue."""
    return tuple(sorted({each.path for each in metrics_of("slurm")}))


def given_up() -> dict[str, str]:
    """What replaces @DROP@ for each group of metrics that may be given up, by the name of the group."""
    found: dict[str, str] = {}
    for each in (each for job in JOBS["pcs"] for each in job_metrics(job)):
        found[each.group_name] = found.get(each.group_name, "") + "".join(f"|{name}" for name in each.series_names)
    return found


def _remote_write(name: str, rules: list[Rule]) -> dict[str, Any]:
    return {
        "name": name,
        "url": "@URL@",
        "sigv4": {"region": "@REGION@"},
        "queue_config": QUEUE,
        "metadata_config": {"send_interval": "1h"},
        # of a target's own series, those that the budget does not count; and groups that the environment gives up
        "write_relabel_configs": [
            {"source_labels": ["__name__"], "regex": "scrape_series_added@DROP@", "action": "drop"},
            *rules,
        ],
    }


def _job(name: ScrapeJob, targets: str, rules: Sequence[Rule] = ()) -> dict[str, Any]:
    return {
        "job_name": name,
        "file_sd_configs": [{"files": [f"{targets}/{name}.json"]}],
        "metric_relabel_configs": [*metric_relabel_configs(name), *rules],
        **({"sample_limit": SAMPLE_LIMIT} if name in USER_JOBS else {}),
    }


def _job_labels() -> list[Rule]:
    """`workload` and `team` from DCGM's job mapping."""
    found = {"source_labels": ["hpc_job"], "regex": f"([^{JOB_AND_TEAM}]+){JOB_AND_TEAM}(.*)"}
    return [
        {**found, "target_label": "workload", "replacement": "$1"},
        {**found, "target_label": "team", "replacement": "$2"},
        {"regex": "hpc_job", "action": "labeldrop"},
    ]
