"""VPC endpoints and flow logs."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from handler_parts import Stack, own_tags, tags
from localaws.resources import HandlerError

ENDPOINT = "AWS::EC2::VPCEndpoint"
POLICY = {"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "*"}]}
TRUST = {"Statement": [{"Effect": "Allow", "Principal": {"Service": "vpc-flow-logs.amazonaws.com"}, "Action": "a:b"}]}


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


@pytest.mark.parametrize(
    ("change", "error", "reason"),
    [
        ({"ServiceName": "com.amazonaws.us-east-1.lustre"}, ClientError, "InvalidServiceName"),
        ({"ServiceName": "com.amazonaws.us-east-2.ssm"}, ClientError, "InvalidServiceName"),
        ({"VpcEndpointType": "Gateway"}, ClientError, "InvalidServiceName"),
        ({"SecurityGroupIds": ["sg-0123456789abcdef0"]}, HandlerError, "sg-0123456789abcdef0"),
        ({"SubnetIds": ["subnet-0123456789abcdef0"]}, HandlerError, "subnet-0123456789abcdef0"),
        ({"VpcId": "vpc-0123456789abcdef0"}, HandlerError, "VPC vpc-0123456789abcdef0 does not exist"),
        ({"RouteTableIds": ["rtb-0123456789abcdef0"]}, HandlerError, "rtb-0123456789abcdef0"),
    ],
)
def test_endpoint_refuses_missing_references(stack, vpc, change, error, reason):
    asked = {"VpcId": vpc, "ServiceName": "com.amazonaws.us-east-1.ssm", "VpcEndpointType": "Interface"}
    with pytest.raises(error, match=reason):
        stack.create(ENDPOINT, **{**asked, **change})


def test_private_dns_needs_the_dns_names_of_the_vpc(stack):
    vpc = stack.make("AWS::EC2::VPC", CidrBlock="10.0.0.0/16")
    asked = {"VpcId": vpc, "ServiceName": "com.amazonaws.us-east-1.ssm", "VpcEndpointType": "Interface"}
    with pytest.raises(HandlerError, match="enableDnsHostnames"):
        stack.create(ENDPOINT, **asked, PrivateDnsEnabled=True)


def test_endpoint_refuses_a_group_of_another_vpc(stack, vpc):
    group = stack.make("AWS::EC2::SecurityGroup", GroupDescription="g", VpcId=vpc)
    other = stack.make("AWS::EC2::VPC", CidrBlock="10.1.0.0/16")
    asked = {"VpcId": other, "ServiceName": "com.amazonaws.us-east-1.ssm", "VpcEndpointType": "Interface"}
    with pytest.raises(HandlerError, match=f"{group} is not in VPC {other}"):
        stack.create(ENDPOINT, **asked, SecurityGroupIds=[group])


def test_flow_log_to_cloudwatch_is_read_back(stack, vpc):
    group = stack.make("AWS::Logs::LogGroup", LogGroupName="/train/flows")
    role = stack.create("AWS::IAM::Role", AssumeRolePolicyDocument=TRUST).attributes["Arn"]
    asked = {
        "ResourceId": vpc,
        "ResourceType": "VPC",
        "TrafficType": "REJECT",
        "LogDestinationType": "cloud-watch-logs",
        "LogGroupName": group,
        "DeliverLogsPermissionArn": role,
        "MaxAggregationInterval": 60,
        "LogFormat": "${version} ${srcaddr}",
        "Tags": tags(Name="flows"),
    }
    made = stack.create("AWS::EC2::FlowLog", **asked)
    stack.update("AWS::EC2::FlowLog", made.physical_id, asked, {**asked, "Tags": tags(Name="all")})
    found = stack.client("ec2").describe_flow_logs(FlowLogIds=[made.physical_id])["FlowLogs"][0]
    assert {name: found[name] for name in asked.keys() & found.keys() - {"Tags"}} == {
        name: value for name, value in asked.items() if name not in ("Tags", "ResourceType")
    }
    assert (found["DeliverLogsStatus"], own_tags(found["Tags"])) == ("SUCCESS", {"Name": "all"})
    stack.delete("AWS::EC2::FlowLog", made.physical_id)
    assert stack.client("ec2").describe_flow_logs()["FlowLogs"] == []


def test_flow_log_to_a_bucket(stack, vpc):
    bucket = stack.make("AWS::S3::Bucket")
    asked = {"ResourceId": vpc, "ResourceType": "VPC", "TrafficType": "ALL", "LogDestinationType": "s3"}
    made = stack.make("AWS::EC2::FlowLog", **asked, LogDestination=f"arn:aws:s3:::{bucket}/flows")
    found = stack.client("ec2").describe_flow_logs(FlowLogIds=[made])["FlowLogs"][0]
    assert found["LogDestination"] == f"arn:aws:s3:::{bucket}/flows"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"LogGroupName": "/nowhere"}, "log group /nowhere does not exist"),
        ({"DeliverLogsPermissionArn": "arn:aws:iam::123456789012:role/nobody"}, "nobody does not exist"),
        ({"ResourceId": "vpc-0123456789abcdef0"}, "VPC vpc-0123456789abcdef0 does not exist"),
        ({"LogDestinationType": "s3", "LogDestination": "arn:aws:s3:::nowhere"}, "bucket nowhere does not exist"),
    ],
)
def test_flow_log_refuses_missing_references(stack, vpc, change, reason):
    stack.make("AWS::Logs::LogGroup", LogGroupName="/train/flows")
    role = stack.create("AWS::IAM::Role", AssumeRolePolicyDocument=TRUST).attributes["Arn"]
    asked = {"ResourceId": vpc, "ResourceType": "VPC", "TrafficType": "ALL", "LogGroupName": "/train/flows"}
    with pytest.raises(HandlerError, match=reason):
        stack.create("AWS::EC2::FlowLog", **{**asked, "DeliverLogsPermissionArn": role, **change})
