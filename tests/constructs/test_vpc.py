"""The VPC of a cluster: subnets, routes, flow logs and the default security group."""

import json
from ipaddress import IPv4Network

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Match, Template

from tests.synthesis import flags
from ultracluster.config.network import CreateNetwork, Network, subnet_plan, zone_plan
from ultracluster.constructs.network import ClusterNetwork

LOCAL_ZONE = "us-east-1-dfw-2a"


def network(stack, zone="us-east-2b", **settings):
    create = Network(create=CreateNetwork(**settings))
    return ClusterNetwork(stack, "Network", settings=create, zone=zone)


@pytest.fixture(scope="module")
def template(synth):
    return synth(network)


@pytest.fixture(scope="module")
def redundant(synth):
    return synth(lambda stack: network(stack, nat_gateways=2))


@pytest.fixture(scope="module")
def isolated(synth):
    return synth(lambda stack: network(stack, nat_gateways=0, private_endpoints=False, flow_logs=False))


def subnets(template):
    return {
        resource["Properties"]["CidrBlock"]: (logical_id, resource["Properties"])
        for logical_id, resource in template.find_resources("AWS::EC2::Subnet").items()
    }


def default_route(template, block):
    """Target of the default route of the subnet with this block."""
    subnet_id, _ = subnets(template)[block]
    associations = template.find_resources("AWS::EC2::SubnetRouteTableAssociation").values()
    (table,) = [
        association["Properties"]["RouteTableId"]
        for association in associations
        if association["Properties"]["SubnetId"] == {"Ref": subnet_id}
    ]
    return [
        route["Properties"]
        for route in template.find_resources("AWS::EC2::Route").values()
        if route["Properties"]["RouteTableId"] == table
    ]


def nat_of(template, block):
    (route,) = default_route(template, block)
    return route["NatGatewayId"]["Ref"]


def test_dns_support_and_hostnames_are_enabled(template):
    properties = {"CidrBlock": "10.0.0.0/16", "EnableDnsSupport": True, "EnableDnsHostnames": True}
    template.has_resource_properties("AWS::EC2::VPC", properties)


def test_node_subnet_is_the_upper_half_of_the_cidr_in_the_given_zone(template):
    _, nodes = subnets(template)["10.0.128.0/17"]
    assert nodes["AvailabilityZone"] == "us-east-2b"


def test_only_the_node_subnet_is_in_a_local_zone(synth):
    made = subnets(synth(lambda stack: network(stack, zone=LOCAL_ZONE)))
    _, nodes = made.pop("10.0.128.0/17")
    assert nodes["AvailabilityZone"] == LOCAL_ZONE
    assert {properties["AvailabilityZoneId"] for _, properties in made.values()} == {"use2-az1", "use2-az2"}


@pytest.mark.parametrize(
    ("region", "zones"),
    [("us-east-1", ["use1-az1", "use1-az2"]), ("us-west-1", ["usw1-az1", "usw1-az3"])],
)
def test_control_plane_subnets_avoid_the_zones_that_eks_refuses(region, zones):
    template = in_region(region)
    for kind in ("ControlPlane", "Public"):
        found = [properties["AvailabilityZoneId"] for properties in named(template, kind)]
        assert found == zones


@pytest.mark.parametrize("region", [None, "cn-north-1"])
def test_a_region_whose_zone_ids_are_not_known_at_synth_gives_its_first_two_zones(region):
    found = [properties["AvailabilityZone"] for properties in named(in_region(region), "ControlPlane")]
    assert found == [{"Fn::Select": [i, {"Fn::GetAZs": ""}]} for i in (0, 1)]


@pytest.mark.parametrize("zones", [(), ("us-east-2b", "us-east-2c"), ("use2-az2", "use2-az3")])
def test_the_view_of_the_vpc_has_the_zones_of_its_subnets(zones):
    stack = cdk.Stack(cdk.App(), "stack", env=cdk.Environment(region="us-east-2"))
    view = network(stack, control_plane_zones=zones).vpc
    subnets = [*Template.from_stack(stack).find_resources("AWS::EC2::Subnet")]
    expected = [{"Fn::GetAtt": [name, "AvailabilityZone"]} for name in subnets if "ControlPlane" in name]
    assert stack.resolve([subnet.availability_zone for subnet in view.private_subnets]) == expected


def in_region(region):
    stack = cdk.Stack(cdk.App(), "stack", env=cdk.Environment(region=region))
    network(stack)
    return Template.from_stack(stack)


def named(template, kind):
    """Properties of the subnets of a kind, in order."""
    made = template.find_resources("AWS::EC2::Subnet")
    return [made[name]["Properties"] for name in sorted(made) if kind in name]


def test_control_plane_and_public_subnets_span_two_zones(template):
    zones = {block: properties.get("AvailabilityZoneId") for block, (_, properties) in subnets(template).items()}
    assert zones["10.0.0.0/20"] != zones["10.0.16.0/20"]
    assert zones["10.0.32.0/20"] == zones["10.0.0.0/20"]
    assert zones["10.0.48.0/20"] == zones["10.0.16.0/20"]


@pytest.mark.parametrize(
    ("zones", "key"),
    [(("us-east-2a", "us-east-2c"), "AvailabilityZone"), (("use2-az1", "use2-az3"), "AvailabilityZoneId")],
)
def test_control_plane_and_public_subnets_are_in_the_zones_of_the_file(synth, zones, key):
    made = subnets(synth(lambda stack: network(stack, control_plane_zones=zones)))
    _, nodes = made.pop("10.0.128.0/17")
    assert nodes["AvailabilityZone"] == "us-east-2b"
    assert {block: properties[key] for block, (_, properties) in made.items()} == {
        "10.0.0.0/20": zones[0],
        "10.0.16.0/20": zones[1],
        "10.0.32.0/20": zones[0],
        "10.0.48.0/20": zones[1],
    }
    assert all(("AvailabilityZone" in each) != ("AvailabilityZoneId" in each) for _, each in made.values())


