"""System nodes, CPU nodes and node auto repair of an EKS cluster."""

import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from ultracluster.config import cluster_effects
from ultracluster.config.effects import IN_PLACE
from ultracluster.config.fields import CpuType
from ultracluster.config.problems import Problem, rule
from ultracluster.config.settings import Settings

SYSTEM_VOLUME_GIB = 100
"""Root volume of a system node."""

CPU_VOLUME_GIB = 300
"""Root volume of a CPU node: images of training jobs take 20 GB and more."""

ACCELERATED = re.compile(r"(p|gr?|inf|trn|dl|vt|f)\d")
"""Start of the names of instance families with GPUs or other accelerators (EC2 User Guide, instance naming)."""


class SystemNodes(Settings):
    """CPU nodes for DNS, operators, schedulers and storage controllers."""

    instance_type: Annotated[CpuType, cluster_effects.SYSTEM_GROUP_TYPE] = "m7i.2xlarge"
    """Instance type, without accelerators."""
    count: Annotated[int, Field(ge=2), IN_PLACE] = 2
    """Number of system nodes, spread over the control-plane subnets."""

    @rule
    def _without_gpus(self) -> Iterator[Problem]:
        yield from _accelerated(self.instance_type, "system nodes", "m7i.2xlarge")


class CpuNodes(Settings):
    """CPU nodes for pods of teams that need no GPU: launchers of MPI jobs, Ray heads, data preparation.

    They are in the subnet of the accelerated nodes, next to the file system. Kueue divides their CPUs and memory
    equally among the teams.
    """

    instance_type: Annotated[CpuType, cluster_effects.CPU_GROUP_TYPE] = "m7i.4xlarge"
    """Instance type, without accelerators."""
    count: Annotated[int, Field(ge=0), cluster_effects.CPU_COUNT] = 2
    """Number of CPU nodes; 0 for none."""

    @rule
    def _without_gpus(self) -> Iterator[Problem]:
        yield from _accelerated(self.instance_type, "CPU nodes", "m7i.4xlarge")

    @property
    def room(self) -> int:
        """Nodes at most: an update launches one more before it drains an old one."""
        return self.count + 1 if self.count else 0


class NodeRepair(Settings):
    """EKS node auto repair: rebooting or replacing nodes with failed hardware."""

    enabled: Annotated[bool, IN_PLACE] = True
    """Whether EKS repairs unhealthy nodes."""
    max_unhealthy_percent: Annotated[int, Field(ge=1, le=100), IN_PLACE] = 20
    """Percentage of unhealthy nodes in a group above which EKS stops repairs, as the cause lies elsewhere."""


def _accelerated(instance_type: str, nodes: str, instead: str) -> Iterator[Problem]:
    if ACCELERATED.match(instance_type):
        message = f"{instance_type} has accelerators, which {nodes} do not use"
        yield Problem("system-nodes-accelerated", "instance_type", message, f"set instance_type: {instead}")
