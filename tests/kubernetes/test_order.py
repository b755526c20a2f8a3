"""The order in which parts are installed."""

import pytest

from tests.kubernetes.environments import OPERATORS, SCHEDULERS, eks_environment
from ultracluster.kubernetes import order
from ultracluster.kubernetes.deployed import DeployedResources, FileSystem, KarpenterResources
from ultracluster.kubernetes.order import ordered_parts
from ultracluster.kubernetes.parts import Objects

DEPLOYED = DeployedResources(
    "test-1",
    FileSystem("fs-0123456789abcdef0", "fs-0123456789abcdef0.fsx.us-east-2.amazonaws.com", "abcdefgh"),
    {"datasets": "test-datasets-1"},
    KarpenterResources("queue", "NodeRole", "subnet-1", ("subnet-2",), "sg-1", "sg-2"),
)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_part_comes_after_those_that_it_names(scheduler):
    environment = eks_environment(
        lustre=True, buckets=["datasets"], karpenter=True, scheduler=scheduler, jobs=OPERATORS
    )
    before = set()
    for part in ordered_parts(environment, DEPLOYED):
        assert set(part.after) <= before
        before.add(part.name)
    assert {"karpenter", "elastic", "volume-training.research", "volume-datasets-bucket.research"} <= before


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((Objects("a", ()), Objects("a", ())), "same name"),
        ((Objects("a", (), after=("b",)), Objects("b", (), after=("a",))), "wait for each other"),
        ((Objects("a", (), after=("b",)),), "does not exist"),
    ],
)
def test_parts_without_an_order_are_refused(monkeypatch, parts, message):
    for function in ("releases", "volumes", "karpenter_pools"):
        monkeypatch.setattr(order, function, lambda environment, deployed: ())
    monkeypatch.setattr(order, "team_and_queue_objects", lambda environment: parts)
    with pytest.raises(ValueError, match=message):
        ordered_parts(eks_environment(), DEPLOYED)
