"""Volcano: a queue for each team. What is near what it finds out itself, from the labels of the nodes.

Source: Volcano 1.15 documentation and source, capacity plugin (2026).
"""

from ultracluster.config.eks import Eks, Team
from ultracluster.config.environment import Environment
from ultracluster.kubernetes.labels import EFA, EFA_CLASS, GPU, GPU_CLASS
from ultracluster.kubernetes.parts import Object
from ultracluster.kubernetes.shares import WEIGHTS, efa_devices, quotas

SCHEDULER = "volcano"
DEFAULT_QUEUE = "default"
"""Volcano's own queue, without limits: for jobs that Kueue has admitted."""

QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
GANG_ANNOTATION = "scheduling.volcano.sh/group-min-member"
TOPOLOGY_ANNOTATION = "volcano.sh/network-topology-mode"

CLAIMED = {GPU: f"deviceclass/{GPU_CLASS}", EFA: f"deviceclass/{EFA_CLASS}"}
"""How Volcano counts GPUs and EFA devices that pods claim instead of requesting."""


def volcano_queue(environment: Environment, team: Team, settings: Eks) -> Object:
    """The team's queue. Its share is lent while idle and taken back; without `may_borrow` it is the limit as well.

    Volcano counts GPUs wherever they are, so the quotas of several node groups are added up.
    """
    share: dict[str, int] = {}
    for group, gpus in quotas(environment, team):
        claimed = "dra" in settings.device_stacks(group.name)
        for resource, amount in ((GPU, gpus), (EFA, efa_devices(group, gpus))):
            name = CLAIMED[resource] if claimed else resource
            share[name] = share.get(name, 0) + amount
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": team.name},
        "spec": {
            "parent": "root",
            "reclaimable": True,
            "deserved": share,
            "priority": WEIGHTS[team.priority],
            **({} if team.may_borrow else {"capability": share}),
        },
    }
