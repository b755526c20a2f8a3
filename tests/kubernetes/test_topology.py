"""Topology levels of each instance type, as EC2 documents them."""

import re

import pytest

from tests.kubernetes.fleet import fleet
from ultracluster.catalog import catalog
from ultracluster.kubernetes.topology import levels, preferred_level, topologies, topology_name

LAYER = "topology.k8s.aws/network-node-layer-"


def test_p5en_has_three_network_layers_and_its_host_name():
    assert levels(catalog["p5en.48xlarge"]) == (f"{LAYER}1", f"{LAYER}2", f"{LAYER}3", "kubernetes.io/hostname")
    assert preferred_level(catalog["p5en.48xlarge"]) == f"{LAYER}3"


@pytest.mark.parametrize("name", ["p6-b200.48xlarge", "p6-b300.48xlarge"])
def test_blackwell_has_four_network_layers(name):
    assert preferred_level(catalog[name]) == f"{LAYER}4"


def test_ultraservers_have_their_nvlink_domain_and_no_network_layers():
    assert levels(catalog["p6e-gb200.36xlarge"]) == ("nvidia.com/gpu.clique", "kubernetes.io/hostname")
    assert preferred_level(catalog["p6e-gb200.36xlarge"]) == "nvidia.com/gpu.clique"


def ultraservers():
    """36 nodes of two UltraServers. The network nodes of layer 3 are those of nine nodes each."""
    return [
        {
            f"{LAYER}1": "a",
            f"{LAYER}2": "b",
            f"{LAYER}3": f"{half}-{clique}",
            "nvidia.com/gpu.clique": clique,
            "kubernetes.io/hostname": f"{clique}-{half}-{number}",
        }
        for half in (1, 2)
        for clique in ("x", "y")
        for number in range(9)
    ]


def placed(nodes, labels, preferred, pods):
    """Nodes that Kueue chooses for a job that prefers one domain of a level, of an idle fleet.

    The smallest domain of that level that holds the job, or of the next level up; then, level by level, the largest
    domains first (Kueue 0.19, "Topology Aware Scheduling", BestFit).
    """

    def domains(of, depth):
        found = {}
        for node in of:
            found.setdefault(tuple(node[label] for label in labels[: depth + 1]), []).append(node)
        return sorted(found.items(), key=lambda domain: (-len(domain[1]), domain[0]))

    for depth in range(labels.index(preferred), -1, -1):
        fitting = [members for _, members in domains(nodes, depth) if len(members) >= pods]
        if fitting:
            chosen = fitting[-1]
            for lower in range(depth + 1, len(labels)):
                taken = []
                for _, members in domains(chosen, lower):
                    if len(taken) < pods:
                        taken += members
                chosen = taken
            return chosen[:pods]
    return []


def test_a_job_that_fits_into_an_nvlink_domain_stays_in_it_whatever_the_network_layers_say():
    labels, nodes = levels(catalog["p6e-gb200.36xlarge"]), ultraservers()
    chosen = placed(nodes, labels, "nvidia.com/gpu.clique", 16)
    assert len(chosen) == 16
    assert len({node["nvidia.com/gpu.clique"] for node in chosen}) == 1
    below = (*(f"{LAYER}{number}" for number in (1, 2, 3)), *labels)
    split = placed(nodes, below, "nvidia.com/gpu.clique", 16)
    assert sorted(sum(node["nvidia.com/gpu.clique"] == clique for node in split) for clique in "xy") == [7, 9]


def test_a_type_without_a_documented_depth_has_only_its_host_name():
    assert levels(catalog["p5.4xlarge"]) == ("kubernetes.io/hostname",)
    assert preferred_level(catalog["p5.4xlarge"]) is None


@pytest.mark.parametrize("hardware", catalog.values(), ids=lambda hardware: hardware.name)
def test_levels_follow_the_rules_of_kueue(hardware):
    """Labels are unique, and the host name is last."""
    labels = levels(hardware)
    assert len(set(labels)) == len(labels) <= 16
    assert labels[-1] == "kubernetes.io/hostname"


@pytest.mark.parametrize("hardware", catalog.values(), ids=lambda hardware: hardware.name)
def test_names_are_dns_labels_and_unique_to_their_levels(hardware):
    name = topology_name(hardware)
    assert re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", name)
    same = [other for other in catalog.values() if topology_name(other) == name]
    assert {levels(other) for other in same} == {levels(hardware)}


def test_types_of_the_same_depth_share_a_topology():
    groups = {"a": ("p5.48xlarge", 1), "b": ("p5en.48xlarge", 1), "c": ("p6-b200.48xlarge", 1)}
    team = {"name": "research", "node_groups": list(groups), "gpus": dict.fromkeys(groups, 8)}
    assert list(topologies(fleet(groups, (team,)))) == ["network-3-layers", "network-4-layers"]
