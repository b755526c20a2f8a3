"""Kueue's objects: flavors, cohorts, queues with quotas, topologies and priority classes.

Each node group is a ResourceFlavor. Each team has a ClusterQueue with its quotas, in a Cohort of its own. The fleet's
Cohort is the parent of all and holds the quota that no team claims.

Source: Kueue 0.19 documentation and source (2026); https://kueue.sigs.k8s.io.
"""

from collections.abc import Iterable
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
    NODE_GROUP,
    TEAM,
)
from ultracluster.kubernetes.parts import Object
from ultracluster.kubernetes.quotas import PRIORITIES, WEIGHTS, cpus, efa_devices, memory_gib, nodes
from ultracluster.kubernetes.topology import topology_name, topology_objects

API = "kueue.x-k8s.io/v1beta2"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
PREFERRED_TOPOLOGY = "kueue.x-k8s.io/podset-preferred-topology"
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
    return topology_objects(environment, API)


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
    """Name of the flavor of `group`. It contains the topology, which Kueue does not let a flavor change."""
    return f"{group.name}.{topology_name(group.hardware)}" if topology_aware(environment, group) else group.name


def resource_flavor(environment: EksEnvironment, group: NodeGroup) -> Object:
    """The nodes of `group`, with the toleration that Kueue adds to jobs on them."""
    spec: Object = {
        "nodeLabels": {NODE_GROUP: group.name},
        "nodeTaints": [GPU_TAINT],
        "tolerations": [GPU_TOLERATION],
    }
    if topology_aware(environment, group):
        spec["topologyName"] = topology_name(group.hardware)
    return {
        "apiVersion": API,
        "kind": "ResourceFlavor",
        "metadata": {"name": flavor_name(environment, group)},
        "spec": spec,
    }


def fleet_cohort(environment: EksEnvironment) -> Object:
    """The parent of all teams' cohorts, with the quota that no team claims."""
    unclaimed = [(group, environment.unclaimed_gpus(group)) for group in environment.node_groups]
    return {
        "apiVersion": API,
        "kind": "Cohort",
        "metadata": {"name": environment.fleet_name},
        "spec": {"resourceGroups": _resource_groups(environment, unclaimed, may_borrow=True)},
    }


def team_queues(environment: EksEnvironment, team: Team) -> tuple[Object, ...]:
    """The team's Cohort with its weight, its ClusterQueue with its quotas, and the LocalQueue in its namespace.

    A job starts when all its pods can. While it waits, smaller jobs may start, so that no GPU idles. Once it would fit
    in the place of jobs that came later, it preempts them, so that a big job does not wait for ever.
    """
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
                "preemption": {"withinClusterQueue": "LowerOrNewerEqualPriority", "reclaimWithinCohort": "Any"},
                "resourceGroups": _resource_groups(environment, environment.quotas(team), may_borrow=team.may_borrow),
            },
        },
        {
            "apiVersion": API,
            "kind": "LocalQueue",
            "metadata": {"name": LOCAL_QUEUE, "namespace": team.name},
            "spec": {"clusterQueue": team.name},
        },
    )


def _resource_groups(
    environment: EksEnvironment, quotas: Iterable[tuple[NodeGroup, int]], *, may_borrow: bool
) -> list[Object]:
    """Quotas by flavor, from GPUs by node group.

    CPUs and memory have quotas too: with topology-aware scheduling, Kueue refuses pods that request neither.
    """
    flavors = []
    for group, gpus in quotas:
        amounts: dict[str, int | str] = {
            "cpu": cpus(group, gpus),
            "memory": f"{memory_gib(group, gpus)}Gi",
            GPU: gpus,
            EFA: efa_devices(group, gpus),
        }
        if environment.has_ultraservers:
            amounts[CHANNEL] = nodes(group, gpus) if group.hardware.ultraserver_only else 0
        flavors.append((flavor_name(environment, group), amounts))
    limit = {} if may_borrow else {"borrowingLimit": 0}
    return [
        {
            "coveredResources": list(flavors[0][1]),
            "flavors": [
                {
                    "name": name,
                    "resources": [
                        {"name": resource, "nominalQuota": amount, **limit} for resource, amount in amounts.items()
                    ],
                }
                for name, amounts in flavors
            ],
        }
    ]
