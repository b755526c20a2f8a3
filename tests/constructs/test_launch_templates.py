"""Launch templates of nodes."""

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Template

from tests.bad_files import FOLDER
from ultracluster.catalog import catalog, interface_layout
from ultracluster.catalog.records import records
from ultracluster.config.loader import load
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.tags import OWN_TAGS
from ultracluster.constructs.launch_templates import (
    AcceleratedLaunchTemplate,
    CpuLaunchTemplate,
    cpu_architecture,
    group_name,
)
from ultracluster.errors import InvalidArgument
from ultracluster.stacks.base import node_tags

BLOCK = {"type": "capacity_block", "reservation_id": "cr-0123456789abcdef0"}
ULTRASERVER = {
    "type": "capacity_block",
    "ultraserver": "u-p6e-gb200x36",
    "reservation_ids": ["cr-0123456789abcdef0"],
}
TARGET = {"CapacityReservationTarget": {"CapacityReservationId": "cr-0123456789abcdef0"}}
GROUP_ARN = "arn:aws:resource-groups:us-east-2:111122223333:group/x"


def group(instance_type="p5.48xlarge", purchase=None, **changes):
    ultraserver = catalog[instance_type].ultraserver_only
    return NodeGroup.model_validate(
        {
            "name": "train",
            "instance_type": instance_type,
            "count": 9 if ultraserver else 2,
            "purchase": purchase or (ULTRASERVER if ultraserver else {"type": "on_demand"}),
            **changes,
        }
    )


def launch_template(settings=None, control_plane="pcs"):
    stack = cdk.Stack(cdk.App(), "stack")
    AcceleratedLaunchTemplate(
        stack,
        "Template",
        settings=settings or group(),
        control_plane=control_plane,
        subnet=ec2.Subnet.from_subnet_id(stack, "Subnet", "subnet-1"),
        security_groups=[
            ec2.SecurityGroup.from_security_group_id(stack, name, f"sg-{name}") for name in ("efa", "cluster")
        ],
        user_data="#!/bin/bash",
        tags={"Name": "train"},
    )
    template = Template.from_stack(stack)
    (resource,) = template.find_resources("AWS::EC2::LaunchTemplate").values()
    return resource["Properties"]["LaunchTemplateData"], template


@pytest.mark.parametrize("instance_type", catalog)
@pytest.mark.parametrize("profile", ["fewest_ips", "max_bandwidth", "efa_with_ip"])
def test_every_interface_of_the_layout_is_in_the_template(instance_type, profile):
    data, _ = launch_template(group(instance_type, interfaces=profile))
    wired = [(n["NetworkCardIndex"], n["DeviceIndex"], n["InterfaceType"]) for n in data["NetworkInterfaces"]]
    assert wired == [tuple(interface) for interface in interface_layout(catalog[instance_type], profile)]


def test_p5_has_its_32_efa_interfaces_with_both_security_groups_and_no_public_address():
    data, _ = launch_template()
    interfaces = data["NetworkInterfaces"]
    assert sum(n["InterfaceType"] == "efa" for n in interfaces) == 32
    assert all(n["Groups"] == ["sg-efa", "sg-cluster"] for n in interfaces)
    assert not any("AssociatePublicIpAddress" in n for n in interfaces)
    assert "SecurityGroupIds" not in data


def test_on_demand_launches_into_a_cluster_placement_group_of_its_own():
    data, template = launch_template()
    (group,) = template.find_resources("AWS::EC2::PlacementGroup")
    assert data["Placement"] == {"GroupName": {"Ref": group}}
    template.has_resource_properties("AWS::EC2::PlacementGroup", {"Strategy": "cluster"})
    assert "InstanceMarketOptions" not in data


