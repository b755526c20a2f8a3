"""VPC endpoints and flow logs."""

from typing import Any

import pytest

from handler_parts import Stack

ENDPOINT = "AWS::EC2::VPCEndpoint"


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
    old = {**base, "RouteTableIds": [first]}
    made = stack.create(ENDPOINT, **old)
    assert (routed(stack, first), routed(stack, second)) == ([made.physical_id], [])

    new = {**base, "RouteTableIds": [second]}
    stack.update(ENDPOINT, made.physical_id, old, new)
    assert (routed(stack, first), routed(stack, second)) == ([], [made.physical_id])
    stack.delete(ENDPOINT, made.physical_id)
    assert routed(stack, second) == []


@pytest.mark.parametrize("service", ["pcs", "ssm", "ecr.dkr", "logs", "aps-workspaces", "fsx"])
def test_an_interface_endpoint_has_an_interface_in_each_subnet(stack, vpc, subnets, service):
    group, other = (stack.make("AWS::EC2::SecurityGroup", GroupDescription="g", VpcId=vpc) for _ in range(2))
    base = {"VpcId": vpc, "ServiceName": f"com.amazonaws.us-east-1.{service}", "VpcEndpointType": "Interface"}
    old = {**base, "SubnetIds": subnets, "SecurityGroupIds": [group], "PrivateDnsEnabled": True}
    made = stack.create(ENDPOINT, **old)
    assert interfaces(stack, made.attributes["NetworkInterfaceIds"]) == {subnet: [group] for subnet in subnets}
    assert all(":" in entry for entry in made.attributes["DnsEntries"])

    new = {**base, "SubnetIds": subnets[1:], "SecurityGroupIds": [other], "PrivateDnsEnabled": False}
    changed = stack.update(ENDPOINT, made.physical_id, old, new)
    assert interfaces(stack, changed.attributes["NetworkInterfaceIds"]) == {subnets[1]: [other]}
    again = stack.update(ENDPOINT, made.physical_id, new, old)
    assert interfaces(stack, again.attributes["NetworkInterfaceIds"]) == {subnet: [group] for subnet in subnets}


def test_interface_endpoint_without_groups_has_the_default_group(stack, vpc, subnets):
    asked = {"VpcId": vpc, "ServiceName": "com.amazonaws.us-east-1.ssm", "VpcEndpointType": "Interface"}
    made = stack.make(ENDPOINT, **asked, SubnetIds=subnets)
    assert [group["GroupName"] for group in endpoint(stack, made)["Groups"]] == ["default"]
