"""File systems that nodes mount over NFS: FSx for OpenZFS and EFS. Capacity in GiB, throughput capacity in MBps.

Source of every figure: `data/openzfs.json`, `data/efs.json`.
"""

from typing import Any

from ultracluster.catalog.records import records

_OPENZFS: dict[str, Any] = records("openzfs")
_EFS: dict[str, Any] = records("efs")
_DEPLOYMENTS: dict[str, Any] = _OPENZFS["deployments"]
_QUOTAS: dict[str, Any] = _OPENZFS["quotas"]

READ: str = _OPENZFS["read"]
"""Date of the lists."""
SMALLEST_GIB: int = _OPENZFS["capacity_gib"]["minimum"]
LARGEST_GIB: int = _OPENZFS["capacity_gib"]["maximum"]
THROUGHPUTS_MBPS: dict[str, tuple[int, ...]] = {
    name: tuple(deployment["throughput_mbps"]) for name, deployment in _DEPLOYMENTS.items()
}
"""Throughput capacities that each deployment type has."""
ADDRESSES: dict[str, int] = {name: deployment["addresses"] for name, deployment in _DEPLOYMENTS.items()}
"""Addresses of a file system in its subnet, by deployment type."""
REGIONS: dict[str, frozenset[str]] = {
    name: frozenset(deployment["regions"]) for name, deployment in _DEPLOYMENTS.items()
}
"""Regions in which each deployment type was listed."""
THROUGHPUT_QUOTA_MBPS: int = _QUOTAS["throughput_mbps"]
EFS_BACKUP_DAYS: int = _EFS["backup_days"]
"""Days for which AWS Backup keeps the automatic backups of EFS."""
OPENZFS_OPTIONS: tuple[str, ...] = tuple(_OPENZFS["mount_options"])
EFS_OPTIONS: tuple[str, ...] = tuple(_EFS["mount_options"])
"""Options of a mount (nfs man page)."""
OPENZFS_PORTS: tuple[tuple[int, int], ...] = tuple(
    (port, port) if isinstance(port, int) else (port[0], port[1]) for port in _OPENZFS["ports"]
)
"""First and last port of each range, for TCP and UDP. EFS has 2049 for TCP only."""


def largest_gib(deployment: str, region: str) -> int:
    """Largest capacity of a file system of this deployment type in a Region."""
    smaller = _OPENZFS["smaller_regions"]
    limited = deployment.endswith("_1") and region in smaller["regions"]
    return int(smaller["maximum_gib"]) if limited else LARGEST_GIB


def capacity_quota_gib(region: str) -> int:
    """Capacity of all OpenZFS file systems of an account in a Region, without a quota increase."""
    return int(_QUOTAS["larger_capacity_gib"].get(region, _QUOTAS["capacity_gib"]))
