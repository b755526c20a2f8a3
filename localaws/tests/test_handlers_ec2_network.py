"""VPC resources, created, updated and deleted by templates and read back through boto3."""

import pytest
from botocore.exceptions import ClientError

from handler_parts import Stack, own_tags, tags
from localaws.properties import replacement
from localaws.resources import HandlerError


@pytest.fixture
def vpc(stack: Stack) -> str:
    return stack.make("AWS::EC2::VPC", CidrBlock="10.0.0.0/16", EnableDnsHostnames=True)


@pytest.fixture
def subnet(stack: Stack, vpc: str) -> str:
    return stack.make("AWS::EC2::Subnet", VpcId=vpc, CidrBlock="10.0.0.0/24", AvailabilityZone="us-east-1a")


def internet(stack: Stack, vpc: str) -> str:
    gateway = stack.make("AWS::EC2::InternetGateway", Tags=tags(Name="door"))
    attached = stack.create("AWS::EC2::VPCGatewayAttachment", VpcId=vpc, InternetGatewayId=gateway)
    assert attached == (f"IGW|{vpc}", {"AttachmentType": "IGW"})
    return gateway


def dns(stack: Stack, vpc: str) -> tuple[bool, bool]:
    ec2 = stack.client("ec2")
    support = ec2.describe_vpc_attribute(VpcId=vpc, Attribute="enableDnsSupport")["EnableDnsSupport"]["Value"]
    names = ec2.describe_vpc_attribute(VpcId=vpc, Attribute="enableDnsHostnames")["EnableDnsHostnames"]["Value"]
    return support, names


def test_vpc_is_read_back(stack):
    asked = {"CidrBlock": "10.1.0.0/16", "EnableDnsHostnames": True, "Tags": tags(Name="net", team="a")}
    made = stack.create("AWS::EC2::VPC", **asked)
    ec2 = stack.client("ec2")
    found = ec2.describe_vpcs(VpcIds=[made.physical_id])["Vpcs"][0]
    assert (found["CidrBlock"], found["InstanceTenancy"]) == ("10.1.0.0/16", "default")
    assert own_tags(found["Tags"]) == {"Name": "net", "team": "a"}
    assert {"Key": "aws:cloudformation:logical-id", "Value": "Thing"} in found["Tags"]
    assert dns(stack, made.physical_id) == (True, True)
    group = ec2.describe_security_groups(GroupIds=[made.attributes["DefaultSecurityGroup"]])["SecurityGroups"][0]
    assert (group["GroupName"], group["VpcId"]) == ("default", made.physical_id)
    acl = ec2.describe_network_acls(NetworkAclIds=[made.attributes["DefaultNetworkAcl"]])["NetworkAcls"][0]
    assert (acl["IsDefault"], acl["VpcId"]) == (True, made.physical_id)

    new = {"CidrBlock": "10.1.0.0/16", "EnableDnsSupport": False, "Tags": tags(Name="other")}
    stack.update("AWS::EC2::VPC", made.physical_id, asked, new)
    assert dns(stack, made.physical_id) == (False, False)
    assert own_tags(ec2.describe_vpcs(VpcIds=[made.physical_id])["Vpcs"][0]["Tags"]) == {"Name": "other"}

    stack.delete("AWS::EC2::VPC", made.physical_id)
    with pytest.raises(ClientError, match=r"InvalidVpcID\.NotFound"):
        ec2.describe_vpcs(VpcIds=[made.physical_id])


def test_change_to_dedicated_tenancy_replaces_the_vpc():
    old = {"CidrBlock": "10.1.0.0/16"}
    dedicated = {**old, "InstanceTenancy": "dedicated"}
    assert replacement("AWS::EC2::VPC", old, dedicated, "us-east-1") == "True"
    assert replacement("AWS::EC2::VPC", dedicated, old, "us-east-1") == "False"


def test_change_from_dedicated_tenancy_is_in_place(stack):
    old = {"CidrBlock": "10.1.0.0/16", "InstanceTenancy": "dedicated"}
    made = stack.make("AWS::EC2::VPC", **old)
    stack.update("AWS::EC2::VPC", made, old, {"CidrBlock": "10.1.0.0/16"})
    assert stack.client("ec2").describe_vpcs(VpcIds=[made])["Vpcs"][0]["InstanceTenancy"] == "default"