def test_a_capacity_block_has_market_type_and_reservation_but_no_placement_group():
    data, template = launch_template(group(purchase=BLOCK))
    assert data["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
    assert data["CapacityReservationSpecification"] == TARGET
    assert "Placement" not in data
    template.resource_count_is("AWS::EC2::PlacementGroup", 0)


def test_a_reservation_group_is_targeted_by_its_arn_and_gets_no_new_placement_group():
    data, template = launch_template(group(purchase={"type": "reservation", "reservation_group_arn": GROUP_ARN}))
    target = data["CapacityReservationSpecification"]["CapacityReservationTarget"]
    assert target == {"CapacityReservationResourceGroupArn": GROUP_ARN}
    assert "Placement" not in data
    template.resource_count_is("AWS::EC2::PlacementGroup", 0)


def test_a_reservation_launches_into_the_placement_group_that_it_was_created_in():
    purchase = {"type": "reservation", "reservation_id": "cr-0123456789abcdef0"}
    data, _ = launch_template(group(purchase=purchase, placement={"existing": "research"}))
    assert data["CapacityReservationSpecification"] == TARGET
    assert data["Placement"] == {"GroupName": "research"}


def test_an_existing_placement_group_is_used_by_name():
    data, template = launch_template(group(placement={"existing": "research"}))
    assert data["Placement"] == {"GroupName": "research"}
    template.resource_count_is("AWS::EC2::PlacementGroup", 0)


def test_the_node_group_asks_for_spot_not_the_launch_template():
    data, _ = launch_template(group(purchase={"type": "spot"}))
    assert "InstanceMarketOptions" not in data


def test_imdsv2_is_required_and_the_root_volume_is_encrypted():
    data, _ = launch_template()
    assert data["MetadataOptions"]["HttpTokens"] == "required"
    (volume,) = data["BlockDeviceMappings"]
    assert volume["Ebs"] == {"VolumeSize": 300, "VolumeType": "gp3", "Encrypted": True, "DeleteOnTermination": True}


@pytest.mark.parametrize(("control_plane", "device", "hops"), [("pcs", "/dev/sda1", 1), ("eks", "/dev/xvda", 1)])
def test_root_device_and_hop_limit_are_those_of_the_control_plane_s_image(control_plane, device, hops):
    data, _ = launch_template(control_plane=control_plane)
    assert data["MetadataOptions"]["HttpPutResponseHopLimit"] == hops
    assert [volume["DeviceName"] for volume in data["BlockDeviceMappings"]] == [device]


def test_the_launch_template_names_the_ami_on_eks_only():
    settings = group(image="ami-0123456789abcdef0")
    assert launch_template(settings, "eks")[0]["ImageId"] == "ami-0123456789abcdef0"
    assert "ImageId" not in launch_template(settings, "pcs")[0]


def test_without_tags_there_are_no_tag_specifications():
    stack = cdk.Stack(cdk.App(), "stack")
    CpuLaunchTemplate(
        stack, "Template", control_plane="pcs", security_groups=["sg-1"], root_volume_gib=100, user_data=""
    )
    (resource,) = Template.from_stack(stack).find_resources("AWS::EC2::LaunchTemplate").values()
    assert "TagSpecifications" not in resource["Properties"]["LaunchTemplateData"]


def test_another_instance_type_gives_a_group_another_name():
    one, other = group_name("train", "p5.48xlarge"), group_name("train", "p5e.48xlarge")
    assert one != other
    assert len(group_name("a" * 18, "p5.48xlarge")) == 25


def test_several_ultraservers_are_launched_block_by_block():
    two = {**ULTRASERVER, "reservation_ids": ["cr-0123456789abcdef0", "cr-0123456789abcdef1"]}
    with pytest.raises(InvalidArgument, match=r"Pass each of settings\.blocks"):
        launch_template(group("p6e-gb200.36xlarge", purchase=two, count=18))


def test_names_tell_the_architecture_of_types_that_are_not_in_the_list():
    """A1 is older than the naming convention."""
    families = {name: entry["architecture"] for name, entry in records("ec2_types")["families"].items() if name != "a1"}
    assert {name: cpu_architecture(f"{name}.newer") for name in families} == families


def test_nodes_have_as_many_tags_of_ours_as_the_rule_about_tags_counts():
    environment = load(FOLDER / "minimal.yaml")
    assert len(node_tags(environment, "train")) == OWN_TAGS


def cpu_group(**changes):
    return NodeGroup.model_validate({"name": "prep", "instance_type": "m7i.4xlarge", "count": 2, **changes})


@pytest.mark.parametrize("control_plane", ["pcs", "eks"])
def test_nodes_without_efa_name_security_groups_and_leave_the_subnet_to_the_control_plane(control_plane):
    data, template = launch_template(cpu_group(zones=["us-east-2a", "us-east-2b"]), control_plane)
    assert data["SecurityGroupIds"] == ["sg-efa", "sg-cluster"]
    assert "NetworkInterfaces" not in data
    assert data["InstanceType"] == "m7i.4xlarge"
    template.resource_count_is("AWS::EC2::PlacementGroup", 0)


def test_a_template_of_several_types_names_none():
    types = {"instance_type": None, "instance_types": ["c7i.48xlarge", "m7i.48xlarge"]}
    data, _ = launch_template(NodeGroup.model_validate({"name": "prep", "count": 2, **types}))
    assert "InstanceType" not in data


@pytest.mark.parametrize(
    ("name", "architecture"),
    [("m7g.large", "arm64"), ("c8gn.xlarge", "arm64"), ("m7i.large", "x86_64"), ("g5g.xlarge", "arm64")],
)
def test_the_architecture_is_that_of_the_record(name, architecture):
    assert cpu_architecture(name) == architecture


@pytest.mark.parametrize(("name", "architecture"), [("m99g.large", "arm64"), ("m99i.large", "x86_64")])
def test_the_architecture_of_a_newer_type_follows_from_its_name(name, architecture):
    assert cpu_architecture(name) == architecture


def test_one_type_in_a_list_is_one_type():
    """A capacity block needs its type in the launch template."""
    listed = {"instance_types": ["p5.48xlarge"], "purchase": BLOCK}
    data, _ = launch_template(NodeGroup.model_validate({"name": "train", "count": 2, **listed}))
    assert data["InstanceType"] == "p5.48xlarge"
