"""How many series a fleet writes, against the quotas of AMP, and the scrape and remote-write settings that hold."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

from ultracluster.catalog import UltraClusterType
from ultracluster.telemetry.agent import BATCH_SEND_DEADLINE_SECONDS, MAX_SAMPLES_PER_SEND
from ultracluster.telemetry.metrics import METRICS, ExporterName, Metric
from ultracluster.telemetry.records import records
from ultracluster.telemetry.scrape import job_metrics

AMP: Mapping[str, int] = {name: quota for name, quota in records("amp").items() if isinstance(quota, int)}
"""Default quotas of AMP (`data/amp.json`)."""

HISTOGRAM_SERIES = 18
"""Series of a histogram: 16 buckets, sum and count, as Kueue's and vLLM's have."""

SERIES_BYTES = 450
"""Bytes of a DCGM series with its labels in a request, before compression: an upper bound for all exporters."""

LINE_BYTES = 300
"""Bytes of a line of kube-state-metrics: a name, and labels with a namespace, a pod and its UID."""

Path = Literal["eks", "pcs"]

EXPORTERS_OF: Mapping[Path, tuple[ExporterName, ...]] = {
    "pcs": ("dcgm", "efa", "node", "lustre", "slurm", "training"),
    "eks": ("dcgm", "efa", "node", "lustre", "kube-state-metrics", "kueue", "jobset", "training"),
}
"""Exporters that every environment has. NCCL's inspector, other schedulers and inference come on top."""

NODE_EXPORTERS: tuple[ExporterName, ...] = ("dcgm", "efa", "node", "lustre", "nccl")
"""Exporters on the nodes themselves."""


@dataclass(frozen=True)
class Fleet:
    """Nodes of one type under one control plane, and what runs on them.

    `jobs` are those that Kubernetes still holds, `pods_per_node` pods of teams, `queues` are partitions on PCS.
    `servers` are the storage targets and metadata targets of the Lustre file system. `engines` are inference engines.
    """

    nodes: int
    instance_type: UltraClusterType
    control_plane: Path
    queues: int = 8
    jobs: int = 200
    pods_per_node: int = 2
    servers: int = 40
    file_systems: int = 1
    workloads: int = 20
    engines: int = 0
    more: frozenset[ExporterName] = frozenset()
    drop: frozenset[str] = frozenset()
    """Groups of metrics that are given up, as in `observability.drop`."""


@dataclass(frozen=True)
class Drop:
    """A group of metrics to give up, with what is lost."""

    exporter: ExporterName
    group: str
    lost: str

    @property
    def name(self) -> str:
        """The group as `observability.drop` names it."""
        return f"{self.exporter}/{self.group}"


DROP_FIRST = (
    Drop("nccl", "p2p", "bandwidth of pipeline parallelism; collectives stay"),
    Drop("efa", "commands", "failed admin commands of EFA devices, which the driver also logs"),
    Drop("node", "cpu", "idle time by CPU; load and pressure stay"),
    Drop("dcgm", "pipes", "activity of the FP64, FP32 and FP16 pipes; that of Tensor Cores stays"),
    Drop("dcgm", "pcie_traffic", "PCIe bandwidth; replays and link width stay"),
    Drop("lustre", "metadata", "metadata operations by node; those of the file system stay in CloudWatch"),
    Drop("kube-state-metrics", "job", "states of Jobs; those of their pods, of JobSets and of queues stay"),
)
"""What to give up when a quota is near, cheapest loss first. No rule needs any of them."""


def series_by_exporter(fleet: Fleet) -> dict[ExporterName, int]:
    """Active series of each exporter: an upper bound, with every metric that the instance type supports."""
    found: Counter[ExporterName] = Counter()
    sets = entities(fleet)
    for each in collected(fleet):
        found[each.exporter] += sets[each.per] * each.times * (HISTOGRAM_SERIES if each.kind == "histogram" else 1)
    return dict(found)


def series(fleet: Fleet) -> int:
    """Active series of the fleet."""
    return sum(series_by_exporter(fleet).values())


def series_of_node(fleet: Fleet) -> int:
    """Series that the exporters of one node write."""
    found = series_by_exporter(replace(fleet, nodes=1))
    return sum(found.get(exporter, 0) for exporter in NODE_EXPORTERS)