def test_no_subnet_assigns_public_addresses(template):
    assert {properties["MapPublicIpOnLaunch"] for _, properties in subnets(template).values()} == {False}


def test_public_subnets_route_to_the_internet_gateway(template):
    (route,) = default_route(template, "10.0.32.0/20")
    assert "GatewayId" in route


def test_one_nat_gateway_serves_all_private_subnets(template):
    template.resource_count_is("AWS::EC2::NatGateway", 1)
    assert len({nat_of(template, block) for block in ("10.0.0.0/20", "10.0.16.0/20", "10.0.128.0/17")}) == 1


def test_with_two_nat_gateways_each_zone_has_one_and_nodes_use_the_first(redundant):
    redundant.resource_count_is("AWS::EC2::NatGateway", 2)
    assert nat_of(redundant, "10.0.0.0/20") != nat_of(redundant, "10.0.16.0/20")
    assert nat_of(redundant, "10.0.128.0/17") == nat_of(redundant, "10.0.0.0/20")


@pytest.mark.parametrize("kind", ["NatGateway", "InternetGateway", "Route", "EIP"])
def test_without_nat_gateways_there_is_no_route_to_the_internet(isolated, kind):
    isolated.resource_count_is(f"AWS::EC2::{kind}", 0)


def test_synth_looks_up_nothing_even_with_account_and_region(tmp_path):
    app = cdk.App(outdir=str(tmp_path), context=flags(), analytics_reporting=False)
    network(cdk.Stack(app, "prod-part", env=cdk.Environment(account="111122223333", region="us-east-2")))
    app.synth()
    assert "missing" not in json.loads((tmp_path / "manifest.json").read_text())


def test_flow_logs_record_all_traffic_and_are_encrypted(template):
    template.has_resource_properties("AWS::EC2::FlowLog", {"TrafficType": "ALL", "ResourceType": "VPC"})
    groups = template.find_resources("AWS::Logs::LogGroup").values()
    assert {group["Properties"]["RetentionInDays"] for group in groups} == {365}
    assert all("KmsKeyId" in group["Properties"] for group in groups)


def test_only_flow_logs_of_this_account_may_assume_the_role(template):
    trust = {
        "Principal": {"Service": "vpc-flow-logs.amazonaws.com"},
        "Condition": {
            "StringEquals": {"aws:SourceAccount": "111122223333"},
            "ArnLike": {"aws:SourceArn": "arn:aws:ec2:us-east-2:111122223333:vpc-flow-log/*"},
        },
    }
    document = {"Statement": [Match.object_like(trust)]}
    template.has_resource_properties("AWS::IAM::Role", {"AssumeRolePolicyDocument": Match.object_like(document)})


def test_flow_logs_can_be_disabled(isolated):
    isolated.resource_count_is("AWS::EC2::FlowLog", 0)


def test_the_function_that_empties_the_default_security_group_may_do_nothing_else(template):
    (vpc,) = template.find_resources("AWS::EC2::VPC")
    group = {"Fn::GetAtt": [vpc, "DefaultSecurityGroup"]}
    template.has_resource_properties("Custom::ClosedDefaultSecurityGroup", {"GroupId": group})
    revoke = {
        "Action": ["ec2:RevokeSecurityGroupEgress", "ec2:RevokeSecurityGroupIngress"],
        "Effect": "Allow",
        "Resource": {"Fn::Join": ["", ["arn:aws:ec2:us-east-2:111122223333:security-group/", group]]},
    }
    document = {"Statement": Match.array_with([revoke])}
    template.has_resource_properties("AWS::IAM::ManagedPolicy", {"PolicyDocument": Match.object_like(document)})


@pytest.fixture(scope="module")
def zones(synth):
    def several(stack):
        create = Network(create=CreateNetwork())
        further = ["us-east-2a", "us-east-2c"]
        return ClusterNetwork(stack, "Network", settings=create, zone="us-east-2b", further_zones=further)

    return synth(several)


def test_a_further_zone_has_a_subnet_of_its_letter_that_no_other_zone_moves(zones):
    found = {
        block: entry["AvailabilityZone"] for block, (_, entry) in subnets(zones).items() if "AvailabilityZone" in entry
    }
    assert found["10.0.64.0/21"] == "us-east-2a"
    assert found["10.0.80.0/21"] == "us-east-2c"
    assert found["10.0.128.0/17"] == "us-east-2b"


def test_nodes_in_further_zones_reach_the_internet_and_s3_as_the_others_do(zones):
    assert nat_of(zones, "10.0.64.0/21") == nat_of(zones, "10.0.128.0/17")
    (gateway,) = [
        endpoint["Properties"]
        for endpoint in zones.find_resources("AWS::EC2::VPCEndpoint").values()
        if endpoint["Properties"].get("VpcEndpointType") == "Gateway"
    ]
    assert len(gateway["RouteTableIds"]) == 5


def test_a_plan_has_room_for_every_zone_of_a_region():
    plan = zone_plan(IPv4Network("10.0.0.0/16"))
    main = subnet_plan(IPv4Network("10.0.0.0/16"))
    assert list(plan) == list("abcdef")
    for block in plan.values():
        assert not any(block.overlaps(other) for other in (main.node, *main.control_plane, *main.public))
    assert zone_plan(IPv4Network("10.0.0.0/24")) == {}
    assert plan["f"] != plan["a"]
