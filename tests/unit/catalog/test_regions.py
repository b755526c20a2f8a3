"""Regions and sizes of CPU types against botocore's endpoints and EC2's records in moto."""

import gzip
import json
from pathlib import Path

import moto
import pytest
from botocore.session import get_session

from ultracluster.catalog import catalog, eks, regions
from ultracluster.catalog.ec2_sizes import Ec2Size, ec2_size, nearest
from ultracluster.catalog.records import records

SESSION = get_session()
EC2 = Path(moto.__file__).parent / "ec2" / "resources"
LOCATIONS = EC2 / "instance_type_offerings" / "availability-zone-id"
SIZES = [
    (f"{family}.{size}", entry["architecture"])
    for family, entry in records("ec2_sizes")["families"].items()
    for size in entry["sizes"]
]


def test_regions_are_those_of_the_sdk():
    sdk = {
        region: partition
        for partition in SESSION.get_available_partitions()
        for region in SESSION.get_available_regions("ec2", partition)
    }
    assert sdk == regions.PARTITIONS


def test_grafana_is_listed_where_the_sdk_has_an_endpoint():
    sdk = {
        region
        for partition in SESSION.get_available_partitions()
        for region in SESSION.get_available_regions("grafana", partition)
    }
    assert sdk == regions.GRAFANA_REGIONS


def test_services_are_listed_in_regions_that_exist():
    assert regions.PARTITIONS.keys() >= regions.PCS_REGIONS | regions.GRAFANA_REGIONS | eks.REFUSED_ZONE_IDS.keys()
    assert "us-west-1" not in regions.PCS_REGIONS


@pytest.mark.parametrize("region", regions.ZONE_ID_PREFIXES)
def test_zone_ids_begin_with_the_prefix_of_their_region(region):
    offered = json.loads(gzip.decompress((LOCATIONS / f"{region}.json.gz").read_bytes()))
    assert {entry["Location"].rpartition("-")[0] for entry in offered} == {regions.ZONE_ID_PREFIXES[region]}


@pytest.mark.parametrize("region", eks.REFUSED_ZONE_IDS)
def test_refused_zones_are_zones_of_their_region(region):
    for zone in eks.REFUSED_ZONE_IDS[region]:
        assert zone.startswith(f"{regions.ZONE_ID_PREFIXES[region]}-az")


def test_sizes_are_those_that_ec2_describes():
    described = json.loads(gzip.decompress((EC2 / "instance_types.json.gz").read_bytes()))
    names = {
        name
        for name, entry in described.items()
        if {"x86_64", "arm64"} & {*entry["ProcessorInfo"]["SupportedArchitectures"]}
    }
    assert {name for name, _ in SIZES} == names
    for name in names:
        size, entry = ec2_size(name), described[name]
        assert size
        assert size.architecture in entry["ProcessorInfo"]["SupportedArchitectures"]
        assert size.vcpus == entry["VCpuInfo"]["DefaultVCpus"]
        assert size.memory_gib == pytest.approx(entry["MemoryInfo"]["SizeInMiB"] / 1024, abs=0.001)


@pytest.mark.parametrize(
    ("name", "pods"), [("t3.micro", 4), ("t3.medium", 17), ("m5.large", 29), ("m5.4xlarge", 234), ("m7i.2xlarge", 58)]
)
def test_pods_are_those_of_awss_list(name, pods):
    """Source: amazon-eks-ami, eni-max-pods.txt."""
    size = ec2_size(name)
    assert isinstance(size, Ec2Size)
    assert size.max_pods == pods


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("m7i.larg", "m7i.large"), ("m7i.2xlrge", "m7i.2xlarge"), ("m7ii.large", "m7i.large"), ("zz9.large", None)],
)
def test_the_nearest_size_is_of_the_same_or_of_a_similar_family(asked, meant):
    assert ec2_size(asked) is None
    assert nearest(asked) == meant


@pytest.mark.parametrize("name", [name for name in catalog if not catalog[name].ultraserver_only])
def test_accelerated_types_agree_with_the_catalogue(name):
    size = ec2_size(name)
    assert size
    assert (size.architecture, size.vcpus) == (catalog[name].architecture, catalog[name].vcpus)
