"""Floors of bandwidth, against the figures and line rates that they come from."""

import pytest

from ultracluster.catalog import catalog
from ultracluster.catalog.health import pair_floor
from ultracluster.catalog.records import records


@pytest.mark.parametrize(("name", "published"), records("health")["efa_gb_per_s"].items())
def test_a_published_figure_is_between_the_floor_of_a_pair_and_the_line_rate(name, published):
    hardware = catalog[name]
    assert pair_floor(hardware) < published <= hardware.efa.gb_per_s


@pytest.mark.parametrize("name", ["p5en.48xlarge", "p6-b300.48xlarge", "p6e-gb200.36xlarge"])
def test_types_without_a_published_figure_have_no_floor_of_a_pair(name):
    assert pair_floor(catalog[name]) is None


def test_a_lost_efa_device_of_a_gpu_of_p5_is_below_the_floor():
    hardware = catalog["p5.48xlarge"]
    devices = len(hardware.efa.cards) // hardware.gpu_count
    assert devices == 4
    assert hardware.efa.gb_per_s * (devices - 1) / devices < pair_floor(hardware)
