"""The order in which parts are installed."""

import pytest

from tests.kubernetes.environments import OPERATORS, SCHEDULERS, eks_environment
from ultracluster.catalog.software import charts
from ultracluster.kubernetes import order
from ultracluster.kubernetes.deployed import DeployedResources, FileSystem, KarpenterResources, LogGroups
from ultracluster.kubernetes.order import ordered_parts
from ultracluster.kubernetes.parts import Objects, Release
from ultracluster.kubernetes.webhooks import waits_for

DEPLOYED = DeployedResources(
    "test-1",
    FileSystem("fs-0123456789abcdef0", "fs-0123456789abcdef0.fsx.us-east-2.amazonaws.com", "abcdefgh"),
    {"datasets": "test-datasets-1"},
    KarpenterResources("queue", "NodeRole", "subnet-1", ("subnet-2",), "sg-1", "sg-2"),
    LogGroups("/ultracluster/pods/test", "/ultracluster/nodes/test", "us-east-2"),
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


QUEUE = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "fleet"}}


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_objects_come_after_the_release_whose_webhooks_can_refuse_them(scheduler):
    environment = eks_environment(buckets=["datasets"], karpenter=True, scheduler=scheduler, jobs=OPERATORS)
    parts = ordered_parts(environment, DEPLOYED)
    releases = {part.chart.name: part.name for part in parts if isinstance(part, Release)}
    guarded = {name for part in parts for name in waits_for(part, releases)}
    expected = {"kueue": {"kueue"}, "volcano": {"volcano"}, "kai": {"kai-scheduler"}}
    expected |= {"kueue_with_kai": {"kueue", "kai-scheduler"}, "kueue_with_volcano": {"kueue"}}
    assert guarded >= expected[scheduler]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((Objects("a", ()), Objects("a", ())), "same name"),
        ((Objects("a", (), after=("b",)), Objects("b", (), after=("a",))), "wait for each other"),
        ((Objects("a", (), after=("b",)),), "does not exist"),
        (
            (Release("kai", charts["kai-scheduler"], {}), Objects("a", (QUEUE,))),
            "a does not wait for the webhooks of kai",
        ),
    ],
)
def test_parts_without_an_order_are_refused(monkeypatch, parts, message):
    for function in ("releases", "volumes", "karpenter_pools"):
        monkeypatch.setattr(order, function, lambda environment, deployed: ())
    monkeypatch.setattr(order, "team_and_queue_objects", lambda environment: parts)
    monkeypatch.setattr(order, "relay_objects", lambda environment: ())
    with pytest.raises(ValueError, match=message):
        ordered_parts(eks_environment(), DEPLOYED)
