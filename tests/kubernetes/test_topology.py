"""Levels of nearness, by what EC2 says of each type."""

import re

import pytest

from tests.kubernetes.fleet import fleet
from ultracluster.catalog import catalog
from ultracluster.kubernetes.topology import levels, preferred_level, topologies, topology_name

LAYER = "topology.k8s.aws/network-node-layer-"


def test_p5en_has_three_layers_of_switches_above_its_host_name():
    assert levels(catalog["p5en.48xlarge"]) == (f"{LAYER}1", f"{LAYER}2", f"{LAYER}3", "kubernetes.io/hostname")
    assert preferred_level(catalog["p5en.48xlarge"]) == f"{LAYER}3"


@pytest.mark.parametrize("name", ["p6-b200.48xlarge", "p6-b300.48xlarge"])
def test_blackwell_has_four(name):
    assert preferred_level(catalog[name]) == f"{LAYER}4"


def test_ultraservers_have_their_nvlink_domain_below_the_switches():
    assert levels(catalog["p6e-gb200.36xlarge"])[-3:] == (
        f"{LAYER}3",
        "nvidia.com/gpu.clique",
        "kubernetes.io/hostname",
    )
    assert preferred_level(catalog["p6e-gb200.36xlarge"]) == "nvidia.com/gpu.clique"


def test_a_type_of_unknown_depth_has_its_host_name_alone():
    assert levels(catalog["p5.4xlarge"]) == ("kubernetes.io/hostname",)
    assert preferred_level(catalog["p5.4xlarge"]) is None


@pytest.mark.parametrize("hardware", catalog.values(), ids=lambda hardware: hardware.name)
def test_kueue_takes_the_levels(hardware):
    """No label twice, and the host name last, as the rules of its Topology say."""
    labels = levels(hardware)
    assert len(set(labels)) == len(labels) <= 16
    assert labels[-1] == "kubernetes.io/hostname"


@pytest.mark.parametrize("hardware", catalog.values(), ids=lambda hardware: hardware.name)
def test_names_are_dns_labels_that_say_which_levels_they_stand_for(hardware):
    name = topology_name(hardware)
    assert re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", name)
    same = [other for other in catalog.values() if topology_name(other) == name]
    assert {levels(other) for other in same} == {levels(hardware)}


def test_types_of_the_same_depth_share_a_topology():
    groups = {"a": ("p5.48xlarge", 1), "b": ("p5en.48xlarge", 1), "c": ("p6-b200.48xlarge", 1)}
    team = {"name": "research", "node_groups": list(groups), "gpus": dict.fromkeys(groups, 8)}
    assert list(topologies(fleet(groups, (team,)))) == ["network-3-layers", "network-4-layers"]
