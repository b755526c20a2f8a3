"""The policy for namespaces of teams: what each scheduler's policy refuses passes without it, and jobs pass with it."""

import json
from collections.abc import Iterator
from itertools import product

import pytest

from tests.kubernetes.fleet import SCHEDULERS, STACKS, TEAMS, fleet_file
from tests.servers.api import Api, Object
from tests.servers.control_plane import ControlPlane
from tests.servers.controllers import CRD, established
from tests.servers.fleets import Fleet, forget_policies, running
from tests.servers.generated import FLEETS, OPERATORS, pods_of, printed
from tests.servers.test_admission import pod, refusal
from ultracluster.config.environment import Environment
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.labels import GPU_TOLERATION, team_group
from ultracluster.kubernetes.team_policy import NAME, service_quota, team_policy

TEAM = "research"
SCHEDULER = {"kueue": "default-scheduler", "volcano": "volcano", "kai": "kai-scheduler"}
QUEUE = {"volcano": TEAM, "kai": TEAM, "kueue_with_volcano": "default", "kueue_with_kai": "staging.admitted"}
QUEUE_LABEL, PRIORITY_LABEL = "kai.scheduler/queue", "priorityClassName"
QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
PODGROUPS = {"volcano": "scheduling.volcano.sh/v1beta1", "kai": "scheduling.run.ai/v2alpha2"}
SINGLE = {"containers": [{"name": "a", "image": "a"}], "restartPolicy": "Never"}


def placing(scheduler: str) -> str:
    """The software that chooses nodes."""
    return scheduler.removeprefix("kueue_with_")


def service(**spec: object) -> Object:
    metadata = {"generateName": "tried-", "namespace": TEAM}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}], **spec}}


def team_pod(scheduler: str, **spec: object) -> Object:
    return pod(TEAM, **{"schedulerName": SCHEDULER[placing(scheduler)], **spec})


def labelled(obj: Object, field: str = "labels", **values: str) -> Object:
    return {**obj, "metadata": {**obj["metadata"], field: values}}


def pod_group(scheduler: str, **spec: str) -> Object:
    metadata = {"name": "tried", "namespace": TEAM}
    return {"apiVersion": PODGROUPS[placing(scheduler)], "kind": "PodGroup", "metadata": metadata, "spec": spec}


def volcano_job(**spec: object) -> Object:
    tasks = [{"name": "a", "replicas": 1, "template": {"spec": SINGLE}}]
    metadata = {"name": "tried", "namespace": TEAM}
    spec = {"minAvailable": 1, "tasks": tasks, **spec}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}


def ray_cluster(**spec: object) -> Object:
    head = {"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "a", "image": "a"}]}}}
    metadata = {"name": "tried", "namespace": TEAM}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": metadata,
        "spec": {"headGroupSpec": head, **spec},
    }


def job(**labels: str) -> Object:
    metadata = {"name": "tried", "namespace": TEAM, "labels": labels}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {"spec": SINGLE}}}


