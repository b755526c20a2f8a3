"""AWS::EC2::LaunchTemplate and AWS::EC2::PlacementGroup."""

from collections.abc import Iterator
from typing import Any

from localaws.handlers.common import as_list
from localaws.resources import (
    Context,
    Handler,
    HandlerError,
    Properties,
    Resource,
    changed,
    handler,
    pick,
    require,
    require_instance_profile,
    require_key,
    require_security_groups,
    require_subnets,
    tag_map,
)


@handler
class LaunchTemplate(Handler):
    """AWS::EC2::LaunchTemplate. Changed data creates a new version; the first version stays the default."""

    type = "AWS::EC2::LaunchTemplate"
    supported_properties = frozenset(
        {"LaunchTemplateName", "LaunchTemplateData", "VersionDescription", "TagSpecifications"}
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the template. Its data goes to EC2 unchanged, so botocore checks every name."""
        check_references(context, properties["LaunchTemplateData"])
        ec2 = context.client("ec2")
        made = ec2.create_launch_template(
            LaunchTemplateName=properties.get("LaunchTemplateName") or context.physical_name(128),
            **pick(properties, "LaunchTemplateData", "VersionDescription"),
        )
        template_id = made["LaunchTemplate"]["LaunchTemplateId"]
        ec2.create_tags(Resources=[template_id], Tags=as_list({**_own_tags(properties), **context.tags}))
        return self._resource(context, template_id)

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Add a version when the data or its description changed, and retag."""
        ec2 = context.client("ec2")
        if changed(old, new) & {"LaunchTemplateData", "VersionDescription"}:
            check_references(context, new["LaunchTemplateData"])
            ec2.create_launch_template_version(
                LaunchTemplateId=physical_id, **pick(new, "LaunchTemplateData", "VersionDescription")
            )
        before, after = _own_tags(old), _own_tags(new)
        if removed := before.keys() - after.keys():
            ec2.delete_tags(Resources=[physical_id], Tags=[{"Key": key} for key in removed])
        if after:
            ec2.create_tags(Resources=[physical_id], Tags=as_list(after))
        return self._resource(context, physical_id)

    def _resource(self, context: Context, template_id: str) -> Resource:
        found = context.client("ec2").describe_launch_templates(LaunchTemplateIds=[template_id])["LaunchTemplates"][0]
        names = ("LaunchTemplateId", "LatestVersionNumber", "DefaultVersionNumber")
        return Resource(template_id, {name: str(found[name]) for name in names})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the template with all versions."""
        context.client("ec2").delete_launch_template(LaunchTemplateId=physical_id)


def _own_tags(properties: Properties) -> dict[str, str]:
    return {
        key: value
        for spec in properties.get("TagSpecifications", ())
        if spec["ResourceType"] == "launch-template"
        for key, value in tag_map(spec.get("Tags")).items()
    }


def check_references(context: Context, data: Properties) -> None:
    """HandlerError when a launch template refers to a missing resource. Images are not looked up."""
    ec2 = context.client("ec2")
    interfaces = data.get("NetworkInterfaces", [])
    if interfaces and ("SecurityGroupIds" in data or "SecurityGroups" in data):
        raise HandlerError("security groups belong on each network interface, not beside them")
    if groups := sorted({*data.get("SecurityGroupIds", ()), *(g for i in interfaces for g in i.get("Groups", ()))}):
        require_security_groups(context, groups)
    if subnets := sorted({interface["SubnetId"] for interface in interfaces if "SubnetId" in interface}):
        require_subnets(context, subnets)
    if kind := data.get("InstanceType"):
        require(lambda: ec2.describe_instance_types(InstanceTypes=[kind]), f"there is no instance type {kind}")
    if key := data.get("KeyName"):
        require(lambda: ec2.describe_key_pairs(KeyNames=[key])["KeyPairs"], f"key pair {key} does not exist")
    if profile := data.get("IamInstanceProfile"):
        require_instance_profile(context, profile.get("Arn") or profile["Name"])
    for mapping in data.get("BlockDeviceMappings", ()):
        if disk_key := mapping.get("Ebs", {}).get("KmsKeyId"):
            require_key(context, disk_key)
    _check_placement(context, data)
    _check_capacity(context, data)


def _check_placement(context: Context, data: Properties) -> None:
    ec2, placement = context.client("ec2"), data.get("Placement", {})
    if name := placement.get("GroupName"):
        require(lambda: ec2.describe_placement_groups(GroupNames=[name]), f"placement group {name} does not exist")
    if group_id := placement.get("GroupId"):
        require(
            lambda: ec2.describe_placement_groups(GroupIds=[group_id]), f"placement group {group_id} does not exist"
        )


def _check_capacity(context: Context, data: Properties) -> None:
    """The reservation must have the template's market type, instance type and zone."""
    target = data.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget", {})
    block = data.get("InstanceMarketOptions", {}).get("MarketType") == "capacity-block"
    if block and not target:
        raise HandlerError("market type capacity-block needs a CapacityReservationTarget")
    if block and data.get("Placement", {}).keys() & {"GroupName", "GroupId"}:
        raise HandlerError("a Capacity Block takes no placement group")
    if group := target.get("CapacityReservationResourceGroupArn"):
        found, name = context.client("resource-groups"), group.rpartition("/")[2]
        there = require(lambda: found.get_group(GroupName=name)["Group"], f"resource group {group} does not exist")
        if there["GroupArn"] != group:
            raise HandlerError(f"resource group {group} does not exist; the group of that name is {there['GroupArn']}")
    if reservation_id := target.get("CapacityReservationId"):
        ec2 = context.client("ec2")
        reservation = require(
            lambda: ec2.describe_capacity_reservations(CapacityReservationIds=[reservation_id])["CapacityReservations"],
            f"capacity reservation {reservation_id} does not exist: seed it first",
        )[0]
        for problem in _mismatches(context, data, reservation, block=block):
            raise HandlerError(f"capacity reservation {reservation_id} {problem}")


def _mismatches(context: Context, data: Properties, reservation: dict[str, Any], *, block: bool) -> Iterator[str]:
    if block != (reservation["ReservationType"] == "capacity-block"):
        yield f"is of type {reservation['ReservationType']}, which the template's market type does not use"
    if data.get("InstanceType") != reservation["InstanceType"]:
        yield f"is for {reservation['InstanceType']}, not {data.get('InstanceType')}"
    subnets = sorted({i["SubnetId"] for i in data.get("NetworkInterfaces", ()) if "SubnetId" in i})
    zones = {subnet["AvailabilityZone"] for subnet in require_subnets(context, subnets)} if subnets else set()
    zones |= {*pick(data.get("Placement", {}), "AvailabilityZone").values()}
    if zones - {reservation["AvailabilityZone"]}:
        yield f"is in {reservation['AvailabilityZone']}, not {', '.join(sorted(zones))}"


@handler
class PlacementGroup(Handler):
    """AWS::EC2::PlacementGroup. CloudFormation generates its name."""

    type = "AWS::EC2::PlacementGroup"
    supported_properties = frozenset({"Strategy", "PartitionCount", "SpreadLevel", "Tags"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the group."""
        tags = as_list({**tag_map(properties.get("Tags")), **context.tags})
        made = context.client("ec2").create_placement_group(
            GroupName=context.physical_name(255),
            TagSpecifications=[{"ResourceType": "placement-group", "Tags": tags}],
            **pick(properties, "Strategy", "PartitionCount", "SpreadLevel"),
        )["PlacementGroup"]
        return Resource(made["GroupName"], pick(made, "GroupName", "GroupId"))

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the group."""
        context.client("ec2").delete_placement_group(GroupName=physical_id)
