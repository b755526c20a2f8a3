"""Kueue: who may run how much where, and when it starts.

Every node group is a flavor. Every team has a cluster queue with its quotas, in a cohort of its own; all cohorts stand
under that of the fleet, which holds what no team claims.

Source: Kueue 0.19 documentation and source (2026); https://kueue.sigs.k8s.io.
"""

from collections.abc import Iterable
from typing import Any

from ultracluster.config.eks import Eks, Team
from ultracluster.config.environment import Environment
from ultracluster.config.node_groups import NodeGroup
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
from ultracluster.kubernetes.shares import (
    PRIORITIES,
    WEIGHTS,
    cpus,
    efa_devices,
    fleet_name,
    has_ultraservers,
    memory_gib,
    nodes,
    quotas,
    unclaimed_gpus,
)
from ultracluster.kubernetes.topology import topologies, topology_name

API = "kueue.x-k8s.io/v1beta2"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
PREFERRED_TOPOLOGY = "kueue.x-k8s.io/podset-preferred-topology"
UNCONSTRAINED_TOPOLOGY = "kueue.x-k8s.io/podset-unconstrained-topology"

LOCAL_QUEUE = "default"
"""Queue in a team's namespace. Kueue puts jobs that name no queue into the one of this name, so none runs beside it."""

CHANNEL = "resource.nvidia.com/channel"
"""Kueue's name for the NVLink channel that a pod on an UltraServer claims; a node has one."""


def device_class_mappings(environment: Environment) -> list[dict[str, Any]]:
    """`resources.deviceClassMappings` of Kueue's configuration: under which name it counts what pods claim.

    Kueue admits no job with a claim of a class that is not among them.
    """
    mappings = []
    if isinstance(environment.control_plane, Eks) and "dra" in environment.control_plane.used_device_stacks:
        mappings.append({"name": GPU, "deviceClassNames": [GPU_CLASS]})
        mappings.append({"name": EFA, "deviceClassNames": [EFA_CLASS]})
    if has_ultraservers(environment):
        mappings.append({"name": CHANNEL, "deviceClassNames": [CHANNEL_CLASS]})
    return mappings


def kueue_topologies(environment: Environment) -> tuple[Object, ...]:
    """A Topology for each list of levels in the fleet."""
    return tuple(
        {
            "apiVersion": API,
            "kind": "Topology",
            "metadata": {"name": name},
            "spec": {"levels": [{"nodeLabel": label} for label in labels]},
        }
        for name, labels in topologies(environment).items()
    )


def priority_classes() -> tuple[Object, ...]:
    """The classes that order the jobs of a queue."""
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


def placed_by_kueue(group: NodeGroup, settings: Eks) -> bool:
    """Whether Kueue chooses the nodes of jobs on `group`: not for claimed GPUs, which it does not see on nodes."""
    return settings.places_with == "kueue" and "dra" not in settings.device_stacks(group.name)


def flavor_name(group: NodeGroup, settings: Eks) -> str:
    """Name of the flavor of `group`. A flavor's topology cannot change, so another one is another flavor."""
    return f"{group.name}.{topology_name(group.hardware)}" if placed_by_kueue(group, settings) else group.name


def resource_flavor(group: NodeGroup, settings: Eks) -> Object:
    """The nodes of `group`, with the toleration that jobs on them are given."""
    spec: Object = {
        "nodeLabels": {NODE_GROUP: group.name},
        "nodeTaints": [GPU_TAINT],
        "tolerations": [GPU_TOLERATION],
    }
    if placed_by_kueue(group, settings):
        spec["topologyName"] = topology_name(group.hardware)
    return {
        "apiVersion": API,
        "kind": "ResourceFlavor",
        "metadata": {"name": flavor_name(group, settings)},
        "spec": spec,
    }


def fleet_cohort(environment: Environment, settings: Eks) -> Object:
    """The cohort above all teams, with the quota that no team claims."""
    rest = [(group, unclaimed_gpus(group, settings.teams)) for group in environment.node_groups]
    return {
        "apiVersion": API,
        "kind": "Cohort",
        "metadata": {"name": fleet_name(environment)},
        "spec": {"resourceGroups": _resource_groups(environment, settings, rest, may_borrow=True)},
    }


def team_queues(environment: Environment, team: Team, settings: Eks) -> tuple[Object, ...]:
    """The team's cohort with its weight, its cluster queue with its quotas, and the queue in its namespace.

    A job starts when all its pods can. One that waits lets smaller ones pass, so that no GPU idles; once it would fit
    in their place it takes it from those that came later. So a big job is not passed over for good.
    """
    return (
        {
            "apiVersion": API,
            "kind": "Cohort",
            "metadata": {"name": team.name},
            "spec": {
                "parentName": fleet_name(environment),
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
                "resourceGroups": _resource_groups(
                    environment, settings, quotas(environment, team), may_borrow=team.may_borrow
                ),
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
    environment: Environment, settings: Eks, shares: Iterable[tuple[NodeGroup, int]], *, may_borrow: bool
) -> list[Object]:
    """Quotas by flavor. CPUs and memory are counted too: where Kueue places, it takes no pod that asks for nothing."""
    flavors = []
    for group, gpus in shares:
        amounts: dict[str, int | str] = {
            "cpu": cpus(group, gpus),
            "memory": f"{memory_gib(group, gpus)}Gi",
            GPU: gpus,
            EFA: efa_devices(group, gpus),
        }
        if has_ultraservers(environment):
            amounts[CHANNEL] = nodes(group, gpus) if group.hardware.ultraserver_only else 0
        flavors.append((flavor_name(group, settings), amounts))
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
