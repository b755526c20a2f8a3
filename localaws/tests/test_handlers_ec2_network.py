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


def test_change_to_dedicated_tenancy_replaces_the_vpc():
    old = {"CidrBlock": "10.1.0.0/16"}
    dedicated = {**old, "InstanceTenancy": "dedicated"}
    assert replacement("AWS::EC2::VPC", old, dedicated, "us-east-1") == "True"
    assert replacement("AWS::EC2::VPC", dedicated, old, "us-east-1") == "False"


@pytest.mark.parametrize(
    ("region", "zone"),
    [("us-east-1", "us-east-1-dfw-2a"), ("us-east-1", "us-east-1-atl-2a"), ("us-west-2", "us-west-2-phx-2a")],
)
def test_subnets_can_be_in_local_zones_with_capacity_blocks(stack, region, zone):
    there = Stack(region)
    vpc = there.make("AWS::EC2::VPC", CidrBlock="10.0.0.0/16")
    made = there.create("AWS::EC2::Subnet", VpcId=vpc, CidrBlock="10.0.0.0/24", AvailabilityZone=zone)
    assert made.attributes["AvailabilityZone"] == zone


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
