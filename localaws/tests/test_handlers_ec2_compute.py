"""Launch templates, placement groups and capacity reservations."""

import base64
from typing import Any

import pytest
from botocore.exceptions import ClientError

from handler_parts import Stack, own_tags, tags
from localaws.resources import HandlerError
from localaws.services.capacity import seed_reservation

TEMPLATE = "AWS::EC2::LaunchTemplate"
GROUP = "AWS::EC2::PlacementGroup"
RESERVATION = "cr-0123456789abcdef0"
TARGET = {"CapacityReservationTarget": {"CapacityReservationId": RESERVATION}}
BLOCK = {"InstanceMarketOptions": {"MarketType": "capacity-block"}, "CapacityReservationSpecification": TARGET}
TRUST = {"Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]}


def data_of(stack: Stack, template: str, version: str) -> dict[str, Any]:
    ec2 = stack.client("ec2")
    found = ec2.describe_launch_template_versions(LaunchTemplateId=template, Versions=[version])
    return found["LaunchTemplateVersions"][0]["LaunchTemplateData"]


def full_data(stack: Stack) -> dict[str, Any]:
    """Every field that the project's templates use, with the 33 interfaces of a whole P5."""
    vpc = stack.make("AWS::EC2::VPC", CidrBlock="10.0.0.0/16")
    subnet = stack.make("AWS::EC2::Subnet", VpcId=vpc, CidrBlock="10.0.0.0/24", AvailabilityZone="us-east-1a")
    group = stack.make("AWS::EC2::SecurityGroup", GroupDescription="nodes", VpcId=vpc)
    role = stack.make("AWS::IAM::Role", AssumeRolePolicyDocument=TRUST)
    profile = stack.create("AWS::IAM::InstanceProfile", Roles=[role]).attributes["Arn"]
    key = stack.create("AWS::KMS::Key").attributes["Arn"]
    stack.client("ec2").create_key_pair(KeyName="ops")
    return {
        "ImageId": "ami-0123456789abcdef0",
        "InstanceType": "p5.48xlarge",
        "KeyName": "ops",
        "UserData": base64.b64encode(b"#!/bin/bash\n").decode(),
        "EbsOptimized": True,
        "Monitoring": {"Enabled": True},
        "IamInstanceProfile": {"Arn": profile},
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 2, "HttpEndpoint": "enabled"},
        "Placement": {"GroupName": stack.make(GROUP, Strategy="cluster"), "Tenancy": "default"},
        "CapacityReservationSpecification": {"CapacityReservationPreference": "open"},
        "BlockDeviceMappings": [
            {
                "DeviceName": "/dev/xvda",
                "Ebs": {
                    "VolumeSize": 200,
                    "VolumeType": "gp3",
                    "Iops": 3000,
                    "Throughput": 250,
                    "Encrypted": True,
                    "KmsKeyId": key,
                    "DeleteOnTermination": True,
                },
            }
        ],
        "NetworkInterfaces": [
            {
                "NetworkCardIndex": card,
                "DeviceIndex": device,
                "InterfaceType": kind,
                "Groups": [group],
                "SubnetId": subnet,
                "DeleteOnTermination": True,
            }
            for card, device, kind in [
                (0, 0, "interface"),
                (0, 1, "efa-only"),
                *((n, 1, "efa-only") for n in range(1, 32)),
            ]
        ],
        "TagSpecifications": [
            {"ResourceType": "instance", "Tags": tags(Name="node")},
            {"ResourceType": "volume", "Tags": tags(Name="disk")},
        ],
    }


def test_all_template_data_is_read_back(stack):
    data = full_data(stack)
    own = [{"ResourceType": "launch-template", "Tags": tags(Name="nodes")}]
    made = stack.create(
        TEMPLATE,
        LaunchTemplateName="nodes",
        VersionDescription="first",
        LaunchTemplateData=data,
        TagSpecifications=own,
    )
    assert made.attributes == {
        "LaunchTemplateId": made.physical_id,
        "LatestVersionNumber": "1",
        "DefaultVersionNumber": "1",
    }
    assert len(data["NetworkInterfaces"]) == 33
    assert data_of(stack, made.physical_id, "$Latest") == data
    found = stack.client("ec2").describe_launch_templates(LaunchTemplateIds=[made.physical_id])["LaunchTemplates"][0]
    assert (found["LaunchTemplateName"], own_tags(found["Tags"])) == ("nodes", {"Name": "nodes"})


