"""The VPC of a cluster, its ways out, and the private ways to AWS's services."""

import json

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Match

from tests.synthesis import flags
from ultracluster.catalog.s3_endpoint import aws_owned_buckets
from ultracluster.config.network import CreateNetwork, ExistingNetwork, Network
from ultracluster.constructs.network import ClusterNetwork

LOCAL_ZONE = "us-east-1-dfw-2a"
EXISTING = ExistingNetwork(
    vpc_id="vpc-0123456789abcdef0",
    node_subnet_id="subnet-0123456789abcdef0",
    control_plane_subnet_ids=("subnet-0123456789abcdef1", "subnet-0123456789abcdef2"),
)


def network(stack, zone="us-east-2b", **settings):
    create = Network(create=CreateNetwork(**settings))
    return ClusterNetwork(stack, "Network", settings=create, zone=zone, existing_buckets=["their-bucket"])


@pytest.fixture(scope="module")
def template(synth):
    return synth(network)


@pytest.fixture(scope="module")
def redundant(synth):
    return synth(lambda stack: network(stack, nat_gateways=2))


@pytest.fixture(scope="module")
def closed(synth):
    return synth(lambda stack: network(stack, nat_gateways=0, private_endpoints=False, flow_logs=False))


@pytest.fixture(scope="module")
def existing(synth):
    settings = Network(existing=EXISTING)
    return synth(lambda stack: ClusterNetwork(stack, "Network", settings=settings, zone="us-east-2b"))


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


def test_vpc_resolves_names_as_pcs_asks(template):
    properties = {"CidrBlock": "10.0.0.0/16", "EnableDnsSupport": True, "EnableDnsHostnames": True}
    template.has_resource_properties("AWS::EC2::VPC", properties)


def test_nodes_have_the_upper_half_in_the_zone_of_their_capacity(template):
    _, nodes = subnets(template)["10.0.128.0/17"]
    assert nodes["AvailabilityZone"] == "us-east-2b"


def test_the_node_subnet_may_lie_in_a_local_zone_and_no_other_does(synth):
    made = subnets(synth(lambda stack: network(stack, zone=LOCAL_ZONE)))
    zones = {block: properties["AvailabilityZone"] for block, (_, properties) in made.items()}
    assert zones.pop("10.0.128.0/17") == LOCAL_ZONE
    assert set(map(str, zones.values())) == {str({"Fn::Select": [i, {"Fn::GetAZs": ""}]}) for i in (0, 1)}


def test_control_plane_and_public_subnets_span_two_zones(template):
    zones = {block: str(properties["AvailabilityZone"]) for block, (_, properties) in subnets(template).items()}
    assert zones["10.0.0.0/20"] != zones["10.0.16.0/20"]
    assert zones["10.0.32.0/20"] == zones["10.0.0.0/20"]
    assert zones["10.0.48.0/20"] == zones["10.0.16.0/20"]


def test_no_subnet_gives_public_addresses(template):
    assert {properties["MapPublicIpOnLaunch"] for _, properties in subnets(template).values()} == {False}


def test_public_subnets_lead_to_the_internet_gateway(template):
    (route,) = default_route(template, "10.0.32.0/20")
    assert "GatewayId" in route


def test_one_nat_gateway_serves_all_private_subnets(template):
    template.resource_count_is("AWS::EC2::NatGateway", 1)
    assert len({nat_of(template, block) for block in ("10.0.0.0/20", "10.0.16.0/20", "10.0.128.0/17")}) == 1


def test_two_nat_gateways_serve_a_zone_each_and_nodes_the_first(redundant):
    redundant.resource_count_is("AWS::EC2::NatGateway", 2)
    assert nat_of(redundant, "10.0.0.0/20") != nat_of(redundant, "10.0.16.0/20")
    assert nat_of(redundant, "10.0.128.0/17") == nat_of(redundant, "10.0.0.0/20")


@pytest.mark.parametrize("kind", ["NatGateway", "InternetGateway", "Route", "EIP"])
def test_no_nat_gateway_means_no_way_out(closed, kind):
    closed.resource_count_is(f"AWS::EC2::{kind}", 0)


def test_nothing_is_looked_up_even_where_account_and_region_are_known(tmp_path):
    app = cdk.App(outdir=str(tmp_path), context=flags(), analytics_reporting=False)
    network(cdk.Stack(app, "prod-part", env=cdk.Environment(account="111122223333", region="us-east-2")))
    app.synth()
    assert "missing" not in json.loads((tmp_path / "manifest.json").read_text())


def test_flow_logs_see_all_traffic_and_are_encrypted(template):
    template.has_resource_properties("AWS::EC2::FlowLog", {"TrafficType": "ALL", "ResourceType": "VPC"})
    groups = template.find_resources("AWS::Logs::LogGroup").values()
    assert {group["Properties"]["RetentionInDays"] for group in groups} == {365}
    assert all("KmsKeyId" in group["Properties"] for group in groups)


def test_only_flow_logs_of_this_account_may_use_their_role(template):
    trust = {
        "Principal": {"Service": "vpc-flow-logs.amazonaws.com"},
        "Condition": {
            "StringEquals": {"aws:SourceAccount": "111122223333"},
            "ArnLike": {"aws:SourceArn": "arn:aws:ec2:us-east-2:111122223333:vpc-flow-log/*"},
        },
    }
    document = {"Statement": [Match.object_like(trust)]}
    template.has_resource_properties("AWS::IAM::Role", {"AssumeRolePolicyDocument": Match.object_like(document)})


