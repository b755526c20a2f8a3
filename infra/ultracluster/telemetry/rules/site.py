"""Facts of an environment that rules use."""

from dataclasses import dataclass
from typing import Literal

from ultracluster.catalog import InstanceType, catalog, instance_types
from ultracluster.config.eks_fleet import ELASTIC_GROUPS
from ultracluster.config.environment import Environment
from ultracluster.config.lustre import Lustre
from ultracluster.config.pcs import Pcs
from ultracluster.config.slurm_settings import serves_metrics

SAMPLES = 4
"""Scrapes that a window of a rule holds at least, so that one missed scrape does not blind it."""

SCRATCH_WRITE_MBPS_PER_TIB = 100
"""What disks of a scratch_2 file system write (FSx for Lustre User Guide, "FSx for Lustre performance", 2026)."""


@dataclass(frozen=True)
class Site:
    """Facts of one environment that choose rules or are in their expressions.

    `groups` are the names of the node groups that the environment file names; Karpenter's pools are not among them.
    `lustre_mb_per_s` is what the disks of the only Lustre file system write, None without a limit that we know, or with
    several file systems. `lustre_efa` is whether all of them have EFA.
    """

    environment: str
    plane: Literal["pcs", "eks"]
    scrape_seconds: int
    groups: tuple[str, ...]
    efa_groups: tuple[str, ...]
    """Those of the node groups whose nodes have EFA."""
    lustre_tcp_groups: tuple[str, ...]
    """Those whose nodes reach a file system over TCP, even if it has EFA."""
    types: tuple[InstanceType, ...]
    """Instance types of the catalogue, and others of the node groups and of Karpenter's pools."""
    lustre: bool
    lustre_efa: bool
    lustre_mb_per_s: int | None
    scheduler: str
    """slurm, or the software that queues and places pods: kueue, kueue_volcano, ..."""
    jobset: bool
    karpenter: bool
    slurm_metrics: bool
    """Whether slurmctld serves metrics."""
    idle_seconds: int | None
    """After how many seconds without a job PCS terminates the first nodes, None on EKS."""

    def window(self, minutes: int) -> str:
        """A range of at least `minutes` that holds `SAMPLES` scrapes."""
        return f"{max(minutes, -(-SAMPLES * self.scrape_seconds // 60))}m"


def site(environment: Environment) -> Site:
    """Facts of `environment`."""
    plane, systems = environment.control_plane, [each for _, each in environment.storage.all_lustre]
    on_pcs = isinstance(plane, Pcs)
    lists = (*(group.types for group in environment.node_groups), *(pool.types for pool in environment.pools))
    used = {name for types in lists for name in types}
    return Site(
        environment=environment.name,
        plane="pcs" if on_pcs else "eks",
        scrape_seconds=environment.observability.scrape_interval_seconds,
        groups=tuple(group.name for group in environment.launched_groups),
        efa_groups=tuple(group.name for group in environment.launched_groups if group.efa),
        lustre_tcp_groups=(
            *(group.name for group in environment.launched_groups if not group.lustre_over_efa),
            *(f"{ELASTIC_GROUPS}{pool.name}" for pool in environment.pools if not pool.lustre_over_efa),
        ),
        types=(*catalog.values(), *(instance_types[name] for name in sorted(used - catalog.keys()))),
        lustre=bool(systems),
        # metrics do not tell which of several file systems they are about, beyond a name that FSx chooses
        lustre_efa=bool(systems) and all(each.efa for each in systems),
        lustre_mb_per_s=_disk_mb_per_s(systems[0]) if len(systems) == 1 else None,
        scheduler="slurm" if isinstance(plane, Pcs) else plane.scheduler,
        jobset=not isinstance(plane, Pcs) and not {"jobset", "trainer"}.isdisjoint(plane.jobs),
        karpenter=not isinstance(plane, Pcs) and bool(plane.karpenter),
        slurm_metrics=isinstance(plane, Pcs) and serves_metrics(plane.slurm_settings, plane.slurm_version),
        idle_seconds=_idle_seconds(environment, plane) if isinstance(plane, Pcs) else None,
    )


def _idle_seconds(environment: Environment, plane: Pcs) -> int | None:
    return min((each.idle_seconds or plane.idle_seconds for each in environment.launched_groups), default=None)


def _disk_mb_per_s(lustre: Lustre) -> int | None:
    """MB/s that the disks of a file system write, None with compression: clients then write more than the disks.

    AWS counts 1,000 GiB as one TiB here (FSx API, CreateFileSystem).
    """
    if lustre.compression != "none":
        return None
    if lustre.capacity_gib is None:
        return lustre.throughput_capacity_mbps
    return lustre.capacity_gib * (lustre.throughput_mbps_per_tib or SCRATCH_WRITE_MBPS_PER_TIB) // 1000