def test_changed_template_gets_a_version_in_place(stack):
    old = {"LaunchTemplateData": {"InstanceType": "p5.48xlarge", "ImageId": "ami-0123456789abcdef0"}}
    new = {"LaunchTemplateData": {"InstanceType": "p5.48xlarge", "ImageId": "ami-0fedcba9876543210"}}
    new["TagSpecifications"] = [{"ResourceType": "launch-template", "Tags": tags(Name="nodes")}]
    made = stack.make(TEMPLATE, **old)
    changed = stack.update(TEMPLATE, made, old, new)
    assert changed.attributes["LatestVersionNumber"] == "2"
    assert changed.attributes["DefaultVersionNumber"] == "1"
    assert data_of(stack, made, "1") == old["LaunchTemplateData"]
    assert data_of(stack, made, "2") == new["LaunchTemplateData"]
    found = stack.client("ec2").describe_launch_templates(LaunchTemplateIds=[made])["LaunchTemplates"][0]
    assert own_tags(found["Tags"]) == {"Name": "nodes"}
    only_tags = {**new, "TagSpecifications": [{"ResourceType": "launch-template", "Tags": tags(team="a")}]}
    assert stack.update(TEMPLATE, made, new, only_tags).attributes["LatestVersionNumber"] == "2"
    found = stack.client("ec2").describe_launch_templates(LaunchTemplateIds=[made])["LaunchTemplates"][0]
    assert own_tags(found["Tags"]) == {"team": "a"}
    stack.delete(TEMPLATE, made)
    with pytest.raises(ClientError, match=r"InvalidLaunchTemplateId\.NotFound"):
        stack.client("ec2").describe_launch_templates(LaunchTemplateIds=[made])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"InstanceType": "p9.48xlarge"}, "no instance type p9.48xlarge"),
        ({"KeyName": "nobody"}, "key pair nobody"),
        ({"IamInstanceProfile": {"Name": "nobody"}}, "instance profile nobody"),
        ({"SecurityGroupIds": ["sg-0123456789abcdef0"]}, "sg-0123456789abcdef0"),
        ({"NetworkInterfaces": [{"DeviceIndex": 0, "Groups": ["sg-0123456789abcdef0"]}]}, "sg-0123456789abcdef0"),
        ({"NetworkInterfaces": [{"SubnetId": "subnet-0123456789abcdef0"}]}, "subnet-0123456789abcdef0"),
        ({"NetworkInterfaces": [{"DeviceIndex": 0}], "SecurityGroupIds": []}, "on each network interface"),
        ({"Placement": {"GroupName": "nowhere"}}, "placement group nowhere"),
        ({"BlockDeviceMappings": [{"Ebs": {"KmsKeyId": "alias/none"}}]}, "KMS key alias/none"),
        ({"CapacityReservationSpecification": TARGET}, f"{RESERVATION} does not exist"),
        ({"InstanceMarketOptions": {"MarketType": "capacity-block"}}, "needs a CapacityReservationTarget"),
        ({**BLOCK, "Placement": {"GroupName": "any"}}, "placement group"),
    ],
)
def test_template_refuses_missing_references(stack, data, reason):
    with pytest.raises(HandlerError, match=reason):
        stack.create(TEMPLATE, LaunchTemplateData=data)


def test_template_refuses_names_that_ec2_does_not_know(stack):
    from localaws.resources import HANDLERS

    data = {"NetworkInterfaces": [{"CardIndex": 0}]}
    with pytest.raises(HandlerError, match="CardIndex"):
        HANDLERS[TEMPLATE].create(stack.context(TEMPLATE), {"LaunchTemplateData": data})


