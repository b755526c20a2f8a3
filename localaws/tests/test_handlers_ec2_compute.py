"""Launch templates, placement groups and capacity reservations."""

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


def data_of(stack: Stack, template: str, version: str) -> dict[str, Any]:
    ec2 = stack.client("ec2")
    found = ec2.describe_launch_template_versions(LaunchTemplateId=template, Versions=[version])
    return found["LaunchTemplateVersions"][0]["LaunchTemplateData"]


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
