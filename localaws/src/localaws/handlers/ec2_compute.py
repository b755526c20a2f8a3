"""EC2: launch templates and placement groups."""

from collections.abc import Iterator

from localaws.handlers.ec2_network import ec2
from localaws.resources import Context, HandlerError, Properties, pick
from localaws.rows.existing import existing, known
from localaws.rows.handler import register

_REFERENCES = {
    "Placement.GroupId": "placement group ID",
    "Placement.GroupName": "placement group",
    "BlockDeviceMappings.Ebs.KmsKeyId": "KMS key",
    "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId": "capacity reservation",
    "IamInstanceProfile.Arn": "instance profile",
    "IamInstanceProfile.Name": "instance profile",
    "InstanceType": "instance type",
    "KeyName": "key pair",
    "NetworkInterfaces.Groups": "security group",
    "NetworkInterfaces.SubnetId": "subnet",
    "SecurityGroupIds": "security group",
}


def _own_tags(given: Properties) -> Properties:
    """The template's own tags as those of other types. Data has the tags of what is launched from it."""
    own = [spec for spec in given.get("TagSpecifications", ()) if spec["ResourceType"] == "launch-template"]
    others = {name: value for name, value in given.items() if name != "TagSpecifications"}
    return {**others, "Tags": [tag for spec in own for tag in spec.get("Tags", ())]}


def _check_template(context: Context, old: Properties, new: Properties) -> None:
    """Images are not looked up."""
    data = new["LaunchTemplateData"]
    if data == old.get("LaunchTemplateData"):
        return
    if data.get("NetworkInterfaces") and data.keys() & {"SecurityGroupIds", "SecurityGroups"}:
        raise HandlerError("security groups belong on each network interface, not beside them")
    _check_capacity(context, data)


def _check_capacity(context: Context, data: Properties) -> None:
    """The reservation must have the template's market type, instance type and zone."""
    target = data.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget", {})
    block = data.get("InstanceMarketOptions", {}).get("MarketType") == "capacity-block"
    if block and not target:
        raise HandlerError("market type capacity-block needs a CapacityReservationTarget")
    if block and data.get("Placement", {}).keys() & {"GroupName", "GroupId"}:
        raise HandlerError("a Capacity Block takes no placement group")
    if group := target.get("CapacityReservationResourceGroupArn"):
        found = known(context, "resource group", group)["GroupArn"]
        if found != group:
            raise HandlerError(f"resource group {group} does not exist; the group of that name is {found}")
    if reservation := target.get("CapacityReservationId"):
        for problem in _mismatches(context, data, reservation, block=block):
            raise HandlerError(f"capacity reservation {reservation} {problem}")


def _mismatches(context: Context, data: Properties, reservation_id: str, *, block: bool) -> Iterator[str]:
    reservation = existing(context, "capacity reservation", reservation_id)
    if block != (reservation["ReservationType"] == "capacity-block"):
        yield f"is of type {reservation['ReservationType']}, which the template's market type does not use"
    if data.get("InstanceType") != reservation["InstanceType"]:
        yield f"is for {reservation['InstanceType']}, not {data.get('InstanceType')}"
    subnets = {interface["SubnetId"] for interface in data.get("NetworkInterfaces", ()) if "SubnetId" in interface}
    zones = {known(context, "subnet", subnet)["AvailabilityZone"] for subnet in subnets}
    zones |= {*pick(data.get("Placement", {}), "AvailabilityZone").values()}
    if zones - {reservation["AvailabilityZone"]}:
        yield f"is in {reservation['AvailabilityZone']}, not {', '.join(sorted(zones))}"


register(
    ec2(
        type="AWS::EC2::LaunchTemplate",
        name=("LaunchTemplateName", 128),
        update="CreateLaunchTemplateVersion",  # the first version stays the default
        whole=True,
        ref="{LaunchTemplateId}",
        ident={"LaunchTemplateId": "{ref}", "LaunchTemplateIds": "{ref}"},
        attributes={name: f"{{{name}}}" for name in ("DefaultVersionNumber", "LatestVersionNumber")},
        system_tags=True,
        must_exist={f"LaunchTemplateData.{name}": kind for name, kind in _REFERENCES.items()},
        prepare=_own_tags,
        check=_check_template,
    ),
    ec2(
        type="AWS::EC2::PlacementGroup",
        ignored="ParentGroupId",
        name=("GroupName", 255),
        system_tags=True,
    ),
)
