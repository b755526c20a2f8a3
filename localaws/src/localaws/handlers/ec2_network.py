"""AWS::EC2 resources of a VPC: the VPC, subnets, route tables and routes."""

from typing import Any

from localaws.handlers.common import ec2_tags, retag_ec2, undo_on_failure
from localaws.resources import (
    Context,
    Handler,
    HandlerError,
    NotUpdatable,
    Properties,
    Resource,
    changed,
    handler,
    pick,
    require,
    require_subnets,
)


class Ec2Handler(Handler):
    """A type whose tags can change in place. Subclasses add other changes in `change`."""

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Call `change`, then retag."""
        self.change(context, physical_id, old, new)
        retag_ec2(context, physical_id, old, new)
        return self.describe(context, physical_id)

    def change(self, context: Context, physical_id: str, old: Properties, new: Properties) -> None:
        """Change properties other than tags in place. Refuses by default."""
        if others := changed(old, new) - {"Tags"}:
            raise NotUpdatable(self.type, others)

    def describe(self, context: Context, physical_id: str) -> Resource:
        """The resource as Ref and Fn::GetAtt see it."""
        raise NotImplementedError


def require_vpc(context: Context, vpc_id: str) -> Any:
    """The VPC of this id; HandlerError when it does not exist."""
    ec2 = context.client("ec2")
    return require(lambda: ec2.describe_vpcs(VpcIds=[vpc_id])["Vpcs"], f"VPC {vpc_id} does not exist")[0]


def require_route_table(context: Context, table_id: str) -> Any:
    """The route table of this id; HandlerError when it does not exist."""
    ec2 = context.client("ec2")
    found = require(
        lambda: ec2.describe_route_tables(RouteTableIds=[table_id])["RouteTables"],
        f"route table {table_id} does not exist",
    )
    return found[0]


@handler
class Vpc(Ec2Handler):
    """AWS::EC2::VPC."""

    type = "AWS::EC2::VPC"
    supported_properties = frozenset({"CidrBlock", "EnableDnsHostnames", "EnableDnsSupport", "InstanceTenancy", "Tags"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the VPC and set its DNS attributes."""
        ec2 = context.client("ec2")
        made = ec2.create_vpc(
            TagSpecifications=ec2_tags(context, "vpc", properties), **pick(properties, "CidrBlock", "InstanceTenancy")
        )
        vpc_id = made["Vpc"]["VpcId"]
        with undo_on_failure(lambda: ec2.delete_vpc(VpcId=vpc_id)):
            self._set_dns(context, vpc_id, properties)
        return self.describe(context, vpc_id)

    def change(self, context: Context, physical_id: str, old: Properties, new: Properties) -> None:
        """Change DNS attributes, or dedicated tenancy to default."""
        self._set_dns(context, physical_id, new)
        if old.get("InstanceTenancy", "default") != new.get("InstanceTenancy", "default"):
            context.client("ec2").modify_vpc_tenancy(VpcId=physical_id, InstanceTenancy="default")

    def replaces(self, old: Properties, new: Properties) -> bool:
        """A change to dedicated tenancy replaces the VPC."""
        tenancy = new.get("InstanceTenancy", "default")
        return bool(tenancy != "default" and tenancy != old.get("InstanceTenancy", "default"))

    def _set_dns(self, context: Context, vpc_id: str, properties: Properties) -> None:
        ec2 = context.client("ec2")
        for name, default in (("EnableDnsSupport", True), ("EnableDnsHostnames", False)):
            ec2.modify_vpc_attribute(VpcId=vpc_id, **{name: {"Value": properties.get(name, default)}})

    def describe(self, context: Context, physical_id: str) -> Resource:
        """Id, CIDR block, default security group and default network ACL."""
        ec2 = context.client("ec2")
        vpc = require_vpc(context, physical_id)
        own = [{"Name": "vpc-id", "Values": [physical_id]}]
        groups = ec2.describe_security_groups(Filters=[*own, {"Name": "group-name", "Values": ["default"]}])
        acls = ec2.describe_network_acls(Filters=[*own, {"Name": "default", "Values": ["true"]}])
        attributes = {
            "VpcId": physical_id,
            "CidrBlock": vpc["CidrBlock"],
            "CidrBlockAssociations": [found["AssociationId"] for found in vpc["CidrBlockAssociationSet"]],
            "DefaultSecurityGroup": groups["SecurityGroups"][0]["GroupId"],
            "DefaultNetworkAcl": acls["NetworkAcls"][0]["NetworkAclId"],
            "Ipv6CidrBlocks": [],
        }
        return Resource(physical_id, attributes)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """EC2 refuses while the VPC contains other resources."""
        context.client("ec2").delete_vpc(VpcId=physical_id)


