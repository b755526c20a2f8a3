"""What is mended or added in moto's EC2 that no handler's test shows: each a fault that moto alone has."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from localaws.services import activate


@pytest.fixture
def ec2() -> Iterator[Any]:
    activate()
    with mock_aws():
        yield boto3.client("ec2", "us-east-1")


def test_tags_of_a_template_are_not_tags_of_its_instances(ec2):
    launched = [{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "node"}]}]
    own = [{"ResourceType": "launch-template", "Tags": [{"Key": "team", "Value": "a"}]}]
    data = {"InstanceType": "p5.48xlarge", "TagSpecifications": launched}
    made = ec2.create_launch_template(LaunchTemplateName="nodes", LaunchTemplateData=data, TagSpecifications=own)
    template = made["LaunchTemplate"]["LaunchTemplateId"]
    version = ec2.describe_launch_template_versions(LaunchTemplateId=template)["LaunchTemplateVersions"][0]
    assert version["LaunchTemplateData"] == data
    assert ec2.describe_launch_templates()["LaunchTemplates"][0]["Tags"] == own[0]["Tags"]


def test_more_versions_than_a_page_of_moto_are_listed(ec2):
    data = {"InstanceType": "p5.48xlarge"}
    ec2.create_launch_template(LaunchTemplateName="nodes", LaunchTemplateData=data)
    for _ in range(19):
        ec2.create_launch_template_version(LaunchTemplateName="nodes", LaunchTemplateData=data)
    assert len(ec2.describe_launch_template_versions(LaunchTemplateName="nodes")["LaunchTemplateVersions"]) == 20


def test_deleted_nat_gateway_leaves_no_interface(ec2):
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = ec2.create_nat_gateway(SubnetId=subnet, AllocationId=address)["NatGateway"]["NatGatewayId"]
    ec2.delete_nat_gateway(NatGatewayId=nat)
    assert ec2.describe_network_interfaces()["NetworkInterfaces"] == []
    assert "AssociationId" not in ec2.describe_addresses()["Addresses"][0]
    with pytest.raises(ClientError, match="NatGatewayNotFound"):
        ec2.delete_nat_gateway(NatGatewayId="nat-0123456789abcdef0")


def test_subnet_must_be_in_a_zone_of_its_region(ec2):
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    with pytest.raises(ClientError, match=r"us-east-1a, .*us-east-1-dfw-2a"):
        ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24", AvailabilityZone="eu-west-3a")


def test_default_vpc_has_no_subnet_in_a_local_zone(ec2):
    zones = {subnet["AvailabilityZone"] for subnet in ec2.describe_subnets()["Subnets"]}
    assert zones == {f"us-east-1{letter}" for letter in "abcdef"}


def test_deleted_subnet_leaves_its_route_table(ec2):
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    ec2.associate_route_table(SubnetId=subnet, RouteTableId=table)
    ec2.delete_subnet(SubnetId=subnet)
    ec2.delete_route_table(RouteTableId=table)
    ec2.delete_vpc(VpcId=vpc)


def test_revoking_a_rule_needs_no_description(ec2):
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    group = ec2.create_security_group(GroupName="g", Description="g", VpcId=vpc)["GroupId"]
    rule = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group, "Description": "self"}]}
    made = ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])["SecurityGroupRules"][0]
    assert made["Description"] == "self"
    bare = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    with pytest.raises(ClientError, match=r"InvalidPermission\.Duplicate"):
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[bare])
    ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=[bare])
    assert ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]["IpPermissions"] == []


def test_description_of_a_prefix_list_rule_can_change(ec2):
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    group = ec2.create_security_group(GroupName="g", Description="g", VpcId=vpc)["GroupId"]
    prefix_list = ec2.describe_managed_prefix_lists()["PrefixLists"][0]["PrefixListId"]
    rule = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}
    for description, call in (
        ("old", ec2.authorize_security_group_egress),
        ("new", ec2.update_security_group_rule_descriptions_egress),
    ):
        lists = [{"PrefixListId": prefix_list, "Description": description}]
        call(GroupId=group, IpPermissions=[{**rule, "PrefixListIds": lists}])
        found = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]["IpPermissionsEgress"][-1]
        assert found["PrefixListIds"] == lists


def test_regions_start_without_images(ec2):
    assert ec2.describe_images()["Images"] == []


def test_pcs_ready_images_have_a_parameter_in_every_region(ec2):
    name = "/aws/service/pcs/ami/dlami-base-ubuntu2404/{}/latest/ami-id"
    found = {
        boto3.client("ssm", region).get_parameter(Name=name.format(architecture))["Parameter"]["Value"]
        for region in ("us-east-1", "us-west-2")
        for architecture in ("x86_64", "arm64")
    }
    assert len(found) == 4
    assert all(len(image) == 21 and image.startswith("ami-") for image in found)
    with pytest.raises(ClientError, match="ParameterNotFound"):
        boto3.client("ssm", "us-east-1").get_parameter(Name=name.format("riscv"))
