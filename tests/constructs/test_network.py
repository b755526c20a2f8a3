"""Networks that are created, exist or are passed in, and their L2 views."""

import json

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_efs as efs
from aws_cdk.assertions import Match, Template

from tests.constructs.conftest import US_EAST_2
from ultracluster.config.network import CreateNetwork, ExistingNetwork, Network
from ultracluster.config.problems import InvalidSettings
from ultracluster.constructs.network import ClusterNetwork
from ultracluster.constructs.references import WrongReference
from ultracluster.errors import InvalidArgument, UltraclusterError

EXISTING = ExistingNetwork(
    vpc_id="vpc-0123456789abcdef0",
    node_subnet_id="subnet-0123456789abcdef0",
    control_plane_subnet_ids=("subnet-0123456789abcdef1", "subnet-0123456789abcdef2"),
)
CREATE = Network(create=CreateNetwork(private_endpoints=False, flow_logs=False, nat_gateways=0))


def new_stack(app=None, name="stack"):
    return cdk.Stack(app or cdk.App(), name, env=US_EAST_2)


def created(stack):
    return ClusterNetwork(stack, "Network", settings=CREATE, zone="us-east-2b")


def of_type(stack, kind):
    return [found["Properties"] for found in Template.from_stack(stack).find_resources(kind).values()]


# a network by its ids


def test_existing_network_gets_only_security_groups(synth):
    settings = Network(existing=EXISTING)
    template = synth(lambda stack: ClusterNetwork(stack, "Network", settings=settings, zone="us-east-2b"))
    kinds = {resource["Type"] for resource in template.to_json()["Resources"].values()}
    assert kinds == {
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::EC2::SecurityGroupEgress",
    }
    template.all_resources_properties("AWS::EC2::SecurityGroup", {"VpcId": EXISTING.vpc_id})


def test_existing_network_gives_its_subnets():
    network = ClusterNetwork(new_stack(), "Network", settings=Network(existing=EXISTING), zone="us-east-2b")
    assert network.node_subnet.subnet_id == EXISTING.node_subnet_id
    assert network.node_subnet.availability_zone == "us-east-2b"
    assert tuple(subnet.subnet_id for subnet in network.control_plane_subnets) == EXISTING.control_plane_subnet_ids


def test_a_new_network_needs_a_zone():
    with pytest.raises(InvalidArgument, match=r"zone is missing\. Name the Availability Zone"):
        ClusterNetwork(new_stack(), "Network", settings=CREATE)


# a network in a VPC of the app


def l1_vpc(stack):
    vpc = ec2.CfnVPC(stack, "Vpc", cidr_block="10.0.0.0/16")
    return vpc, [ec2.CfnSubnet(stack, f"S{i}", vpc_id=vpc.ref, cidr_block=f"10.0.{i}.0/24") for i in range(2)]


def l2_vpc(stack):
    vpc = ec2.Vpc(stack, "Vpc", max_azs=2)
    return vpc, vpc.private_subnets


def looked_up_vpc(stack):
    vpc = ec2.Vpc.from_lookup(stack, "Vpc", vpc_id="vpc-0123456789abcdef0")
    return vpc, vpc.private_subnets


@pytest.mark.parametrize("make", [l1_vpc, l2_vpc, looked_up_vpc])
def test_in_vpc_creates_the_security_groups_in_any_vpc(make):
    stack = new_stack()
    vpc, subnets = make(stack)
    network = ClusterNetwork.in_vpc(
        stack, "Network", vpc=vpc, node_subnet=subnets[0], control_plane_subnets=list(subnets)
    )
    groups = of_type(stack, "AWS::EC2::SecurityGroup")
    assert [group["VpcId"] for group in groups] == [stack.resolve(network.vpc_id)] * 2
    assert network.node_subnet_id == network.control_plane_subnet_ids[0]
    assert len(network.control_plane_subnet_ids) == 2


@pytest.mark.parametrize("make", [l2_vpc, looked_up_vpc])
def test_an_l2_that_the_app_passed_is_its_own_view(make):
    stack = new_stack()
    vpc, subnets = make(stack)
    network = ClusterNetwork.in_vpc(
        stack, "Network", vpc=vpc, node_subnet=subnets[0], control_plane_subnets=list(subnets)
    )
    assert network.vpc is vpc
    assert network.node_subnet is subnets[0]
    assert network.control_plane_subnets == list(subnets)


def test_an_l1_that_the_app_passed_is_imported_as_its_view():
    stack = new_stack()
    vpc, (node_subnet, other) = l1_vpc(stack)
    network = ClusterNetwork.in_vpc(
        stack, "Network", vpc=vpc, node_subnet=node_subnet, control_plane_subnets=[node_subnet, other]
    )
    ids = [network.vpc.vpc_id, network.node_subnet.subnet_id, network.control_plane_subnets[1].subnet_id]
    assert stack.resolve(ids) == [{"Ref": "Vpc"}, {"Ref": "S0"}, {"Ref": "S1"}]


