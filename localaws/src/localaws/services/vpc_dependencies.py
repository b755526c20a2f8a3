"""EC2's refusals to delete resources in use, and its clean-up after deletions. moto lacks most of both."""

from collections.abc import Iterator
from typing import Any

from moto.ec2.exceptions import DependencyViolationError, EC2ClientError
from moto.ec2.models.elastic_ip_addresses import ElasticAddressBackend
from moto.ec2.models.internet_gateways import InternetGatewayBackend
from moto.ec2.models.nat_gateways import NatGatewayBackend
from moto.ec2.models.security_groups import SecurityGroupBackend
from moto.ec2.models.subnets import SubnetBackend
from moto.ec2.models.vpcs import VPCBackend

from localaws.services.patching import patch_method


def activate() -> None:
    """Make deletions in a VPC answer as EC2 does."""
    patch_method(SecurityGroupBackend, "_delete_security_group", _delete_security_group)
    patch_method(SubnetBackend, "delete_subnet", _delete_subnet)
    patch_method(VPCBackend, "delete_vpc", _delete_vpc)
    patch_method(InternetGatewayBackend, "detach_internet_gateway", _detach_internet_gateway)
    patch_method(NatGatewayBackend, "delete_nat_gateway", _delete_nat_gateway)
    patch_method(ElasticAddressBackend, "release_address", _release_address)


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


def _delete_subnet(original: Any, self: Any, subnet_id: str) -> Any:
    if any(interface.subnet.id == subnet_id for interface in self.enis.values()):
        raise DependencyViolationError(f"The subnet '{subnet_id}' has dependencies and cannot be deleted.")
    subnet = original(self, subnet_id)
    # EC2 deletes a subnet's route table association with the subnet.
    for table in self.route_tables.values():
        table._associations = {name: found for name, found in table._associations.items() if found != subnet_id}
    return subnet


def _delete_vpc(original: Any, self: Any, vpc_id: str) -> Any:
    gateways = [gateway for gateway in self.internet_gateways.values() if gateway.vpc and gateway.vpc.id == vpc_id]
    groups = [group for group in self.groups.get(vpc_id, {}).values() if group.name != "default"]
    endpoints = [endpoint for endpoint in self.vpc_end_points.values() if endpoint.vpc_id == vpc_id]
    if gateways or groups or endpoints:
        raise DependencyViolationError(f"The vpc '{vpc_id}' has dependencies and cannot be deleted.")
    return original(self, vpc_id)


def _detach_internet_gateway(original: Any, self: Any, internet_gateway_id: str, vpc_id: str) -> Any:
    public = [nat for nat in self.nat_gateways.values() if nat.connectivity_type != "private"]
    if any(nat.vpc_id == vpc_id and nat.state == "available" for nat in public):
        raise DependencyViolationError(
            f"Network {vpc_id} has some mapped public address(es). "
            "Please unmap those public address(es) before detaching the gateway."
        )
    return original(self, internet_gateway_id, vpc_id)


def _delete_nat_gateway(original: Any, self: Any, nat_gateway_id: str) -> Any:
    if nat_gateway_id not in self.nat_gateways:
        raise EC2ClientError("NatGatewayNotFound", f"The Nat Gateway {nat_gateway_id} was not found")
    gateway = original(self, nat_gateway_id)
    for address in self.addresses:
        if address.eni is not None and address.eni.id == gateway._eni.id:
            self.disassociate_address(association_id=address.association_id)
    self.enis.pop(gateway._eni.id, None)
    return gateway


def _release_address(original: Any, self: Any, address: str | None = None, allocation_id: str | None = None) -> Any:
    found = self.address_by_ip([address]) if address else self.address_by_allocation([allocation_id])
    if found[0].association_id:
        raise EC2ClientError("InvalidIPAddress.InUse", f"Address {found[0].public_ip} is in use.")
    return original(self, address, allocation_id)
