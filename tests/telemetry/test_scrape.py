"""Relabelling stores the catalogue's series and nothing else."""

import re
from typing import get_args

import pytest

from tests.synthesis import FILES
from ultracluster import load
from ultracluster.telemetry.labels import USER_JOBS, ScrapeJob
from ultracluster.telemetry.metrics import EXPORTERS, METRICS
from ultracluster.telemetry.rules import Recording, alerts, groups
from ultracluster.telemetry.scrape import job_metrics, metric_relabel_configs

JOBS = sorted(set(get_args(ScrapeJob)) - {"pods"})


def relabelled(job, labels):
    """Labels of a series after the steps of a job as Prometheus runs them, None if it is dropped."""
    for step in metric_relabel_configs(job):
        pattern = re.compile(step["regex"])
        joined = ";".join(labels.get(name, "") for name in step.get("source_labels", ()))
        if step["action"] in ("keep", "drop") and bool(pattern.fullmatch(joined)) != (step["action"] == "keep"):
            return None
        if step["action"] == "labeldrop":
            labels = {name: value for name, value in labels.items() if not pattern.fullmatch(name)}
        if step["action"] == "labelkeep":
            labels = {name: value for name, value in labels.items() if pattern.fullmatch(name)}
    return labels


@pytest.mark.parametrize("job", JOBS)
def test_every_series_of_the_job_is_kept(job):
    for each in job_metrics(job):
        labels = {label: each.only.get(label, ("any;thing",))[0] for label in each.labels}
        for name in each.series_names:
            assert relabelled(job, {"__name__": name, **labels}), name


@pytest.mark.parametrize("job", JOBS)
def test_other_series_are_dropped(job):
    assert relabelled(job, {"__name__": "go_goroutines"}) is None


@pytest.mark.parametrize(("mode", "kept"), [("idle", True), ("user", False), ("", False)])
def test_only_idle_cpu_time_is_stored(mode, kept):
    series = {"__name__": "node_cpu_seconds_total", "cpu": "0", "mode": mode}
    assert (relabelled("node", series) is not None) is kept


def test_a_label_that_another_metric_restricts_is_free():
    assert relabelled("node", {"__name__": "node_md_disks", "device": "md0", "state": "spare"})


def test_efa_and_lustre_come_with_the_job_of_node_exporter_and_what_users_write_does_not():
    assert {each.exporter for each in job_metrics("node")} == {"node", "efa", "lustre"}
    assert {each.exporter for each in job_metrics("jobs")} == {"nccl", "training"}


def test_labels_that_differ_between_versions_of_dcgm_exporter_are_dropped():
    series = {"__name__": "DCGM_FI_DEV_GPU_TEMP", "gpu": "0", "Hostname": "a", "hostname": "a", "device": "nvidia0"}
    assert set(relabelled("dcgm", series)) == {"__name__", "gpu"}


def test_metrics_of_pods_are_their_users_own():
    for name in ("go_goroutines", "my_model:loss", "vllm:num_requests_running", "training_step"):
        assert relabelled("pods", {"__name__": name}), name


@pytest.mark.parametrize("job", USER_JOBS)
def test_users_cannot_write_what_a_rule_that_repairs_a_node_reads(job):
    environment = load(FILES["dev"])
    recorded = {rule.name for group in groups(environment) for rule in group.rules if isinstance(rule, Recording)}
    text = "\n".join(alert.expr for alert in alerts(environment) if alert.repair)
    read = {name for name in {*METRICS, *recorded, "up"} if re.search(rf"(?<![\w:]){name}(?![\w:])", text)}
    assert {"lustre_mounted", "node_amazonefa_port_state", "DCGM_EXP_XID_ERRORS_COUNT", "up", "node:gpus:count"} <= read
    assert not [name for name in read if relabelled(job, {"__name__": name})]


def test_a_file_of_a_job_sets_no_label_of_another_target():
    written = {"__name__": "training_step", "workload": "7", "cluster": "x", "environment": "x", "__replica__": "x"}
    labels = {"job": "jobs", "instance": "train-1", "node": "train-1", "instance_type": "p5", "node_group": "train"}
    kept = relabelled("jobs", {**written, **labels})
    assert kept == {"__name__": "training_step", "workload": "7", **labels}


def test_everything_but_cloudwatch_has_a_scrape_job():
    assert {name for name, each in EXPORTERS.items() if not each.jobs} == {"cloudwatch"}
    assert {each.exporter for job in get_args(ScrapeJob) for each in job_metrics(job)} == set(EXPORTERS) - {
        "cloudwatch"
    }
