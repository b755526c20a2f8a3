"""Values of slurm_settings whose form slurm.conf fixes, and the lists of parameters that PCS allows."""

import pytest

from ultracluster.catalog import pcs
from ultracluster.config.pcs import Queue
from ultracluster.config.problems import InvalidSettings
from ultracluster.config.slurm_conflicts import cluster_conflicts, queue_conflicts
from ultracluster.config.slurm_settings import health_problems, setting_problems, truth, with_words


def codes(name, value, owner="queue"):
    return [problem.code for problem in setting_problems({name: value}, owner)]


@pytest.mark.parametrize(
    "time", [60, "60", "60:30", "12:00:00", "7-00", "7-12:30", "7-12:30:00", "UNLIMITED", "infinite", -1]
)
def test_every_form_of_a_time_is_accepted(time):
    assert codes("MaxTime", time) == []


@pytest.mark.parametrize("time", ["banana", "12h", "1:2:3:4", "7-", "", "1-2-3", "12:00:00 "])
def test_other_times_are_refused(time):
    assert codes("MaxTime", time) == ["slurm-setting-value"]


@pytest.mark.parametrize("value", ["YES", "no", "Yes", "TRUE", 0, 1])
def test_yes_and_no_are_accepted_in_any_case(value):
    assert codes("Default", value) == []


@pytest.mark.parametrize("value", ["FORCE", "force:4", "EXCLUSIVE", "NO", "YES:2"])
def test_values_of_over_subscribe(value):
    assert codes("OverSubscribe", value) == []
    assert codes("OverSubscribe", f"{value}?") == ["slurm-setting-value"]


def test_numbers_may_be_hexadecimal_or_unlimited():
    assert not any(codes("PriorityWeightAge", value, "cluster") for value in (0, "1000", "0x10", "2K", "UNLIMITED"))
    assert codes("PriorityWeightAge", "1.5", "cluster") == ["slurm-setting-value"]


def test_values_without_a_fixed_form_are_left_to_slurm():
    assert codes("SchedulerParameters", "anything,at=all", "cluster") == []
    assert codes("PriorityWeightTRES", "CPU=1000,GRES/gpu=3000", "cluster") == []


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("PreemptMode", "requeue", "banana"),
        ("HealthCheckNodeState", "ANY, CYCLE", "ANY,CYCLES"),
        ("SelectTypeParameters", "CR_Core_Memory,CR_LLN", "CR_GPU"),
        ("PriorityDecayHalfLife", "7-0", "7 days"),
        ("SchedulerParameters", "bf_continue, defer", "bf_continue defer"),
        ("SchedulerParameters", '"bf_continue defer"', "bf_continue defer"),
        ("Prolog", "/opt/site/prolog.d/*", "prolog.sh"),
        ("RequeueExit", "75, 80-90", "75,x"),
        ("SrunPortRange", "60001-63000", "60001"),
    ],
)
def test_words_and_forms_of_a_cluster(name, good, bad):
    assert codes(name, good, "cluster") == []
    assert codes(name, bad, "cluster") == ["slurm-setting-value"]