def test_flow_logs_can_be_left_out(closed):
    closed.resource_count_is("AWS::EC2::FlowLog", 0)


def test_the_default_security_group_is_closed_with_no_more_rights_than_that_takes(template):
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


def gateway(template):
    (endpoint,) = template.find_resources(
        "AWS::EC2::VPCEndpoint", {"Properties": {"VpcEndpointType": "Gateway"}}
    ).values()
    return endpoint["Properties"]


def test_the_s3_endpoint_serves_nodes_and_control_plane(template):
    tables = {table["Ref"] for table in gateway(template)["RouteTableIds"]}
    associations = template.find_resources("AWS::EC2::SubnetRouteTableAssociation").values()
    ids = {subnets(template)[block][0] for block in ("10.0.0.0/20", "10.0.16.0/20", "10.0.128.0/17")}
    assert tables == {
        association["Properties"]["RouteTableId"]["Ref"]
        for association in associations
        if association["Properties"]["SubnetId"]["Ref"] in ids
    }


def test_the_s3_endpoint_carries_data_to_no_stranger(template):
    own, aws, existing = gateway(template)["PolicyDocument"]["Statement"]
    assert own["Condition"] == {"StringEquals": {"aws:ResourceAccount": "111122223333"}}
    assert aws["Action"] == "s3:GetObject"
    assert sorted(aws["Resource"]) == sorted(f"arn:aws:s3:::{name}/*" for name in aws_owned_buckets("us-east-2"))
    assert existing["Resource"] == ["arn:aws:s3:::their-bucket", "arn:aws:s3:::their-bucket/*"]


def test_nodes_can_fetch_pcs_software_and_container_layers_of_the_region():
    assert {"aws-pcs-repo-eu-west-2", "prod-registry-k8s-io-eu-west-2"} <= set(aws_owned_buckets("eu-west-2"))


def services(template):
    """What the interface endpoints of a template lead to."""
    endpoints = template.find_resources("AWS::EC2::VPCEndpoint", {"Properties": {"VpcEndpointType": "Interface"}})
    names = [endpoint["Properties"]["ServiceName"] for endpoint in endpoints.values()]
    assert len(set(names)) == len(names)
    return {name.removeprefix("com.amazonaws.us-east-2.") for name in names}


def test_interface_endpoints_answer_by_private_dns_in_two_zones(template):
    endpoints = template.find_resources("AWS::EC2::VPCEndpoint", {"Properties": {"VpcEndpointType": "Interface"}})
    properties = [endpoint["Properties"] for endpoint in endpoints.values()]
    assert all(each["PrivateDnsEnabled"] and len(each["SubnetIds"]) == 2 for each in properties)


def test_each_control_plane_has_the_endpoints_that_its_nodes_call(template, synth):
    def kubernetes(**settings):
        create = Network(create=CreateNetwork())
        return synth(
            lambda stack: ClusterNetwork(
                stack, "Network", settings=create, zone="us-east-2b", control_plane="eks", **settings
            )
        )

    slurm, eks, karpenter = services(template), services(kubernetes()), services(kubernetes(karpenter=True))
    assert slurm - eks == {"pcs", "secretsmanager"}
    assert eks - slurm == {"eks", "eks-auth"}
    assert karpenter - eks == {"sqs"}
    assert {"ec2", "sts", "logs", "ecr.api", "ecr.dkr", "fsx", "aps-workspaces"} <= slurm & eks


def test_only_members_of_the_cluster_reach_the_endpoints_and_only_over_https(template):
    (endpoints,) = template.find_resources(
        "AWS::EC2::SecurityGroup", {"Properties": {"GroupDescription": "Interface endpoints of AWS services"}}
    )
    (cluster,) = template.find_resources(
        "AWS::EC2::SecurityGroup", {"Properties": {"GroupDescription": "Controller, login nodes and compute nodes"}}
    )
    rules = template.find_resources(
        "AWS::EC2::SecurityGroupIngress", {"Properties": {"GroupId": {"Fn::GetAtt": [endpoints, "GroupId"]}}}
    )
    (rule,) = [rule["Properties"] for rule in rules.values()]
    assert rule["SourceSecurityGroupId"] == {"Fn::GetAtt": [cluster, "GroupId"]}
    assert (rule["IpProtocol"], rule["FromPort"], rule["ToPort"]) == ("tcp", 443, 443)


def test_endpoints_can_be_left_out_but_the_free_one_of_s3(closed):
    closed.resource_count_is("AWS::EC2::VPCEndpoint", 1)


def test_an_existing_network_only_gains_security_groups(existing):
    kinds = {resource["Type"] for resource in existing.to_json()["Resources"].values()}
    assert kinds == {
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::EC2::SecurityGroupEgress",
    }
    existing.all_resources_properties("AWS::EC2::SecurityGroup", {"VpcId": EXISTING.vpc_id})


def test_an_existing_network_hands_on_its_own_subnets(synth):
    made = []
    settings = Network(existing=EXISTING)
    synth(lambda stack: made.append(ClusterNetwork(stack, "Network", settings=settings, zone="us-east-2b")))
    assert made[0].node_subnet.subnet_id == EXISTING.node_subnet_id
    assert tuple(subnet.subnet_id for subnet in made[0].control_plane_subnets) == EXISTING.control_plane_subnet_ids