def samples_per_second(fleet: Fleet, interval_seconds: int) -> float:
    """Samples that reach AMP each second."""
    return series(fleet) / interval_seconds


def shortest_interval(fleet: Fleet) -> int:
    """The shortest scrape interval, in seconds, that AMP's default ingestion rate allows; 30 or more on EKS."""
    least = AMP["scraper_interval_seconds"] if fleet.control_plane == "eks" else 10
    return max(least, ceil(series(fleet) / AMP["samples_per_second"]))


def series_dropped(fleet: Fleet, drop: Drop) -> int:
    """Series that dropping a group saves."""
    smaller = replace(fleet, drop=fleet.drop | {drop.name})
    return series(fleet) - series(smaller)


def kube_state_metrics_shards(nodes: int, *, drop: Collection[str] = ()) -> int:
    """Shards of kube-state-metrics for `nodes`, so that no answer is larger than the managed scraper reads.

    An answer has half of that size at most, to have room. Groups in `drop` are not served.
    """
    per = {"node": nodes, "pod": nodes * Fleet.pods_per_node}
    lines = sum(per.get(each.per, 0) * each.times for each in job_metrics("kube-state-metrics", drop))
    return max(1, ceil(lines * LINE_BYTES / (AMP["scraper_response_bytes"] / 2)))


def scrapers(fleet: Fleet) -> int:
    """Managed scrapers for the targets of an EKS fleet: two exporters a node, and a pod a workload and engine."""
    shards = kube_state_metrics_shards(fleet.nodes, drop=fleet.drop)
    return ceil((2 * fleet.nodes + shards + fleet.workloads + fleet.engines) / AMP["scraper_targets"])


def remote_write_requests(fleet: Fleet, interval_seconds: int) -> float:
    """Remote-write requests each second of the agents of all nodes (`agent.QUEUE`): full ones, and late ones."""
    full = ceil(series_of_node(fleet) / MAX_SAMPLES_PER_SEND)
    late = interval_seconds / BATCH_SEND_DEADLINE_SECONDS
    return fleet.nodes * (full + late) / interval_seconds


def collected(fleet: Fleet) -> tuple[Metric, ...]:
    """Metrics that the fleet writes: of its exporters, without groups that its GPUs lack or that are given up."""
    exporters = {*EXPORTERS_OF[fleet.control_plane], *fleet.more}
    absent = fleet.drop | {f"dcgm/{group}" for group in _absent(fleet.instance_type)}
    return tuple(each for each in METRICS.values() if each.exporter in exporters and each.group_name not in absent)


def _absent(instance_type: UltraClusterType) -> set[str]:
    """Groups of DCGM fields that the GPU does not support; the exporter writes no series for them."""
    newer = instance_type.gpu.nvlink_generation >= 5
    found = {"pages"} | ({"nvlink5"} if not newer else set())
    return found | (set() if instance_type.architecture == "arm64" else {"c2c"})


def entities(fleet: Fleet) -> dict[str, int]:
    """How many there are of what a metric is `per`."""
    nodes, of = fleet.nodes, fleet.instance_type
    gpus = nodes * of.gpu_count
    efa = len(of.efa.cards)
    return {
        "cluster": 1,
        "node": nodes,
        "gpu": gpus,
        "efa": nodes * efa,
        "cpu": nodes * of.vcpus,
        "controller": nodes * 4,
        "filesystem": nodes * 3,
        "disk": nodes * (of.instance_store.disks + 1),
        "raid": nodes,
        "interface": nodes * (1 + len(of.ena_cards)),
        "unit": nodes * 20,
        "file": nodes * 4,
        "collector": nodes * 20,
        "lustre": nodes * fleet.file_systems,
        "lustre_server": nodes * fleet.file_systems * fleet.servers,
        "partition": fleet.queues,
        "queue": fleet.queues,
        "nodepool": 4,
        "job": fleet.jobs,
        "pod": nodes * fleet.pods_per_node,
        "daemonset": 16,
        "deployment": 40,
        "namespace": 20,
        "claim": 100,
        "workload": fleet.workloads,
        "rank": gpus,
        "engine": fleet.engines,
        "service": 0,
    }
