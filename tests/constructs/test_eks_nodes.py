"""Managed node groups of an EKS cluster: every accelerated type, every purchase."""

import json

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Match, Template
from moto.events.models import EventPattern

from tests.constructs.test_eks import Deployed, imported
from ultracluster.catalog import catalog
from ultracluster.catalog.eks import KUBERNETES_VERSIONS, REPAIRS
from ultracluster.config.eks_nodes import CpuNodes, NodeRepair, SystemNodes
from ultracluster.config.node_groups import NodeGroup
from ultracluster.constructs.eks_nodes import repair_configuration, scaling
from ultracluster.constructs.eks_roles import EksNodeRole

BLOCK = {"type": "capacity_block", "reservation_id": "cr-0123456789abcdef0"}
ULTRASERVER = {
    "type": "capacity_block",
    "ultraserver": "u-p6e-gb200x36",
    "reservation_ids": ["cr-0123456789abcdef0"],
}


def group(instance_type="p5en.48xlarge", count=4, purchase=BLOCK, **changes):
    data = {"name": "train", "instance_type": instance_type, "count": count, "purchase": purchase, **changes}
    return NodeGroup.model_validate(data)


def group_of(instance_type):
    if catalog[instance_type].ultraserver_only:
        return group(instance_type, 9, ULTRASERVER)
    return group(instance_type)


class Nodes(Deployed):
    """A cluster with one accelerated node group."""

    def __init__(self, settings, **options):
        super().__init__()
        self.network_addon()
        self.cluster.add_node_group(
            settings,
            role=EksNodeRole(self, "Nodes"),
            subnet=ec2.Subnet.from_subnet_id(self, "NodeSubnet", "subnet-nodes"),
            security_groups=[
                ec2.SecurityGroup.from_security_group_id(self, name, f"sg-{name}") for name in ("efa", "cluster")
            ],
            **options,
        )

    @property
    def launch(self):
        return self.only("AWS::EC2::LaunchTemplate")["LaunchTemplateData"]


@pytest.mark.parametrize("instance_type", catalog)
def test_the_launch_template_of_each_type_has_nothing_that_managed_groups_forbid(instance_type):
    """EKS User Guide, "Customize managed nodes with launch templates": what it forbids."""
    launch = Nodes(group_of(instance_type)).launch
    assert not any("SubnetId" in interface for interface in launch["NetworkInterfaces"])
    assert "SecurityGroupIds" not in launch
    assert "IamInstanceProfile" not in launch
    assert launch["InstanceType"] == instance_type


@pytest.mark.parametrize("instance_type", catalog)
def test_each_type_has_one_address_and_every_efa_card(instance_type):
    interfaces = Nodes(group_of(instance_type)).launch["NetworkInterfaces"]
    kinds = [interface["InterfaceType"] for interface in interfaces]
    assert kinds[0] == "interface"
    assert set(kinds[1:]) == {"efa-only"}
    assert len(kinds) - 1 == len(catalog[instance_type].efa.cards)
    assert interfaces[0]["Groups"] == ["sg-efa", "sg-cluster"]


@pytest.mark.parametrize("instance_type", catalog)
def test_the_ami_type_fits_the_architecture_and_the_release_is_pinned(instance_type):
    nodes = Nodes(group_of(instance_type)).only("AWS::EKS::Nodegroup")
    arm = catalog[instance_type].architecture == "arm64"
    assert nodes["AmiType"] == ("AL2023_ARM_64_NVIDIA" if arm else "AL2023_x86_64_NVIDIA")
    assert nodes["ReleaseVersion"] == KUBERNETES_VERSIONS["1.35"].image_release


def test_with_a_custom_ami_the_group_has_neither_ami_type_nor_release():
    nodes = Nodes(group(image="ami-0123456789abcdef0")).only("AWS::EKS::Nodegroup")
    assert not {"AmiType", "ReleaseVersion", "Version"} & nodes.keys()


