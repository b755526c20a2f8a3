"""Validation of what a PCS request refers to: subnets, security groups, instance profiles, launch templates."""

import base64
from collections.abc import Mapping
from typing import Any

from localaws.services import pcs_rules as rules
from localaws.services.references import References

Parameters = Mapping[str, Any]


def check_cluster_network(references: References, networking: Parameters) -> Any:
    """The cluster has one subnet. It and the security groups exist in the same VPC."""
    subnet_ids = networking.get("subnetIds") or []
    if len(subnet_ids) != 1:
        raise rules.invalid("networking.subnetIds", f"exactly one subnet is supported, not {len(subnet_ids)}.")
    subnet = _subnet(references, "networking.subnetIds", subnet_ids[0])
    groups = networking.get("securityGroupIds") or []
    _check_security_groups(references, "networking.securityGroupIds", groups, subnet.vpc_id)
    return subnet


def check_group_network(references: References, group: Parameters, vpc_id: str) -> None:
    """Subnets and security groups of a compute node group exist in the cluster's VPC."""
    if not group.get("subnetIds"):
        raise rules.invalid("subnetIds", "at least one subnet is needed.")
    for subnet_id in group["subnetIds"]:
        if _subnet(references, "subnetIds", subnet_id).vpc_id != vpc_id:
            raise rules.invalid("subnetIds", f"{subnet_id} is not in the cluster's VPC {vpc_id}.")
    _check_security_groups(references, "securityGroupIds", group.get("securityGroupIds") or [], vpc_id)


def check_profile(references: References, arn: str) -> None:
    """The instance profile exists and has a role that PCS accepts."""
    profile = references.instance_profile(arn)
    if profile is None:
        raise rules.invalid("iamInstanceProfileArn", f"instance profile {arn} does not exist.")
    if not profile.roles:
        raise rules.invalid("iamInstanceProfileArn", f"instance profile {arn} holds no role.")
    rules.check_role(profile.roles[0].name, profile.roles[0].path)


def check_launch(references: References, group: Parameters) -> None:
    """CUSTOM needs an existing version of a launch template, MANAGED takes none."""
    custom = group.get("customLaunchTemplate")
    if group["launchTemplateMode"] == "MANAGED":
        if custom or not group.get("amiId") or not group.get("securityGroupIds"):
            message = "MANAGED needs amiId and securityGroupIds, and no customLaunchTemplate."
            raise rules.invalid("launchTemplateMode", message)
        rules.check_template({}, group)
        return
    if not custom:
        raise rules.invalid("customLaunchTemplate", "launchTemplateMode CUSTOM, the default, needs a launch template.")
    template = references.launch_template(custom["id"])
    if template is None:
        raise rules.invalid("customLaunchTemplate", f"launch template {custom['id']} does not exist.")
    number, latest = custom["version"], len(template.versions)
    if number not in ("$Latest", "$Default") and not (number.isdecimal() and 1 <= int(number) <= latest):
        message = f"launch template {custom['id']} has no version {number}; the latest is {latest}."
        raise rules.invalid("customLaunchTemplate", message)
    data = template.get_version(number).data
    rules.check_template(data, group)
    rules.check_user_data(base64.b64decode(str(data.get("UserData") or "")))
    if group.get("purchaseOption") == "CAPACITY_BLOCK":
        target = data["CapacityReservationSpecification"]["CapacityReservationTarget"]
        _check_block(references, group, target["CapacityReservationId"])


def _check_block(references: References, group: Parameters, reservation_id: str) -> None:
    """The Capacity Block is active, in the zone of the subnets, and large enough for the group's maximum."""
    block = references.capacity_reservation(reservation_id)
    if block is None or block["State"] not in ("active", "scheduled"):
        raise rules.invalid("customLaunchTemplate", f"capacity block {reservation_id} does not exist or has ended.")
    for subnet_id in group["subnetIds"]:
        if (zone := references.subnet(subnet_id).availability_zone) != block["AvailabilityZone"]:
            message = f"{subnet_id} is in {zone}, capacity block {reservation_id} in {block['AvailabilityZone']}."
            raise rules.invalid("subnetIds", message)
    most, held = group["scalingConfiguration"]["maxInstanceCount"], block["TotalInstanceCount"]
    if most > held:
        message = f"maxInstanceCount {most} is more than the {held} instances of capacity block {reservation_id}."
        raise rules.invalid("scalingConfiguration", message)


def _subnet(references: References, field: str, subnet_id: str) -> Any:
    subnet = references.subnet(subnet_id)
    if subnet is None:
        raise rules.invalid(field, f"subnet {subnet_id} does not exist.")
    return subnet


def _check_security_groups(references: References, field: str, ids: list[str], vpc_id: str) -> None:
    for group_id in ids:
        group = references.security_group(group_id)
        if group is None:
            raise rules.invalid(field, f"security group {group_id} does not exist.")
        if group.vpc_id != vpc_id:
            raise rules.invalid(field, f"security group {group_id} is not in VPC {vpc_id}.")
