"""Regions and zones against botocore's endpoints and EC2's records in moto."""

import gzip
import json
from pathlib import Path

import moto
import pytest
from botocore.session import get_session

from ultracluster.catalog import eks, regions

SESSION = get_session()
EC2 = Path(moto.__file__).parent / "ec2" / "resources"
LOCATIONS = EC2 / "instance_type_offerings" / "availability-zone-id"


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
