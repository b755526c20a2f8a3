"""Sets of objects that come and go with teams and node groups."""

import re
from itertools import combinations

import pytest

from tests.kubernetes.fleet import SCHEDULERS, STACKS, TEAMS, fleet
from tests.kubernetes.schemas import check
from ultracluster.catalog.software import charts
from ultracluster.kubernetes.queues import team_and_queue_objects

DNS_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
LABEL_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


def names(environment):
    return {part.name for part in team_and_queue_objects(environment)}


def identity(obj):
    return obj["apiVersion"], obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"]


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_object_follows_its_schema(scheduler, stack):
    for part in team_and_queue_objects(fleet(scheduler=scheduler, device_stack=stack, jobs=["trainer", "ray"])):
        for obj in part.items:
            check(obj)
            assert DNS_NAME.fullmatch(obj["metadata"]["name"])


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_each_set_waits_only_for_sets_before_it(scheduler):
    before = set(charts)
    for part in team_and_queue_objects(fleet(scheduler=scheduler)):
        assert LABEL_NAME.fullmatch(part.name)
        assert part.name not in before
        assert set(part.after) <= before
        before.add(part.name)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_no_object_is_in_two_sets(scheduler):
    found = [identity(obj) for part in team_and_queue_objects(fleet(scheduler=scheduler)) for obj in part.items]
    assert len(found) == len(set(found))


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_objects_of_a_scheduler_wait_for_it(scheduler):
    releases = {"kueue.x-k8s.io": "kueue", "scheduling.volcano.sh": "volcano"}
    releases |= {"scheduling.run.ai": "kai-scheduler", "kai.scheduler": "kai-scheduler"}
    behind: dict[str, set[str]] = {}
    for part in team_and_queue_objects(fleet(scheduler=scheduler)):
        behind[part.name] = set(part.after).union(*(behind.get(name, set()) for name in part.after))
        for obj in part.items:
            release = releases.get(obj["apiVersion"].partition("/")[0])
            assert release is None or release in behind[part.name]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_objects_in_a_namespace_wait_for_it(scheduler):
    for part in team_and_queue_objects(fleet(scheduler=scheduler)):
        for obj in part.items:
            namespace = obj["metadata"].get("namespace")
            assert namespace is None or f"namespace-{namespace}" in part.after


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_removing_a_team_removes_its_sets_and_no_others(scheduler):
    alone = fleet(teams=TEAMS[:1], scheduler=scheduler)
    gone = names(fleet(scheduler=scheduler)) - names(alone)
    queue = f"{scheduler.partition('_')[0]}-queue-research"
    assert gone == {"namespace-research", "access-research", queue}
    assert names(alone) <= names(fleet(scheduler=scheduler))


def test_another_scheduler_replaces_all_queues():
    queues = [
        {part for part in names(fleet(scheduler=scheduler)) if "queue-" in part}
        for scheduler in ("kueue", "volcano", "kai")
    ]
    assert all(one.isdisjoint(other) for one, other in combinations(queues, 2))


def test_only_namespaces_are_retained():
    for part in team_and_queue_objects(fleet()):
        assert part.retained == (part.name.startswith("namespace-"))
        assert part.retained == ([obj["kind"] for obj in part.items] == ["Namespace"])


def test_queues_are_deleted_before_their_flavors():
    """Kueue keeps a flavor that a queue uses, and a topology that a flavor uses. Dependents are deleted first."""
    parts = {part.name: part for part in team_and_queue_objects(fleet())}
    flavors = {name for name in parts if name.startswith("flavor-")}
    assert flavors == {"flavor-cpu-hosts", "flavor-train-network-3-layers"}
    assert flavors <= set(parts["kueue-queue-pretrain"].after)
    assert flavors <= set(parts["fleet-cohort"].after)
    assert all("fleet-kueue" in parts[flavor].after for flavor in flavors)


def test_each_scheduler_has_only_its_own_kinds():
    def kinds(scheduler):
        parts = team_and_queue_objects(fleet(scheduler=scheduler))
        found = {(obj["apiVersion"].partition("/")[0], obj["kind"]) for part in parts for obj in part.items}
        return {kind for kind in found if kind[0].endswith((".sh", ".ai", ".scheduler")) or "kueue" in kind[0]}

    kueue = {("kueue.x-k8s.io", kind) for kind in ("Cohort", "ClusterQueue", "LocalQueue", "ResourceFlavor")}
    kueue |= {("kueue.x-k8s.io", "WorkloadPriorityClass")}
    assert kinds("kueue") == kueue | {("kueue.x-k8s.io", "Topology")}
    assert kinds("volcano") == {("scheduling.volcano.sh", "Queue")}
    assert kinds("kai") == {("scheduling.run.ai", "Queue"), ("kai.scheduler", "Topology")}
    assert kinds("kueue_with_kai") == kueue | {("scheduling.run.ai", "Queue")} | {("kai.scheduler", "Topology")}
    assert kinds("kueue_with_volcano") == kueue


def test_under_kueue_the_other_scheduler_has_one_queue_without_limits():
    parts = team_and_queue_objects(fleet(scheduler="kueue_with_kai"))
    queues = [obj for part in parts for obj in part.items if obj["apiVersion"] == "scheduling.run.ai/v2"]
    (leaf,) = [queue for queue in queues if "parentQueue" in queue["spec"]]
    assert leaf["spec"]["resources"]["gpu"]["limit"] == -1