def test_from_network_attributes_creates_nothing():
    stack = new_stack()
    group = ec2.SecurityGroup.from_security_group_id(stack, "Cluster", "sg-cluster")
    network = ClusterNetwork.from_network_attributes(
        stack,
        "Network",
        vpc=EXISTING.vpc_id,
        node_subnet=EXISTING.node_subnet_id,
        control_plane_subnets=EXISTING.control_plane_subnet_ids,
        cluster_security_group=group,
        efa_security_group="sg-efa",
    )
    assert network.node_security_group_ids == ("sg-efa", "sg-cluster")
    assert network.cluster_security_group is group
    assert network.efa_security_group.security_group_id == "sg-efa"
    assert network.vpc.vpc_id == EXISTING.vpc_id
    assert Template.from_stack(stack).to_json().get("Resources", {}) == {}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"vpc": "my-vpc"}, "'my-vpc' is not the id of a VPC. Pass vpc-"),
        ({"vpc": None}, "Pass an aws_cdk.interfaces.aws_ec2.IVPCRef"),
        ({"node_subnet": 1}, "Pass an aws_cdk.interfaces.aws_ec2.ISubnetRef"),
        ({"control_plane_subnets": ["a"]}, "'a' is not the id of a subnet"),
        ({"control_plane_subnets": []}, "control_plane_subnet_ids"),
    ],
)
def test_a_wrong_argument_says_what_to_pass(wrong, message):
    place = {
        "vpc": EXISTING.vpc_id,
        "node_subnet": EXISTING.node_subnet_id,
        "control_plane_subnets": EXISTING.control_plane_subnet_ids,
    }
    with pytest.raises(UltraclusterError) as refused:
        ClusterNetwork.in_vpc(new_stack(), "Network", **{**place, **wrong})
    assert message in str(refused.value)
    assert isinstance(refused.value, WrongReference | InvalidSettings)


# L2 views of a network that is created


def test_l2_constructs_can_use_the_views():
    stack = new_stack()
    network = created(stack)
    group = ec2.SecurityGroup(stack, "Group", vpc=network.vpc)
    group.connections.allow_from(ec2.Peer.ipv4(network.vpc.vpc_cidr_block), ec2.Port.tcp(22))
    efs.FileSystem(stack, "Shared", vpc=network.vpc, security_group=group)
    nodes = ec2.SubnetSelection(subnets=[network.node_subnet])
    efs.FileSystem(stack, "Scratch", vpc=network.vpc, vpc_subnets=nodes, security_group=group)
    template = Template.from_stack(stack)
    mounts = template.find_resources("AWS::EFS::MountTarget").items()
    subnets = {name: found["Properties"]["SubnetId"]["Ref"] for name, found in mounts}
    assert {subnet for name, subnet in subnets.items() if name.startswith("Shared")} == {
        stack.resolve(subnet)["Ref"] for subnet in network.control_plane_subnet_ids
    }
    assert {subnet for name, subnet in subnets.items() if name.startswith("Scratch")} == {
        stack.resolve(network.node_subnet_id)["Ref"]
    }
    template.has_resource_properties(
        "AWS::EC2::SecurityGroup",
        {
            "VpcId": stack.resolve(network.vpc_id),
            "SecurityGroupIngress": [Match.object_like({"CidrIp": "10.0.0.0/16", "FromPort": 22})],
        },
    )


def test_an_instance_in_the_node_subnet_is_in_its_zone():
    stack = new_stack()
    network = created(stack)
    ec2.Instance(
        stack,
        "Bastion",
        vpc=network.vpc,
        vpc_subnets=ec2.SubnetSelection(subnets=[network.node_subnet]),
        security_group=network.cluster_security_group,
        instance_type=ec2.InstanceType("m7i.large"),
        machine_image=ec2.MachineImage.generic_linux({"us-east-2": "ami-0123456789abcdef0"}),
    )
    (instance,) = of_type(stack, "AWS::EC2::Instance")
    assert instance["AvailabilityZone"] == "us-east-2b"
    assert instance["SubnetId"] == stack.resolve(network.node_subnet_id)
    assert instance["SecurityGroupIds"] == [stack.resolve(network.cluster_security_group_id)]


def test_a_gateway_endpoint_can_be_added_through_the_view():
    stack = new_stack()
    network = created(stack)
    network.vpc.add_gateway_endpoint("DynamoDb", service=ec2.GatewayVpcEndpointAwsService.DYNAMODB)
    endpoints = of_type(stack, "AWS::EC2::VPCEndpoint")
    (added,) = (found for found in endpoints if "dynamodb" in json.dumps(found["ServiceName"]))
    assert len(added["RouteTableIds"]) == 2


def test_rules_can_be_added_to_the_security_groups_through_their_views():
    stack = new_stack()
    network = created(stack)
    network.efa_security_group.connections.allow_from(network.cluster_security_group, ec2.Port.tcp(22))
    groups = {"GroupId": network.efa_security_group_id, "SourceSecurityGroupId": network.cluster_security_group_id}
    assert any(
        rule.items() >= {**stack.resolve(groups), "FromPort": 22}.items()
        for rule in of_type(stack, "AWS::EC2::SecurityGroupIngress")
    )


def test_another_stack_can_use_the_views_without_a_dependency_cycle():
    app = cdk.App()
    network = created(new_stack(app, "network"))
    users = new_stack(app, "users")
    group = ec2.SecurityGroup(users, "Group", vpc=network.vpc)
    group.connections.allow_from(network.cluster_security_group, ec2.Port.tcp(22))
    efs.FileSystem(users, "Home", vpc=network.vpc)
    app.synth()
    (rule,) = of_type(users, "AWS::EC2::SecurityGroupIngress")
    assert "Fn::ImportValue" in rule["SourceSecurityGroupId"]
    assert [stack.node.id for stack in network.vpc.stack.dependencies] == []
