"""The fake exporter, scraped by a real Prometheus with the catalogue's relabelling."""

from typing import get_args

import pytest
import yaml

from tests.telemetry.engines import Engines
from tests.telemetry.fake_exporter import exposition, serving
from ultracluster.telemetry.labels import NODE_JOBS, ScrapeJob
from ultracluster.telemetry.metrics import EXPORTERS, METRICS
from ultracluster.telemetry.scrape import job_metrics, metric_relabel_configs

JOBS = get_args(ScrapeJob)
NODE = {"node": "node-1", "instance_type": "p5.48xlarge", "node_group": "train"}
JUNK = "# TYPE go_goroutines gauge\ngo_goroutines 12\n"


@pytest.fixture(scope="module")
def scraped(engines: Engines, tmp_path_factory):
    """A Prometheus that has scraped every job once. Beside the catalogue each exporter serves a metric of its own."""
    with serving({f"/{job}": exposition(job_metrics(job)) + JUNK for job in JOBS}) as address:
        jobs = [
            {
                "job_name": job,
                "metrics_path": f"/{job}",
                "static_configs": [{"targets": [address], "labels": NODE if job in NODE_JOBS else {}}],
                "metric_relabel_configs": metric_relabel_configs(job),
            }
            for job in JOBS
        ]
        config = {"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}
        with engines.prometheus(tmp_path_factory.mktemp("prometheus"), config=yaml.safe_dump(config)) as server:
            server.scraped("", len(JOBS))
            yield server


def test_every_metric_of_the_catalogue_arrives_under_its_name(scraped):
    stored = set(scraped.get("label/__name__/values"))
    expected = {name for job in JOBS for each in job_metrics(job) for name in each.series_names}
    assert expected <= stored
    assert len(expected) > 400


@pytest.mark.parametrize("job", sorted(set(JOBS) - {"pods"}))
def test_nothing_else_is_stored(scraped, job):
    assert scraped.query(f'go_goroutines{{job="{job}"}}') == []
    assert scraped.query(f'up{{job="{job}"}}')


def test_pods_keep_the_metrics_of_their_users(scraped):
    assert len(scraped.query('go_goroutines{job="pods"}')) == 1


def test_labels_of_the_exporter_survive_and_those_of_dcgm_that_vary_do_not(scraped):
    (series,) = scraped.query("DCGM_FI_DEV_GPU_TEMP")
    assert set(series["metric"]) == {
        "__name__",
        "gpu",
        "instance",
        "instance_type",
        "job",
        "modelName",
        "node",
        "node_group",
        "pci_bus_id",
        "UUID",
    }


def test_types_are_those_that_the_exporter_states(scraped):
    stated = scraped.get("metadata", limit="10000")
    for each in METRICS.values():
        if EXPORTERS[each.exporter].jobs:
            types = {entry["type"] for entry in stated[each.name]}
            assert types == {{"untyped": "unknown"}.get(each.declared or each.kind, each.declared or each.kind)}


@pytest.mark.parametrize("name", ["slurm_node_cpus", "kube_node_info", "kube_pod_info"])
def test_a_metric_about_a_node_keeps_that_node(scraped, name):
    """Only the jobs that scrape a node's own exporters set the label node."""
    (series,) = scraped.query(name)
    assert series["metric"]["node"] == "node"
    assert "exported_node" not in series["metric"]


def test_the_node_that_nccl_names_does_not_replace_ours(scraped):
    assert all(each["metric"]["node"] == "node-1" for each in scraped.query("nccl_bus_bandwidth_gbs"))
