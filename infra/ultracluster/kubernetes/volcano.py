"""Volcano's queues, one for each team. Volcano discovers the network topology itself, from node labels.

Source: Volcano 1.15 documentation and source, capacity plugin (2026).
"""

from ultracluster.config.eks import Team
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.labels import EFA, EFA_CLASS, GPU, GPU_CLASS
from ultracluster.kubernetes.parts import Object
from ultracluster.kubernetes.quotas import WEIGHTS, efa_devices

SCHEDULER = "volcano"
DEFAULT_QUEUE = "default"
"""Volcano's own queue, which has no limits: for jobs that Kueue has admitted."""

QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
GANG_ANNOTATION = "scheduling.volcano.sh/group-min-member"
TOPOLOGY_ANNOTATION = "volcano.sh/network-topology-mode"

DRA_RESOURCES = {GPU: f"deviceclass/{GPU_CLASS}", EFA: f"deviceclass/{EFA_CLASS}"}
"""Names under which Volcano counts GPUs and EFA devices that pods claim through DRA."""


def volcano_queue(environment: EksEnvironment, team: Team) -> Object:
    """The team's queue. Others may use its quota while it is idle, and Volcano reclaims it.

    Without `may_borrow` the quota is also the limit. Volcano counts GPUs across node groups, so quotas are added up.
    """
    quota: dict[str, int] = {}
    for group, gpus in environment.quotas(team):
        for resource, amount in ((GPU, gpus), (EFA, efa_devices(group, gpus))):
            name = DRA_RESOURCES[resource] if environment.uses_dra_on(group) else resource
            quota[name] = quota.get(name, 0) + amount
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": team.name},
        "spec": {
            "parent": "root",
            "reclaimable": True,
            "deserved": quota,
            "priority": WEIGHTS[team.priority],
            **({} if team.may_borrow else {"capability": quota}),
        },
    }
