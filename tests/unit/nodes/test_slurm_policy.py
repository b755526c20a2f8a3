"""Settings of Slurm that come with accounting and with teams, and what a login node is told of teams."""

import re

import pytest

from ultracluster.catalog import pcs
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.pcs import Pcs
from ultracluster.config.slurm_conflicts import cluster_conflicts
from ultracluster.config.slurm_settings import kill_problems, minutes, setting_problems, version_problems
from ultracluster.nodes.slurm_accounts import account_lines, document_content, revision
from ultracluster.nodes.slurm_policy import cgroup_settings, cluster_settings, queue_settings

GPU = NodeGroup(name="train", instance_type="p5.48xlarge", count=2)
CPU = NodeGroup(name="prep", instance_type="c7i.48xlarge", count=2)
TEAMS = [{"name": "pretrain", "qos": "high", "max_gpus": 8}, {"name": "research", "node_groups": ["train"]}]


def plane(version="26.05", teams=TEAMS, settings=None, **queue):
    queues = [{"name": "train", "node_groups": ["train"], "slurm_settings": queue}]
    queues.append({"name": "prep", "node_groups": ["prep"]})
    given = {"slurm_version": version, "teams": teams, "queues": queues, "slurm_settings": settings or {}}
    return Pcs.model_validate(given)


def queue(pcs, index=0):
    group = (GPU, CPU)[index]
    return queue_settings(pcs.queues[index], [group], pcs.teams, pcs.slurm_version)


@pytest.mark.parametrize("version", ["25.05", "25.11", "26.05"])
@pytest.mark.parametrize("teams", [[], TEAMS])
def test_pcs_allows_every_setting_for_the_version(version, teams):
    found = plane(version, teams)
    cluster, cgroup = cluster_settings(found, [GPU, CPU]), cgroup_settings(found)
    assert list(setting_problems(cluster, "cluster")) == []
    assert list(version_problems(cluster, version, "cluster")) == []
    assert list(setting_problems(cgroup, "cgroup.conf")) == []
    for index in (0, 1):
        assert list(setting_problems(queue(found, index), "queue")) == []
        assert list(version_problems(queue(found, index), version, "queue")) == []


@pytest.mark.parametrize(
    ("version", "settings"),
    [("26.05", {"Exclusive": "NODE"}), ("25.11", {"OverSubscribe": "EXCLUSIVE"})],
)
def test_queues_of_ultraservers_give_whole_nodes_without_teams_too(version, settings):
    ultraserver = GPU.model_copy(update={"instance_type": "p6e-gb200.36xlarge"})
    [train, _] = plane(version, []).queues
    assert queue_settings(train, [ultraserver], [], version) == settings
    assert queue_settings(train, [GPU], [], version) == {}
    [own, _] = plane(version, [], OverSubscribe="NO").queues
    assert queue_settings(own, [ultraserver], [], version) == {"OverSubscribe": "NO"}


def test_settings_of_the_file_win_and_words_are_added_to_its_words():
    own = {"PriorityWeightQOS": 5, "PreemptMode": "CANCEL", "SchedulerParameters": "bf_window=60,defer"}
    found = cluster_settings(plane(settings=own), [GPU])
    assert (found["PriorityWeightQOS"], found["PreemptMode"], found["PreemptType"]) == (5, "CANCEL", "preempt/qos")
    words = found["SchedulerParameters"].split(",")
    assert words[:2] == ["bf_window=60", "defer"]
    assert "bf_continue" in words
    assert "bf_window=20160" not in words
    assert set(pcs.scheduler_parameters("26.05")) <= set(words), "PCS's own words stay"


def test_preempted_jobs_get_the_signal_that_they_ask_for():
    assert cluster_settings(plane(), [GPU])["PreemptParameters"] == "send_user_signal"
    own = cluster_settings(plane(settings={"PreemptParameters": "reorder_count=2"}), [GPU])
    assert own["PreemptParameters"] == "reorder_count=2,send_user_signal"


def test_without_accounting_nothing_is_added():
    found = plane(teams=[]).model_copy(update={"accounting": False})
    assert cluster_settings(found, [GPU]) == {}
    assert cgroup_settings(found) == {}


def test_a_file_without_teams_holds_nobody_to_accounts_and_leaves_queues_as_they_are():
    found = plane(teams=[], MaxTime="2-00:00:00")
    names = cluster_settings(found, [GPU])
    assert not {"AccountingStorageEnforce", "PreemptType", "PreemptMode"} & names.keys()
    assert queue(found) == {"MaxTime": "2-00:00:00"}
    assert "bf_window=2880" in names["SchedulerParameters"]


def test_gpus_are_counted_where_there_are_any():
    assert "AccountingStorageTRES" not in cluster_settings(plane(), [CPU])
    assert cluster_settings(plane(), [CPU, GPU])["AccountingStorageTRES"] == "gres/gpu"