@pytest.mark.parametrize(
    "instance_type", ["p5en.48xlarge", "p6-b200.48xlarge", "p6-b300.48xlarge", "p6e-gb200.36xlarge"]
)
def test_template_accepts_a_matching_capacity_block(stack, instance_type):
    seed_reservation(RESERVATION, instance_type, "us-east-1-dfw-2a", 18)
    data = {**BLOCK, "InstanceType": instance_type}
    made = stack.make(TEMPLATE, LaunchTemplateData=data)
    assert data_of(stack, made, "1") == data


@pytest.mark.parametrize(
    ("seed", "reason"),
    [
        (("p5.48xlarge", "us-east-1a", 8, "capacity-block"), "is for p5.48xlarge, not p5en.48xlarge"),
        (("p5en.48xlarge", "us-east-1a", 8, "default"), "is of type default"),
        (("p5en.48xlarge", "us-east-1b", 8, "capacity-block"), "is in us-east-1b, not us-east-1a"),
    ],
)
def test_template_refuses_a_reservation_of_another_type_kind_or_zone(stack, seed, reason):
    seed_reservation(RESERVATION, *seed)
    data = {**BLOCK, "InstanceType": "p5en.48xlarge", "Placement": {"AvailabilityZone": "us-east-1a"}}
    with pytest.raises(HandlerError, match=reason):
        stack.create(TEMPLATE, LaunchTemplateData=data)


def test_on_demand_reservation_allows_a_placement_group(stack):
    seed_reservation(RESERVATION, "p5.48xlarge", "us-east-1a", 8, "default")
    group = stack.make(GROUP, Strategy="cluster")
    data = {
        "InstanceType": "p5.48xlarge",
        "Placement": {"GroupName": group},
        "CapacityReservationSpecification": TARGET,
    }
    assert data_of(stack, stack.make(TEMPLATE, LaunchTemplateData=data), "1") == data


def test_more_templates_than_a_page_of_moto_are_listed(stack):
    made = {stack.make(TEMPLATE, LaunchTemplateData={"InstanceType": "p5.48xlarge"}) for _ in range(20)}
    found = stack.client("ec2").describe_launch_templates()["LaunchTemplates"]
    assert {template["LaunchTemplateId"] for template in found} == made


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({"Strategy": "cluster"}, {"Strategy": "cluster"}),
        ({"Strategy": "partition", "PartitionCount": 7}, {"Strategy": "partition", "PartitionCount": 7}),
        ({"Strategy": "spread", "SpreadLevel": "rack"}, {"Strategy": "spread", "SpreadLevel": "rack"}),
        ({}, {"Strategy": "cluster"}),
    ],
)
def test_placement_group_is_read_back(stack, asked, shown):
    made = stack.create(GROUP, **asked, Tags=tags(Name="nodes"))
    ec2 = stack.client("ec2")
    found = ec2.describe_placement_groups(GroupNames=[made.physical_id])["PlacementGroups"][0]
    assert found == {
        **shown,
        "GroupName": made.physical_id,
        "GroupId": made.attributes["GroupId"],
        "GroupArn": f"arn:aws:ec2:us-east-1:123456789012:placement-group/{made.physical_id}",
        "State": "available",
        "Tags": found["Tags"],
    }
    assert own_tags(found["Tags"]) == {"Name": "nodes"}
    assert made.physical_id.startswith("Train-Thing-")
    stack.delete(GROUP, made.physical_id)
    with pytest.raises(ClientError, match=r"InvalidPlacementGroup\.Unknown"):
        ec2.describe_placement_groups(GroupNames=[made.physical_id])
    with pytest.raises(ClientError, match=r"InvalidPlacementGroup\.Unknown"):
        stack.delete(GROUP, made.physical_id)


