"""Zones of control-plane subnets, judged by EC2's record of an account."""

import gzip
import json
from importlib.resources import files

import pytest

from ultracluster.catalog import eks, regions
from ultracluster.catalog.zones import control_plane_zones

LOCATIONS = files("moto.ec2.resources.instance_type_offerings").joinpath("availability-zone-id")


@pytest.mark.parametrize("region", regions.ZONE_ID_PREFIXES)
def test_two_zones_that_the_recorded_account_has_and_eks_accepts(region):
    offered = json.loads(gzip.decompress(LOCATIONS.joinpath(f"{region}.json.gz").read_bytes()))
    zones = control_plane_zones(region)
    assert len(set(zones)) == 2
    assert set(zones) <= {entry["Location"] for entry in offered}
    assert not set(zones) & set(eks.REFUSED_ZONE_IDS.get(region, ()))


@pytest.mark.parametrize("region", ["cn-north-1", "${Token[AWS.Region.1]}"])
def test_no_zones_for_a_region_whose_ids_are_not_recorded(region):
    assert control_plane_zones(region) == ()


@pytest.mark.parametrize("region", eks.REFUSED_ZONE_IDS)
def test_every_region_with_a_refused_zone_has_a_default(region):
    assert control_plane_zones(region)
