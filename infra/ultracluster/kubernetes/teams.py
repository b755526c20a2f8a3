"""A team in a cluster: its namespace, and what its members may do there.

Source: Kubernetes, "Pod Security Standards" (2026); roles of each API from its own reference.
"""

from ultracluster.config.eks import Eks, JobOperator, Team
from ultracluster.config.environment import Environment
from ultracluster.kubernetes.labels import TEAM, team_group
from ultracluster.kubernetes.operators import installed
from ultracluster.kubernetes.parts import Object
from ultracluster.kubernetes.shares import has_ultraservers

READ = ["get", "list", "watch"]
WRITE = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]

MEMBER = "team-member"
"""Role in a team's namespace, for its members."""

FLEET_VIEW = "fleet-view"
"""ClusterRole for every team: the nodes and the queues, to see why a job waits."""

_SHARED_KINDS: dict[str, tuple[str, list[str]]] = {
    "kueue": (
        "kueue.x-k8s.io",
        ["clusterqueues", "cohorts", "resourceflavors", "topologies", "workloadpriorityclasses"],
    ),
    "volcano": ("scheduling.volcano.sh", ["queues"]),
    "kai": ("scheduling.run.ai", ["queues"]),
}
"""What of each queue manager the whole cluster shares."""

_QUEUE_KINDS: dict[str, tuple[str, list[str]]] = {
    "kueue": ("kueue.x-k8s.io", ["localqueues", "workloads"]),
    "volcano": ("scheduling.volcano.sh", ["podgroups"]),
    "kai": ("scheduling.run.ai", ["podgroups"]),
}
"""What each queue manager or scheduler keeps in a namespace."""

_JOB_KINDS: dict[JobOperator, tuple[str, list[str]]] = {
    "trainer": ("trainer.kubeflow.org", ["trainjobs", "trainingruntimes"]),
    "jobset": ("jobset.x-k8s.io", ["jobsets"]),
    "leader_worker_set": ("leaderworkerset.x-k8s.io", ["leaderworkersets"]),
    "mpi": ("kubeflow.org", ["mpijobs"]),
    "ray": ("ray.io", ["rayjobs", "rayclusters", "rayservices"]),
    "volcano": ("batch.volcano.sh", ["jobs"]),
}
"""What the members of a team make with each job operator."""


def namespace(team: Team) -> Object:
    """The team's namespace. Pods over EFA pass `baseline`: they need neither capabilities nor the host's folders."""
    labels = {TEAM: team.name, "pod-security.kubernetes.io/enforce": "baseline"}
    labels["pod-security.kubernetes.io/audit"] = "restricted"
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team.name, "labels": labels}}


def fleet_view(settings: Eks) -> Object:
    """What every team may read in the whole cluster."""
    metadata = {"name": FLEET_VIEW}
    shared = [_rule(*_SHARED_KINDS[name], READ) for name in _queue_software(settings)]
    rules = [_rule("", ["nodes", "namespaces"], READ), _rule("scheduling.k8s.io", ["priorityclasses"], READ), *shared]
    return {"apiVersion": _RBAC, "kind": "ClusterRole", "metadata": metadata, "rules": rules}


def access(environment: Environment, team: Team, settings: Eks) -> tuple[Object, ...]:
    """What the members of a team may do: run jobs in their namespace, and look at the fleet."""
    in_namespace = {"name": MEMBER, "namespace": team.name}
    subjects = [{"apiGroup": _RBAC_GROUP, "kind": "Group", "name": team_group(team.name)}]
    return (
        {"apiVersion": _RBAC, "kind": "Role", "metadata": in_namespace, "rules": _rules(environment, settings)},
        {
            "apiVersion": _RBAC,
            "kind": "RoleBinding",
            "metadata": in_namespace,
            "roleRef": {"apiGroup": _RBAC_GROUP, "kind": "Role", "name": MEMBER},
            "subjects": subjects,
        },
        {
            "apiVersion": _RBAC,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"{FLEET_VIEW}-{team.name}"},
            "roleRef": {"apiGroup": _RBAC_GROUP, "kind": "ClusterRole", "name": FLEET_VIEW},
            "subjects": subjects,
        },
    )


_RBAC_GROUP = "rbac.authorization.k8s.io"
_RBAC = f"{_RBAC_GROUP}/v1"


def _rules(environment: Environment, settings: Eks) -> list[Object]:
    return [
        _rule("", ["pods", "services", "configmaps", "secrets"], WRITE),
        _rule("", ["pods/log", "events", "serviceaccounts", "persistentvolumeclaims"], READ),
        _rule("", ["pods/exec", "pods/attach", "pods/portforward"], ["get", "create"]),
        _rule("batch", ["jobs", "cronjobs"], WRITE),
        *_job_rules(settings),
        *_claim_rules(environment, settings),
        *(_rule(*_QUEUE_KINDS[name], READ) for name in _queue_software(settings)),
    ]


def _job_rules(settings: Eks) -> list[Object]:
    """Rules of the job operators; Volcano's jobs come with Volcano, asked for or not."""
    operators: dict[JobOperator, None] = dict.fromkeys(installed(settings))
    if settings.scheduler == "volcano":
        operators["volcano"] = None
    return [_rule(*_JOB_KINDS[operator], WRITE) for operator in operators]


def _claim_rules(environment: Environment, settings: Eks) -> list[Object]:
    rules = []
    if "dra" in settings.used_device_stacks or has_ultraservers(environment):
        rules.append(_rule("resource.k8s.io", ["resourceclaimtemplates", "resourceclaims"], WRITE))
    if has_ultraservers(environment):
        rules.append(_rule("resource.nvidia.com", ["computedomains"], WRITE))
    return rules


def _queue_software(settings: Eks) -> list[str]:
    return sorted({settings.queues_with, settings.places_with})


def _rule(group: str, resources: list[str], verbs: list[str]) -> Object:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}
