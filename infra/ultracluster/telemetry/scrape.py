"""Relabelling that keeps the series of the catalogue and drops the rest, for the scrapes of both control planes."""

from typing import TypedDict

from ultracluster.telemetry.labels import DROPPED
from ultracluster.telemetry.metrics import EXPORTER_NAMES, EXPORTERS, Metric, metrics_of

UP = ("up", "scrape_duration_seconds", "scrape_samples_scraped", "scrape_samples_post_metric_relabeling")
"""Series that Prometheus itself writes for each target. Relabelling does not touch them."""


class Relabelling(TypedDict, total=False):
    """One step of `metric_relabel_configs`."""

    source_labels: list[str]
    regex: str
    action: str


def job_metrics(job: str) -> tuple[Metric, ...]:
    """Metrics of a scrape job, which may be those of several exporters: `node` has node, efa and lustre."""
    return tuple(each for name in EXPORTER_NAMES if EXPORTERS[name].job == job for each in metrics_of(name))


def metric_relabel_configs(job: str) -> list[Relabelling]:
    """Steps for a scrape job: keep its metrics, keep only the stored values of labels, drop DCGM's second node labels.

    Raises ValueError for a job without a metric in the catalogue.
    """
    stored = job_metrics(job)
    if not stored:
        raise ValueError(f"no exporter of the catalogue is scraped by the job {job}")
    labels = list(dict.fromkeys(label for each in stored for label in each.only))
    plain = [series for each in stored if not each.only for series in each.series_names]
    patterns = [
        f"(?:{'|'.join(plain)}){';.*' if labels else ''}",
        *(_pattern(each, labels) for each in stored if each.only),
    ]
    steps: list[Relabelling] = [{"source_labels": ["__name__", *labels], "regex": "|".join(patterns), "action": "keep"}]
    if job == EXPORTERS["dcgm"].job:
        steps.append({"regex": "|".join(DROPPED), "action": "labeldrop"})
    return steps


def _pattern(each: Metric, labels: list[str]) -> str:
    """Name and values of `labels`, joined by ; as Prometheus joins source labels, for a metric with stored values."""
    values = (f"(?:{'|'.join(each.only[label])})" if label in each.only else "[^;]*" for label in labels)
    return ";".join((f"(?:{'|'.join(each.series_names)})", *values))
