"""Corrections of moto's EC2: zones, security groups, endpoints, instances, flow logs, and refusals of deletions."""

import base64
import json
from collections.abc import Iterator
from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.exceptions import DependencyViolationError, EC2ClientError, InvalidAvailabilityZoneError
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend, Zone
from moto.ec2.models.elastic_ip_addresses import ElasticAddressBackend
from moto.ec2.models.flow_logs import FlowLogsBackend
from moto.ec2.models.instance_types import INSTANCE_TYPES, InstanceType, InstanceTypeBackend
from moto.ec2.models.instances import Instance
from moto.ec2.models.internet_gateways import InternetGatewayBackend
from moto.ec2.models.nat_gateways import NatGatewayBackend
from moto.ec2.models.security_groups import SecurityGroup, SecurityGroupBackend, SecurityGroupRule
from moto.ec2.models.subnets import SubnetBackend
from moto.ec2.models.vpcs import AWS_ENDPOINT_SERVICES, COVERED_ENDPOINT_SERVICES, VPCBackend
from moto.ec2.responses import EC2Response
from moto.ec2.responses.instances import InstanceResponse
from moto.ec2.responses.monitoring import Monitoring

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
    AWS_ENDPOINT_SERVICES.extend(NEWER_SERVICES)


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


# VPC endpoints: corrections of how moto creates, changes, deletes and lists them.

# AWS PCS User Guide, "Access AWS PCS using an interface endpoint" (2026).
NEWER_SERVICES = ("pcs", "pcs-fips")
GATEWAY_SERVICES = ("dynamodb", "s3")


@patch(VPCBackend, "create_vpc_endpoint")
def _create_endpoint(original: Any, self: Any, vpc_id: str, service_name: str, *args: Any, **kwargs: Any) -> Any:
    gateway = (kwargs.get("endpoint_type") or "Gateway") == "Gateway"
    known = GATEWAY_SERVICES if gateway else (*AWS_ENDPOINT_SERVICES, *COVERED_ENDPOINT_SERVICES)
    if service_name not in {f"com.amazonaws.{self.region_name}.{name}" for name in known}:
        raise EC2ClientError("InvalidServiceName", f"The Vpc Endpoint Service '{service_name}' does not exist")
    for group_id in kwargs.get("security_group_ids") or []:
        _group(self, group_id)
    endpoint = original(self, vpc_id, service_name, *args, **kwargs)
    if endpoint.vpc_endpoint_type != "Interface":
        endpoint.private_dns_enabled = False
    elif not endpoint.security_group_ids:
        endpoint.security_group_ids = [self.get_security_group_from_name("default", vpc_id).id]
    _set_security_groups(self, endpoint)
    return endpoint


@patch(EC2Response, "modify_vpc_endpoint")
def _answer_modification(original: Any, self: Any) -> Any:
    answer = original(self)
    endpoint = self.ec2_backend.vpc_end_points[self._get_param("VpcEndpointId")]
    enabled = self._get_bool_param("PrivateDnsEnabled")
    if enabled is not None:
        endpoint.private_dns_enabled = enabled
    if self._get_bool_param("ResetPolicy"):
        endpoint.policy_document = json.dumps(endpoint.DEFAULT_POLICY)
    return answer


@patch(VPCBackend, "modify_vpc_endpoint")
def _modify_endpoint(original: Any, self: Any, vpc_id: str, **changes: Any) -> Any:
    endpoint = self.describe_vpc_endpoints([vpc_id])[0]
    for group_id in changes.get("add_security_groups") or []:
        _group(self, group_id)
    original(self, vpc_id=vpc_id, **changes)
    if endpoint.vpc_endpoint_type == "Interface":
        _set_subnets(self, endpoint)
        _set_security_groups(self, endpoint)
    for table in changes.get("remove_route_tables") or []:
        self.delete_route(table, endpoint.destination_prefix_list_id)
    for table in changes.get("add_route_tables") or []:
        target = {"destination_prefix_list_id": endpoint.destination_prefix_list_id}
        self.create_route(table, None, gateway_id=vpc_id, **target)


