"""Node groups of any instance type: purchase, placement and interfaces that follow from the type."""

import pytest

from ultracluster.catalog import Interface, catalog
from ultracluster.config.node_groups import NodeGroup

PLAIN = (Interface(0, 0, "interface"),)


def group(*types, **changes):
    named = {"instance_type": types[0]} if len(types) == 1 else {"instance_types": list(types)}
    return NodeGroup.model_validate({"name": "nodes", "count": 2, **named, **changes})


@pytest.mark.parametrize("name", ["c7i.48xlarge", "g6e.12xlarge", "p5.48xlarge"])
def test_nodes_are_bought_on_demand_unless_the_file_says_otherwise(name):
    assert group(name).purchase.type == "on_demand"
    assert group(name).launch.market is None


@pytest.mark.parametrize("name", ["p5.48xlarge", "g6e.12xlarge", "g6e.48xlarge", "p4d.24xlarge", "hpc7a.96xlarge"])
def test_types_with_gpus_and_hpc_types_get_every_efa_card_and_a_placement_group(name):
    found = group(name)
    assert found.efa
    assert found.launch.cluster_group is True
    for plane in ("pcs", "eks"):
        efa = [interface for interface in found.layout(plane) if interface.kind != "interface"]
        assert len(efa) == len(found.hardware.efa.cards)


@pytest.mark.parametrize("name", ["c7i.48xlarge", "m7i.4xlarge", "g6e.xlarge"])
def test_other_types_get_one_plain_interface_and_no_placement_group(name):
    found = group(name)
    assert not found.efa
    assert found.launch.cluster_group is False
    assert found.layout("pcs") == found.layout("eks") == PLAIN


def test_a_cpu_type_with_efa_gets_it_where_the_file_asks_for_it():
    found = group("c7i.48xlarge", interfaces="efa_with_ip")
    assert found.layout("pcs") == (Interface(0, 0, "efa"),)
    assert found.launch.cluster_group is True


@pytest.mark.parametrize("name", ["p5.48xlarge", "g6e.48xlarge"])
def test_without_efa_leaves_one_interface(name):
    assert group(name, interfaces="without_efa").layout("eks") == PLAIN


@pytest.mark.parametrize("name", [name for name in catalog if not catalog[name].ultraserver_only])
def test_lustre_uses_efa_from_types_for_which_it_is_documented(name):
    assert group(name).lustre_over_efa


@pytest.mark.parametrize("name", ["g6e.48xlarge", "c7i.48xlarge", "p4d.24xlarge"])
def test_lustre_uses_tcp_from_all_others(name):
    assert not group(name).lustre_over_efa


def test_several_types_are_one_kind_of_node():
    found = group("c7i.48xlarge", "m7i.48xlarge")
    assert found.types == ("c7i.48xlarge", "m7i.48xlarge")
    assert found.hardware.name == "c7i.48xlarge"
    assert found.type_names == "c7i.48xlarge or m7i.48xlarge"
    assert found.known
    assert not group("c7i.48xlarge").has_local_disks
    assert group("m7i.24xlarge", "m6id.24xlarge").has_local_disks


def test_one_unknown_type_makes_the_group_unknown():
    raw = {"name": "nodes", "count": 2, "instance_types": ("c7i.48xlarge", "c7i.47xlarge")}
    assert not NodeGroup.model_construct(**raw).known