def test_subnet_is_read_back(stack, vpc):
    asked = {"VpcId": vpc, "CidrBlock": "10.0.4.0/22", "AvailabilityZone": "us-east-1b", "Tags": tags(Name="nodes")}
    made = stack.create("AWS::EC2::Subnet", **asked)
    ec2 = stack.client("ec2")
    found = ec2.describe_subnets(SubnetIds=[made.physical_id])["Subnets"][0]
    assert (found["VpcId"], found["CidrBlock"], found["AvailabilityZone"]) == (vpc, "10.0.4.0/22", "us-east-1b")
    assert (found["MapPublicIpOnLaunch"], found["DefaultForAz"]) == (False, False)
    assert own_tags(found["Tags"]) == {"Name": "nodes"}
    assert made.attributes["AvailabilityZoneId"] == found["AvailabilityZoneId"]
    assert made.attributes["NetworkAclAssociationId"].startswith("aclassoc-")

    stack.update("AWS::EC2::Subnet", made.physical_id, asked, {**asked, "MapPublicIpOnLaunch": True, "Tags": []})
    found = ec2.describe_subnets(SubnetIds=[made.physical_id])["Subnets"][0]
    assert found["MapPublicIpOnLaunch"] is True
    assert own_tags(found["Tags"]) == {}
    stack.delete("AWS::EC2::Subnet", made.physical_id)
    with pytest.raises(ClientError, match=r"InvalidSubnetID\.NotFound"):
        ec2.describe_subnets(SubnetIds=[made.physical_id])


@pytest.mark.parametrize(
    ("region", "zone"),
    [("us-east-1", "us-east-1-dfw-2a"), ("us-east-1", "us-east-1-atl-2a"), ("us-west-2", "us-west-2-phx-2a")],
)
def test_subnets_can_be_in_local_zones_with_capacity_blocks(stack, region, zone):
    there = Stack(region)
    vpc = there.make("AWS::EC2::VPC", CidrBlock="10.0.0.0/16")
    made = there.create("AWS::EC2::Subnet", VpcId=vpc, CidrBlock="10.0.0.0/24", AvailabilityZone=zone)
    assert made.attributes["AvailabilityZone"] == zone


@pytest.mark.parametrize("cidr", ["10.1.0.0/24", "10.0.0.0/25"])
def test_subnet_is_inside_its_vpc_and_overlaps_no_other(stack, vpc, subnet, cidr):
    with pytest.raises(ClientError, match=r"InvalidSubnet\.(Range|Conflict)"):
        stack.create("AWS::EC2::Subnet", VpcId=vpc, CidrBlock=cidr, AvailabilityZone="us-east-1a")


def test_subnet_needs_a_vpc_that_exists(stack):
    with pytest.raises(HandlerError, match="VPC vpc-0123456789abcdef0 does not exist"):
        stack.create("AWS::EC2::Subnet", VpcId="vpc-0123456789abcdef0", CidrBlock="10.0.0.0/24")


def test_routes_target_gateways(stack, vpc, subnet):
    ec2 = stack.client("ec2")
    table = stack.make("AWS::EC2::RouteTable", VpcId=vpc, Tags=tags(Name="public"))
    gateway = internet(stack, vpc)
    asked = {"RouteTableId": table, "DestinationCidrBlock": "0.0.0.0/0", "GatewayId": gateway}
    route = stack.create("AWS::EC2::Route", **asked)
    assert route == (f"{table}|0.0.0.0/0", {"CidrBlock": "0.0.0.0/0"})
    association = stack.make("AWS::EC2::SubnetRouteTableAssociation", SubnetId=subnet, RouteTableId=table)
    found = ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"][0]
    assert [(r["DestinationCidrBlock"], r["GatewayId"]) for r in found["Routes"]] == [
        ("10.0.0.0/16", "local"),
        ("0.0.0.0/0", gateway),
    ]
    assert [(a["RouteTableAssociationId"], a["SubnetId"]) for a in found["Associations"]] == [(association, subnet)]
    assert own_tags(found["Tags"]) == {"Name": "public"}

    address = stack.create("AWS::EC2::EIP", Domain="vpc", Tags=tags(Name="out"))
    nat = stack.make("AWS::EC2::NatGateway", SubnetId=subnet, AllocationId=address.attributes["AllocationId"])
    new = {"RouteTableId": table, "DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": nat}
    stack.update("AWS::EC2::Route", route.physical_id, asked, new)
    routes = ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"][0]["Routes"]
    assert [(r.get("GatewayId"), r.get("NatGatewayId")) for r in routes] == [("local", None), (None, nat)]

    with pytest.raises(ClientError, match="DependencyViolation"):
        stack.delete("AWS::EC2::RouteTable", table)
    stack.delete("AWS::EC2::Route", route.physical_id, **new)
    stack.delete("AWS::EC2::SubnetRouteTableAssociation", association)
    stack.delete("AWS::EC2::RouteTable", table)
    with pytest.raises(ClientError, match="NotFound"):
        ec2.describe_route_tables(RouteTableIds=[table])