def test_files_beside_slurm_conf_have_forms_too():
    assert codes("PurgeJobAfter", "12months", "slurmdbd.conf") == []
    assert codes("PurgeJobAfter", "1year", "slurmdbd.conf") == ["slurm-setting-value"]
    assert codes("ConstrainDevices", "maybe", "cgroup.conf") == ["slurm-setting-value"]
    assert codes("Features", "a b", "node group") == ["slurm-setting-value"]
    assert codes("Parameters", "numa", "node group") == ["slurm-setting-value"]
    assert codes("RealMemory", "100GB", "node group") == ["slurm-setting-value"]


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"PreemptMode": "REQUEUE"}, ["PreemptMode"]),
        ({"PreemptMode": "REQUEUE", "PreemptType": "preempt/qos"}, []),
        ({"PreemptType": "preempt/qos"}, ["PreemptType"]),
        ({"PreemptType": "preempt/qos", "PreemptMode": "banana"}, []),
        ({"PreemptMode": "SUSPEND", "PreemptType": "preempt/qos"}, ["PreemptMode"]),
        ({"PrologFlags": "Alloc", "SlurmctldParameters": "enable_stepmgr"}, ["PrologFlags"]),
        ({"PrologFlags": "Contain", "SlurmctldParameters": "enable_stepmgr"}, []),
        ({"SlurmctldParameters": "enable_stepmgr"}, []),
        ({"HealthCheckNodeState": "START_ONLY, CYCLE"}, ["HealthCheckNodeState"]),
    ],
)
def test_settings_of_a_cluster_that_exclude_each_other(settings, found):
    assert [problem.path[-1] for problem in cluster_conflicts(settings, preempts=False)] == found


def test_with_teams_jobs_evict_others_without_a_setting():
    assert list(cluster_conflicts({"PreemptMode": "CANCEL"}, preempts=True)) == []
    assert list(cluster_conflicts({"PreemptType": "preempt/partition_prio"}, preempts=True)) == []
    [problem] = cluster_conflicts({"PreemptType": "preempt/none", "PreemptMode": "CANCEL"}, preempts=True)
    assert problem.code == "slurm-setting-value"


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"DefaultTime": "2-0", "MaxTime": "1-0"}, ["DefaultTime"]),
        ({"DefaultTime": "UNLIMITED", "MaxTime": "1-0"}, ["DefaultTime"]),
        ({"DefaultTime": "1-0", "MaxTime": "UNLIMITED"}, []),
        ({"AllowAccounts": "a", "DenyAccounts": "b"}, ["DenyAccounts"]),
        ({"AllowQos": "high", "DenyQos": "low"}, ["DenyQos"]),
        ({"QOS": "high,low"}, ["QOS"]),
    ],
)
def test_settings_of_a_queue_that_exclude_each_other(settings, found):
    assert [problem.path[-1] for problem in queue_conflicts(settings)] == found


@pytest.mark.parametrize(("value", "default"), [("YES", True), ("up", True), (1, True), ("NO", False), (None, False)])
def test_what_slurm_reads_as_yes(value, default):
    assert truth(value) is default


def test_every_fixed_form_is_of_an_allowed_parameter():
    allowed = pcs.CLUSTER_SETTINGS | pcs.QUEUE_SETTINGS | pcs.NODE_GROUP_SETTINGS | pcs.GRES_SETTINGS
    allowed |= pcs.CGROUP_SETTINGS | pcs.SLURMDBD_SETTINGS
    assert pcs.FORMS.keys() <= allowed
    assert pcs.VALUES.keys() <= allowed - pcs.FORMS.keys()
    assert pcs.MINIMUM.keys() <= pcs.FORMS.keys()


def test_a_queue_built_in_python_is_refused_too():
    with pytest.raises(InvalidSettings, match="banana is not minutes"):
        Queue(name="train", node_groups=("train",), slurm_settings={"MaxTime": "banana"})


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"HealthCheckInterval": 61}, []),
        ({"HealthCheckInterval": 0}, []),
        ({"HealthCheckInterval": "60"}, ["slurm-health-check-interval"]),
        ({"Prolog": "/opt/p.sh"}, []),
    ],
)
def test_health_checks_have_time(settings, found):
    assert [problem.code for problem in health_problems(settings)] == found


@pytest.mark.parametrize(
    ("value", "words", "found"),
    [
        ("", ("a", "b=5"), "a,b=5"),
        ("bf_continue, b=9,", ("a", "b=5"), "bf_continue,b=9,a"),
        ("A", ("a",), "A"),
        (7, (), "7"),
    ],
)
def test_words_of_the_user_win(value, words, found):
    assert with_words(value, *words) == found
