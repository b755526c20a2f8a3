"""Kueue's objects: flavors, cohorts, queues with quotas, topologies and priority classes.

The CPU nodes and each node group are a ResourceFlavor. Teams have equal shares of nodes without GPUs. Each team has a
ClusterQueue with its quotas, in a Cohort of its own. The fleet's Cohort is the parent of all and holds the quota that
no team claims.

Kueue tries flavors in the order of the queue. CPU nodes come first, without any GPUs: a pod that requests no GPU gets
CPU nodes while the team's share of them lasts, and CPUs of accelerated nodes after that.

Source: Kueue 0.19 documentation and source (2026); https://kueue.sigs.k8s.io.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ultracluster.config.eks import Team
from ultracluster.config.node_groups import NodeGroup
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.labels import (
    CHANNEL_CLASS,
    EFA,
    EFA_CLASS,
    GPU,
    GPU_CLASS,
    GPU_TAINT,
    GPU_TOLERATION,
    HOSTNAME,
    NODE_GROUP,
    TEAM,
)
from ultracluster.kubernetes.parts import Object
from ultracluster.kubernetes.quotas import PRIORITIES, WEIGHTS, cpus, efa_devices, memory_gib, nodes
from ultracluster.kubernetes.topology import HOSTS, topologies, topology_name, topology_objects

API = "kueue.x-k8s.io/v1beta2"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
PREFERRED_TOPOLOGY = "kueue.x-k8s.io/podset-preferred-topology"
PREEMPTION = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
"""A team gets its own quota back from every borrower; within its queue a job ends for one of a higher priority only."""
UNCONSTRAINED_TOPOLOGY = "kueue.x-k8s.io/podset-unconstrained-topology"

LOCAL_QUEUE = "default"
"""LocalQueue of a team's namespace. Kueue uses the one of this name for jobs without a queue, so none bypasses it."""

CHANNEL = "resource.nvidia.com/channel"
"""Resource under which Kueue counts the NVLink channels that pods on UltraServers claim; a node has one."""


def device_class_mappings(environment: EksEnvironment) -> list[dict[str, Any]]:
    """`resources.deviceClassMappings` of Kueue's configuration: the resource under which it counts a device class.

    Kueue does not admit jobs that claim from a class without a mapping.
    """
    mappings = []
    if environment.uses_dra:
        mappings.append({"name": GPU, "deviceClassNames": [GPU_CLASS]})
        mappings.append({"name": EFA, "deviceClassNames": [EFA_CLASS]})
    if environment.has_ultraservers:
        mappings.append({"name": CHANNEL, "deviceClassNames": [CHANNEL_CLASS]})
    return mappings


def kueue_topologies(environment: EksEnvironment) -> tuple[Object, ...]:
    """A Topology for each list of levels in the fleet."""
    placed = environment.cpu_shares and any(_all_placed(environment, team) for team in environment.teams)
    hosts = {HOSTS: (HOSTNAME,)} if placed else {}
    return topology_objects({**topologies(environment), **hosts}, API)


def priority_classes() -> tuple[Object, ...]:
    """WorkloadPriorityClasses, which order the jobs of a queue."""
    return tuple(
        {
            "apiVersion": API,
            "kind": "WorkloadPriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": f"Jobs of {name} priority within their team",
        }
        for name, value in PRIORITIES.items()
    )


def topology_aware(environment: EksEnvironment, group: NodeGroup) -> bool:
    """Whether Kueue's Topology Aware Scheduling chooses the nodes of jobs on `group`.

    It cannot where pods claim GPUs through DRA, because it does not see these GPUs on the nodes.
    """
    return environment.gang_scheduler == "kueue" and not environment.uses_dra_on(group)


def flavor_name(environment: EksEnvironment, group: NodeGroup) -> str:
    """Name of the flavor of `group`. It contains the topology, which is immutable in a flavor."""
    return f"{group.name}.{topology_name(group.hardware)}" if topology_aware(environment, group) else group.name


def resource_flavor(environment: EksEnvironment, group: NodeGroup) -> Object:
    """The nodes of `group`, with the toleration that Kueue adds to jobs on them."""
    topology = topology_name(group.hardware) if topology_aware(environment, group) else None
    return flavor(flavor_name(environment, group), group.name, topology=topology)


def cpu_flavors(environment: EksEnvironment) -> tuple[Object, ...]:
    """The nodes without GPUs, once for the teams that need a topology there and once for the others."""
    placed = dict.fromkeys(_all_placed(environment, team) for team in environment.teams)
    return tuple(
        flavor(_cpu_flavor_name(nodes, placed=each), nodes, gpus=False, topology=HOSTS if each else None)
        for nodes in environment.cpu_shares
        for each in placed
    )