@patch(VPCBackend, "delete_vpc_endpoints")
def _delete_endpoints(original: Any, self: Any, vpce_ids: list[str] | None = None) -> Any:
    self.describe_vpc_endpoints(vpce_ids)  # raises for unknown ids
    original(self, vpce_ids)
    for endpoint_id in vpce_ids or []:
        del self.vpc_end_points[endpoint_id]


def _group(self: Any, group_id: str) -> Any:
    group = self.get_security_group_from_id(group_id)
    if group is None:
        raise EC2ClientError("InvalidGroup.NotFound", f"The security group '{group_id}' does not exist")
    return group


def _set_subnets(self: Any, endpoint: Any) -> None:
    """Create and delete interfaces so that each of the endpoint's subnets has one."""
    kept = [found for found in endpoint.network_interface_ids if self.enis[found].subnet.id in endpoint.subnet_ids]
    for interface_id in set(endpoint.network_interface_ids) - set(kept):
        del self.enis[interface_id]
    there = {self.enis[interface_id].subnet.id for interface_id in kept}
    missing = [found for found in endpoint.subnet_ids if found not in there]
    new = [self.create_network_interface(self.get_subnet(found), []) for found in missing]
    endpoint.network_interface_ids = kept + [interface.id for interface in new]


def _set_security_groups(self: Any, endpoint: Any) -> None:
    """Set the endpoint's security groups on its interfaces."""
    for interface_id in endpoint.network_interface_ids:
        self.enis[interface_id]._group_set = [_group(self, found) for found in endpoint.security_group_ids]


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


# Instances: changes of user data, which the client encodes, of the shutdown behavior, for which moto removes the
# security groups, and of monitoring.


@patch(InstanceResponse, "modify_instance_attribute")
def _modify_instance_attribute(original: Any, self: Any) -> ActionResult:
    data = self._get_param("UserData.Value")
    if isinstance(data, bytes):
        self.params["UserData"]["Value"] = base64.b64encode(data).decode()
    behavior = self._get_param("InstanceInitiatedShutdownBehavior.Value")
    if behavior is None:
        answer: ActionResult = original(self)
        return answer
    instance = self.ec2_backend.get_instance(self._get_param("InstanceId"))
    instance.instance_initiated_shutdown_behavior = behavior
    return EmptyResult()


OF_TEMPLATE = (
    "EbsOptimized",
    "IamInstanceProfile",
    "InstanceInitiatedShutdownBehavior",
    "MetadataOptions",
    "Monitoring",
)
"""Members of a launch template that an instance takes, besides those that moto gives it."""


@patch(InstanceResponse, "run_instances")
def _run_instances(original: Any, self: Any) -> ActionResult:
    if template := self._get_param("LaunchTemplate"):
        data = self.ec2_backend._get_template_from_args(template).data
        names = OF_TEMPLATE if self._get_param("SubnetId") else (*OF_TEMPLATE, "NetworkInterfaces")
        self.params |= {**pick(data, *names), **self.params}
    answer: ActionResult = original(self)
    return answer


@patch(Instance, "prep_nics")
def _prep_nics(original: Any, self: Any, nic_spec: list[dict[str, Any]], **given: Any) -> None:
    """EC2 deletes the interfaces that it creates with an instance at its end, unless the request says otherwise."""
    there = set(self.ec2_backend.enis)
    original(self, nic_spec, **given)
    kept = [int(spec["DeviceIndex"]) for spec in nic_spec if spec.get("DeleteOnTermination") is False]
    for index, interface in self.nics.items():
        if interface.id not in there and index not in kept:
            interface.delete_on_termination = interface.attachment.delete_on_termination = True


@add(Monitoring, "monitor_instances")
def _monitor_instances(self: Any) -> ActionResult:
    return _set_monitoring(self, "enabled")


@add(Monitoring, "unmonitor_instances")
def _unmonitor_instances(self: Any) -> ActionResult:
    return _set_monitoring(self, "disabled")


def _set_monitoring(self: Any, state: str) -> ActionResult:
    listed = []
    for instance_id in self._get_param("InstanceIds"):
        self.ec2_backend.get_instance(instance_id).monitoring_state = state
        listed.append({"InstanceId": instance_id, "Monitoring": {"State": state}})
    return ActionResult({"InstanceMonitorings": listed})
