"""Groups of metrics that an environment gives up: the data, what is collected then, and what the budget says."""

import re

import pytest
import yaml

from scripts.metric_groups import FILE, content
from tests.kubernetes.environments import SCHEDULERS, eks_environment
from ultracluster.catalog import catalog
from ultracluster.catalog.metric_groups import METRIC_GROUPS, nearest_groups
from ultracluster.kubernetes.exporters import state_metrics_values
from ultracluster.kubernetes.scrape import scrape_configuration
from ultracluster.telemetry.budget import DROP_FIRST, Fleet, kube_state_metrics_shards, series
from ultracluster.telemetry.metrics import METRICS
from ultracluster.telemetry.scrape import JOBS, job_metrics, metric_relabel_configs, user_metrics

ALL = tuple(METRIC_GROUPS)


def stored(steps, name):
    """Whether relabelling keeps a series with this name, and with labels that no step asks for."""
    for step in steps:
        if step["action"] not in ("keep", "drop"):
            continue
        value = ";".join([name, *("" for _ in step["source_labels"][1:])])
        if bool(re.fullmatch(step["regex"], value)) is (step["action"] == "drop"):
            return False
    return True


def test_the_data_file_is_current():
    assert FILE.read_text("utf-8") == content(), "run `make docs`"


def test_every_metric_of_a_scrape_job_has_a_group_that_can_be_given_up():
    assert {each.group_name for each in METRICS.values() if each.scrape_jobs} == set(METRIC_GROUPS)


def test_what_to_give_up_first_is_read_by_no_alert():
    assert not any(alerts for drop in DROP_FIRST for alerts in METRIC_GROUPS[drop.name].values())


def test_an_alert_is_found_through_recorded_series():
    """JobHung reads recorded activity of GPUs, not DCGM's own series."""
    assert "JobHung" in METRIC_GROUPS["dcgm/profiling"]["pcs"]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("nccl", ("nccl/collective", "nccl/p2p")),
        ("dcgm/pipe", ("dcgm/pipes", "dcgm/pcie")),
        ("nccl/all", ("nccl/collective", "nccl/p2p")),
        ("gpus", ()),
    ],
)
def test_unknown_names_lead_to_groups(name, near):
    assert nearest_groups(name) == near


@pytest.mark.parametrize("job", sorted({job for jobs in JOBS.values() for job in jobs}))
def test_each_group_is_dropped_alone(job):
    metrics = user_metrics() if job == "pods" else job_metrics(job)
    for group in dict.fromkeys(each.group_name for each in metrics):
        steps = metric_relabel_configs(job, [group])
        for each in metrics:
            if each.group_name == group or not each.only:
                assert stored(steps, each.series_names[0]) is (each.group_name != group), each.name


@pytest.mark.parametrize("job", sorted({*JOBS["eks"], *JOBS["pcs"]} - {"pods"}))
def test_a_job_without_any_group_stores_nothing(job):
    steps = metric_relabel_configs(job, ALL)
    assert not any(stored(steps, name) for each in job_metrics(job) for name in each.series_names)


def test_pods_keep_their_own_metrics_whatever_is_dropped():
    steps = metric_relabel_configs("pods", ALL)
    assert stored(steps, "my_metric")
    assert not stored(steps, "training_loss")


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_scraper_drops_the_groups_of_the_file(scheduler):
    drop = ["nccl/p2p", "kueue/wait", "kube-state-metrics/pod", "karpenter/errors", "vllm/cache"]
    texts = [
        scrape_configuration(
            eks_environment(scheduler=scheduler, karpenter=True, observability={"drop": names}), cluster="c"
        )
        for names in (drop, [])
    ]
    fewer, all_steps = (
        {job["job_name"]: job["metric_relabel_configs"] for job in yaml.safe_load(text)["scrape_configs"]}
        for text in texts
    )
    gone = {name for each in METRICS.values() if each.group_name in drop for name in each.series_names}
    for job, steps in fewer.items():
        checked = [{"action": "replace", **step} for step in steps]
        assert not any(stored(checked, name) for name in gone), job
    assert set(fewer) == set(all_steps)


def test_kube_state_metrics_serves_less_but_never_everything():
    full, fewer, none = (
        state_metrics_values(eks_environment(observability={"drop": drop}), teams=True)["metricAllowlist"]
        for drop in ([], ["kube-state-metrics/pod"], [each for each in ALL if each.startswith("kube-state-metrics/")])
    )
    assert set(fewer) < set(full)
    assert none == full


def test_the_budget_of_a_fleet_counts_what_is_left():
    fleet = Fleet(64, catalog["p5.48xlarge"], "pcs")
    fewer = Fleet(64, catalog["p5.48xlarge"], "pcs", drop=frozenset({"efa/commands", "node/cpu"}))
    assert series(fleet) - series(fewer) == 64 * (320 + 192)
    assert kube_state_metrics_shards(10_000, drop=["kube-state-metrics/pod"]) < kube_state_metrics_shards(10_000)
