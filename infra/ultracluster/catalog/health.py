"""Health checks of nodes: the minutes that they take, and floors of bandwidth. Source: `data/health.json`."""

from typing import Any, Literal, NamedTuple

from ultracluster.catalog.ec2_types import instance_types
from ultracluster.catalog.instance_types import InstanceType, UltraClusterType
from ultracluster.catalog.records import records

CheckLevel = Literal["fast", "full"]

_HEALTH: dict[str, Any] = records("health")

MINUTES: dict[CheckLevel, tuple[int, int]] = {level: tuple(each) for level, each in _HEALTH["minutes"].items()}
"""Minutes that the checks of a level take on one node, from and to."""

FULL_SECONDS: dict[str, tuple[int, float]] = {name: tuple(each) for name, each in _HEALTH["full_seconds"].items()}
"""Each part of `accept: full`: how often it runs at most, and its time limit in seconds."""

LIMIT_SECONDS = round(sum(runs * seconds for runs, seconds in FULL_SECONDS.values()))
"""Time limit of all checks of a new node."""

JOIN_MINUTES: int = _HEALTH["join_minutes"]
"""Minutes after which PCS gives up a node that has not joined."""


class Floors(NamedTuple):
    """Bandwidth below which a node is not healthy; None where no figure was published.

    `memory_mb_per_s` is of one GPU's memory in MB/s, `nccl_gb_per_s` the bus bandwidth of an all-reduce over the GPUs
    of one node in GB/s.
    """

    memory_mb_per_s: int | None
    nccl_gb_per_s: float | None


def floors(instance_type: InstanceType) -> Floors:
    """Floors of a type: a share of the published figures."""
    nccl = _HEALTH["nccl_gb_per_s"].get(instance_type.name)
    memory = None
    if isinstance(instance_type, UltraClusterType):
        memory = round(instance_type.gpu.hbm_tb_per_s * 1_000_000 * _HEALTH["memory_floor"])
    return Floors(memory, nccl * _HEALTH["nccl_floor"] if nccl else None)


def pair_floor(instance_type: InstanceType) -> float | None:
    """Bus bandwidth in GB/s that an all-reduce of two nodes reaches in a ring over EFA, None if no figure shows it.

    It is a share of the EFA line rate, which bounds a ring.
    """
    if instance_type.efa is None or instance_type.name not in _HEALTH["efa_gb_per_s"]:
        return None
    return float(instance_type.efa.gb_per_s * _HEALTH["efa_floor"])


def floors_by_type() -> dict[str, Floors]:
    """Floors of the types that have any."""
    found = {name: floors(each) for name, each in instance_types.items()}
    return {name: each for name, each in found.items() if any(each)}
