"""Quotas: the CPUs, memory and EFA devices that go with GPUs, priority-class values and borrowing weights."""

from ultracluster.config.eks import Priority
from ultracluster.config.node_groups import NodeGroup

PRIORITIES: dict[Priority, int] = {"high": 75, "normal": 50, "low": 25}
"""Values of the priority classes. KAI treats pods with a value of 100 or more as not preemptible."""

WEIGHTS: dict[Priority, int] = {"high": 4, "normal": 2, "low": 1}
"""Weights by which teams above their quotas divide idle GPUs."""


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
