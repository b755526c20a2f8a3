"""VPC endpoints and flow logs."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from handler_parts import Stack, own_tags, tags

ENDPOINT = "AWS::EC2::VPCEndpoint"
POLICY = {"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "*"}]}


@pytest.fixture
def vpc(stack: Stack) -> str:
    return stack.make("AWS::EC2::VPC", CidrBlock="10.0.0.0/16", EnableDnsHostnames=True)


@pytest.fixture
def subnets(stack: Stack, vpc: str) -> list[str]:
    zones = {"10.0.0.0/24": "us-east-1a", "10.0.1.0/24": "us-east-1b"}
    return [
        stack.make("AWS::EC2::Subnet", VpcId=vpc, CidrBlock=cidr, AvailabilityZone=zone) for cidr, zone in zones.items()
    ]


def endpoint(stack: Stack, endpoint_id: str) -> dict[str, Any]:
    return stack.client("ec2").describe_vpc_endpoints(VpcEndpointIds=[endpoint_id])["VpcEndpoints"][0]


def interfaces(stack: Stack, ids: list[str]) -> dict[str, list[str]]:
    """Security groups of each interface, by its subnet."""
    found = stack.client("ec2").describe_network_interfaces(NetworkInterfaceIds=ids)["NetworkInterfaces"]
    return {interface["SubnetId"]: [group["GroupId"] for group in interface["Groups"]] for interface in found}


def routed(stack: Stack, table: str) -> list[str]:
    routes = stack.client("ec2").describe_route_tables(RouteTableIds=[table])["RouteTables"][0]["Routes"]
    return [route["GatewayId"] for route in routes if "DestinationPrefixListId" in route]


def test_gateway_endpoint_adds_routes_to_its_route_tables(stack, vpc):
    first, second = (stack.make("AWS::EC2::RouteTable", VpcId=vpc) for _ in range(2))
    base = {"VpcId": vpc, "ServiceName": "com.amazonaws.us-east-1.s3", "VpcEndpointType": "Gateway"}
    old = {**base, "RouteTableIds": [first], "PolicyDocument": POLICY, "Tags": tags(Name="s3")}
    made = stack.create(ENDPOINT, **old)
    found = endpoint(stack, made.physical_id)
    assert (found["VpcEndpointType"], found["RouteTableIds"], found["PrivateDnsEnabled"]) == ("Gateway", [first], False)
    assert json.loads(found["PolicyDocument"]) == POLICY
    assert own_tags(found["Tags"]) == {"Name": "s3"}
    assert (routed(stack, first), routed(stack, second)) == ([made.physical_id], [])

    new = {**base, "RouteTableIds": [second]}
    stack.update(ENDPOINT, made.physical_id, old, new)
    assert (routed(stack, first), routed(stack, second)) == ([], [made.physical_id])
    assert json.loads(endpoint(stack, made.physical_id)["PolicyDocument"])["Statement"][0]["Action"] == "*"

    with pytest.raises(ClientError, match="DependencyViolation"):
        stack.client("ec2").delete_vpc(VpcId=vpc)
    stack.delete(ENDPOINT, made.physical_id)
    assert routed(stack, second) == []
    with pytest.raises(ClientError, match="NotFound"):
        endpoint(stack, made.physical_id)


@pytest.mark.parametrize("service", ["pcs", "ssm", "ecr.dkr", "logs", "aps-workspaces", "fsx"])
def test_interface_endpoint_is_read_back(stack, vpc, subnets, service):
    group, other = (stack.make("AWS::EC2::SecurityGroup", GroupDescription="g", VpcId=vpc) for _ in range(2))
    base = {"VpcId": vpc, "ServiceName": f"com.amazonaws.us-east-1.{service}", "VpcEndpointType": "Interface"}
    old = {**base, "SubnetIds": subnets, "SecurityGroupIds": [group], "PrivateDnsEnabled": True}
    made = stack.create(ENDPOINT, **old)
    found = endpoint(stack, made.physical_id)
    assert (found["SubnetIds"], found["PrivateDnsEnabled"]) == (subnets, True)
    assert [g["GroupId"] for g in found["Groups"]] == [group]
    assert interfaces(stack, made.attributes["NetworkInterfaceIds"]) == {subnet: [group] for subnet in subnets}
    assert all(":" in entry for entry in made.attributes["DnsEntries"])

    new = {**base, "SubnetIds": subnets[1:], "SecurityGroupIds": [other], "PrivateDnsEnabled": False}
    changed = stack.update(ENDPOINT, made.physical_id, old, new)
    assert endpoint(stack, made.physical_id)["PrivateDnsEnabled"] is False
    assert interfaces(stack, changed.attributes["NetworkInterfaceIds"]) == {subnets[1]: [other]}
    again = stack.update(ENDPOINT, made.physical_id, new, old)
    assert interfaces(stack, again.attributes["NetworkInterfaceIds"]) == {subnet: [group] for subnet in subnets}

    with pytest.raises(ClientError, match="DependencyViolation"):
        stack.delete("AWS::EC2::SecurityGroup", group)
    with pytest.raises(ClientError, match="DependencyViolation"):
        stack.delete("AWS::EC2::Subnet", subnets[0])
    stack.delete(ENDPOINT, made.physical_id)
    for made_before in (group, other):
        stack.delete("AWS::EC2::SecurityGroup", made_before)
    stack.delete("AWS::EC2::Subnet", subnets[0])


def test_interface_endpoint_without_groups_has_the_default_group(stack, vpc, subnets):
    asked = {"VpcId": vpc, "ServiceName": "com.amazonaws.us-east-1.ssm", "VpcEndpointType": "Interface"}
    made = stack.make(ENDPOINT, **asked, SubnetIds=subnets)
    assert [group["GroupName"] for group in endpoint(stack, made)["Groups"]] == ["default"]
