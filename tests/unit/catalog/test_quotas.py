"""Service quotas of a new account."""

import re

import pytest

from ultracluster.catalog import instance_types
from ultracluster.catalog.quotas import service_quotas, vcpu_quota
from ultracluster.catalog.records import records
from ultracluster.cli.hardware import refusal


@pytest.mark.parametrize(
    ("name", "market", "code"),
    [
        ("p5en.48xlarge", "on_demand", "L-417A185B"),
        ("p6-b200.48xlarge", "on_demand", "L-417A185B"),
        ("p5.48xlarge", "spot", "L-C4BD4855"),
        ("p4d.24xlarge", "spot", "L-7212CCBC"),
        ("p6-b300.48xlarge", "spot", None),
        ("gr6.4xlarge", "spot", "L-3819A6DF"),
        ("g6e.12xlarge", "on_demand", "L-DB2E81BA"),
        ("hpc7a.96xlarge", "on_demand", "L-F7808C92"),
        ("h1.2xlarge", "on_demand", "L-1216C47A"),
        ("m7i.large", "on_demand", "L-1216C47A"),
        ("c7i.48xlarge", "spot", "L-34B43A08"),
    ],
)
def test_the_family_and_the_market_decide(name, market, code):
    assert vcpu_quota(name, market).code == code


def test_every_type_that_node_groups_take_has_an_on_demand_quota():
    taken = [name for name in instance_types if not refusal(instance_types[name]) and not name.startswith("mac")]
    assert len(taken) > 500
    assert not [name for name in taken if vcpu_quota(name, "on_demand") is None]


def test_codes_are_those_of_service_quotas_and_none_is_twice():
    entries = [*records("quotas")["vcpus"], *records("quotas")["services"].values()]
    codes = [entry["code"] for entry in entries if entry["code"]]
    assert all(re.fullmatch(r"L-[0-9A-F]{8}", code) for code in codes)
    assert len(set(codes)) == len(codes)


def test_defaults_are_those_that_validation_warns_above():
    quotas = service_quotas("eu-west-1")
    assert quotas["openzfs_capacity"].default == records("openzfs")["quotas"]["capacity_gib"]
    assert quotas["openzfs_throughput"].default == records("openzfs")["quotas"]["throughput_mbps"]
    assert quotas["lustre_capacity"].default == records("lustre")["quotas"]["persistent_2_gib"]
    assert quotas["eks_groups"].default == records("eks")["quotas"]["node_groups"]
    assert quotas["eks_nodes"].default == records("eks")["quotas"]["nodes_per_group"]
    assert quotas["pcs_groups"].default == records("pcs")["maximum_node_groups"]
    assert quotas["pcs_queues"].default == records("pcs")["maximum_queues"]


def test_some_regions_have_larger_quotas_of_openzfs():
    larger = records("openzfs")["quotas"]["larger_capacity_gib"]
    for region, capacity in larger.items():
        assert service_quotas(region)["openzfs_capacity"].default == capacity
