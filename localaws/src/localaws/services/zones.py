"""EC2 zones and instance types that moto lacks: Local Zones with Capacity Blocks, and P6e-GB200."""

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import InvalidAvailabilityZoneError
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend, Zone
from moto.ec2.models.instance_types import INSTANCE_TYPES, InstanceType, InstanceTypeBackend
from moto.ec2.models.subnets import SubnetBackend
from moto.ec2.responses import EC2Response

from localaws.records import records
from localaws.services.patching import patch_method

# EC2 User Guide, "Capacity Blocks for ML", "Local Zones" (2026): name to (Region, zone id).
LOCAL_ZONES = {
    "us-east-1-atl-2a": ("us-east-1", "use1-atl2-az1"),
    "us-east-1-dfw-2a": ("us-east-1", "use1-dfw2-az1"),
    "us-west-2-phx-2a": ("us-west-2", "usw2-phx2-az1"),
}


def activate() -> None:
    """Add the zones and types; refuse subnets in zones of other Regions."""
    for name, (region, zone_id) in LOCAL_ZONES.items():
        zone = Zone(name=name, region_name=region, zone_id=zone_id, zone_type="local-zone")
        zone.group_name = zone.network_border_group = name[:-1]
        zone.opt_in_status = "opted-in"
        RegionsAndZonesBackend.zones[region].append(zone)
    for description in records("instance_types")["instance_types"]:
        name = description["InstanceType"]
        INSTANCE_TYPES[name] = description
        InstanceTypeBackend.instance_types.append(InstanceType(name))
    patch_method(RegionsAndZonesBackend, "describe_availability_zones", _describe_zones)
    patch_method(EC2Response, "describe_availability_zones", _answer_zones)
    patch_method(SubnetBackend, "create_subnet", _create_subnet)


def _describe_zones(original: Any, self: Any, filters: Any = None, zone_names: Any = None, zone_ids: Any = None) -> Any:
    # moto creates a default subnet in every zone that it lists. Local Zones have none, and are listed only on request.
    zones = original(self, filters, zone_names, zone_ids)
    asked = zone_names or zone_ids or "zone-type" in (filters or {})
    return zones if asked else [zone for zone in zones if zone.zone_type != "local-zone"]


def _answer_zones(original: Any, self: Any) -> Any:
    if not self._get_param("AllAvailabilityZones"):
        return original(self)
    kinds = {"zone-type": ["availability-zone", "local-zone"]}
    filters = kinds | self._filters_from_querystring()
    names, ids = self._get_param("ZoneNames", []), self._get_param("ZoneIds", [])
    return ActionResult({"AvailabilityZones": self.ec2_backend.describe_availability_zones(filters, names, ids)})


def _create_subnet(
    original: Any,
    self: Any,
    vpc_id: str,
    cidr_block: str | None,
    ipv6_cidr_block: str | None = None,
    availability_zone: str | None = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    here = [zone.name for zone in RegionsAndZonesBackend.zones[self.region_name]]
    if availability_zone and availability_zone not in here:
        raise InvalidAvailabilityZoneError(availability_zone, ", ".join(here))
    subnet = original(self, vpc_id, cidr_block, ipv6_cidr_block, availability_zone, *args, **kwargs)
    if not self.get_vpc(vpc_id).is_default:
        # moto treats a zone's first subnet as the default subnet, which maps public addresses.
        subnet.default_for_az = subnet.map_public_ip_on_launch = False
    return subnet
