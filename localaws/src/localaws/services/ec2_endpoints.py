"""VPC endpoints: corrections of how moto creates, changes, deletes and lists them."""

import json
from typing import Any

from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.vpcs import AWS_ENDPOINT_SERVICES, COVERED_ENDPOINT_SERVICES, VPCBackend
from moto.ec2.responses import EC2Response

from localaws.services.patching import patch

# AWS PCS User Guide, "Access AWS PCS using an interface endpoint" (2026).
NEWER_SERVICES = ("pcs", "pcs-fips")
GATEWAY_SERVICES = ("dynamodb", "s3")


def activate() -> None:
    """Add services that moto lacks."""
    AWS_ENDPOINT_SERVICES.extend(NEWER_SERVICES)


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