def refused(scheduler: str) -> Iterator[tuple[str, Object]]:
    """Objects that pass the API server, with what the policy says against them."""
    place = placing(scheduler)
    for other in {*SCHEDULER.values(), "mine"} - {SCHEDULER[place]}:
        yield f"set schedulerName: {SCHEDULER[place]}", team_pod(scheduler, schedulerName=other)
    for toleration in (
        {"operator": "Exists"},
        {"key": "CriticalAddonsOnly", "operator": "Exists"},
        {"key": "ultracluster/not-accepted", "operator": "Exists"},
        {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists"},
        {"key": "karpenter.sh/disrupted", "operator": "Exists"},
    ):
        yield "remove tolerations", team_pod(scheduler, tolerations=[GPU_TOLERATION, toleration])
    for name in ("system-node-critical", "system-cluster-critical"):
        yield "use a priority class of teams: high, normal, low", team_pod(scheduler, priorityClassName=name)
    yield "use a Service of type ClusterIP", service(type="NodePort")
    yield "use a Service of type ClusterIP", service(type="LoadBalancer")
    yield "remove externalIPs", service(externalIPs=["10.0.0.1"])
    yield "set authOptions: {mode: token}", ray_cluster()
    yield "set authOptions: {mode: token}", ray_cluster(authOptions={"mode": "disabled"})
    if place == "volcano":
        for queue in {"pretrain", "default", "root", TEAM} - {QUEUE[scheduler]}:
            yield "use the queue", labelled(team_pod(scheduler), "annotations", **{QUEUE_ANNOTATION: queue})
            yield "use the queue", volcano_job(queue=queue)
            yield "use the queue", pod_group(scheduler, queue=queue)
        yield "use a priority class", volcano_job(queue=QUEUE[scheduler], priorityClassName="system-node-critical")
    if scheduler == "volcano":
        yield "use the queue", volcano_job()
    if place == "kai":
        for queue in {"pretrain", "default-queue", "staging.fleet", TEAM} - {QUEUE[scheduler]}:
            yield "use the queue", labelled(team_pod(scheduler), **{QUEUE_LABEL: queue})
            yield "use the queue", job(**{QUEUE_LABEL: queue})
            yield "use the queue", pod_group(scheduler, queue=queue)
        yield "use the queue", pod_group(scheduler)
        yield "use a priority class", job(**{QUEUE_LABEL: QUEUE[scheduler], PRIORITY_LABEL: "inference"})


def accepted(scheduler: str) -> Iterator[Object]:
    """Objects of members and controllers, besides printed jobs."""
    place = placing(scheduler)
    yield team_pod(scheduler, tolerations=[GPU_TOLERATION])
    yield from (service(), service(clusterIP="None"), service(type="ExternalName", externalName="example.com"))
    yield ray_cluster(rayVersion="2.52.0", authOptions={"mode": "token"})
    if place == "volcano":
        yield labelled(team_pod(scheduler), "annotations", **{QUEUE_ANNOTATION: QUEUE[scheduler]})
        yield volcano_job(queue=QUEUE[scheduler])
    if place == "kai":
        yield labelled(team_pod(scheduler), **{QUEUE_LABEL: QUEUE[scheduler]})
        yield job(**{QUEUE_LABEL: QUEUE[scheduler]})
    if place != "kueue":
        yield pod_group(scheduler, queue=QUEUE[scheduler])
    if scheduler in ("volcano", "kai"):
        yield team_pod(scheduler, priorityClassName="normal")


def printed_objects(scheduler: str) -> Iterator[Object]:
    """Distinct jobs as they are printed for fleets with the scheduler, and pods that controllers make of them."""
    seen = set()
    for fleet, stack, operators in product(FLEETS, STACKS, OPERATORS):
        groups, gpus = FLEETS[fleet]
        teams = (
            {"name": "pretrain", "node_groups": list(groups), "gpus": gpus, "priority": "high"},
            {"name": TEAM, "node_groups": list(groups), "gpus": dict.fromkeys(groups, 0), "may_borrow": True},
        )
        environment = fleet_file(groups, teams, scheduler=scheduler, device_stack=stack, jobs=list(operators))
        for obj in printed(environment):
            for each in (obj, *pods_of(obj)):
                if (text := json.dumps(each, sort_keys=True)) not in seen:
                    seen.add(text)
                    yield each


@pytest.fixture(scope="module")
def fleet(control_plane: ControlPlane) -> Iterator[Fleet]:
    """Teams pretrain and research, without nodes; KAI's kind of pod groups, which its operator brings."""
    with running(control_plane, fleet_file(jobs=["jobset"]), ()) as found:
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": "v2alpha2", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        names = {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup", "listKind": "PodGroupList"}
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": CRD,
            "metadata": {"name": "podgroups.scheduling.run.ai"},
            "spec": {"group": "scheduling.run.ai", "scope": "Namespaced", "names": names, "versions": [version]},
        }
        found.api.apply(definition)
        established(found.api, [definition])
        for name, value in (("high", 75), ("normal", 50), ("low", 25)):
            metadata = {"name": name}
            kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
            found.api.apply({**kind, "metadata": metadata, "value": value})
        yield found
        for name in ("high", "normal", "low"):
            found.api.delete("scheduling.k8s.io/v1", "PriorityClass", name)
        found.api.delete("apiextensions.k8s.io/v1", CRD, "podgroups.scheduling.run.ai")


@pytest.fixture(scope="module")
def member(fleet: Fleet) -> Api:
    """A member of research."""
    return fleet.api.as_user("alice", team_group(TEAM))


@pytest.fixture(scope="module")
def owner(fleet: Fleet) -> Object:
    """A reference to a Job that waits."""
    waiting = fleet.api.create({**job(), "metadata": {"name": "waiting", "namespace": TEAM}})
    reference = {"apiVersion": "batch/v1", "kind": "Job", "controller": True}
    return {**reference, **{key: waiting["metadata"][key] for key in ("name", "uid")}}


def allow_balancers(fleet: Fleet, number: int) -> None:
    """Sets the quota of research, and waits until it is in force."""
    teams = (TEAMS[0], {**TEAMS[1], "load_balancers": number})
    (team,) = (each for each in EksEnvironment.from_environment(fleet_file(teams=teams)).teams if each.name == TEAM)
    fleet.api.apply(service_quota(team))

    def counted() -> bool:
        status = fleet.api.get("v1", "ResourceQuota", NAME, TEAM).get("status", {})
        return bool(status.get("hard") == {"services.loadbalancers": str(number)})

    fleet.until(counted, "a quota in force")


