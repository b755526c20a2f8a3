"""Values of slurm_settings whose form slurm.conf fixes, and the lists of parameters that PCS allows."""

import pytest

from ultracluster.catalog import pcs
from ultracluster.config.pcs import Queue
from ultracluster.config.problems import InvalidSettings
from ultracluster.config.slurm_settings import health_problems, setting_problems, truth


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
    assert codes("SchedulerParameters", "anything at all", "cluster") == []
    assert codes("PriorityWeightTRES", "CPU=1000,GRES/gpu=3000", "cluster") == []


@pytest.mark.parametrize(("value", "default"), [("YES", True), ("up", True), (1, True), ("NO", False), (None, False)])
def test_what_slurm_reads_as_yes(value, default):
    assert truth(value) is default


def test_every_fixed_form_is_of_an_allowed_parameter():
    assert pcs.FORMS.keys() <= pcs.CLUSTER_SETTINGS | pcs.QUEUE_SETTINGS
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
        ({"Prolog": "/opt/p.sh", "SchedulerParameters": "bf_continue,nohold_on_prolog_fail"}, []),
        ({"Prolog": "/opt/p.sh", "SchedulerParameters": "bf_continue"}, ["slurm-prolog-holds-jobs"]),
        ({"Epilog": "/opt/e.sh"}, []),
    ],
)
def test_health_checks_have_time_and_a_failed_prolog_holds_no_job(settings, found):
    assert [problem.code for problem in health_problems(settings)] == found
