"""FSx for Lustre limits and client settings. Capacity in GiB, tiers in MB/s per TiB, throughput capacity in MBps.

Source of every figure: `data/lustre.json`.
"""

from typing import Any

from ultracluster.catalog.instance_types import InstanceType
from ultracluster.catalog.records import records

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
PERSISTENT_QUOTA_GIB: int = _LUSTRE["quotas"]["persistent_2_gib"]
"""Capacity of all persistent_2 file systems of an account in a Region, without a quota increase."""
TIERING_QUOTA_MBPS: int = _LUSTRE["quotas"]["intelligent_tiering_mbps"]
"""Throughput capacity of all Intelligent-Tiering file systems, likewise."""
EFA_CLIENT_PACKAGE: str = _LUSTRE["efa_client"]["package"]
"""URL of AWS's client setup scripts for EFA, without the extension .zip."""
EFA_CLIENT_UNIT: str = _LUSTRE["efa_client"]["unit"]
"""systemd unit that configures the client at every boot; active after success."""
_CLIENT: dict[str, Any] = _LUSTRE["client"]


def module_options(hardware: InstanceType) -> tuple[str, ...]:
    """Kernel module options of a large client: module, option and value."""
    return tuple(_CLIENT["module_options"]) if hardware.vcpus > _CLIENT["many_vcpus"] else ()


def client_parameters(hardware: InstanceType) -> tuple[str, ...]:
    """`lctl set_param` parameters of a large client, for each mounted file system."""
    parameters: list[str] = []
    if hardware.memory_gib > _CLIENT["large_memory_gib"]:
        locks = _CLIENT["locks_per_vcpu"] * hardware.vcpus
        parameters += [*_CLIENT["memory_parameters"], f"ldlm.namespaces.*.lru_size={locks}"]
    if hardware.vcpus > _CLIENT["many_vcpus"]:
        parameters += _CLIENT["vcpu_parameters"]
    return tuple(parameters)


def efa_interfaces_per_client(instance_type: str) -> int:
    """EFA interfaces that a client of this type connects to a file system by default."""
    count: int = _LUSTRE["efa_interfaces_per_client"][instance_type]
    return count


def file_servers(capacity_gib: int, tier: int | None, *, efa: bool, metadata_iops: int | None = None) -> int:
    """Object and metadata servers of an SSD file system. Each takes one address in the subnet.

    One object server per 2,400 GiB, or per EFA step. One metadata server per 12,000 IOPS; automatic metadata (None)
    provides 12,000 IOPS per 24,000 GiB.
    """
    step = EFA_STEP_GIB.get(tier or 0, CAPACITY_STEP_GIB) if efa else CAPACITY_STEP_GIB
    metadata = -(-metadata_iops // _IOPS_PER_METADATA_SERVER) if metadata_iops else max(1, capacity_gib // 24_000)
    return -(-capacity_gib // step) + metadata
