"""Quotas: the CPUs, memory and EFA devices that go with GPUs, priority-class values and borrowing weights."""

from typing import NamedTuple

from ultracluster.catalog.ec2_sizes import ec2_size
from ultracluster.config.eks import Priority
from ultracluster.config.eks_nodes import CpuNodes
from ultracluster.config.node_groups import NodeGroup

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


def cpu_room(nodes: CpuNodes) -> Room | None:
    """What pods can request of all CPU nodes together; None without nodes, or for a type that is not in the list."""
    size = ec2_size(nodes.instance_type)
    if size is None or not nodes.count:
        return None
    return Room(
        nodes.count * max(size.vcpus - RESERVED_CPUS, 0), nodes.count * max(int(size.memory_gib) - RESERVED_GIB, 0)
    )


def fleet_gpus(group: NodeGroup) -> int:
    """GPUs of `group` at its largest size."""
    return group.max_count * group.hardware.gpu_count


def nodes(group: NodeGroup, gpus: int) -> int:
    """Whole nodes of `group` that `gpus` GPUs fill."""
    return gpus // group.hardware.gpu_count


def cpus(group: NodeGroup, gpus: int) -> int:
    """CPUs (vCPUs) that go with `gpus` GPUs of `group`."""
    return group.hardware.vcpus * gpus // group.hardware.gpu_count


def memory_gib(group: NodeGroup, gpus: int) -> int:
    """Host memory in GiB that goes with `gpus` GPUs of `group`."""
    return group.hardware.memory_gib * gpus // group.hardware.gpu_count


def efa_devices(group: NodeGroup, gpus: int) -> int:
    """EFA devices that go with `gpus` GPUs of `group`. A node has one for each network interface with EFA."""
    on_a_node = sum(interface.kind != "interface" for interface in group.layout("eks"))
    return on_a_node * gpus // group.hardware.gpu_count
