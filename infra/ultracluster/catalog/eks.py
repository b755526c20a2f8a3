"""Amazon EKS: Kubernetes versions, control-plane tiers, node images, quotas and node repairs.

Source of every figure: `data/eks.json`.
"""

import re
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from ultracluster.catalog.instance_types import Architecture
from ultracluster.catalog.records import records

Tier = Literal["standard", "tier-xl", "tier-2xl", "tier-4xl", "tier-8xl"]
RepairAction = Literal["Replace", "Reboot", "NoAction"]

_EKS: dict[str, Any] = records("eks")
_VERSION = re.compile(r"\d{1,4}\.\d{1,4}", re.ASCII)


@dataclass(frozen=True)
class KubernetesVersion:
    """One minor version on EKS.

    Each end of support is the first day without support, in UTC. `image_release` is the pinned release of the
    EKS-optimised AL2023 images, the `releaseVersion` of a managed node group.

    Source: EKS User Guide, "Kubernetes release calendar" (2026); amazon-eks-ami CHANGELOG.
    """

    standard_support_ends: date
    extended_support_ends: date
    image_release: str


@dataclass(frozen=True)
class Repair:
    """Repair action of EKS for a node that stays unhealthy for one reason. `why` explains the choice.

    Source: EKS User Guide, "Automatically repair nodes in EKS clusters" (2026); NVIDIA's Xid catalogue (2026).
    """

    reason: str
    action: RepairAction
    wait_minutes: int
    why: str
    condition: str = "AcceleratedHardwareReady"


KUBERNETES_VERSIONS: dict[str, KubernetesVersion] = {
    version: KubernetesVersion(
        date.fromisoformat(entry["standard_support_ends"]),
        date.fromisoformat(entry["extended_support_ends"]),
        entry["image_release"],
    )
    for version, entry in _EKS["kubernetes_versions"].items()
}
NEWEST_TESTED: str = list(KUBERNETES_VERSIONS)[-1]
"""Newest Kubernetes version of this catalogue."""
DRA_KUBERNETES: str = _EKS["dra_kubernetes"]
"""Oldest Kubernetes version with dynamic resource allocation on EKS."""
ULTRASERVER_KUBERNETES: str = _EKS["ultraserver_kubernetes"]
"""Oldest Kubernetes version for P6e-GB200 UltraServers."""
NODES_PER_GROUP: int = _EKS["quotas"]["nodes_per_group"]
"""Default quota of nodes in a managed node group."""
MAXIMUM_NODE_GROUPS: int = _EKS["quotas"]["node_groups"]
"""Default quota of managed node groups in a cluster."""
MAXIMUM_PUBLIC_CIDRS: int = _EKS["quotas"]["public_cidrs"]
"""Maximum number of CIDR blocks of a public endpoint."""
REFUSED_ZONE_IDS: dict[str, tuple[str, ...]] = {
    region: tuple(zones) for region, zones in _EKS["refused_zone_ids"].items()
}
"""Ids of zones in which EKS refuses control-plane subnets, by Region."""
TIERS: tuple[Tier, ...] = tuple(_EKS["tiers"])
LOG_TYPES: tuple[str, ...] = tuple(_EKS["log_types"])
IMAGE_DRIVER: str = _EKS["image"]["nvidia_driver"]
"""NVIDIA driver of the pinned accelerated images."""
HUGE_PAGES_2MI: int = _EKS["huge_pages"]["preallocated"]
"""2 MiB huge pages that the EFA driver allocates at boot."""
HUGE_PAGES_REQUEST: str = _EKS["huge_pages"]["request"]
"""`hugepages-2Mi` that AWS's EFA samples request for a pod."""
REPAIRS: tuple[Repair, ...] = tuple(Repair(**entry) for entry in _EKS["repairs"])


def image_type(architecture: Architecture, *, accelerated: bool) -> str:
    """The `amiType` of a managed node group with the AL2023 image for an architecture."""
    name: str = _EKS["image_types"][architecture]["accelerated" if accelerated else "standard"]
    return name


def access_policy(partition: str, scope: Literal["cluster_admin", "admin", "edit", "view"]) -> str:
    """ARN of an EKS access policy, in a partition such as `aws`."""
    return f"arn:{partition}:eks::aws:cluster-access-policy/{_EKS['access_policies'][scope]}"


def older(version: str, than: str) -> bool:
    """Whether a Kubernetes version is older than another: 1.9 is older than 1.10. Invalid versions are not older."""
    return bool(_VERSION.fullmatch(version)) and _parts(version) < _parts(than)


def follows(version: str, before: str) -> bool:
    """Whether a Kubernetes version is the next minor version after another one."""
    major, minor = _parts(before)
    return version == f"{major}.{minor + 1}"


def newer_release(release: str) -> str | None:
    """The catalogue's release of the node images of the same Kubernetes version, if `release` is an older one."""
    version, _, built = release.rpartition("-")
    known = KUBERNETES_VERSIONS.get(".".join(version.split(".")[:2]))
    return known.image_release if known and built < known.image_release.rpartition("-")[2] else None


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def newer_kubernetes(version: str) -> bool:
    """Whether a version is newer than all of this catalogue."""
    return re.fullmatch(r"1\.\d\d", version) is not None and older(NEWEST_TESTED, version)
