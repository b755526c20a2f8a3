"""Kueue's objects for Karpenter's nodes: a second queue of each team, which shares the elastic pools with all teams.

Karpenter launches a node for a pod that Kueue has admitted, so these flavors have no topology: Kueue would wait for
nodes that do not exist yet. A queue cannot mix both kinds of flavors, because pods without a topology annotation would
never get the static fleet, hence the second queue. No team owns any of its quota.

Source: Kueue 0.19 documentation and source (2026), flavor assigner and Topology Aware Scheduling.
"""

from ultracluster.config.eks import Team
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.karpenter import elastic_pools
from ultracluster.kubernetes.karpenter_own import ElasticPool
from ultracluster.kubernetes.kueue import API, PREEMPTION, Amounts, flavor, resource_groups
from ultracluster.kubernetes.labels import EFA, GPU, TEAM
from ultracluster.kubernetes.parts import Object
from ultracluster.kubernetes.quotas import WEIGHTS

ELASTIC_QUEUE = "elastic"
"""LocalQueue of a team's namespace for jobs on Karpenter's nodes."""


def elastic_name(environment: EksEnvironment) -> str:
    """Name of the Cohort with the quota of all elastic pools. It has a dot, so no team can have the same name.

    That of the file's pools has another name: a change between the forms deletes the old form's Cohort last.
    """
    return f"{environment.name}.{'pools' if environment.settings.pools else 'elastic'}"


def elastic_flavors(environment: EksEnvironment) -> tuple[Object, ...]:
    """A flavor for each pool of Karpenter."""
    return tuple(flavor(pool.name, pool.name, gpus=bool(pool.gpus)) for pool in elastic_pools(environment))


def elastic_cohort(environment: EksEnvironment) -> Object:
    """The parent of the teams' elastic queues, with the limits of the pools as quota."""
    amounts = {pool.name: _amounts(pool) for pool in elastic_pools(environment)}
    return {
        "apiVersion": API,
        "kind": "Cohort",
        "metadata": {"name": elastic_name(environment)},
        "spec": {"resourceGroups": resource_groups(amounts)},
    }


def elastic_queues(environment: EksEnvironment, team: Team) -> tuple[Object, Object]:
    """The team's elastic ClusterQueue and its LocalQueue. Its priority is its weight when pools are full."""
    name = f"{team.name}.elastic"
    nothing: dict[str, Amounts] = {pool.name: dict.fromkeys(_amounts(pool), 0) for pool in elastic_pools(environment)}
    return (
        {
            "apiVersion": API,
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {
                "cohortName": elastic_name(environment),
                "fairSharing": {"weight": str(WEIGHTS[team.priority])},
                "namespaceSelector": {"matchLabels": {TEAM: team.name}},
                "queueingStrategy": "BestEffortFIFO",
                "preemption": PREEMPTION,
                "resourceGroups": resource_groups(nothing),
            },
        },
        {
            "apiVersion": API,
            "kind": "LocalQueue",
            "metadata": {"name": ELASTIC_QUEUE, "namespace": team.name},
            "spec": {"clusterQueue": name},
        },
    )


def _amounts(pool: ElasticPool) -> Amounts:
    return {"cpu": pool.cpus, "memory": f"{pool.memory_gib}Gi", GPU: pool.gpus, EFA: pool.efa_devices}
