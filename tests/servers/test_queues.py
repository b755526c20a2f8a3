"""Gangs, borrowing and reclaim, decided by Kueue and JobSet; each with the setting that does it, and without."""

from collections.abc import Iterator

import pytest

from tests.kubernetes.fleet import TEAMS, fleet_file
from tests.servers.control_plane import ControlPlane
from tests.servers.fleets import Fleet, moved, running
from tests.servers.nodes import node
from ultracluster.kubernetes.jobs import example_job
from ultracluster.kubernetes.labels import network_layer

LEAVES = ("leaf-a", "leaf-b")
NODES = 16
LOOSE = "loose"
"""A namespace that is no team's: Kueue does not look at it."""


@pytest.fixture(scope="module")
def whole(control_plane: ControlPlane) -> Iterator[Fleet]:
    """16 nodes of p5en below two leaves, which alternate by name; pretrain has 96 GPUs, research 32 and borrows."""
    environment = fleet_file(jobs=["jobset"])
    (group,) = environment.node_groups
    nodes = [node(f"node-{number:02}", group, leaf=LEAVES[number % 2]) for number in range(NODES)]
    with running(control_plane, environment, nodes) as fleet:
        fleet.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LOOSE}})
        fleet.until(lambda: fleet.api.list("v1", "ServiceAccount", LOOSE), "a service account for pods")
        yield fleet


@pytest.fixture
def fleet(whole: Fleet) -> Iterator[Fleet]:
    """The fleet, idle and as it was deployed."""
    whole.deploy()
    yield whole
    whole.clear(*whole.teams, LOOSE)


def job(fleet: Fleet, team: str, gpus: int, name: str):
    return example_job(fleet.environment, team, gpus, name=name)


def leaves(fleet: Fleet, pods) -> list[str]:
    """Leaves of the nodes of pods, sorted."""
    nodes = {each["metadata"]["name"]: each["metadata"]["labels"] for each in fleet.api.list("v1", "Node")}
    return sorted(nodes[pod["spec"]["nodeName"]][network_layer(3)] for pod in pods)


def beside_another(fleet: Fleet, objects) -> tuple[list[str], list[str]]:
    """Leaves of a job on four nodes, and of the job of `objects` on eight that comes after it."""
    occupied = leaves(fleet, fleet.runs(fleet.submit(job(fleet, "pretrain", 32, "occupant")), 4))
    return occupied, leaves(fleet, fleet.runs(fleet.submit(objects), 8))


def test_a_job_of_64_gpus_runs_below_the_leaf_that_has_room_for_all(fleet):
    occupied, found = beside_another(fleet, job(fleet, "pretrain", 64, "gang"))
    assert len(set(occupied)) == len(set(found)) == 1
    assert occupied[0] != found[0]


def test_without_its_topology_annotation_the_job_is_spread_over_both_leaves(fleet):
    objects = job(fleet, "pretrain", 64, "gang")
    (replicated,) = objects[0]["spec"]["replicatedJobs"]
    replicated["template"]["spec"]["template"]["metadata"]["annotations"].clear()
    _, found = beside_another(fleet, objects)
    assert set(found) == set(LEAVES)


def test_a_job_that_does_not_fit_waits_as_a_whole(fleet):
    fleet.runs(fleet.submit(job(fleet, "pretrain", 80, "first")), 10)
    second = fleet.submit(job(fleet, "pretrain", 80, "second"))
    fleet.waits_for(second, "insufficient")
    assert fleet.pods(second) == fleet.pods(second, "Pending") == []


def test_outside_the_queues_a_job_starts_in_part(fleet):
    """What queues are for: six nodes wait for four that another job has."""
    first, second = (fleet.submit(moved(job(fleet, "pretrain", 80, name), LOOSE)) for name in ("first", "second"))
    fleet.until(lambda: len(fleet.pods(first)) + len(fleet.pods(second)) == NODES, "16 running pods of 20")
    fleet.until(lambda: len(fleet.pods(first, "Pending")) + len(fleet.pods(second, "Pending")) == 4, "four that wait")


def test_a_team_borrows_the_gpus_that_another_does_not_use(fleet):
    fleet.runs(fleet.submit(job(fleet, "research", 64, "borrower")), 8)


def test_a_team_that_may_not_borrow_waits_beside_idle_gpus(fleet):
    borrower = job(fleet, "research", 64, "borrower")
    strict = tuple({key: value for key, value in team.items() if key != "may_borrow"} for team in TEAMS)
    fleet.deploy(fleet_file(jobs=["jobset"], teams=strict))
    fleet.waits_for(fleet.submit(borrower), "insufficient")
    fleet.runs(fleet.submit(job(fleet, "research", 32, "own")), 4)


def test_the_owner_gets_its_gpus_back(fleet):
    borrower = fleet.submit(job(fleet, "research", 64, "borrower"))
    fleet.runs(borrower, 8)
    fleet.runs(fleet.submit(job(fleet, "pretrain", 96, "owner")), 12)
    fleet.evicted(borrower, "InCohortReclamation")


def test_without_reclaim_the_owner_waits_for_the_borrower(fleet):
    fleet.runs(fleet.submit(job(fleet, "research", 64, "borrower")), 8)
    queue = fleet.api.get("kueue.x-k8s.io/v1beta2", "ClusterQueue", "pretrain")
    fleet.api.patch(queue, {"spec": {"preemption": {"reclaimWithinCohort": "Never"}}})
    fleet.settled("pretrain")
    owner = fleet.submit(job(fleet, "pretrain", 96, "owner"))
    fleet.waits_for(owner, "insufficient")
    assert fleet.pods(owner) == []
    assert fleet.condition(owner, "QuotaReserved") is None


def test_a_failed_node_restarts_the_whole_job_within_its_quota(fleet):
    """JobSet makes all pods anew, and the job keeps its place in the queue."""
    submitted = fleet.submit(job(fleet, "pretrain", 32, "restarted"))
    before = {pod["metadata"]["uid"] for pod in fleet.runs(submitted, 4)}
    victim = min(before)
    fleet.kubelet.ends = lambda pod: "Failed" if pod["metadata"]["uid"] == victim else None
    fleet.until(
        lambda: len({pod["metadata"]["uid"] for pod in fleet.pods(submitted)} - before) == 4, "four pods of a restart"
    )
    assert fleet.condition(submitted, "Admitted")
