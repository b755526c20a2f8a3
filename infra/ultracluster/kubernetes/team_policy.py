"""What pods and Services of teams may ask for, beyond Pod Security and RBAC: a validating admission policy.

A quota holds only what goes through the team's queue. So pods have the scheduler and the queue of their team, and no
power to pass over others: no node of their choice, no priority of the system, no toleration of nodes that are not for
them. Queues are judged where schedulers read them, in PodGroups, which members cannot write.

Source: Volcano 1.15, webhooks of jobs and pod groups; KAI Scheduler 0.17, podgrouper; Kubernetes, "Taints and
Tolerations", "Service", CVE-2020-8554 (2026).
"""

from ultracluster.config.eks import Team
from ultracluster.kubernetes import kai, volcano
from ultracluster.kubernetes.admission import Check, Requests, admission_policy
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.job_pods import scheduler_name
from ultracluster.kubernetes.labels import IN_TEAMS, SYSTEM_TAINT
from ultracluster.kubernetes.parts import Object, Objects
from ultracluster.kubernetes.quotas import PRIORITIES
from ultracluster.kubernetes.teams import job_kinds

NAME = "teams"
"""Name of the policy, and of the quota of Services in each team's namespace."""

DEFAULT_SCHEDULER = "default-scheduler"

FORBIDDEN_TAINTS = ("ultracluster/", "karpenter.sh/", "node.cloudprovider.kubernetes.io/", "node.kubernetes.io/")
"""Prefixes of taints that keep pods off nodes that are new, cordoned, drained or ending."""

TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Taints whose effect NoExecute every pod tolerates for five minutes, by a default of the API server."""

_WRITES = ("CREATE", "UPDATE")

_CHANGED = " || ".join(
    (
        "request.operation == 'CREATE'",
        "dyn(object).spec != dyn(oldObject).spec",
        "object.metadata.?labels != oldObject.metadata.?labels",
        "object.metadata.?annotations != oldObject.metadata.?annotations",
    )
)
"""Old pods and Services that break a rule can still end: their finalizers are removed by updates."""


def team_policy(environment: EksEnvironment) -> Objects:
    """The policy for the namespaces of all teams."""
    requests = [
        Requests(_WRITES, ["pods", "services"]),
        *_queued(environment),
        Requests(_WRITES, ["rayclusters"], "ray.io"),
    ]
    checks = [*_pods(environment), *_queue(environment), *_services(environment), _RAY_TOKENS]
    return Objects(NAME, admission_policy(NAME, requests, checks, condition=_CHANGED, namespaces=IN_TEAMS))


def service_quota(team: Team) -> Object:
    """The number of load balancers that a team may have."""
    hard = {"services.loadbalancers": str(team.load_balancers)}
    metadata = {"name": NAME, "namespace": team.name}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}


def _pods(environment: EksEnvironment) -> list[Check]:
    scheduler = scheduler_name(environment.gang_scheduler).get("schedulerName", DEFAULT_SCHEDULER)
    prefixes = " || ".join(f"t.key.startsWith('{prefix}')" for prefix in FORBIDDEN_TAINTS)
    forbidden = f"t.?key.orValue('') in ['', '{SYSTEM_TAINT['key']}'] || {prefixes}"
    default = f"t.?key.orValue('') in {_list(TOLERATED)} && t.?effect.orValue('') == 'NoExecute'"
    tolerations = f"dyn(object).spec.?tolerations.orValue([]).all(t, ({default}) || !({forbidden}))"
    return [
        _check("Pod", f"dyn(object).spec.schedulerName == '{scheduler}'", f"set schedulerName: {scheduler}"),
        _check(
            "Pod",
            "request.operation != 'CREATE' || dyn(object).spec.?nodeName.orValue('') == ''",
            "remove nodeName: the scheduler chooses the node",
        ),
        _check(
            "Pod",
            tolerations,
            "remove tolerations of system nodes, of nodes that are new or cordoned, and of every taint",
        ),
        _check("Pod", _known_priority("dyn(object).spec.?priorityClassName"), _PRIORITY),
    ]


_RAY_TOKENS = Check(
    "request.kind.kind != 'RayCluster' || dyn(object).spec.?authOptions.?mode.orValue('') == 'token'",
    "set authOptions: {mode: token} and rayVersion: 2.52.0 or newer: whoever connects to Ray without tokens runs code",
)
"""RayJobs and RayServices create RayClusters. KubeRay makes the token, and refuses it before Ray 2.52."""

_PRIORITY = f"use a priority class of teams: {', '.join(PRIORITIES)}"


def _queued(environment: EksEnvironment) -> list[Requests]:
    """Where the queue of a job is named, outside Kueue, whose queues are in the namespace of the team."""
    if environment.gang_scheduler == "volcano":
        return [
            Requests(_WRITES, ["podgroups"], "scheduling.volcano.sh"),
            Requests(_WRITES, ["jobs"], "batch.volcano.sh"),
        ]
    if environment.gang_scheduler == "kai":
        groups = [("batch", ["jobs"]), ("apps", ["deployments", "statefulsets"]), *job_kinds(environment)]
        return [
            Requests(_WRITES, ["podgroups"], "scheduling.run.ai"),
            *(Requests(_WRITES, kinds, group) for group, kinds in groups),
        ]
    return []


def _queue(environment: EksEnvironment) -> list[Check]:
    """Jobs that Kueue has admitted share one queue of the scheduler; otherwise a team has one of its own name."""
    admitted = environment.queue_manager == "kueue"
    if environment.gang_scheduler == "volcano":
        return _queue_of_volcano(volcano.DEFAULT_QUEUE if admitted else None)
    if environment.gang_scheduler == "kai":
        return _queue_of_kai(kai.admitted_queue_name(environment) if admitted else None)
    return []


def _queue_of_volcano(shared: str | None) -> list[Check]:
    own, message = _own_queue(shared)
    volcanos = "request.kind.group.endsWith('.volcano.sh')"
    return [
        Check(f"object.metadata.?annotations[?'{volcano.QUEUE_ANNOTATION}'].orValue({own}) == {own}", message),
        Check(f"!{volcanos} || dyn(object).spec.?queue.orValue('') == {own}", message),
        Check(f"!{volcanos} || {_known_priority('dyn(object).spec.?priorityClassName')}", _PRIORITY),
    ]


def _queue_of_kai(shared: str | None) -> list[Check]:
    own, message = _own_queue(shared)
    priority = f"object.metadata.?labels[?'{kai.PRIORITY_LABEL}']"
    return [
        Check(f"object.metadata.?labels[?'{kai.QUEUE_LABEL}'].orValue({own}) == {own}", message),
        _check("PodGroup", f"dyn(object).spec.?queue.orValue('') == {own}", message),
        Check(_known_priority(priority), _PRIORITY),
    ]


def _own_queue(shared: str | None) -> tuple[str, str]:
    """CEL of the queue's name, and the message."""
    name = f"'{shared}'" if shared else "request.namespace"
    return name, f"use the queue {shared or 'of the name of the namespace'}"


def _services(environment: EksEnvironment) -> list[Check]:
    with_balancers = [team.name for team in environment.teams if team.load_balancers]
    service_type = "dyn(object).spec.?type.orValue('ClusterIP')"
    balanced = f"{service_type} == 'LoadBalancer' && request.namespace in {_list(with_balancers)}"
    return [
        _check(
            "Service",
            f"{service_type} in ['ClusterIP', 'ExternalName'] || ({balanced})",
            "use a Service of type ClusterIP; load_balancers of the team in the environment file allows LoadBalancer",
        ),
        _check(
            "Service",
            "dyn(object).spec.?externalIPs.orValue([]).size() == 0",
            "remove externalIPs: they take traffic for addresses that are not the team's",
        ),
    ]


def _check(kind: str, expression: str, message: str) -> Check:
    """A check of objects of one kind."""
    return Check(f"request.kind.kind != '{kind}' || ({expression})", message)


def _known_priority(optional: str) -> str:
    """CEL: an optional value that is absent, empty or a priority class of teams."""
    return f"{optional}.orValue('') in {_list(('', *PRIORITIES))}"


def _list(names: tuple[str, ...] | list[str]) -> str:
    """A list of strings in CEL."""
    return f"[{', '.join(map(repr, names))}]"
