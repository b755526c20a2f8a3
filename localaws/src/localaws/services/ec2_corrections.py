"""Corrections of moto's EC2: zones, instance types, security groups, flow logs, and refusals of deletions."""

from collections.abc import Iterator
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import DependencyViolationError, EC2ClientError, InvalidAvailabilityZoneError
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend, Zone
from moto.ec2.models.elastic_ip_addresses import ElasticAddressBackend
from moto.ec2.models.flow_logs import FlowLogsBackend
from moto.ec2.models.instance_types import INSTANCE_TYPES, InstanceType, InstanceTypeBackend
from moto.ec2.models.internet_gateways import InternetGatewayBackend
from moto.ec2.models.nat_gateways import NatGatewayBackend
from moto.ec2.models.security_groups import SecurityGroup, SecurityGroupBackend, SecurityGroupRule
from moto.ec2.models.subnets import SubnetBackend
from moto.ec2.models.vpcs import VPCBackend
from moto.ec2.responses import EC2Response

from localaws.records import records
from localaws.resources import pick
from localaws.services.patching import add, patch


def activate() -> None:
    """Settings of moto that are no methods."""
    for name, (region, zone_id) in LOCAL_ZONES.items():
        zone = Zone(name=name, region_name=region, zone_id=zone_id, zone_type="local-zone")
        zone.group_name = zone.network_border_group = name[:-1]
        zone.opt_in_status = "opted-in"
        RegionsAndZonesBackend.zones[region].append(zone)
    for description in records("instance_types")["instance_types"]:
        name = description["InstanceType"]
        INSTANCE_TYPES[name] = description
        InstanceTypeBackend.instance_types.append(InstanceType(name))
    SecurityGroupRule.description = property(_description)


# EC2 zones and instance types that moto lacks: Local Zones with Capacity Blocks, and P6e-GB200.

# EC2 User Guide, "Capacity Blocks for ML", "Local Zones" (2026): name to (Region, zone id).
LOCAL_ZONES = {
    "us-east-1-atl-2a": ("us-east-1", "use1-atl2-az1"),
    "us-east-1-dfw-2a": ("us-east-1", "use1-dfw2-az1"),
    "us-west-2-phx-2a": ("us-west-2", "usw2-phx2-az1"),
}


@patch(RegionsAndZonesBackend, "describe_availability_zones")
def _describe_zones(original: Any, self: Any, filters: Any = None, zone_names: Any = None, zone_ids: Any = None) -> Any:
    # moto creates a default subnet in every zone that it lists. Local Zones have none, and are listed only on request.
    zones = original(self, filters, zone_names, zone_ids)
    asked = zone_names or zone_ids or "zone-type" in (filters or {})
    return zones if asked else [zone for zone in zones if zone.zone_type != "local-zone"]


@patch(EC2Response, "describe_availability_zones")
def _answer_zones(original: Any, self: Any) -> Any:
    if not self._get_param("AllAvailabilityZones"):
        return original(self)
    kinds = {"zone-type": ["availability-zone", "local-zone"]}
    filters = kinds | self._filters_from_querystring()
    names, ids = self._get_param("ZoneNames", []), self._get_param("ZoneIds", [])
    return ActionResult({"AvailabilityZones": self.ec2_backend.describe_availability_zones(filters, names, ids)})


@patch(SubnetBackend, "create_subnet")
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


# Security group rules: their identity, and their descriptions, which moto stores only for CIDR rules.


@patch(SecurityGroupRule, "__init__")
def _make_rule(
    original: Any,
    self: Any,
    backend: Any,
    ip_protocol: str,
    group_id: str,
    from_port: Any,
    to_port: Any,
    ip_range: Any,
    source_group: Any = None,
    prefix_list_id: Any = None,
    **kwargs: Any,
) -> None:
    self.prefix_list_description = (prefix_list_id or {}).get("Description")
    original(self, backend, ip_protocol, group_id, from_port, to_port, ip_range, source_group, prefix_list_id, **kwargs)


def _allows(rule: Any) -> tuple[Any, ...]:
    ports = None if rule.ip_protocol == "-1" else (rule.from_port, rule.to_port)
    source = rule.source_group.get("GroupId")
    return rule.ip_protocol, ports, rule.cidr_ipv4, rule.cidr_ipv6, source, rule.prefix_list_id


@add(SecurityGroupRule, "__eq__")
def _same_rule(self: Any, other: Any) -> bool:
    return _allows(self) == _allows(other)


def _description(self: Any) -> str | None:
    found: str | None = self.ip_range.get("Description") or self.source_group.get("Description")
    return found or self.prefix_list_description


@patch(SecurityGroupBackend, "_sg_update_description")
def _update_description(_: Any, __: Any, new: Any, rule: Any) -> None:
    # One that the request omits is removed: EC2 API reference, UpdateSecurityGroupRuleDescriptionsIngress (2026).
    rule.prefix_list_description = new.prefix_list_description
    for of_rule, of_new in ((rule.ip_range, new.ip_range), (rule.source_group, new.source_group)):
        of_rule.pop("Description", None)
        of_rule.update(pick(of_new, "Description"))


