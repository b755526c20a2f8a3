"""A team in the cluster: its namespace, and the access of its members.

Source: Kubernetes, "Pod Security Standards" (2026); the reference of each API for its kinds.
"""

from ultracluster.config.eks import JobOperator, Team
from ultracluster.kubernetes import volcano
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.labels import TEAM, team_group
from ultracluster.kubernetes.parts import Object

READ = ["get", "list", "watch"]
WRITE = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]

MEMBER = "team-member"
"""Role of a team's members in its namespace."""

FLEET_VIEW = "fleet-view"
"""ClusterRole of every team: read nodes and queues, to see why a job waits, and what jobs can name."""

_CLUSTER_KINDS: dict[str, tuple[str, list[str]]] = {
    "kueue": (
        "kueue.x-k8s.io",
        ["clusterqueues", "cohorts", "resourceflavors", "topologies", "workloadpriorityclasses"],
    ),
    "volcano": ("scheduling.volcano.sh", ["queues"]),
    "kai": ("scheduling.run.ai", ["queues"]),
}
"""Cluster-scoped kinds of each queue manager."""

_NAMESPACE_KINDS: dict[str, tuple[str, list[str]]] = {
    "kueue": ("kueue.x-k8s.io", ["localqueues", "workloads"]),
    "volcano": ("scheduling.volcano.sh", ["podgroups"]),
    "kai": ("scheduling.run.ai", ["podgroups"]),
}
"""Namespaced kinds of each queue manager or scheduler."""

_JOB_KINDS: dict[JobOperator, tuple[str, list[str]]] = {
    "trainer": ("trainer.kubeflow.org", ["trainjobs", "trainingruntimes"]),
    "jobset": ("jobset.x-k8s.io", ["jobsets"]),
    "leader_worker_set": ("leaderworkerset.x-k8s.io", ["leaderworkersets"]),
    "mpi": ("kubeflow.org", ["mpijobs"]),
    "ray": ("ray.io", ["rayjobs", "rayclusters", "rayservices"]),
    "volcano": ("batch.volcano.sh", ["jobs"]),
}
"""Kinds that a team's members create with each job operator."""


def namespace(environment: EksEnvironment, team: Team) -> Object:
    """The team's namespace. It enforces `baseline`: pods that use EFA need neither capabilities nor host paths.

    Volcano puts pods without a queue into that of the namespace's annotation.
    """
    labels = {TEAM: team.name, "pod-security.kubernetes.io/enforce": "baseline"}
    labels["pod-security.kubernetes.io/audit"] = "restricted"
    metadata: Object = {"name": team.name, "labels": labels}
    if environment.queue_manager == "volcano":
        metadata["annotations"] = {volcano.QUEUE_ANNOTATION: team.name}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def fleet_view(environment: EksEnvironment) -> Object:
    """The ClusterRole with which every team reads shared objects: nodes, queues, storage classes, training runtimes."""
    queues = [_rule(*_CLUSTER_KINDS[name], READ) for name in _queue_software(environment)]
    rules = [
        _rule("", ["nodes", "namespaces"], READ),
        _rule("scheduling.k8s.io", ["priorityclasses"], READ),
        _rule("storage.k8s.io", ["storageclasses"], READ),
        *queues,
    ]
    if "trainer" in environment.job_operators:
        rules.append(_rule("trainer.kubeflow.org", ["clustertrainingruntimes"], READ))
    return {"apiVersion": _RBAC, "kind": "ClusterRole", "metadata": {"name": FLEET_VIEW}, "rules": rules}


def access(environment: EksEnvironment, team: Team) -> tuple[Object, ...]:
    """Roles and bindings of a team's members: run jobs in the team's namespace, and view the fleet."""
    in_namespace = {"name": MEMBER, "namespace": team.name}
    subjects = [{"apiGroup": _RBAC_GROUP, "kind": "Group", "name": team_group(team.name)}]
    return (
        {"apiVersion": _RBAC, "kind": "Role", "metadata": in_namespace, "rules": _member_rules(environment)},
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


def _member_rules(environment: EksEnvironment) -> list[Object]:
    return [
        _rule("", ["pods", "services", "configmaps", "secrets"], WRITE),
        _rule("", ["persistentvolumeclaims"], [*READ, "create", "delete"]),
        _rule("", ["pods/log", "events", "serviceaccounts"], READ),
        _rule("", ["pods/exec", "pods/attach", "pods/portforward"], ["get", "create"]),
        _rule("batch", ["jobs", "cronjobs"], WRITE),
        _rule("apps", ["deployments", "statefulsets", "deployments/scale", "statefulsets/scale"], WRITE),
        _rule("apps", ["replicasets"], READ),
        *(_rule(*kinds, WRITE) for kinds in job_kinds(environment)),
        *_claim_rules(environment),
        *(_rule(*_NAMESPACE_KINDS[name], READ) for name in _queue_software(environment)),
    ]


def job_kinds(environment: EksEnvironment) -> list[tuple[str, list[str]]]:
    """API groups and kinds of the job operators. Volcano always brings its own job kind."""
    operators: dict[JobOperator, None] = dict.fromkeys(environment.job_operators)
    if environment.settings.scheduler == "volcano":
        operators["volcano"] = None
    return [_JOB_KINDS[operator] for operator in operators]


def _claim_rules(environment: EksEnvironment) -> list[Object]:
    rules = []
    if environment.uses_dra or environment.has_ultraservers:
        rules.append(_rule("resource.k8s.io", ["resourceclaimtemplates", "resourceclaims"], WRITE))
    if environment.has_ultraservers:
        rules.append(_rule("resource.nvidia.com", ["computedomains"], WRITE))
    return rules


def _queue_software(environment: EksEnvironment) -> list[str]:
    return sorted({environment.queue_manager, environment.gang_scheduler})


def _rule(group: str, resources: list[str], verbs: list[str]) -> Object:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}