def test_what_weights_name_is_counted_beside_what_the_file_counts():
    own = plane(settings={"AccountingStorageTRES": "license/matlab"}, TRESBillingWeights="GRES/gpu:h200=2,CPU=0.1")
    assert cluster_settings(own, [GPU])["AccountingStorageTRES"] == "license/matlab,gres/gpu,gres/gpu:h200"


@pytest.mark.parametrize("settings", [{"PreemptType": "preempt/none"}, {"PreemptMode": "OFF"}, {"PreemptMode": "GANG"}])
def test_a_file_that_switches_eviction_off_gets_no_half_of_it(settings):
    found = cluster_settings(plane(teams=[TEAMS[0]], settings=settings), [GPU])
    assert {name for name in found if name.startswith("Preempt")} == settings.keys()
    assert "preempt_youngest_first" not in found["SchedulerParameters"]
    assert "PreemptParameters" not in found
    assert list(cluster_conflicts(found, preempts=False)) == []


@pytest.mark.parametrize("given", [{}, {"PreemptMode": "CANCEL"}, {"PreemptType": "preempt/partition_prio"}])
def test_eviction_is_whole(given):
    found = cluster_settings(plane(settings=given), [GPU])
    assert {"PreemptType", "PreemptMode"} < found.keys()
    assert list(cluster_conflicts(found, preempts=False)) == []


@pytest.mark.parametrize("default", ["21-0", "UNLIMITED"])
def test_a_default_limit_of_the_file_is_not_above_ours(default):
    assert "MaxTime" not in queue(plane(DefaultTime=default))
    assert queue(plane(DefaultTime="7-0"))["MaxTime"] == "14-00:00:00"


def test_backfill_looks_as_far_as_the_longest_limit():
    assert "bf_window=20160,bf_resolution=600" in cluster_settings(plane(), [GPU])["SchedulerParameters"]
    month = plane(MaxTime="30-0")
    assert f"bf_window={30 * 24 * 60}" in cluster_settings(month, [GPU])["SchedulerParameters"]


def test_queues_with_gpus_give_whole_nodes_in_the_words_of_the_version():
    assert queue(plane())["Exclusive"] == "NODE"
    older = queue(plane("25.11"))
    assert (older["OverSubscribe"], "Exclusive" in older) == ("EXCLUSIVE", False)
    shared = queue(plane(OverSubscribe="NO"))
    assert (shared["OverSubscribe"], "Exclusive" in shared) == ("NO", False)
    assert not {"Exclusive", "OverSubscribe"} & queue(plane(), 1).keys()


def test_a_default_limit_is_not_above_the_longest():
    assert "DefaultTime" not in queue(plane(MaxTime="04:00:00"))
    assert queue(plane(MaxTime="UNLIMITED"))["DefaultTime"] == "1-00:00:00"


def test_a_queue_denies_teams_that_lack_its_node_groups():
    assert queue(plane(), 1)["DenyAccounts"] == "research"
    assert "DenyAccounts" not in queue(plane())
    assert "DenyAccounts" not in queue(plane(AllowAccounts="pretrain"))
    lacking = plane(teams=[{"name": "research", "node_groups": ["prep"]}], DenyAccounts="guest")
    assert queue(lacking)["DenyAccounts"] == "guest,research"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (90, 90),
        ("90:30", 91),
        ("2:00:00", 120),
        ("1-12", 2160),
        ("1-12:30", 2190),
        ("1-0:0:30", 1441),
        ("UNLIMITED", None),
    ],
)
def test_times_in_minutes(value, expected):
    assert minutes(value) == expected


def test_the_lines_for_the_login_node():
    teams = [*TEAMS, {"name": "evaluate", "fairshare": 3, "qos": "low", "members": ["ana", "ben"]}]
    assert list(account_lines(plane(teams=teams).teams)) == [
        "account pretrain 1 8 high,normal,low high",
        "account research 1 -1 normal,low normal",
        "account evaluate 3 -1 low low",
        "member evaluate ana",
        "member evaluate ben",
    ]


def test_the_revision_changes_with_the_teams_and_is_what_the_document_takes():
    first, second = (plane(teams=TEAMS[:count]).teams for count in (1, 2))
    assert revision(first) != revision(second)
    pattern = document_content(first)["parameters"]["revision"]["allowedPattern"]
    assert re.fullmatch(pattern, revision(first))


def test_unkillable_steps_have_the_time_of_the_service_and_less_is_warned_of():
    assert "UnkillableStepTimeout" not in cluster_settings(plane(), [GPU, CPU])
    [warned] = kill_problems({"UnkillableStepTimeout": 1049})
    assert warned.severity == "warning"
    assert list(kill_problems({"UnkillableStepTimeout": 1050})) == []
