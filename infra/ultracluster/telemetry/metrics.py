"""Every metric that is collected, with unit, type, labels and exporter. A new one is a line in a data file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Literal, get_args

from ultracluster.errors import UltraclusterError
from ultracluster.telemetry.labels import ScrapeJob
from ultracluster.telemetry.records import records

ExporterName = Literal[
    "dcgm",
    "efa",
    "node",
    "lustre",
    "slurm",
    "kube-state-metrics",
    "kueue",
    "volcano",
    "kai",
    "jobset",
    "karpenter",
    "nccl",
    "training",
    "vllm",
    "sglang",
    "cloudwatch",
]
Kind = Literal["gauge", "counter", "histogram"]

EXPORTER_NAMES: tuple[ExporterName, ...] = get_args(ExporterName)

HISTOGRAM_SUFFIXES = ("_bucket", "_sum", "_count")


@dataclass(frozen=True)
class Exporter:
    """Where metrics come from.

    `jobs` are the scrape jobs that bring its metrics, `port` and `path` what is scraped. CloudWatch has no job: its
    metrics are read through the CloudWatch data source, with the namespace as `group` and the dimensions as `labels`.
    `labels` are on every metric of the exporter, beside those of `labels.py`. `source` and `read` say where its data is
    from and when it was read.
    """

    name: ExporterName
    jobs: tuple[ScrapeJob, ...]
    port: int | None
    path: str
    labels: tuple[str, ...]
    source: str
    read: str


@dataclass(frozen=True)
class Metric:
    """One metric, under the name that Prometheus stores.

    `labels` are those that the exporter sets. `group` is the topic within the exporter. `since` is the first version of
    DCGM (Slurm's metrics: of Slurm) that has the metric, None if all supported versions have it. `per` is what has one
    set of series, such as gpu or node, and `times` the series of a set. `only` names the stored values of a label;
    series with other values are dropped at the scrape. `declared` is the type that the exporter states, which differs
    from `kind` where the exporter is wrong. `dcgm_field` is DCGM's field identifier, None for metrics that the exporter
    computes and for other exporters.
    """

    name: str
    unit: str
    kind: Kind
    labels: tuple[str, ...]
    exporter: ExporterName
    help: str
    source: str
    group: str
    per: str
    path: str
    since: str | None = None
    times: int = 1
    only: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    declared: str | None = None
    dcgm_field: int | None = None

    @property
    def group_name(self) -> str:
        """The group with its exporter, as `observability.drop` names it: nccl/p2p."""
        return f"{self.exporter}/{self.group}"

    @property
    def scrape_jobs(self) -> tuple[ScrapeJob, ...]:
        """Scrape jobs that bring it."""
        return EXPORTERS[self.exporter].jobs

    @property
    def series_names(self) -> tuple[str, ...]:
        """Names of the series: the name itself, or the three of a histogram."""
        return tuple(self.name + suffix for suffix in HISTOGRAM_SUFFIXES) if self.kind == "histogram" else (self.name,)


class UnknownMetric(UltraclusterError, LookupError):
    """A metric that is not in the catalogue. Its message names the nearest."""


def metric(name: str) -> Metric:
    """The metric called `name`, which may be a series of a histogram. Raises UnknownMetric."""
    if found := _BY_SERIES.get(name) or METRICS.get(name):
        return found
    near = get_close_matches(name, _BY_SERIES, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise UnknownMetric(f"{name} is in no file of telemetry/data{hint}")


def metrics_of(exporter: ExporterName) -> tuple[Metric, ...]:
    """Metrics of one exporter, in the order of its data file."""
    return tuple(each for each in METRICS.values() if each.exporter == exporter)


def _exporter(name: ExporterName) -> Exporter:
    data = records(name)
    return Exporter(
        name, tuple(data["jobs"]), data["port"], data["path"], tuple(data["labels"]), data["source"], data["read"]
    )


def _metric(entry: Mapping[str, Any], data: Mapping[str, Any]) -> Metric:
    only = {label: tuple(values) for label, values in entry.get("only", {}).items()}
    return Metric(
        name=entry["name"],
        unit=entry["unit"],
        kind=entry["kind"],
        labels=(*data["labels"], *entry.get("labels", ())),
        exporter=data["exporter"],
        help=entry["help"],
        source=data["source"],
        group=entry["group"],
        per=entry.get("per", data["per"]),
        path=entry.get("path", data["path"]),
        since=entry.get("since"),
        times=entry.get("times", 1),
        only=MappingProxyType(only),
        declared=entry.get("declared"),
        dcgm_field=entry.get("field"),
    )


EXPORTERS: Mapping[ExporterName, Exporter] = MappingProxyType({name: _exporter(name) for name in EXPORTER_NAMES})
"""Exporters by name."""

METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        entry["name"]: _metric(entry, data)
        for data in (records(name) for name in EXPORTER_NAMES)
        for entry in data["metrics"]
    }
)
"""Metrics by name."""

_BY_SERIES = {series: each for each in METRICS.values() for series in each.series_names}
