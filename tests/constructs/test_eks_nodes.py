"""Managed node groups of an EKS cluster: of every accelerated type, however they are bought."""

import json

import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Template
from ultracluster.constructs.compute import EKS_IMAGE, AcceleratedLaunchTemplate, CpuLaunchTemplate

from tests.constructs.test_eks import Deployed
from ultracluster.catalog import catalog
from ultracluster.catalog.eks import KUBERNETES_VERSIONS, REPAIRS
from ultracluster.config.eks import NodeRepair
from ultracluster.config.node_groups import NodeGroup
from ultracluster.constructs.eks_nodes import EksNodeGroup, EksNodeRole, SystemNodeGroup, repair_configuration, scaling
from ultracluster.kubernetes.labels import GPU_TAINT

BLOCK = {"type": "capacity_block", "reservation_id": "cr-0123456789abcdef0"}
ULTRASERVER = {
    "type": "capacity_block",
    "ultraserver": "u-p6e-gb200x36",
    "reservation_ids": ["cr-0123456789abcdef0"],
}


def group(instance_type="p5en.48xlarge", count=4, purchase=BLOCK, **changes):
    data = {"name": "train", "instance_type": instance_type, "count": count, "purchase": purchase, **changes}
    return NodeGroup.model_validate(data)


def bought(instance_type):
    if catalog[instance_type].ultraserver_only:
        return group(instance_type, 9, ULTRASERVER)
    return group(instance_type)


class Nodes(Deployed):
    """A cluster with one accelerated node group."""

    def __init__(self, settings):
        super().__init__()
        groups = [ec2.SecurityGroup.from_security_group_id(self, name, f"sg-{name}") for name in ("efa", "cluster")]
        template = AcceleratedLaunchTemplate(
            self,
            "Template",
            instance_type=settings.instance_type,
            launch=settings.launch,
            layout=settings.layout("eks"),
            subnet=None,
            security_groups=groups,
            root_volume_gib=300,
            user_data="",
            tags={},
            image=EKS_IMAGE,
        )
        EksNodeGroup(
            self,
            "Group",
            group=settings,
            cluster=self.cluster,
            kubernetes_version="1.35",
            launch_template=template,
            role=EksNodeRole(self, "Nodes"),
            network_addon=self.network_addon(),
            subnet=ec2.Subnet.from_subnet_id(self, "NodeSubnet", "subnet-nodes"),
            labels={"ultracluster/node-group": "train"},
            taint=GPU_TAINT,
            repair=NodeRepair(),
        )

    @property
    def launch(self):
        return self.only("AWS::EC2::LaunchTemplate")["LaunchTemplateData"]


@pytest.mark.parametrize("instance_type", catalog)
def test_the_launch_template_of_each_type_is_one_that_a_managed_group_takes(instance_type):
    """EKS User Guide, "Customize managed nodes with launch templates": what it forbids."""
    launch = Nodes(bought(instance_type)).launch
    assert not any("SubnetId" in interface for interface in launch["NetworkInterfaces"])
    assert "SecurityGroupIds" not in launch
    assert "IamInstanceProfile" not in launch
    assert launch["InstanceType"] == instance_type


@pytest.mark.parametrize("instance_type", catalog)
def test_each_type_has_one_address_and_every_efa_card(instance_type):
    interfaces = Nodes(bought(instance_type)).launch["NetworkInterfaces"]
    kinds = [interface["InterfaceType"] for interface in interfaces]
    assert kinds[0] == "interface"
    assert set(kinds[1:]) == {"efa-only"}
    assert len(kinds) - 1 == len(catalog[instance_type].efa.cards)
    assert interfaces[0]["Groups"] == ["sg-efa", "sg-cluster"]


@pytest.mark.parametrize("instance_type", catalog)
def test_the_image_is_aws_s_for_the_type_s_architecture_in_the_pinned_release(instance_type):
    nodes = Nodes(bought(instance_type)).only("AWS::EKS::Nodegroup")
    arm = catalog[instance_type].architecture == "arm64"
    assert nodes["AmiType"] == ("AL2023_ARM_64_NVIDIA" if arm else "AL2023_x86_64_NVIDIA")
    assert nodes["ReleaseVersion"] == KUBERNETES_VERSIONS["1.35"].image_release


def test_an_image_of_one_s_own_stands_in_the_launch_template_alone():
    nodes = Nodes(group(image="ami-0123456789abcdef0")).only("AWS::EKS::Nodegroup")
    assert not {"AmiType", "ReleaseVersion", "Version"} & nodes.keys()


def test_only_pods_that_tolerate_gpus_come_to_the_nodes():
    taints = Nodes(group()).only("AWS::EKS::Nodegroup")["Taints"]
    assert taints == [{"Key": "nvidia.com/gpu", "Value": "present", "Effect": "NO_SCHEDULE"}]


