"""What Amazon EKS offers: Kubernetes versions, control-plane tiers, node images and node repairs.

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

    Each end of support is the first day without it, in UTC. `image_release` is the pinned release of the EKS-optimised
    AL2023 images, as `releaseVersion` of a managed node group takes it.

    Source: EKS User Guide, "Kubernetes release calendar" (2026); amazon-eks-ami CHANGELOG.
    """

    standard_support_ends: date
    extended_support_ends: date
    image_release: str


@dataclass(frozen=True)
class Repair:
    """What EKS does to a node of a managed group that stays unhealthy for one reason. `why` is a short reason in words.

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
"""Networks that may be let into a public endpoint."""
TIERS: tuple[Tier, ...] = tuple(_EKS["tiers"])
LOG_TYPES: tuple[str, ...] = tuple(_EKS["log_types"])
IMAGE_DRIVER: str = _EKS["image"]["nvidia_driver"]
"""NVIDIA driver of the pinned accelerated images."""
HUGE_PAGES_2MI: int = _EKS["huge_pages"]["preallocated"]
"""Huge pages of 2 MiB that an instance with the EFA driver sets aside at boot."""
HUGE_PAGES_REQUEST: str = _EKS["huge_pages"]["request"]
"""Amount of `hugepages-2Mi` that AWS's EFA samples request for a pod."""
REPAIRS: tuple[Repair, ...] = tuple(Repair(**entry) for entry in _EKS["repairs"])


def image_type(architecture: Architecture, *, accelerated: bool) -> str:
    """EKS's name of the AL2023 image for an architecture, as `amiType` of a managed node group takes it."""
    name: str = _EKS["image_types"][architecture]["accelerated" if accelerated else "standard"]
    return name


def access_policy(partition: str, scope: Literal["cluster_admin", "admin", "edit", "view"]) -> str:
    """ARN of AWS's access policy for an access entry, in a partition such as `aws`."""
    return f"arn:{partition}:eks::aws:cluster-access-policy/{_EKS['access_policies'][scope]}"


def older(version: str, than: str) -> bool:
    """Whether one Kubernetes version comes before another: 1.9 before 1.10. Text that is no version is not older."""
    return bool(_VERSION.fullmatch(version)) and _parts(version) < _parts(than)


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _next_minor(version: str) -> str:
    major, minor = _parts(version)
    return f"{major}.{minor + 1}"


NEXT_UNTESTED: str = _next_minor(NEWEST_TESTED)
"""The Kubernetes version after the newest tested: EKS may have it already."""
