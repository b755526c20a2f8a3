"""Which FSx for Lustre file systems AWS sells. Capacities in GiB, tiers in MB/s per TiB, throughput capacity in MBps.

Source of every figure: `data/lustre.json`.
"""

from typing import Any

from infra.catalog.records import records

_LUSTRE: dict[str, Any] = records("lustre")

THROUGHPUT_TIERS: tuple[int, ...] = tuple(_LUSTRE["throughput_mbps_per_tib"])
LOCAL_ZONE_TIERS: tuple[int, ...] = tuple(_LUSTRE["local_zone_throughput_mbps_per_tib"])
CAPACITY_STEP_GIB: int = _LUSTRE["capacity_gib"]["step"]
SMALL_CAPACITIES_GIB: tuple[int, ...] = tuple(_LUSTRE["capacity_gib"]["small"])
EFA_STEP_GIB: dict[int, int] = {int(tier): step for tier, step in _LUSTRE["efa_step_gib"].items()}
THROUGHPUT_CAPACITY_STEP_MBPS: int = _LUSTRE["throughput_capacity_mbps"]["step"]
THROUGHPUT_CAPACITY_MAXIMUM_MBPS: int = _LUSTRE["throughput_capacity_mbps"]["maximum"]
_IOPS_PER_METADATA_SERVER: int = _LUSTRE["iops_per_metadata_server"]
MAXIMUM_LINKS: int = _LUSTRE["maximum_links"]
MAXIMUM_EFA_CONNECTIONS: int = _LUSTRE["maximum_efa_connections"]
INTELLIGENT_TIERING_METADATA_IOPS: tuple[int, ...] = tuple(_LUSTRE["metadata_iops"]["intelligent_tiering"])
METADATA_IOPS: tuple[int, ...] = (
    *_LUSTRE["metadata_iops"]["small"],
    *range(_LUSTRE["metadata_iops"]["step"], _LUSTRE["metadata_iops"]["maximum"] + 1, _LUSTRE["metadata_iops"]["step"]),
)


def efa_interfaces_per_client(instance_type: str) -> int:
    """EFA interfaces that a client of this type connects to one file system by default."""
    count: int = _LUSTRE["efa_interfaces_per_client"][instance_type]
    return count


def file_servers(capacity_gib: int, tier: int | None, *, efa: bool, metadata_iops: int | None = None) -> int:
    """Object and metadata servers of an SSD file system: each takes one address of the subnet.

    One object server for each 2,400 GiB, or for each EFA step. One metadata server for each 12,000 IOPS; automatic
    metadata (None) gives 12,000 for each 24,000 GiB.
    """
    step = EFA_STEP_GIB.get(tier or 0, CAPACITY_STEP_GIB) if efa else CAPACITY_STEP_GIB
    metadata = -(-metadata_iops // _IOPS_PER_METADATA_SERVER) if metadata_iops else max(1, capacity_gib // 24_000)
    return -(-capacity_gib // step) + metadata
