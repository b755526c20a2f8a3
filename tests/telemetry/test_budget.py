"""Series of a fleet against AMP's quotas."""

import re

import pytest
import yaml

from tests.telemetry.rules.environments import PLANES, environment
from ultracluster.catalog import catalog
from ultracluster.telemetry.agent import MAX_SAMPLES_PER_SEND, QUEUE, agent_configuration
from ultracluster.telemetry.budget import (
    AMP,
    DROP_FIRST,
    SERIES_BYTES,
    Fleet,
    kube_state_metrics_shards,
    remote_write_requests,
    samples_per_second,
    scrapers,
    series,
    series_by_exporter,
    series_dropped,
    series_of_node,
    shortest_interval,
)
from ultracluster.telemetry.metrics import METRICS, metrics_of
from ultracluster.telemetry.rules import groups

SIZES = (4, 64, 1000, 10_000)
TYPES = ("p5.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge", "p6-b300.48xlarge", "p6e-gb200.36xlarge")


def fleet(nodes=64, instance_type="p5.48xlarge", control_plane="pcs", **more):
    return Fleet(nodes, catalog[instance_type], control_plane, **more)


@pytest.mark.parametrize("control_plane", ["eks", "pcs"])
@pytest.mark.parametrize("instance_type", TYPES)
@pytest.mark.parametrize("nodes", SIZES)
def test_every_fleet_fits_the_default_quotas_at_30_seconds(nodes, instance_type, control_plane):
    of = fleet(nodes, instance_type, control_plane)
    assert series(of) < AMP["active_series"]
    assert samples_per_second(of, 30) < AMP["samples_per_second"]
    assert shortest_interval(of) <= 30


def test_ten_thousand_nodes_need_more_than_the_ten_seconds_of_pcs():
    assert shortest_interval(fleet(1000)) == 10
    assert 10 < shortest_interval(fleet(10_000)) <= 30


@pytest.mark.parametrize("interval", [10, 15, 30, 60])
def test_ten_thousand_agents_stay_below_the_quota_of_requests(interval):
    of = fleet(10_000)
    if interval >= shortest_interval(of):
        assert remote_write_requests(of, interval) < AMP["remote_write_requests_per_second"]


def test_a_request_stays_below_the_size_that_amp_accepts():
    assert int(AMP["request_bytes"]) > MAX_SAMPLES_PER_SEND * SERIES_BYTES


def test_an_agent_retries_when_amp_throttles_and_forgets_what_amp_refuses():
    settings = yaml.safe_load(agent_configuration("/etc/targets"))["remote_write"]
    assert all(each["queue_config"]["retry_on_http_429"] for each in settings)
    assert int(QUEUE["sample_age_limit"].removesuffix("m")) * 60 < AMP["oldest_sample_seconds"]
    assert QUEUE["capacity"] >= series_of_node(fleet())


def test_series_of_dcgm_grow_with_gpus_and_those_of_efa_with_devices():
    one, two = (series_by_exporter(fleet(nodes)) for nodes in (1, 2))
    assert two["dcgm"] == 2 * one["dcgm"]
    assert two["efa"] == 2 * one["efa"]
    assert one["efa"] == 32 * len(metrics_of("efa"))
    assert one["slurm"] < two["slurm"] < 2 * one["slurm"]


def test_a_gpu_without_nvlink_5_has_no_series_of_nvlink_5():
    hopper, blackwell = (series_by_exporter(fleet(1, name))["dcgm"] for name in ("p5.48xlarge", "p6-b200.48xlarge"))
    of_nvlink_5 = [each for each in metrics_of("dcgm") if each.group == "nvlink5"]
    assert blackwell - hopper == 8 * len(of_nvlink_5)


@pytest.mark.parametrize(("nodes", "shards"), [(4, 1), (1_000, 1), (1_500, 2), (10_000, 7)])
def test_the_managed_scraper_reads_kube_state_metrics_of_large_clusters_in_shards(nodes, shards):
    assert kube_state_metrics_shards(nodes) == shards


def test_one_scraper_has_room_for_the_targets_of_ten_thousand_nodes():
    assert scrapers(fleet(10_000, control_plane="eks")) == 1
    assert scrapers(fleet(20_000, control_plane="eks")) == 2


@pytest.mark.parametrize("drop", DROP_FIRST, ids=lambda drop: f"{drop.exporter}-{drop.group}")
def test_what_to_drop_exists_and_saves_series(drop):
    assert any((each.exporter, each.group) == (drop.exporter, drop.group) for each in METRICS.values())
    of = fleet(1000, control_plane="eks", more=frozenset({"nccl"}))
    assert series_dropped(of, drop) > 0


@pytest.mark.parametrize("plane", PLANES)
def test_no_rule_needs_what_may_be_dropped(plane):
    dropped = {(drop.exporter, drop.group) for drop in DROP_FIRST}
    names = {name for each in METRICS.values() if (each.exporter, each.group) in dropped for name in each.series_names}
    for group in groups(environment(plane)):
        for rule in group.rules:
            assert names.isdisjoint(re.findall(r"[A-Za-z_:][A-Za-z0-9_:]*", rule.expr)), rule.name


def test_nccl_and_inference_come_on_top():
    plain = series(fleet())
    assert series(fleet(more=frozenset({"nccl"}))) == plain + 64 * 8 * 36
    assert series(fleet(more=frozenset({"vllm"}), engines=4)) > plain