def test_route_refuses_a_gateway_of_another_network(stack, vpc):
    table = stack.make("AWS::EC2::RouteTable", VpcId=vpc)
    lone = stack.make("AWS::EC2::InternetGateway")
    target = {"RouteTableId": table, "DestinationCidrBlock": "0.0.0.0/0"}
    with pytest.raises(HandlerError, match="different networks"):
        stack.create("AWS::EC2::Route", **target, GatewayId=lone)
    with pytest.raises(HandlerError, match="NAT gateway nat-0123456789abcdef0 does not exist"):
        stack.create("AWS::EC2::Route", **target, NatGatewayId="nat-0123456789abcdef0")
    with pytest.raises(HandlerError, match="exactly one"):
        stack.create("AWS::EC2::Route", **target)


def test_subnet_has_one_route_table(stack, vpc, subnet):
    first, second = (stack.make("AWS::EC2::RouteTable", VpcId=vpc) for _ in range(2))
    stack.make("AWS::EC2::SubnetRouteTableAssociation", SubnetId=subnet, RouteTableId=first)
    with pytest.raises(HandlerError, match=f"already associated with {first}"):
        stack.create("AWS::EC2::SubnetRouteTableAssociation", SubnetId=subnet, RouteTableId=second)


def test_nat_gateway_keeps_its_address_until_deleted(stack, vpc, subnet):
    ec2 = stack.client("ec2")
    address = stack.create("AWS::EC2::EIP", Domain="vpc")
    asked = {"SubnetId": subnet, "AllocationId": address.attributes["AllocationId"], "Tags": tags(Name="nat")}
    made = stack.create("AWS::EC2::NatGateway", **asked)
    found = ec2.describe_nat_gateways(NatGatewayIds=[made.physical_id])["NatGateways"][0]
    assert (found["SubnetId"], found["State"], own_tags(found["Tags"])) == (subnet, "available", {"Name": "nat"})
    assert found["NatGatewayAddresses"][0]["PublicIp"] == address.physical_id
    assert found["NatGatewayAddresses"][0]["NetworkInterfaceId"] == made.attributes["EniId"]
    with pytest.raises(HandlerError, match="already associated"):
        stack.create("AWS::EC2::NatGateway", **asked)
    with pytest.raises(ClientError, match=r"InvalidIPAddress\.InUse"):
        stack.delete("AWS::EC2::EIP", address.physical_id)
    with pytest.raises(ClientError, match="DependencyViolation"):
        stack.delete("AWS::EC2::Subnet", subnet)

    stack.update("AWS::EC2::NatGateway", made.physical_id, asked, {**asked, "Tags": tags(Name="new")})
    found = ec2.describe_nat_gateways(NatGatewayIds=[made.physical_id])["NatGateways"][0]
    assert own_tags(found["Tags"]) == {"Name": "new"}
    stack.delete("AWS::EC2::NatGateway", made.physical_id)
    stack.delete("AWS::EC2::EIP", address.physical_id)
    stack.delete("AWS::EC2::Subnet", subnet)
    assert ec2.describe_addresses()["Addresses"] == []


def test_address_is_read_back(stack):
    asked = {"Domain": "vpc", "Tags": tags(Name="out")}
    made = stack.create("AWS::EC2::EIP", **asked)
    stack.update("AWS::EC2::EIP", made.physical_id, asked, {"Domain": "vpc", "Tags": tags(Name="in")})
    found = stack.client("ec2").describe_addresses()["Addresses"][0]
    assert (found["PublicIp"], found["AllocationId"]) == (made.physical_id, made.attributes["AllocationId"])
    assert own_tags(found["Tags"]) == {"Name": "in"}


def test_vpc_with_resources_is_not_deleted(stack, vpc):
    gateway = internet(stack, vpc)
    with pytest.raises(ClientError, match="DependencyViolation"):
        stack.delete("AWS::EC2::VPC", vpc)
    with pytest.raises(ClientError, match="DependencyViolation"):
        stack.delete("AWS::EC2::InternetGateway", gateway)
    stack.delete("AWS::EC2::VPCGatewayAttachment", f"IGW|{vpc}", VpcId=vpc, InternetGatewayId=gateway)
    stack.delete("AWS::EC2::InternetGateway", gateway)
    stack.delete("AWS::EC2::VPC", vpc)
    assert stack.client("ec2").describe_vpcs(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["Vpcs"] == []


def test_gateway_with_public_addresses_is_not_detached(stack, vpc, subnet):
    gateway = internet(stack, vpc)
    allocation = stack.create("AWS::EC2::EIP", Domain="vpc").attributes["AllocationId"]
    stack.create("AWS::EC2::NatGateway", SubnetId=subnet, AllocationId=allocation)
    with pytest.raises(ClientError, match="mapped public address"):
        stack.delete("AWS::EC2::VPCGatewayAttachment", f"IGW|{vpc}", VpcId=vpc, InternetGatewayId=gateway)
