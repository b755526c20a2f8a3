"""Queues of teams under Volcano."""

import pytest

from tests.kubernetes.fleet import STACKS, fleet
from tests.kubernetes.schemas import check
from ultracluster.kubernetes.volcano import volcano_queue


def queue(team, environment=None):
    environment = environment or fleet(scheduler="volcano")
    (found,) = [one for one in environment.teams if one.name == team]
    return volcano_queue(environment, found)


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("team", ["pretrain", "research"])
def test_queues_follow_the_crd_of_volcano(team, stack):
    check(queue(team, fleet(scheduler="volcano", device_stack=stack)))


def test_a_team_deserves_its_gpus_and_their_efa_devices():
    assert queue("pretrain")["spec"]["deserved"] == {"nvidia.com/gpu": 96, "vpc.amazonaws.com/efa": 192}


def test_the_quota_is_the_limit_unless_the_team_may_borrow():
    assert queue("pretrain")["spec"]["capability"] == queue("pretrain")["spec"]["deserved"]
    assert "capability" not in queue("research")["spec"]


def test_lent_quota_is_reclaimed_by_the_higher_priority_first():
    assert queue("pretrain")["spec"]["reclaimable"] is True
    assert queue("pretrain")["spec"]["priority"] > queue("research")["spec"]["priority"]


def test_claimed_devices_count_by_their_device_class():
    deserved = queue("pretrain", fleet(scheduler="volcano", device_stack="dra"))["spec"]["deserved"]
    assert deserved == {"deviceclass/gpu.nvidia.com": 96, "deviceclass/efa.networking.k8s.aws": 192}


def test_quotas_of_several_node_groups_add_up():
    groups = {"train": ("p5en.48xlarge", 4), "more": ("p6-b200.48xlarge", 2)}
    team = {"name": "research", "node_groups": list(groups), "gpus": {"train": 16, "more": 8}}
    environment = fleet(groups, (team,), scheduler="volcano")
    assert queue("research", environment)["spec"]["deserved"] == {"nvidia.com/gpu": 24, "vpc.amazonaws.com/efa": 40}