def test_accelerated_nodes_have_the_gpu_taint():
    taints = Nodes(group()).only("AWS::EKS::Nodegroup")["Taints"]
    assert taints == [{"Key": "nvidia.com/gpu", "Value": "present", "Effect": "NO_SCHEDULE"}]


def test_a_capacity_block_has_its_capacity_type_and_market_but_no_placement_group():
    stack = Nodes(group())
    assert stack.only("AWS::EKS::Nodegroup")["CapacityType"] == "CAPACITY_BLOCK"
    assert stack.launch["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
    target = {"CapacityReservationTarget": {"CapacityReservationId": "cr-0123456789abcdef0"}}
    assert stack.launch["CapacityReservationSpecification"] == target
    assert "Placement" not in stack.launch


def test_a_reservation_gets_no_new_placement_group():
    stack = Nodes(group(purchase={"type": "reservation", "reservation_id": "cr-0123456789abcdef0"}))
    assert "Placement" not in stack.launch
    assert stack.only("AWS::EKS::Nodegroup")["CapacityType"] == "ON_DEMAND"


@pytest.mark.parametrize("kind", ["on_demand", "spot"])
def test_every_other_purchase_launches_into_a_cluster_placement_group(kind):
    stack = Nodes(group(purchase={"type": kind}))
    assert stack.only("AWS::EC2::PlacementGroup") == {"Strategy": "cluster"}
    assert "Placement" in stack.launch
    # a managed group refuses a template that asks for spot: its capacity type says so
    assert "InstanceMarketOptions" not in stack.launch
    assert stack.only("AWS::EKS::Nodegroup")["CapacityType"] == ("SPOT" if kind == "spot" else "ON_DEMAND")


def test_the_minimum_size_of_a_capacity_block_is_zero():
    assert scaling(group(count=16)) == {"minSize": 0, "maxSize": 16, "desiredSize": 16}


def test_a_schedule_starts_the_nodes_of_a_future_block():
    later = group(count=16, purchase={**BLOCK, "starts": "2030-01-11T11:30:00Z"})
    stack = Nodes(later)
    assert stack.only("AWS::EKS::Nodegroup")["ScalingConfig"]["DesiredSize"] == 0
    schedule = stack.only("AWS::Scheduler::Schedule")
    assert schedule["ScheduleExpression"] == "at(2030-01-11T11:30:00)"
    parts = schedule["Target"]["Input"]["Fn::Join"][1]
    call = json.loads("".join(part if isinstance(part, str) else "NAME" for part in parts))
    assert call["ScalingConfig"] == {"MinSize": 0, "MaxSize": 16, "DesiredSize": 16}
    assert call["NodegroupName"] == stack.only("AWS::EKS::Nodegroup")["NodegroupName"]


def test_the_schedule_s_role_may_only_scale_its_own_group():
    stack = Nodes(group(purchase={**BLOCK, "starts": "2030-01-11T11:30:00Z"}))
    policies = Template.from_stack(stack).find_resources("AWS::IAM::ManagedPolicy").values()
    (policy,) = (found for found in policies if "StartRole" in json.dumps(found["Properties"]["Roles"]))
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
    assert statement["Action"] == "eks:UpdateNodegroupConfig"
    (nodes,) = Template.from_stack(stack).find_resources("AWS::EKS::Nodegroup")
    assert statement["Resource"] == {"Fn::GetAtt": [nodes, "Arn"]}


def test_updates_drain_a_node_before_they_launch_another():
    assert Nodes(group()).only("AWS::EKS::Nodegroup")["UpdateConfig"]["UpdateStrategy"] == "MINIMAL"


def test_every_repair_of_the_catalogue_is_an_override_with_all_four_fields():
    config = repair_configuration(NodeRepair(max_unhealthy_percent=10))
    assert config["maxUnhealthyNodeThresholdPercentage"] == 10
    assert len(config["nodeRepairConfigOverrides"]) == len(REPAIRS)
    fields = {"nodeMonitoringCondition", "nodeUnhealthyReason", "minRepairWaitTimeMins", "repairAction"}
    assert all(entry.keys() == fields for entry in config["nodeRepairConfigOverrides"])


def test_disabled_repair_has_no_other_settings():
    assert repair_configuration(NodeRepair(enabled=False)) == {"enabled": False}


def test_another_purchase_gives_a_group_another_name():
    """Capacity and AMI type never change on a group; the new group is created while the old one has its name."""
    names = {
        Nodes(group(purchase=purchase)).only("AWS::EKS::Nodegroup")["NodegroupName"]
        for purchase in (BLOCK, {"type": "on_demand"}, {"type": "spot"})
    }
    assert len(names) == 3


@pytest.mark.parametrize(
    ("instance_type", "image"), [("m7i.2xlarge", "AL2023_x86_64_STANDARD"), ("m8g.2xlarge", "AL2023_ARM_64_STANDARD")]
)
def test_system_nodes_are_in_two_subnets_and_tainted(instance_type, image):
    stack = Deployed()
    stack.cluster.add_system_nodes(
        SystemNodes(instance_type=instance_type, count=3),
        role=EksNodeRole(stack, "Nodes"),
        subnets=[ec2.Subnet.from_subnet_id(stack, f"System{i}", f"subnet-system{i}") for i in (1, 2)],
        security_groups=["sg-1"],
    )
    nodes = stack.only("AWS::EKS::Nodegroup")
    assert nodes["Subnets"] == ["subnet-system1", "subnet-system2"]
    assert nodes["Taints"] == [{"Key": "CriticalAddonsOnly", "Value": "true", "Effect": "NO_SCHEDULE"}]
    assert (nodes["AmiType"], nodes["InstanceTypes"]) == (image, [instance_type])


def test_cpu_nodes_have_no_taint_and_their_own_label():
    stack = Deployed()
    stack.cluster.add_cpu_nodes(
        CpuNodes(),
        role=EksNodeRole(stack, "Nodes"),
        subnets=[ec2.Subnet.from_subnet_id(stack, "Cpu", "subnet-nodes")],
        security_groups=["sg-1"],
    )
    nodes = stack.only("AWS::EKS::Nodegroup")
    assert "Taints" not in nodes
    assert nodes["Labels"] == {"ultracluster/node-group": "cpu"}
    assert nodes["ScalingConfig"] == {"MinSize": 2, "MaxSize": 3, "DesiredSize": 2}
    assert (nodes["InstanceTypes"], nodes["Subnets"]) == (["m7i.4xlarge"], ["subnet-nodes"])


def test_a_tag_makes_cloudformation_delete_nodes_before_the_network_add_on():
    stack = Nodes(group())
    (addon,) = Template.from_stack(stack).find_resources("AWS::EKS::Addon")
    assert {"Fn::GetAtt": [addon, "Arn"]} in stack.only("AWS::EKS::Nodegroup")["Tags"].values()


def test_user_data_of_a_custom_ami_has_the_endpoint_of_the_cluster():
    custom = json.dumps(Nodes(group(image="ami-0123456789abcdef0")).launch["UserData"])
    for attribute in ("Endpoint", "CertificateAuthorityData"):
        assert f'"{attribute}"]' in custom
    assert "172.20.0.0/16" in custom
    assert "Fn::GetAtt" not in json.dumps(Nodes(group()).launch["UserData"])


def test_labels_and_repair_have_defaults_and_can_be_replaced():
    default = Nodes(group()).only("AWS::EKS::Nodegroup")
    assert default["Labels"] == {"ultracluster/node-group": "train"}
    assert default["NodeRepairConfig"]["Enabled"] is True
    own = Nodes(group(), labels={"team": "research"}, repair=NodeRepair(enabled=False)).only("AWS::EKS::Nodegroup")
    assert own["Labels"] == {"team": "research"}
    assert own["NodeRepairConfig"] == {"Enabled": False}


def test_labels_of_a_custom_ami_are_in_its_user_data_too():
    stack = Nodes(group(image="ami-0123456789abcdef0"), labels={"team": "research"})
    assert "team=research" in json.dumps(stack.launch["UserData"])


def test_tags_are_on_instances_and_volumes():
    specifications = Nodes(group(), tags={"team": "research"}).launch["TagSpecifications"]
    assert {found["ResourceType"] for found in specifications} == {"instance", "volume"}
    assert all(found["Tags"] == [{"Key": "team", "Value": "research"}] for found in specifications)


def test_an_imported_cluster_takes_nodes_with_a_custom_ami():
    stack = cdk.Stack(cdk.App(), "stack")
    cluster = imported(stack)
    cluster.add_node_group(
        group(image="ami-0123456789abcdef0"),
        role="arn:aws:iam::111122223333:role/Nodes",
        subnet="subnet-1",
        security_groups=["sg-theirs"],
    )
    template = Template.from_stack(stack)
    template.has_resource_properties("AWS::EKS::Nodegroup", {"ClusterName": "theirs", "Tags": Match.absent()})
    (launch,) = template.find_resources("AWS::EC2::LaunchTemplate").values()
    assert "https://theirs.example" in json.dumps(launch["Properties"]["LaunchTemplateData"]["UserData"])


CAUSE = (
    "At 2026-11-22T04:36:00Z an instance was taken out of service in response to an EC2 health check indicating it has "
    "been terminated or stopped."
)


def terminated(group_name, cause=CAUSE, subnet="subnet-nodes", **changes):
    """An event of EC2 Auto Scaling (its User Guide, "Amazon EC2 Auto Scaling event reference", 2026)."""
    detail = {
        "StatusCode": "InProgress",
        "AutoScalingGroupName": group_name,
        "Details": {"Availability Zone": "us-east-2b", "Subnet ID": subnet},
        "EC2InstanceId": "i-0123456789abcdef0",
        "Cause": cause,
        "Origin": "AutoScalingGroup",
        "Destination": "EC2",
    }
    kind = "EC2 Instance Terminate Successful"
    return {"source": "aws.autoscaling", "detail-type": kind, "detail": detail, **changes}


def test_nodes_that_stop_again_and_again_raise_an_alarm():
    stack = Nodes(group())
    rule, alarm, nodes = (
        stack.only(f"AWS::{name}") for name in ("Events::Rule", "CloudWatch::Alarm", "EKS::Nodegroup")
    )
    scaling_group = f"eks-{nodes['NodegroupName']}-08fcd120-be5e-acc0-3af6-9e8bc118a639"
    pattern = EventPattern(None, rule["EventPattern"])
    assert pattern.matches_event(terminated(scaling_group))
    for other in (
        terminated(scaling_group.replace("train", "other")),
        terminated(scaling_group, cause="an instance was taken out of service in response to a user request"),
        terminated(scaling_group, cause="a user request update of AutoScalingGroup constraints to min: 0, desired: 0"),
        terminated(scaling_group, subnet="subnet-of-another-cluster"),
        terminated(scaling_group, **{"detail-type": "EC2 Instance Launch Successful"}),
    ):
        assert not pattern.matches_event(other)
    (name,) = Template.from_stack(stack).find_resources("AWS::Events::Rule")
    assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/Events", "MatchedEvents")
    assert alarm["Dimensions"] == [{"Name": "RuleName", "Value": {"Ref": name}}]
    assert (alarm["Threshold"], alarm["Period"], alarm["TreatMissingData"]) == (3, 7200, "notBreaching")


def test_a_group_that_gets_a_role_of_its_own_is_created_beside_the_old_one():
    """EKS changes neither the role nor the name of a group (registry schema, createOnlyProperties)."""
    policy = "arn:aws:iam::111122223333:policy/site"
    own, shared = (
        Nodes(group(**more)).only("AWS::EKS::Nodegroup")["NodegroupName"] for more in ({"policies": [policy]}, {})
    )
    assert own != shared
    assert own.rpartition("-")[0] == shared.rpartition("-")[0]
