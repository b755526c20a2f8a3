"""Shares of the fleet: what comes with GPUs in CPUs, memory and EFA devices, and what a priority comes to."""

from ultracluster.config.eks import Priority, Team
from ultracluster.config.environment import Environment
from ultracluster.config.node_groups import NodeGroup

PRIORITIES: dict[Priority, int] = {"high": 75, "normal": 50, "low": 25}
"""Values of the priority classes. KAI takes pods of 100 and more for such that must not be preempted."""

WEIGHTS: dict[Priority, int] = {"high": 4, "normal": 2, "low": 1}
"""Shares in which teams that want more than their quotas divide what is idle."""


def fleet_name(environment: Environment) -> str:
    """Name of what stands above all teams' queues; no team's name has a dot."""
    return f"{environment.name}.fleet"


def fleet_gpus(group: NodeGroup) -> int:
    """GPUs of `group` when all its nodes are there."""
    return group.max_count * group.hardware.gpu_count


def nodes(group: NodeGroup, gpus: int) -> int:
    """Whole nodes in some GPUs of `group`."""
    return gpus // group.hardware.gpu_count


def cpus(group: NodeGroup, gpus: int) -> int:
    """CPUs (vCPUs) that go with some GPUs of `group`."""
    return group.hardware.vcpus * gpus // group.hardware.gpu_count


def memory_gib(group: NodeGroup, gpus: int) -> int:
    """Host memory in GiB that goes with some GPUs of `group`."""
    return group.hardware.memory_gib * gpus // group.hardware.gpu_count


def efa_devices(group: NodeGroup, gpus: int) -> int:
    """EFA devices that go with some GPUs of `group`: a node shows one for each interface that carries EFA."""
    on_a_node = sum(interface.kind != "interface" for interface in group.layout("eks"))
    return on_a_node * gpus // group.hardware.gpu_count


def quotas(environment: Environment, team: Team) -> list[tuple[NodeGroup, int]]:
    """The team's node groups in its order, each with the GPUs that are the team's."""
    groups = {group.name: group for group in environment.node_groups}
    return [(groups[name], team.quotas.get(name, 0)) for name in team.node_groups]


def unclaimed_gpus(group: NodeGroup, teams: tuple[Team, ...]) -> int:
    """GPUs of `group` that are no team's."""
    return fleet_gpus(group) - sum(team.quotas.get(group.name, 0) for team in teams)


def has_ultraservers(environment: Environment) -> bool:
    """Whether some nodes share NVLink, which jobs claim by a ComputeDomain."""
    return any(group.hardware.ultraserver_only for group in environment.node_groups)