def flavor(name: str, nodes: str, *, gpus: bool = True, topology: str | None = None) -> Object:
    """A ResourceFlavor of the nodes with label `nodes`; those with `gpus` have the taint of GPU nodes."""
    taint = {"nodeTaints": [GPU_TAINT], "tolerations": [GPU_TOLERATION]} if gpus else {}
    spec = {"nodeLabels": {NODE_GROUP: nodes}, **taint, **({"topologyName": topology} if topology else {})}
    return {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def _all_placed(environment: EksEnvironment, team: Team) -> bool:
    """Whether Kueue places jobs on every group of the team; only then the CPU nodes have a topology for it.

    In a queue that mixes flavors with and without a topology, a pod without a topology annotation gets only flavors
    without one (Kueue 0.19, tas_flavorassigner.go).
    """
    return all(topology_aware(environment, group) for group, _ in environment.quotas(team))


def _cpu_flavor_name(nodes: str, *, placed: bool) -> str:
    return f"{nodes}.{HOSTS}" if placed else nodes


def fleet_cohort(environment: EksEnvironment) -> Object:
    """The parent of all teams' cohorts, with the quota that no team claims."""
    unclaimed = [(group, environment.unclaimed_gpus(group)) for group in environment.gpu_groups]
    return {
        "apiVersion": API,
        "kind": "Cohort",
        "metadata": {"name": environment.fleet_name},
        "spec": {"resourceGroups": resource_groups(_amounts(environment, unclaimed))},
    }


def team_queues(environment: EksEnvironment, team: Team) -> tuple[Object, ...]:
    """The team's Cohort with its weight, its ClusterQueue with its quotas, and the LocalQueue in its namespace.

    CPU nodes are not borrowed: reclaiming them would evict the GPU job whose launcher runs there.

    A job starts when all its pods can. While it waits, smaller jobs may start, so that no GPU idles. Once it would fit
    in the place of jobs that came later, it preempts them, so that a big job does not wait for ever.
    """
    on_cpu_nodes = _cpu_amounts(environment, team)
    amounts = {**on_cpu_nodes, **_amounts(environment, environment.quotas(team))}
    kept = amounts.keys() if not team.may_borrow else on_cpu_nodes.keys()
    return (
        {
            "apiVersion": API,
            "kind": "Cohort",
            "metadata": {"name": team.name},
            "spec": {
                "parentName": environment.fleet_name,
                "fairSharing": {"weight": str(WEIGHTS[team.priority])},
            },
        },
        {
            "apiVersion": API,
            "kind": "ClusterQueue",
            "metadata": {"name": team.name},
            "spec": {
                "cohortName": team.name,
                "namespaceSelector": {"matchLabels": {TEAM: team.name}},
                "queueingStrategy": "BestEffortFIFO",
                "preemption": PREEMPTION,
                "resourceGroups": resource_groups(amounts, not_borrowed=kept),
            },
        },
        {
            "apiVersion": API,
            "kind": "LocalQueue",
            "metadata": {"name": LOCAL_QUEUE, "namespace": team.name},
            "spec": {"clusterQueue": team.name},
        },
    )


Amounts = dict[str, int | str]
"""Quotas by resource."""


def resource_groups(flavors: Mapping[str, Amounts], *, not_borrowed: Iterable[str] = ()) -> list[Object]:
    """Quotas by flavor, in the order in which Kueue tries the flavors. Those `not_borrowed` have a limit of 0.

    A group covers the same resources in every flavor. CPUs and memory are among them: with topology-aware scheduling,
    Kueue refuses pods that request neither.
    """
    covered = list(dict.fromkeys(resource for amounts in flavors.values() for resource in amounts))
    fixed = set(not_borrowed)
    return [
        {
            "coveredResources": covered,
            "flavors": [
                {
                    "name": name,
                    "resources": [
                        {
                            "name": resource,
                            "nominalQuota": amounts.get(resource, 0),
                            **({"borrowingLimit": 0} if name in fixed else {}),
                        }
                        for resource in covered
                    ],
                }
                for name, amounts in flavors.items()
            ],
        }
    ]


def _amounts(environment: EksEnvironment, quotas: Iterable[tuple[NodeGroup, int]]) -> dict[str, Amounts]:
    """Quotas by flavor, from GPUs by node group."""
    flavors: dict[str, Amounts] = {}
    for group, gpus in quotas:
        amounts: Amounts = {
            "cpu": cpus(group, gpus),
            "memory": f"{memory_gib(group, gpus)}Gi",
            GPU: gpus,
            EFA: efa_devices(group, gpus),
        }
        if environment.has_ultraservers:
            amounts[CHANNEL] = nodes(group, gpus) if group.hardware.ultraserver_only else 0
        flavors[flavor_name(environment, group)] = amounts
    return flavors


def _cpu_amounts(environment: EksEnvironment, team: Team) -> dict[str, Amounts]:
    placed = _all_placed(environment, team)
    return {
        _cpu_flavor_name(nodes, placed=placed): {"cpu": share.cpus, "memory": f"{share.memory_gib}Gi"}
        for nodes, share in environment.cpu_shares.items()
    }
