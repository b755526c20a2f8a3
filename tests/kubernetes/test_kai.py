"""KAI's queues and topologies."""

import pytest

from tests.kubernetes.fleet import fleet, one_team
from tests.kubernetes.schemas import check
from ultracluster.kubernetes.kai import admitted_queue, fleet_queue, kai_topologies, team_queue

KAI = fleet(scheduler="kai")


def queue(team):
    (found,) = [one for one in KAI.teams if one.name == team]
    return team_queue(KAI, found)


def gpus(obj):
    return obj["spec"]["resources"]["gpu"]


@pytest.mark.parametrize("environment", [KAI, one_team("p6e-gb200.36xlarge", 36, 144), one_team("p5.4xlarge", 4, 4)])
def test_objects_follow_the_crds_of_kai(environment):
    teams = [team_queue(environment, team) for team in environment.teams]
    for obj in (fleet_queue(environment), admitted_queue(environment), *teams, *kai_topologies(environment)):
        check(obj)


def test_the_fleets_queue_is_the_parent_of_all_teams():
    parent = fleet_queue(KAI)["metadata"]["name"]
    assert {queue(team)["spec"]["parentQueue"] for team in ("pretrain", "research")} == {parent}
    assert gpus(fleet_queue(KAI))["quota"] == 128


def test_the_quota_is_the_limit_unless_the_team_may_borrow():
    assert (gpus(queue("pretrain"))["quota"], gpus(queue("pretrain"))["limit"]) == (96, 96)
    assert (gpus(queue("research"))["quota"], gpus(queue("research"))["limit"]) == (32, -1)


def test_the_borrowing_weight_follows_the_priority():
    assert gpus(queue("pretrain"))["overQuotaWeight"] > gpus(queue("research"))["overQuotaWeight"]


def test_cpus_and_memory_have_no_limit():
    """KAI gives a queue none of a resource that it does not list."""
    for name in ("cpu", "memory"):
        assert queue("pretrain")["spec"]["resources"][name]["limit"] == -1


def test_the_queue_for_admitted_jobs_has_no_limit():
    assert (gpus(admitted_queue(KAI))["quota"], gpus(admitted_queue(KAI))["limit"]) == (-1, -1)
