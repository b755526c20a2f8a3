"""EC2 instance types of login nodes and system nodes: architecture, vCPUs, memory and the pods that fit.

The list ages: a type that is missing is a reason for a warning, never for an error. Source: `data/ec2_sizes.json`.
"""

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from ultracluster.catalog.instance_types import Architecture
from ultracluster.catalog.records import records


@dataclass(frozen=True)
class Ec2Size:
    """An instance type, as EC2 describes it. `memory_gib` is its memory in GiB."""

    name: str
    architecture: Architecture
    vcpus: int
    memory_gib: float
    interfaces: int
    ipv4_per_interface: int

    @property
    def max_pods(self) -> int:
        """Pods that EKS allows on a node, with an address each from the VPC CNI and without prefix delegation.

        Source: EKS User Guide, "Choose an optimal Amazon EC2 node instance type" (2026).
        """
        return self.interfaces * (self.ipv4_per_interface - 1) + 2


def read_on() -> str:
    """Date of the list."""
    date: str = records("ec2_sizes")["read"]
    return date


def ec2_size(name: str) -> Ec2Size | None:
    """The instance type called `name`; None if the list lacks it."""
    family, _, size = name.partition(".")
    known = _families().get(family)
    if known is None or size not in known["sizes"]:
        return None
    return Ec2Size(name, known["architecture"], *known["sizes"][size])


def nearest(name: str) -> str | None:
    """The listed instance type that is most like `name`: of its family, or else of a family with a similar name."""
    family, _, size = name.partition(".")
    families = [family] if family in _families() else get_close_matches(family, _families(), n=1)
    sizes = _families()[families[0]]["sizes"] if families else {}
    near = get_close_matches(size, sizes, n=1)
    return f"{families[0]}.{near[0]}" if near else None


def _families() -> dict[str, Any]:
    families: dict[str, Any] = records("ec2_sizes")["families"]
    return families