def enforce(fleet: Fleet, environment: Environment) -> str:
    """Replaces the policy of the fleet by that of `environment`, under a name that no earlier policy had."""
    forget_policies(fleet.plane)
    policy, binding = json.loads(json.dumps(team_policy(EksEnvironment.from_environment(environment)).items))
    name = f"{NAME}-{environment.control_plane.scheduler.replace('_', '-')}"
    policy["metadata"]["name"] = binding["metadata"]["name"] = binding["spec"]["policyName"] = name
    for obj in (policy, binding):
        fleet.api.apply(obj)
    tried = pod(TEAM, tolerations=[{"operator": "Exists"}])
    fleet.until(lambda: name in refusal(fleet.api, tried), f"a refusal by {name}")
    return name


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_team_keeps_to_its_scheduler_queue_nodes_and_priorities(fleet, owner, scheduler):
    placed = team_pod(scheduler, nodeName="node-1")
    # Kueue looks at the Job of a pod, and does not hold it back
    placed["metadata"]["ownerReferences"] = [owner]
    cases = [*refused(scheduler), ("remove nodeName", placed)]
    allow_balancers(fleet, 9)
    forget_policies(fleet.plane)
    assert [said for _, obj in cases if (said := refusal(fleet.api, obj))] == []
    enforce(fleet, fleet_file(scheduler=scheduler))
    assert [(obj, said) for said, obj in cases if said not in refusal(fleet.api, obj)] == []
    assert [said for obj in accepted(scheduler) if (said := refusal(fleet.api, obj))] == []


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_printed_jobs_and_their_pods_pass(fleet, scheduler):
    name = enforce(fleet, fleet_file(scheduler=scheduler))
    judged = list(printed_objects(scheduler))
    assert [said for obj in judged if name in (said := refusal(fleet.api, obj))] == []
    assert {"Pod", "Job"} <= {obj["kind"] for obj in judged}


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_policy_has_no_expression_that_the_server_doubts(fleet, scheduler):
    name = enforce(fleet, fleet_file(scheduler=scheduler))

    def checked() -> Object | None:
        policy = fleet.api.get("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", name)
        return policy["status"] if policy.get("status", {}).get("observedGeneration") else None

    assert "expressionWarnings" not in fleet.until(checked, "a type check of the policy").get("typeChecking", {})


def test_a_pod_gets_no_toleration_later_and_an_old_one_can_end(fleet, member):
    forget_policies(fleet.plane)
    everywhere = {"operator": "Exists"}
    for name in ("old", "new"):
        made = pod(TEAM, tolerations=[everywhere] if name == "old" else [])
        fleet.api.create({**made, "metadata": {"name": name, "namespace": TEAM, "finalizers": ["example.com/held"]}})
    old, new = (
        {**fleet.api.get("v1", "Pod", name, TEAM), "apiVersion": "v1", "kind": "Pod"} for name in ("old", "new")
    )
    mine = [*new["spec"]["tolerations"], {"key": "mine", "operator": "Exists"}]
    assert member.against_patch(new, {"spec": {"tolerations": mine}}) == ""
    enforce(fleet, fleet_file())
    assert "remove tolerations" in member.against_patch(new, {"spec": {"tolerations": [*mine, everywhere]}})
    assert "remove tolerations" in member.against_patch(old, {"metadata": {"labels": {"seen": "true"}}})
    for each in (old, new):
        name = each["metadata"]["name"]
        fleet.api.delete("v1", "Pod", name, TEAM)
        assert fleet.api.against_patch(each, {"metadata": {"finalizers": None}}) == ""
        fleet.until(lambda name=name: name not in names(fleet), f"the end of pod {name}")


def names(fleet: Fleet) -> set[str]:
    return {each["metadata"]["name"] for each in fleet.api.list("v1", "Pod", TEAM)}


def test_a_team_has_the_load_balancers_that_the_file_gives_it(fleet, member):
    """The policy and the quota each refuse them."""
    forget_policies(fleet.plane)
    balanced = service(type="LoadBalancer")
    allow_balancers(fleet, 0)
    assert "exceeded quota: teams" in refusal(member, balanced)
    enforce(fleet, fleet_file(teams=(TEAMS[0], {**TEAMS[1], "load_balancers": 2})))
    allow_balancers(fleet, 2)
    made = [member.create(balanced) for _ in range(2)]
    assert "exceeded quota: teams, requested: services.loadbalancers=1" in refusal(member, balanced)
    for each in made:
        fleet.api.delete("v1", "Service", each["metadata"]["name"], TEAM)
    other = service(type="LoadBalancer")
    other["metadata"]["namespace"] = "pretrain"
    assert "load_balancers of the team" in refusal(fleet.api, other)
    enforce(fleet, fleet_file())
    allow_balancers(fleet, 9)
    assert "load_balancers of the team" in refusal(member, balanced)
