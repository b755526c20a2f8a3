"""EC2: VPCs, subnets, route tables and routes, and gateways."""

import functools
from typing import Any

from localaws.resources import Context, HandlerError, Properties, pick
from localaws.rows.existing import existing, known
from localaws.rows.handler import register
from localaws.rows.row import Row, Setting

ec2 = functools.partial(Row, service="ec2", tag="CreateTags", untag="DeleteTags", arn="{ref}")
"""A row of a type of EC2, whose tags have calls of their own."""


def _attribute(name: str, action: str, *, default: bool) -> Setting:
    """A property that a call sets as {name: {Value: value}}."""
    return Setting(name, put=action, renames={name: f"{name}.Value"}, reset={name: default})


def _defaults_of_vpc(context: Context, vpc: Properties) -> dict[str, Any]:
    """The security group and the network ACL that EC2 creates with a VPC."""
    client, own = context.client("ec2"), {"Name": "vpc-id", "Values": [vpc["ref"]]}
    groups = client.describe_security_groups(Filters=[own, {"Name": "group-name", "Values": ["default"]}])
    acls = client.describe_network_acls(Filters=[own, {"Name": "default", "Values": ["true"]}])
    return {
        "DefaultSecurityGroup": groups["SecurityGroups"][0]["GroupId"],
        "DefaultNetworkAcl": acls["NetworkAcls"][0]["NetworkAclId"],
    }


def _acl_of_subnet(context: Context, subnet: Properties) -> dict[str, Any]:
    of_subnet = [{"Name": "association.subnet-id", "Values": [subnet["ref"]]}]
    (acl,) = context.client("ec2").describe_network_acls(Filters=of_subnet)["NetworkAcls"]
    ids = {found["SubnetId"]: found["NetworkAclAssociationId"] for found in acl["Associations"]}
    return {"NetworkAclAssociationId": ids[subnet["ref"]]}


def _check_route(context: Context, _: Properties, new: Properties) -> None:
    for names in (("GatewayId", "NatGatewayId"), ("DestinationCidrBlock", "DestinationIpv6CidrBlock")):
        if len(pick(new, *names)) != 1:
            raise HandlerError(f"a route needs exactly one of {' and '.join(names)}")
    if gateway := new.get("GatewayId"):
        table = known(context, "route table", new["RouteTableId"])
        attached = existing(context, "internet gateway", gateway)["Attachments"]
        if table["VpcId"] not in [attachment["VpcId"] for attachment in attached]:
            raise HandlerError(
                f"route table {table['RouteTableId']} and gateway {gateway} belong to different networks"
            )


def _check_association(context: Context, _: Properties, new: Properties) -> None:
    of_subnet = [{"Name": "association.subnet-id", "Values": [new["SubnetId"]]}]
    if tables := context.client("ec2").describe_route_tables(Filters=of_subnet)["RouteTables"]:
        raise HandlerError(f"subnet {new['SubnetId']} is already associated with {tables[0]['RouteTableId']}")


def _check_nat(context: Context, old: Properties, new: Properties) -> None:
    if "SubnetId" not in new:
        raise HandlerError("SubnetId is missing")
    public, allocation = new.get("ConnectivityType", "public") == "public", new.get("AllocationId")
    if public != (allocation is not None):
        raise HandlerError("a public NAT gateway needs an AllocationId, and a private one takes none")
    if allocation and not old and "AssociationId" in existing(context, "Elastic IP address", allocation):
        raise HandlerError(f"Elastic IP address {allocation} is already associated")


register(
    ec2(
        type="AWS::EC2::VPC",
        properties="CidrBlock EnableDnsHostnames EnableDnsSupport InstanceTenancy Tags",
        settings=(
            _attribute("EnableDnsSupport", "ModifyVpcAttribute", default=True),
            _attribute("EnableDnsHostnames", "ModifyVpcAttribute", default=False),
            Setting("InstanceTenancy", put="ModifyVpcTenancy", reset={"InstanceTenancy": "default"}, at_creation=False),
        ),
        replaces=lambda old, new: new.get("InstanceTenancy", "default") not in ("default", old.get("InstanceTenancy")),
        attributes={"CidrBlock": "CidrBlock", "CidrBlockAssociations": "CidrBlockAssociationSet.AssociationId"},
        describe=_defaults_of_vpc,
    ),
    ec2(
        type="AWS::EC2::Subnet",
        properties="AvailabilityZone AvailabilityZoneId CidrBlock MapPublicIpOnLaunch Tags VpcId",
        settings=(_attribute("MapPublicIpOnLaunch", "ModifySubnetAttribute", default=False),),
        attributes={name: name for name in ("AvailabilityZone", "AvailabilityZoneId", "CidrBlock", "VpcId")},
        describe=_acl_of_subnet,
        must_exist={"VpcId": "VPC"},
    ),
    ec2(type="AWS::EC2::RouteTable", must_exist={"VpcId": "VPC"}),
    ec2(
        type="AWS::EC2::Route",
        properties="DestinationCidrBlock DestinationIpv6CidrBlock GatewayId NatGatewayId RouteTableId",
        update="ReplaceRoute",
        whole=True,
        ref="{RouteTableId}|{DestinationCidrBlock}{DestinationIpv6CidrBlock}",
        ident={name: f"{{{name}}}" for name in ("RouteTableId", "DestinationCidrBlock", "DestinationIpv6CidrBlock")},
        attributes={"CidrBlock": "{DestinationCidrBlock}{DestinationIpv6CidrBlock}"},
        must_exist={"RouteTableId": "route table", "GatewayId": "internet gateway", "NatGatewayId": "NAT gateway"},
        check=_check_route,
    ),
    ec2(
        type="AWS::EC2::SubnetRouteTableAssociation",
        create="AssociateRouteTable",
        delete="DisassociateRouteTable",
        must_exist={"SubnetId": "subnet", "RouteTableId": "route table"},
        check=_check_association,
    ),
    ec2(type="AWS::EC2::InternetGateway"),
    ec2(
        type="AWS::EC2::VPCGatewayAttachment",
        create="AttachInternetGateway",
        delete="DetachInternetGateway",
        ref="IGW|{VpcId}",
        ident={"InternetGatewayId": "{InternetGatewayId}", "VpcId": "{VpcId}"},
        attributes={"AttachmentType": "{ref|0}"},
        must_exist={"VpcId": "VPC", "InternetGatewayId": "internet gateway"},
    ),
    ec2(
        type="AWS::EC2::EIP",
        properties="Domain Tags",
        create="AllocateAddress",
        read="DescribeAddresses",
        delete="ReleaseAddress",
        read_to_delete=True,
        ref="{PublicIp}",
        ident={"PublicIps": "{ref}", "AllocationId": "{AllocationId}"},
        arn="{AllocationId}",
        tag_kind="elastic-ip",
        prepare=lambda given: {"Domain": "vpc", **given},
    ),
    ec2(
        type="AWS::EC2::NatGateway",
        properties="AllocationId ConnectivityType SubnetId Tags",
        attributes={"EniId": "NatGatewayAddresses.0.NetworkInterfaceId"},
        must_exist={"SubnetId": "subnet", "AllocationId": "Elastic IP address"},
        check=_check_nat,
    ),
)