@patch(SecurityGroupBackend, "revoke_security_group_egress")
def _revoke_egress(original: Any, self: Any, **rule: Any) -> None:
    """Moto keeps rules for IPv6 in a VPC without IPv6 addresses."""
    ranges = {each["CidrIpv6"] for each in rule.get("ip_ranges") or () if "CidrIpv6" in each}
    original(self, **rule)
    group = self.get_security_group_by_name_or_id(rule["group_name_or_id"], rule.get("vpc_id"))
    ports = rule["ip_protocol"], rule["from_port"], rule["to_port"]
    group.egress_rules = [
        each
        for each in group.egress_rules
        if (each.ip_protocol, each.from_port, each.to_port) != ports or each.cidr_ipv6 not in ranges
    ]


@patch(SecurityGroup, "_flattened_rules")
def _flattened_rules(original: Any, self: Any, rules: list[Any]) -> Any:
    views = original(self, rules)
    for view in views:
        ports = view.ip_protocol, view.from_port, view.to_port
        lists = [r for r in rules if r.prefix_list_id and (r.ip_protocol, r.from_port, r.to_port) == ports]
        view.prefix_list_ids = [
            {"PrefixListId": rule.prefix_list_id} | ({"Description": rule.description} if rule.description else {})
            for rule in lists
        ]
    return views


# EC2's refusals to delete resources in use, and its clean-up after deletions. moto lacks most of both.


@patch(SecurityGroupBackend, "_delete_security_group")
def _delete_security_group(original: Any, self: Any, vpc_id: str | None, group_id: str) -> Any:
    if any(_uses_of_group(self, group_id)):
        raise DependencyViolationError(f"resource {group_id} has a dependent object")
    return original(self, vpc_id, group_id)


def _uses_of_group(self: Any, group_id: str) -> Iterator[bool]:
    for interface in self.enis.values():
        yield group_id in [group.id for group in interface.group_set]
    for endpoint in self.vpc_end_points.values():
        yield group_id in endpoint.security_group_ids
    for groups in list(self.groups.values()):
        for group in groups.values():
            if group.id != group_id:
                rules = (*group.ingress_rules, *group.egress_rules)
                yield group_id in [rule.source_group.get("GroupId") for rule in rules]


@patch(SubnetBackend, "delete_subnet")
def _delete_subnet(original: Any, self: Any, subnet_id: str) -> Any:
    if any(interface.subnet.id == subnet_id for interface in self.enis.values()):
        raise DependencyViolationError(f"The subnet '{subnet_id}' has dependencies and cannot be deleted.")
    subnet = original(self, subnet_id)
    # EC2 deletes a subnet's route table association with the subnet.
    for table in self.route_tables.values():
        table._associations = {name: found for name, found in table._associations.items() if found != subnet_id}
    return subnet


@patch(VPCBackend, "delete_vpc")
def _delete_vpc(original: Any, self: Any, vpc_id: str) -> Any:
    gateways = [gateway for gateway in self.internet_gateways.values() if gateway.vpc and gateway.vpc.id == vpc_id]
    groups = [group for group in self.groups.get(vpc_id, {}).values() if group.name != "default"]
    endpoints = [endpoint for endpoint in self.vpc_end_points.values() if endpoint.vpc_id == vpc_id]
    if gateways or groups or endpoints:
        raise DependencyViolationError(f"The vpc '{vpc_id}' has dependencies and cannot be deleted.")
    return original(self, vpc_id)


@patch(InternetGatewayBackend, "detach_internet_gateway")
def _detach_internet_gateway(original: Any, self: Any, internet_gateway_id: str, vpc_id: str) -> Any:
    public = [nat for nat in self.nat_gateways.values() if nat.connectivity_type != "private"]
    if any(nat.vpc_id == vpc_id and nat.state == "available" for nat in public):
        raise DependencyViolationError(
            f"Network {vpc_id} has some mapped public address(es). "
            "Please unmap those public address(es) before detaching the gateway."
        )
    return original(self, internet_gateway_id, vpc_id)


@patch(NatGatewayBackend, "delete_nat_gateway")
def _delete_nat_gateway(original: Any, self: Any, nat_gateway_id: str) -> Any:
    if nat_gateway_id not in self.nat_gateways:
        raise EC2ClientError("NatGatewayNotFound", f"The Nat Gateway {nat_gateway_id} was not found")
    gateway = original(self, nat_gateway_id)
    for address in self.addresses:
        if address.eni is not None and address.eni.id == gateway._eni.id:
            self.disassociate_address(association_id=address.association_id)
    self.enis.pop(gateway._eni.id, None)
    return gateway


@patch(ElasticAddressBackend, "release_address")
def _release_address(original: Any, self: Any, address: str | None = None, allocation_id: str | None = None) -> Any:
    found = self.address_by_ip([address]) if address else self.address_by_allocation([allocation_id])
    if found[0].association_id:
        raise EC2ClientError("InvalidIPAddress.InUse", f"Address {found[0].public_ip} is in use.")
    return original(self, address, allocation_id)


# Flow logs to a folder in a bucket. moto reads the folder as part of the bucket's name.


@patch(FlowLogsBackend, "create_flow_logs")
def _create_flow_logs(original: Any, self: Any, log_destination: str | None = None, **kwargs: Any) -> Any:
    bucket = log_destination
    if log_destination and log_destination.startswith("arn:aws:s3:::"):
        bucket = log_destination.split("/")[0]
    made, errors = original(self, log_destination=bucket, **kwargs)
    for flow_log in made:
        flow_log.log_destination = log_destination
    return made, errors
