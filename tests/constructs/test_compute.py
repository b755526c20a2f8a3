"""Launch templates of nodes."""

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Template
from ultracluster.constructs.compute import AcceleratedLaunchTemplate

from ultracluster.catalog import catalog, interface_layout
from ultracluster.config.launch import Launch

ON_DEMAND = Launch(market=None, reservation_id=None, reservation_group_arn=None, cluster_group=True)


def launch_template(launch=ON_DEMAND, instance_type="p5.48xlarge", profile="efa_with_ip"):
    stack = cdk.Stack(cdk.App(), "stack")
    subnet = ec2.Subnet.from_subnet_id(stack, "Subnet", "subnet-1")
    groups = [ec2.SecurityGroup.from_security_group_id(stack, name, f"sg-{name}") for name in ("efa", "cluster")]
    AcceleratedLaunchTemplate(
        stack,
        "Template",
        instance_type=instance_type,
        launch=launch,
        layout=interface_layout(catalog[instance_type], profile),
        subnet=subnet,
        security_groups=groups,
        root_volume_gib=300,
        user_data="#!/bin/bash",
        tags={"Name": "train"},
    )
    template = Template.from_stack(stack)
    (resource,) = template.find_resources("AWS::EC2::LaunchTemplate").values()
    return resource["Properties"]["LaunchTemplateData"], template


@pytest.mark.parametrize("instance_type", catalog)
@pytest.mark.parametrize("profile", ["fewest_ips", "max_bandwidth", "efa_with_ip"])
def test_every_interface_of_the_layout_is_in_the_template(instance_type, profile):
    data, _ = launch_template(instance_type=instance_type, profile=profile)
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


def test_a_capacity_block_names_its_market_and_reservation_and_no_placement():
    data, template = launch_template(Launch("capacity-block", "cr-1", None, cluster_group=False))
    assert data["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
    assert data["CapacityReservationSpecification"] == {"CapacityReservationTarget": {"CapacityReservationId": "cr-1"}}
    assert "Placement" not in data
    template.resource_count_is("AWS::EC2::PlacementGroup", 0)


def test_a_reservation_group_is_targeted_by_its_arn_and_keeps_the_placement_group():
    data, _ = launch_template(Launch(None, None, "arn:aws:resource-groups:::group/x", cluster_group=True))
    target = data["CapacityReservationSpecification"]["CapacityReservationTarget"]
    assert target == {"CapacityReservationResourceGroupArn": "arn:aws:resource-groups:::group/x"}
    assert "Placement" in data


def test_an_existing_placement_group_is_used_by_name():
    data, template = launch_template(Launch(None, None, None, cluster_group="research"))
    assert data["Placement"] == {"GroupName": "research"}
    template.resource_count_is("AWS::EC2::PlacementGroup", 0)


def test_spot_is_left_to_the_node_group():
    data, _ = launch_template(Launch("spot", None, None, cluster_group=True))
    assert "InstanceMarketOptions" not in data


def test_metadata_takes_only_tokens_and_the_root_volume_is_encrypted():
    data, _ = launch_template()
    assert data["MetadataOptions"]["HttpTokens"] == "required"
    (volume,) = data["BlockDeviceMappings"]
    assert volume["Ebs"] == {"VolumeSize": 300, "VolumeType": "gp3", "Encrypted": True, "DeleteOnTermination": True}
