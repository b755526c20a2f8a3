"""KAI Scheduler: the fleet's queue, a queue for each team below it, and topologies.

Source: KAI Scheduler 0.17 documentation and source (2026).
"""

from ultracluster.config.eks import Team
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.parts import Object
from ultracluster.kubernetes.quotas import WEIGHTS, fleet_gpus
from ultracluster.kubernetes.topology import topologies, topology_objects

SCHEDULER = "kai-scheduler"
QUEUE_LABEL = "kai.scheduler/queue"
PRIORITY_LABEL = "priorityClassName"
GANG_ANNOTATION = "kai.scheduler/batch-min-member"
TOPOLOGY_ANNOTATION = "kai.scheduler/topology"
PREFERRED_TOPOLOGY = "kai.scheduler/topology-preferred-placement"

UNLIMITED = -1


def kai_topologies(environment: EksEnvironment) -> tuple[Object, ...]:
    """A Topology for each list of levels in the fleet."""
    return topology_objects(topologies(environment), "kai.scheduler/v1alpha1")


def fleet_queue(environment: EksEnvironment) -> Object:
    """The parent of all teams' queues, with every GPU of the fleet."""
    gpus = sum(map(fleet_gpus, environment.gpu_groups))
    return _queue(environment.fleet_name, None, quota=gpus, limit=UNLIMITED, weight=1)


def team_queue(environment: EksEnvironment, team: Team) -> Object:
    """The team's queue. KAI counts GPUs across node groups, so quotas are added up."""
    quota = sum(gpus for _, gpus in environment.quotas(team))
    limit = UNLIMITED if team.may_borrow else quota
    return _queue(team.name, environment.fleet_name, quota=quota, limit=limit, weight=WEIGHTS[team.priority])


def admitted_queue_name(environment: EksEnvironment) -> str:
    """Name of the queue for jobs that Kueue has admitted. It has a dot, so no team can have the same name."""
    return f"{environment.name}.admitted"


def admitted_queue(environment: EksEnvironment) -> Object:
    """The queue for jobs that Kueue has admitted, without limits."""
    name = admitted_queue_name(environment)
    return _queue(name, environment.fleet_name, quota=UNLIMITED, limit=UNLIMITED, weight=1)


def _queue(name: str, parent: str | None, *, quota: int, limit: int, weight: int) -> Object:
    """A queue with a quota of GPUs; CPUs and memory are unlimited."""
    unlimited = {"quota": UNLIMITED, "limit": UNLIMITED, "overQuotaWeight": 1}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {
            **({"parentQueue": parent} if parent else {}),
            "resources": {
                "cpu": unlimited,
                "memory": unlimited,
                "gpu": {"quota": quota, "limit": limit, "overQuotaWeight": weight},
            },
        },
    }
