"""Relabelling that keeps the series of the catalogue and drops the rest, for the scrapes of both control planes."""

from collections.abc import Collection, Mapping
from typing import TypedDict

from ultracluster.telemetry.labels import DROPPED, NODE, USER_JOBS, ScrapeJob
from ultracluster.telemetry.metrics import EXPORTER_NAMES, EXPORTERS, Metric, metrics_of

UP = ("up", "scrape_duration_seconds", "scrape_samples_scraped", "scrape_samples_post_metric_relabeling")
"""Series that Prometheus itself writes for each target. Relabelling does not touch them."""

SAMPLE_LIMIT = 20_000
"""`sample_limit` of USER_JOBS: Prometheus drops a scrape with more, so one target cannot fill the workspace.

An inference engine has fewer than 1,000 series, a training job fewer than 20 for each rank.
"""

JOBS: Mapping[str, tuple[ScrapeJob, ...]] = {
    "pcs": ("dcgm", "node", "jobs", "slurm"),
    "eks": ("dcgm", "node", "kube-state-metrics", "kueue", "volcano", "kai", "jobset", "karpenter", "pods"),
}
"""Scrape jobs of each control plane, with all software that it may have."""


class Relabelling(TypedDict, total=False):
    """One step of `metric_relabel_configs`."""

    source_labels: list[str]
    regex: str
    action: str


def job_metrics(job: ScrapeJob, drop: Collection[str] = ()) -> tuple[Metric, ...]:
    """Metrics of a scrape job, which may be of several exporters: `node` also has what the textfile folder holds.

    Metrics of the groups in `drop`, such as nccl/p2p, are left out.
    """
    found = (each for name in EXPORTER_NAMES if job in EXPORTERS[name].jobs for each in metrics_of(name))
    return tuple(each for each in found if each.group_name not in drop)


def user_metrics() -> tuple[Metric, ...]:
    """Metrics of the catalogue that jobs and pods of users write."""
    exporters = (name for name in EXPORTER_NAMES if set(EXPORTERS[name].jobs) & set(USER_JOBS))
    return tuple(each for name in exporters for each in metrics_of(name))


def metric_relabel_configs(job: ScrapeJob, drop: Collection[str] = ()) -> list[Relabelling]:
    """Steps for a scrape job: keep its metrics, keep only the stored values of labels, drop DCGM's second node labels.

    Pods with annotations are their users' own, so the job `pods` keeps every metric but those of our own exporters and
    rules, which a pod could forge. Of the files of `jobs` only metrics and labels of the catalogue are kept. `drop` are
    groups of metrics that the environment drops.
    """
    if job == "pods":
        given_up = [name for each in user_metrics() if each.group_name in drop for name in each.series_names]
        return [{"source_labels": ["__name__"], "regex": "|".join([*_reserved_names(), *given_up]), "action": "drop"}]
    stored = job_metrics(job, drop)
    if not stored:
        return [{"source_labels": ["__name__"], "regex": ".*", "action": "drop"}]
    labels = list(dict.fromkeys(label for each in stored for label in each.only))
    plain = [series for each in stored if not each.only for series in each.series_names]
    patterns = [
        f"(?:{'|'.join(plain)}){';.*' if labels else ''}",
        *(_pattern(each, labels) for each in stored if each.only),
    ]
    steps: list[Relabelling] = [{"source_labels": ["__name__", *labels], "regex": "|".join(patterns), "action": "keep"}]
    if job == "dcgm":
        steps.append({"regex": "|".join(DROPPED), "action": "labeldrop"})
    if job == "jobs":
        of_target = ("__name__", "job", "instance", *(label.name for label in NODE))
        of_metric = (label for each in stored for label in each.labels)
        steps.append({"regex": "|".join(dict.fromkeys((*of_target, *of_metric))), "action": "labelkeep"})
    return steps


def _reserved_names() -> list[str]:
    """Patterns of names that users may not write: of exporters, recording rules, alerts and Prometheus itself."""
    exporters = (each for each in EXPORTERS.values() if each.jobs and not set(each.jobs) & set(USER_JOBS))
    names = [series for each in exporters for metric in metrics_of(each.name) for series in metric.series_names]
    return [*names, "[^:]*:[^:]*:.*", "ALERTS.*", "up|scrape_.*"]


def _pattern(each: Metric, labels: list[str]) -> str:
    """Name and values of `labels`, joined by ; as Prometheus joins source labels, for a metric with stored values."""
    values = (f"(?:{'|'.join(each.only[label])})" if label in each.only else "[^;]*" for label in labels)
    return ";".join((f"(?:{'|'.join(each.series_names)})", *values))
