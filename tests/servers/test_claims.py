"""Jobs that claim GPUs and EFA devices (dynamic resource allocation): Kueue counts them, the scheduler places them."""

from collections.abc import Iterator

import pytest

from tests.kubernetes.fleet import fleet_file
from tests.servers.api import Object
from tests.servers.control_plane import ControlPlane
from tests.servers.fleets import Fleet, running
from tests.servers.nodes import node
from ultracluster.kubernetes.jobs import example_job
from ultracluster.kubernetes.labels import EFA, EFA_CLASS, GPU, GPU_CLASS

API = "resource.k8s.io/v1"
NODES = tuple(f"claimed-{number}" for number in range(4))
DEVICES = {GPU_CLASS: 8, EFA_CLASS: 16}
"""Devices of a node by class; each class here is all devices of the driver of the same name."""

TEAMS = (
    {"name": "pretrain", "node_groups": ["train"], "gpus": 24},
    {"name": "research", "node_groups": ["train"], "gpus": 8, "may_borrow": True},
)


@pytest.fixture(scope="module")
def whole(control_plane: ControlPlane) -> Iterator[Fleet]:
    """Four nodes of p5en whose drivers offer their devices."""
    environment = fleet_file({"train": ("p5en.48xlarge", 4)}, TEAMS, jobs=["jobset"], device_stack="dra")
    (group,) = environment.node_groups
    for driver in DEVICES:
        selectors = [{"cel": {"expression": f"device.driver == '{driver}'"}}]
        control_plane.api.apply(cluster_object("DeviceClass", driver, {"selectors": selectors}))
    for name in NODES:
        for driver, count in DEVICES.items():
            control_plane.api.apply(devices(name, driver, count))
    with running(control_plane, environment, [node(name, group, leaf="leaf") for name in NODES]) as fleet:
        yield fleet


@pytest.fixture
def fleet(whole: Fleet) -> Iterator[Fleet]:
    """The fleet, idle."""
    yield whole
    whole.clear(*whole.teams)


def cluster_object(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def devices(name: str, driver: str, count: int) -> Object:
    """What a driver publishes for a node."""
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    found = [{"name": f"device-{number}"} for number in range(count)]
    spec = {"driver": driver, "nodeName": name, "pool": pool, "devices": found}
    return cluster_object("ResourceSlice", f"{name}-{driver}", spec)


def job(fleet: Fleet, team: str, gpus: int, name: str) -> list[Object]:
    return example_job(fleet.environment, team, gpus, name=name)


def test_claims_are_counted_and_allocated(fleet):
    running = fleet.runs(fleet.submit(job(fleet, "pretrain", 24, "claiming")), 3)
    claims = fleet.api.list(API, "ResourceClaim", "pretrain")
    allocated = [len(claim["status"]["allocation"]["devices"]["results"]) for claim in claims]
    assert sorted(allocated) == [8, 8, 8, 16, 16, 16]
    assert len({pod["spec"]["nodeName"] for pod in running}) == 3

    def used() -> dict[str, str] | None:
        queue = fleet.api.get("kueue.x-k8s.io/v1beta2", "ClusterQueue", "pretrain")
        flavors = queue["status"].get("flavorsUsage", ())
        total = {each["name"]: each["total"] for flavor in flavors for each in flavor["resources"]}
        return total if total.get(GPU) == "24" else None

    assert fleet.until(used, "24 GPUs in use")[EFA] == "48"


def test_a_claim_beyond_the_quota_waits(fleet):
    fleet.runs(fleet.submit(job(fleet, "pretrain", 24, "first")), 3)
    fleet.waits_for(fleet.submit(job(fleet, "pretrain", 8, "second")), GPU)


def test_a_claim_that_kueue_does_not_count_starts_no_job(fleet):
    """Without a mapping of its class to a resource with a quota."""
    selectors = [{"cel": {"expression": "device.driver == 'uncounted.example.com'"}}]
    fleet.api.apply(cluster_object("DeviceClass", "uncounted.example.com", {"selectors": selectors}))
    objects = job(fleet, "pretrain", 8, "uncounted")
    (gpus,) = (obj for obj in objects if obj["metadata"]["name"] == "gpus-8")
    (request,) = gpus["spec"]["spec"]["devices"]["requests"]
    request["exactly"]["deviceClassName"] = "uncounted.example.com"
    fleet.waits_for(fleet.submit(objects), "uncounted.example.com")