@handler
class Subnet(Ec2Handler):
    """AWS::EC2::Subnet."""

    type = "AWS::EC2::Subnet"
    supported_properties = frozenset(
        {"VpcId", "CidrBlock", "AvailabilityZone", "AvailabilityZoneId", "MapPublicIpOnLaunch", "Tags"}
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the subnet. EC2 checks zone and CIDR block."""
        ec2 = context.client("ec2")
        require_vpc(context, properties["VpcId"])
        made = ec2.create_subnet(
            TagSpecifications=ec2_tags(context, "subnet", properties),
            **pick(properties, "VpcId", "CidrBlock", "AvailabilityZone", "AvailabilityZoneId"),
        )
        subnet_id = made["Subnet"]["SubnetId"]
        with undo_on_failure(lambda: ec2.delete_subnet(SubnetId=subnet_id)):
            self._set_public(context, subnet_id, properties)
        return self.describe(context, subnet_id)

    def change(self, context: Context, physical_id: str, old: Properties, new: Properties) -> None:
        """Change whether instances get a public address."""
        self._set_public(context, physical_id, new)

    def _set_public(self, context: Context, subnet_id: str, properties: Properties) -> None:
        public = {"Value": properties.get("MapPublicIpOnLaunch", False)}
        context.client("ec2").modify_subnet_attribute(SubnetId=subnet_id, MapPublicIpOnLaunch=public)

    def describe(self, context: Context, physical_id: str) -> Resource:
        """Id, zone and CIDR block."""
        subnet = require_subnets(context, [physical_id])[0]
        acls = context.client("ec2").describe_network_acls(
            Filters=[{"Name": "association.subnet-id", "Values": [physical_id]}]
        )["NetworkAcls"]
        associations = [found for acl in acls for found in acl["Associations"] if found["SubnetId"] == physical_id]
        attributes = pick(subnet, "SubnetId", "VpcId", "CidrBlock", "AvailabilityZone", "AvailabilityZoneId")
        association = {"NetworkAclAssociationId": associations[0]["NetworkAclAssociationId"]}
        return Resource(physical_id, {**attributes, **association, "Ipv6CidrBlocks": []})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """EC2 refuses while the subnet contains a network interface."""
        context.client("ec2").delete_subnet(SubnetId=physical_id)


@handler
class RouteTable(Ec2Handler):
    """AWS::EC2::RouteTable."""

    type = "AWS::EC2::RouteTable"
    supported_properties = frozenset({"VpcId", "Tags"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the table."""
        require_vpc(context, properties["VpcId"])
        tags = ec2_tags(context, "route-table", properties)
        made = context.client("ec2").create_route_table(VpcId=properties["VpcId"], TagSpecifications=tags)
        return self.describe(context, made["RouteTable"]["RouteTableId"])

    def describe(self, context: Context, physical_id: str) -> Resource:
        """Id."""
        return Resource(physical_id, {"RouteTableId": physical_id})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """EC2 refuses while a subnet is associated."""
        context.client("ec2").delete_route_table(RouteTableId=physical_id)


@handler
class Route(Handler):
    """AWS::EC2::Route, to an internet gateway or a NAT gateway."""

    type = "AWS::EC2::Route"
    supported_properties = frozenset(
        {"RouteTableId", "DestinationCidrBlock", "DestinationIpv6CidrBlock", "GatewayId", "NatGatewayId"}
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Add the route."""
        self._check(context, properties)
        context.client("ec2").create_route(**properties)
        return self._resource(properties)

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Change the target of the route."""
        self._check(context, new)
        context.client("ec2").replace_route(**new)
        return self._resource(new)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Remove the route."""
        table, destination = physical_id.split("|")
        family = "DestinationIpv6CidrBlock" if ":" in destination else "DestinationCidrBlock"
        context.client("ec2").delete_route(RouteTableId=table, **{family: destination})

    def _resource(self, properties: Properties) -> Resource:
        destination = _destination(properties)
        return Resource(f"{properties['RouteTableId']}|{destination}", {"CidrBlock": destination})

    def _check(self, context: Context, properties: Properties) -> None:
        table = require_route_table(context, properties["RouteTableId"])
        if len(pick(properties, "GatewayId", "NatGatewayId")) != 1:
            raise HandlerError("a route needs exactly one of GatewayId and NatGatewayId")
        _destination(properties)
        ec2, vpc = context.client("ec2"), table["VpcId"]
        if gateway := properties.get("GatewayId"):
            found = require(
                lambda: ec2.describe_internet_gateways(InternetGatewayIds=[gateway])["InternetGateways"],
                f"internet gateway {gateway} does not exist",
            )
            if vpc not in [attachment["VpcId"] for attachment in found[0]["Attachments"]]:
                networks = f"route table {table['RouteTableId']} and gateway {gateway}"
                raise HandlerError(f"{networks} belong to different networks")
        if nat := properties.get("NatGatewayId"):
            states = [{"Name": "state", "Values": ["available"]}]
            require(
                lambda: ec2.describe_nat_gateways(NatGatewayIds=[nat], Filters=states)["NatGateways"],
                f"NAT gateway {nat} does not exist",
            )


def _destination(properties: Properties) -> str:
    destinations = list(pick(properties, "DestinationCidrBlock", "DestinationIpv6CidrBlock").values())
    if len(destinations) != 1:
        raise HandlerError("a route needs exactly one of DestinationCidrBlock and DestinationIpv6CidrBlock")
    return str(destinations[0])


@handler
class SubnetRouteTableAssociation(Handler):
    """AWS::EC2::SubnetRouteTableAssociation."""

    type = "AWS::EC2::SubnetRouteTableAssociation"
    supported_properties = frozenset({"SubnetId", "RouteTableId"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Associate subnet and route table. A subnet has one association."""
        ec2, subnet = context.client("ec2"), properties["SubnetId"]
        require_subnets(context, [subnet])
        require_route_table(context, properties["RouteTableId"])
        of_subnet = [{"Name": "association.subnet-id", "Values": [subnet]}]
        if there := ec2.describe_route_tables(Filters=of_subnet)["RouteTables"]:
            raise HandlerError(f"subnet {subnet} is already associated with {there[0]['RouteTableId']}")
        made = ec2.associate_route_table(**properties)
        return Resource(made["AssociationId"], {"Id": made["AssociationId"]})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Remove the association."""
        context.client("ec2").disassociate_route_table(AssociationId=physical_id)