@pytest.mark.parametrize(
    "wrong",
    [
        {"Strategy": "partition", "PartitionCount": 8},
        {"Strategy": "cluster", "PartitionCount": 2},
        {"Strategy": "cluster", "SpreadLevel": "rack"},
        {"Strategy": "scatter"},
    ],
)
def test_placement_group_refuses_settings_of_other_strategies(stack, wrong):
    with pytest.raises(ClientError, match="InvalidParameter"):
        stack.client("ec2").create_placement_group(GroupName="g", **wrong)


def test_placement_groups_are_found_by_filter(stack):
    ec2 = stack.client("ec2")
    stack.make(GROUP, Strategy="spread")
    made = stack.make(GROUP, Strategy="cluster", Tags=tags(team="a"))
    for name, value in {"strategy": "cluster", "tag:team": "a", "group-name": made, "tag-key": "team"}.items():
        found = ec2.describe_placement_groups(Filters=[{"Name": name, "Values": [value]}])["PlacementGroups"]
        assert [group["GroupName"] for group in found] == [made]
    with pytest.raises(ClientError, match="Duplicate"):
        ec2.create_placement_group(GroupName=made)


def test_reservation_is_read_back(stack):
    ec2 = stack.client("ec2")
    seed_reservation(RESERVATION, "p5en.48xlarge", "us-east-1b", 64)
    other = "cr-0fedcba9876543210"
    seed_reservation(other, "p5.48xlarge", "us-east-1a", 8, "default")
    found = ec2.describe_capacity_reservations(CapacityReservationIds=[RESERVATION])["CapacityReservations"][0]
    assert (found["ReservationType"], found["InstanceType"]) == ("capacity-block", "p5en.48xlarge")
    assert (found["AvailabilityZone"], found["TotalInstanceCount"], found["State"]) == ("us-east-1b", 64, "active")
    assert (found["EndDate"] - found["StartDate"]).days == 14
    p5 = [{"Name": "instance-type", "Values": ["p5.48xlarge"]}]
    listed = ec2.describe_capacity_reservations(Filters=p5)["CapacityReservations"]
    assert [(r["CapacityReservationId"], r["EndDateType"]) for r in listed] == [(other, "unlimited")]
    with pytest.raises(ClientError, match=r"InvalidCapacityReservationId\.NotFound"):
        ec2.describe_capacity_reservations(CapacityReservationIds=["cr-00000000000000000"])


@pytest.mark.parametrize(
    ("seed", "reason"),
    [
        (("cr-1", "p5.48xlarge", "us-east-1a", 8), "cr-1"),
        ((RESERVATION, "p9.48xlarge", "us-east-1a", 8), "p9"),
        ((RESERVATION, "p5.48xlarge", "us-east-1z", 8), "us-east-1z"),
        ((RESERVATION, "p5.48xlarge", "us-east-1a", 0), "not 0"),
    ],
)
def test_reservation_that_ec2_could_not_have_is_not_seeded(stack, seed, reason):
    with pytest.raises(ValueError, match=reason):
        seed_reservation(*seed)


def test_a_type_that_moto_lacks_is_described(stack):
    (found,) = stack.client("ec2").describe_instance_types(InstanceTypes=["p6e-gb200.36xlarge"])["InstanceTypes"]
    assert len(found["NetworkInfo"]["NetworkCards"]) == found["NetworkInfo"]["MaximumNetworkCards"] == 17


def test_local_zones_are_listed_on_request(stack):
    ec2 = stack.client("ec2")
    usual = {zone["ZoneName"] for zone in ec2.describe_availability_zones()["AvailabilityZones"]}
    every = {
        zone["ZoneName"] for zone in ec2.describe_availability_zones(AllAvailabilityZones=True)["AvailabilityZones"]
    }
    assert every - usual == {"us-east-1-dfw-2a", "us-east-1-atl-2a"}
    dallas = ec2.describe_availability_zones(ZoneNames=["us-east-1-dfw-2a"])["AvailabilityZones"][0]
    assert (dallas["ZoneType"], dallas["GroupName"]) == ("local-zone", "us-east-1-dfw-2")
    assert dallas["OptInStatus"] == "opted-in"
