"""Quotas: the CPUs, memory and EFA devices that go with GPUs, priority-class values and borrowing weights."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from ultracluster.catalog import InstanceType, Interface, instance_types, interfaces
from ultracluster.config.eks import Priority
from ultracluster.config.eks_fleet import CPU_GROUP
from ultracluster.config.eks_nodes import CpuNodes
from ultracluster.config.node_groups import Controller, NodeGroup

PRIORITIES: dict[Priority, int] = {"high": 75, "normal": 50, "low": 25}
"""Values of the priority classes. KAI treats pods with a value of 100 or more as not preemptible."""

WEIGHTS: dict[Priority, int] = {"high": 4, "normal": 2, "low": 1}
"""Weights by which teams above their quotas divide idle GPUs."""


RESERVED_CPUS, RESERVED_GIB = 1, 4
"""CPUs and memory in GiB of a CPU node that the kubelet, the operating system and agents on every node use.

The kubelet of EKS's images reserves 11 MiB for each of the pods that fit, 234 on m7i.4xlarge, and 255 MiB more
(amazon-eks-ami, nodeadm, 2026).
"""


class Room(NamedTuple):
    """CPUs, and memory in GiB."""

    cpus: int
    memory_gib: int


class GpuNodes(Protocol):
    """Nodes with GPUs, static or Karpenter's."""

    @property
    def hardware(self) -> InstanceType:
        """The instance type."""

    def layout(self, controller: Controller) -> tuple[Interface, ...]:
        """Interfaces of one node."""


class CpuPool(NamedTuple):
    """Nodes without GPUs: the value of NODE_GROUP on them, their number, and what pods can request of each."""

    name: str
    nodes: int
    each: Room

    def share(self, teams: int) -> Room:
        """What each team can request of all nodes: equal shares."""
        return Room(*(self.nodes * amount // teams for amount in self.each))


def cpu_pools(nodes: CpuNodes, groups: Iterable[NodeGroup]) -> tuple[CpuPool, ...]:
    """All nodes without GPUs: the CPU nodes, if their type is in the list, and node groups."""
    own = [(CPU_GROUP, nodes.count, (nodes.instance_type,))] if nodes.instance_type in instance_types else []
    more = ((group.name, group.max_count, group.types) for group in groups if not group.hardware.gpu_count)
    return tuple(CpuPool(name, count, node_room(types)) for name, count, types in (*own, *more) if count)


def node_room(types: Sequence[str]) -> Room:
    """What pods can request of a node; of several types, the one with the least memory counts."""
    each = [instance_types[name] for name in types]
    cpus, memory = min(node.vcpus for node in each), min(int(node.memory_gib) for node in each)
    return Room(max(cpus - RESERVED_CPUS, 0), max(memory - RESERVED_GIB, 0))


def fleet_gpus(group: NodeGroup) -> int:
    """GPUs of `group` at its largest size."""
    return group.max_count * group.hardware.gpu_count


def nodes(group: NodeGroup, gpus: int) -> int:
    """Whole nodes of `group` that `gpus` GPUs fill."""
    return gpus // group.hardware.gpu_count


def cpus(group: GpuNodes, gpus: int) -> int:
    """CPUs (vCPUs) that go with `gpus` GPUs of `group`."""
    return group.hardware.vcpus * gpus // group.hardware.gpu_count


def memory_gib(group: GpuNodes, gpus: int) -> int:
    """Host memory in GiB that goes with `gpus` GPUs of `group`."""
    return int(group.hardware.memory_gib * gpus // group.hardware.gpu_count)


def efa_devices(group: GpuNodes, gpus: int) -> int:
    """EFA devices that go with `gpus` GPUs of `group`. A node has one for each network interface with EFA."""
    on_a_node = interfaces.efa_devices(group.layout("eks"))
    return on_a_node * gpus // group.hardware.gpu_count