def test_a_capacity_block_is_said_to_eks_and_to_ec2_and_takes_no_placement_group():
    stack = Nodes(group())
    assert stack.only("AWS::EKS::Nodegroup")["CapacityType"] == "CAPACITY_BLOCK"
    assert stack.launch["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
    target = {"CapacityReservationTarget": {"CapacityReservationId": "cr-0123456789abcdef0"}}
    assert stack.launch["CapacityReservationSpecification"] == target
    assert "Placement" not in stack.launch


@pytest.mark.parametrize("kind", ["on_demand", "spot", "reservation"])
def test_what_is_no_block_sits_in_a_cluster_placement_group(kind):
    purchase = {"type": kind, **({"reservation_id": "cr-0123456789abcdef0"} if kind == "reservation" else {})}
    stack = Nodes(group(purchase=purchase))
    assert stack.only("AWS::EC2::PlacementGroup") == {"Strategy": "cluster"}
    assert "Placement" in stack.launch
    # a managed group refuses a template that asks for spot: its capacity type says so
    assert "InstanceMarketOptions" not in stack.launch
    assert stack.only("AWS::EKS::Nodegroup")["CapacityType"] == ("SPOT" if kind == "spot" else "ON_DEMAND")


def test_a_block_s_group_may_fall_to_nothing_since_eks_empties_it_before_the_end():
    assert scaling(group(count=16)) == {"minSize": 0, "maxSize": 16, "desiredSize": 16}


def test_nodes_of_a_block_that_lies_ahead_are_started_at_its_start():
    later = group(count=16, purchase={**BLOCK, "starts": "2030-01-11T11:30:00Z"})
    stack = Nodes(later)
    assert stack.only("AWS::EKS::Nodegroup")["ScalingConfig"]["DesiredSize"] == 0
    schedule = stack.only("AWS::Scheduler::Schedule")
    assert schedule["ScheduleExpression"] == "at(2030-01-11T11:30:00)"
    parts = schedule["Target"]["Input"]["Fn::Join"][1]
    call = json.loads("".join(part if isinstance(part, str) else "NAME" for part in parts))
    assert call["ScalingConfig"] == {"MinSize": 0, "MaxSize": 16, "DesiredSize": 16}
    assert call["NodegroupName"] == stack.only("AWS::EKS::Nodegroup")["NodegroupName"]


def test_the_start_may_do_nothing_but_size_its_own_group():
    stack = Nodes(group(purchase={**BLOCK, "starts": "2030-01-11T11:30:00Z"}))
    policies = Template.from_stack(stack).find_resources("AWS::IAM::ManagedPolicy").values()
    (policy,) = (found for found in policies if "StartRole" in json.dumps(found["Properties"]["Roles"]))
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
    assert statement["Action"] == "eks:UpdateNodegroupConfig"
    (nodes,) = Template.from_stack(stack).find_resources("AWS::EKS::Nodegroup")
    assert statement["Resource"] == {"Fn::GetAtt": [nodes, "Arn"]}


def test_updates_ask_for_no_more_nodes_than_there_are():
    assert Nodes(group()).only("AWS::EKS::Nodegroup")["UpdateConfig"]["UpdateStrategy"] == "MINIMAL"


def test_every_failure_of_the_catalogue_is_told_to_eks_with_all_four_fields():
    config = repair_configuration(NodeRepair(max_unhealthy_percent=10))
    assert config["maxUnhealthyNodeThresholdPercentage"] == 10
    assert len(config["nodeRepairConfigOverrides"]) == len(REPAIRS)
    fields = {"nodeMonitoringCondition", "nodeUnhealthyReason", "minRepairWaitTimeMins", "repairAction"}
    assert all(entry.keys() == fields for entry in config["nodeRepairConfigOverrides"])


def test_without_repair_nothing_else_is_said():
    assert repair_configuration(NodeRepair(enabled=False)) == {"enabled": False}


def test_another_way_of_buying_makes_a_group_of_another_name():
    """Capacity and image type never change on a group; the new one is made while the old one has its name."""
    names = {
        Nodes(group(purchase=purchase)).only("AWS::EKS::Nodegroup")["NodegroupName"]
        for purchase in (BLOCK, {"type": "on_demand"}, {"type": "spot"})
    }
    assert len(names) == 3


@pytest.mark.parametrize(
    ("instance_type", "image"), [("m7i.2xlarge", "AL2023_x86_64_STANDARD"), ("m8g.2xlarge", "AL2023_ARM_64_STANDARD")]
)
def test_system_nodes_lie_in_two_zones_and_have_no_taint(instance_type, image):
    stack = Deployed()
    template = CpuLaunchTemplate(
        stack, "Template", security_groups=[], root_volume_gib=100, user_data="", tags={}, image=EKS_IMAGE
    )
    SystemNodeGroup(
        stack,
        "System",
        cluster=stack.cluster,
        kubernetes_version="1.35",
        instance_type=instance_type,
        count=3,
        launch_template=template,
        role=EksNodeRole(stack, "Nodes"),
        network_addon=stack.network_addon(),
        subnets=[ec2.Subnet.from_subnet_id(stack, f"System{i}", f"subnet-system{i}") for i in (1, 2)],
        labels={},
    )
    nodes = stack.only("AWS::EKS::Nodegroup")
    assert nodes["Subnets"] == ["subnet-system1", "subnet-system2"]
    assert "Taints" not in nodes
    assert (nodes["AmiType"], nodes["InstanceTypes"]) == (image, [instance_type])


def test_nodes_may_join_pull_images_and_be_reached():
    stack = Deployed()
    EksNodeRole(stack, "Nodes")
    template = Template.from_stack(stack)
    roles = [role["Properties"] for role in template.find_resources("AWS::IAM::Role").values()]
    (role,) = (role for role in roles if "ec2.amazonaws.com" in json.dumps(role))
    names = {json.dumps(arn).rsplit("policy/", 1)[1].rstrip('"]}') for arn in role["ManagedPolicyArns"]}
    assert names == {"AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly"}


def test_cloudformation_keeps_the_network_add_on_as_long_as_there_are_nodes():
    stack = Nodes(group())
    (addon,) = Template.from_stack(stack).find_resources("AWS::EKS::Addon")
    assert {"Fn::GetAtt": [addon, "Arn"]} in stack.only("AWS::EKS::Nodegroup")["Tags"].values()
