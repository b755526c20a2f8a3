"""KAI Scheduler: a queue for each team under that of the fleet, and what is near what.

Source: KAI Scheduler 0.17 documentation and source (2026).
"""

from ultracluster.config.eks import Team
from ultracluster.config.environment import Environment
from ultracluster.kubernetes.parts import Object
from ultracluster.kubernetes.shares import WEIGHTS, fleet_gpus, fleet_name, quotas
from ultracluster.kubernetes.topology import topologies

SCHEDULER = "kai-scheduler"
QUEUE_LABEL = "kai.scheduler/queue"
PRIORITY_LABEL = "priorityClassName"
GANG_ANNOTATION = "kai.scheduler/batch-min-member"
TOPOLOGY_ANNOTATION = "kai.scheduler/topology"
PREFERRED_TOPOLOGY = "kai.scheduler/topology-preferred-placement"

UNLIMITED = -1


def kai_topologies(environment: Environment) -> tuple[Object, ...]:
    """A Topology for each list of levels in the fleet."""
    return tuple(
        {
            "apiVersion": "kai.scheduler/v1alpha1",
            "kind": "Topology",
            "metadata": {"name": name},
            "spec": {"levels": [{"nodeLabel": label} for label in labels]},
        }
        for name, labels in topologies(environment).items()
    )


def fleet_queue(environment: Environment) -> Object:
    """The queue above all teams, with every GPU of the fleet."""
    gpus = sum(map(fleet_gpus, environment.node_groups))
    return _queue(fleet_name(environment), None, quota=gpus, limit=UNLIMITED, weight=1)


def team_queue(environment: Environment, team: Team) -> Object:
    """The team's queue. KAI counts GPUs wherever they are, so the quotas of several node groups are added up."""
    quota = sum(gpus for _, gpus in quotas(environment, team))
    limit = UNLIMITED if team.may_borrow else quota
    return _queue(team.name, fleet_name(environment), quota=quota, limit=limit, weight=WEIGHTS[team.priority])


def admitted_queue_name(environment: Environment) -> str:
    """Name of the queue for jobs that Kueue has admitted; no team's name has a dot."""
    return f"{environment.name}.admitted"


def admitted_queue(environment: Environment) -> Object:
    """The one queue, without limits, for jobs that Kueue has admitted."""
    name = admitted_queue_name(environment)
    return _queue(name, fleet_name(environment), quota=UNLIMITED, limit=UNLIMITED, weight=1)


def _queue(name: str, parent: str | None, *, quota: int, limit: int, weight: int) -> Object:
    """A queue with GPUs to share; CPUs and memory have no limit."""
    free = {"quota": UNLIMITED, "limit": UNLIMITED, "overQuotaWeight": 1}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {
            **({"parentQueue": parent} if parent else {}),
            "resources": {
                "cpu": free,
                "memory": free,
                "gpu": {"quota": quota, "limit": limit, "overQuotaWeight": weight},
            },
        },
    }
