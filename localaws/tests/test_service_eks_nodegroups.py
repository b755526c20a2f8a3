"""Managed node groups as boto3 sees them, and what EKS refuses of their launch templates."""

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from eks_parts import (
    NEXT,
    REGION,
    VERSION,
    Account,
    clear,
    cluster_request,
    group_request,
    make_account,
    make_template,
    refused,
)
from localaws.services.capacity import seed_reservation
from localaws.services.eks_store import IMAGE_RELEASES

INVALID, BUSY = "InvalidParameterException", "ResourceInUseException"
RELEASE = IMAGE_RELEASES[VERSION]
RESERVATION = "cr-0123456789abcdef0"
TARGET = {"CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": RESERVATION}}}
BLOCK = {"InstanceMarketOptions": {"MarketType": "capacity-block"}, **TARGET}
SCALING = {"minSize": 0, "desiredSize": 4, "maxSize": 8}


@pytest.fixture(scope="module")
def one_account(aws: None) -> Account:
    return make_account()


@pytest.fixture
def account(one_account: Account) -> Iterator[Account]:
    one_account.eks.create_cluster(**cluster_request(one_account))
    yield one_account
    clear()


def create(account: Account, template: str | None = None, **changes: Any) -> dict[str, Any]:
    launch = {"launchTemplate": {"id": template, "version": "1"}} if template else {}
    return dict(account.eks.create_nodegroup(**group_request(account, **launch, **changes))["nodegroup"])


def describe(account: Account) -> dict[str, Any]:
    return dict(account.eks.describe_nodegroup(clusterName="train", nodegroupName="gpu")["nodegroup"])


def refuses(account: Account, words: str, template: str | None = None, **changes: Any) -> None:
    launch = {"launchTemplate": {"id": template, "version": "1"}} if template else {}
    refused(INVALID, words, account.eks.create_nodegroup, **group_request(account, **launch, **changes))
    assert account.eks.list_nodegroups(clusterName="train")["nodegroups"] == []


def test_omitted_members_have_the_defaults_of_aws(account: Account) -> None:
    found = create(account, amiType=None)
    assert (found["instanceTypes"], found["amiType"]) == (["t3.medium"], "AL2023_x86_64_STANDARD")
    assert found["scalingConfig"] == {"minSize": 1, "maxSize": 2, "desiredSize": 2}
    assert found["updateConfig"] == {"maxUnavailable": 1, "updateStrategy": "DEFAULT"}
    assert (found["capacityType"], found["diskSize"]) == ("ON_DEMAND", 20)
    assert found["releaseVersion"] == RELEASE


def test_the_access_entry_of_the_nodes_role_is_created_and_deleted(account: Account) -> None:
    create(account, instanceTypes=["p5.48xlarge"])
    create(account, instanceTypes=["p5.48xlarge"], nodegroupName="more")
    entry = {"clusterName": "train", "principalArn": account.node_role}
    assert account.eks.describe_access_entry(**entry)["accessEntry"]["type"] == "EC2_LINUX"
    refused(BUSY, "already in use", account.eks.create_access_entry, **entry)
    account.eks.delete_nodegroup(clusterName="train", nodegroupName="gpu")
    assert account.eks.list_access_entries(clusterName="train")["accessEntries"] == [account.node_role]
    account.eks.delete_nodegroup(clusterName="train", nodegroupName="more")
    assert account.eks.list_access_entries(clusterName="train")["accessEntries"] == []


def test_tags_in_instance_metadata_are_refused_because_eks_sets_keys_with_slashes(account: Account) -> None:
    enabled = make_template(account, MetadataOptions={"InstanceMetadataTags": "enabled"})
    launch = {"id": enabled, "version": "1"}
    request = group_request(account, launchTemplate=launch)
    words = "'kubernetes.io/cluster/train' is not a valid tag key"
    refused("InvalidRequestException", words, account.eks.create_nodegroup, **request)
    disabled = make_template(account, MetadataOptions={"InstanceMetadataTags": "disabled"})
    assert create(account, disabled)["status"] == "ACTIVE"


def test_a_release_of_the_next_version_needs_the_version_too(account: Account) -> None:
    template = make_template(account)
    create(account, template, releaseVersion=RELEASE, version=VERSION)
    account.eks.update_cluster_version(name="train", version=NEXT)
    newer, place = IMAGE_RELEASES[NEXT], {"clusterName": "train", "nodegroupName": "gpu"}
    words = f"Requested release version {newer} is not valid for kubernetes version {VERSION}"
    refused(INVALID, words, account.eks.update_nodegroup_version, **place, releaseVersion=newer)
    account.eks.update_nodegroup_version(**place, releaseVersion=newer, version=NEXT)
    assert (describe(account)["version"], describe(account)["releaseVersion"]) == (NEXT, newer)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"IamInstanceProfile": {"Name": "node"}}, "an instance profile"),
        ({"InstanceMarketOptions": {"MarketType": "spot"}}, "spot market options"),
        ({"InstanceInitiatedShutdownBehavior": "terminate"}, "shutdown behavior"),
        ({"HibernationOptions": {"Configured": True}}, "hibernation options"),
    ],
)
def test_a_launch_template_refuses_members_of_the_group(account: Account, data: dict[str, Any], words: str) -> None:
    refuses(account, words, make_template(account, **data))


def test_a_launch_template_with_a_subnet_is_refused(account: Account) -> None:
    interface = {"DeviceIndex": 0, "SubnetId": account.subnets[0], "Groups": [account.group]}
    refuses(account, "a subnet in its network interfaces", make_template(account, NetworkInterfaces=[interface]))


def test_security_groups_are_on_the_instance_or_on_interfaces(account: Account) -> None:
    refuses(account, "on the instance and on", make_template(account, SecurityGroupIds=[account.group]))
    create(account, make_template(account, SecurityGroupIds=[account.group], NetworkInterfaces=None))


def test_security_groups_of_a_launch_template_exist_in_the_vpc(account: Account) -> None:
    interface = {"DeviceIndex": 0, "Groups": ["sg-0123456789abcdef0"]}
    refuses(account, "'sg-0123456789abcdef0' does not exist", make_template(account, NetworkInterfaces=[interface]))


def test_the_types_have_the_interfaces_of_the_launch_template(account: Account) -> None:
    interfaces = [{"DeviceIndex": 0, "InterfaceType": "efa", "Groups": [account.group]}]
    template = make_template(account, InstanceType=None, NetworkInterfaces=interfaces)
    refuses(account, "m7i.4xlarge does not support efa", template, instanceTypes=["c7i.48xlarge", "m7i.4xlarge"])
    create(account, template, instanceTypes=["c7i.48xlarge"])


def test_members_of_the_launch_template_are_refused_in_the_group(account: Account) -> None:
    template = make_template(account)
    refuses(account, "instance types in both", template, instanceTypes=["p5.48xlarge"])
    refuses(account, "diskSize must be specified within", template, diskSize=300)
    refuses(account, "remoteAccess must be specified within", template, remoteAccess={"ec2SshKey": "key"})


def test_a_launch_template_and_its_version_must_exist(account: Account) -> None:
    template = make_template(account)
    refuses(account, "does not exist", "lt-0123456789abcdef0")
    call, request = account.eks.create_nodegroup, group_request(account)
    refused(INVALID, "has no version 2", call, **request, launchTemplate={"id": template, "version": "2"})
    (found,) = account.ec2.describe_launch_templates(LaunchTemplateIds=[template])["LaunchTemplates"]
    by_name = {"name": found["LaunchTemplateName"]}
    refused(INVALID, "but not both", call, **request, launchTemplate={"id": template, **by_name})
    assert call(**request, launchTemplate=by_name)["nodegroup"]["launchTemplate"]["id"] == template


def test_a_custom_image_excludes_settings_for_images_of_eks(account: Account) -> None:
    template = make_template(account, ImageId="ami-12345678", UserData=base64.b64encode(b"#!/bin/sh\n").decode())
    refuses(account, "You cannot specify amiType", template)
    refuses(account, "You cannot specify releaseVersion", template, amiType=None, releaseVersion=RELEASE)
    refuses(account, "You cannot specify version", template, amiType=None, version=VERSION)
    refuses(account, "Warm pools need an AMI of EKS", template, amiType=None, warmPoolConfig={"enabled": True})
    found = create(account, template, amiType=None)
    assert (found["amiType"], found["releaseVersion"]) == ("CUSTOM", "ami-12345678")


def test_custom_needs_an_image(account: Account) -> None:
    refuses(account, "needs a launch template with an image id", make_template(account), amiType="CUSTOM")


def test_user_data_is_mime_multipart_where_eks_adds_its_own(account: Account) -> None:
    plain = base64.b64encode(b"#!/bin/sh\n").decode()
    refuses(account, "MIME multipart", make_template(account, UserData=plain))


@pytest.mark.parametrize(
    ("instance_type", "ami_type", "fits"),
    [
        ("p5.48xlarge", "AL2023_x86_64_NVIDIA", True),
        ("p5.48xlarge", "AL2023_ARM_64_NVIDIA", False),
        ("p6e-gb200.36xlarge", "AL2023_ARM_64_NVIDIA", True),
        ("p6e-gb200.36xlarge", "AL2023_x86_64_NVIDIA", False),
        ("p6-b300.48xlarge", "BOTTLEROCKET_x86_64_NVIDIA", True),
        ("p7.48xlarge", "AL2023_x86_64_NVIDIA", False),
    ],
)
def test_the_image_must_have_the_types_architecture(
    account: Account, instance_type: str, ami_type: str, *, fits: bool
) -> None:
    template = make_template(account, InstanceType=instance_type)
    if fits:
        assert create(account, template, amiType=ami_type)["amiType"] == ami_type
    else:
        refuses(account, instance_type, template, amiType=ami_type)


def test_the_launch_template_has_all_settings_of_a_capacity_block(account: Account) -> None:
    seed_reservation(RESERVATION, "p5.48xlarge", f"{REGION}a", 8)
    found = create(account, make_template(account, **BLOCK), capacityType="CAPACITY_BLOCK")
    assert found["capacityType"] == "CAPACITY_BLOCK"


def test_a_capacity_block_and_its_launch_template_need_each_other(account: Account) -> None:
    seed_reservation(RESERVATION, "p5.48xlarge", f"{REGION}a", 8)
    market = {"InstanceMarketOptions": {"MarketType": "capacity-block"}}
    block = {"capacityType": "CAPACITY_BLOCK"}
    refuses(account, "need each other", make_template(account, **TARGET), **block)
    refuses(account, "need each other", make_template(account, **BLOCK))
    refuses(account, "needs a CapacityReservationId", make_template(account, **market), **block)
    untyped = make_template(account, **BLOCK, InstanceType=None)
    refuses(account, "needs the instance type", untyped, **block, instanceTypes=["p5.48xlarge"])


def test_a_reservation_must_match_its_group(account: Account) -> None:
    template, block = make_template(account, **BLOCK), {"capacityType": "CAPACITY_BLOCK"}
    refuses(account, "does not exist or has ended", template, **block)
    seed_reservation(RESERVATION, "p5en.48xlarge", f"{REGION}a", 8)
    refuses(account, "is for p5en.48xlarge, not p5.48xlarge", template, **block)
    seed_reservation(RESERVATION, "p5.48xlarge", f"{REGION}b", 8)
    refuses(account, f"is in {REGION}a, capacity reservation {RESERVATION} in {REGION}b", template, **block)
    refuses(account, "is in", make_template(account, **TARGET))


def test_config_is_updated_in_parts(account: Account) -> None:
    taint = {"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"}
    create(account, instanceTypes=["p5.48xlarge"], scalingConfig=SCALING, labels={"a": "1", "b": "2"}, taints=[taint])
    place = {"clusterName": "train", "nodegroupName": "gpu"}
    account.eks.update_nodegroup_config(**place, scalingConfig={"desiredSize": 0})
    more = {**taint, "effect": "NO_EXECUTE"}
    account.eks.update_nodegroup_config(
        **place,
        labels={"addOrUpdateLabels": {"a": "3"}, "removeLabels": ["b"]},
        taints={"addOrUpdateTaints": [more], "removeTaints": [taint]},
    )
    found = describe(account)
    assert found["scalingConfig"] == {**SCALING, "desiredSize": 0}
    assert (found["labels"], found["taints"]) == ({"a": "3"}, [more])
    call = account.eks.update_nodegroup_config
    refused(INVALID, "greater than max size", call, **place, scalingConfig={"desiredSize": 9})
    assert describe(account)["scalingConfig"]["desiredSize"] == 0


def test_a_group_keeps_its_launch_template_and_takes_another_version(account: Account) -> None:
    template, other = make_template(account), make_template(account)
    create(account, template)
    place, update = {"clusterName": "train", "nodegroupName": "gpu"}, account.eks.update_nodegroup_version
    account.ec2.create_launch_template_version(
        LaunchTemplateId=template, SourceVersion="1", LaunchTemplateData={"InstanceType": "p5en.48xlarge"}
    )
    update(**place, launchTemplate={"id": template, "version": "2"})
    assert describe(account)["launchTemplate"]["version"] == "2"
    refused(INVALID, "cannot change to", update, **place, launchTemplate={"id": other, "version": "1"})
    account.eks.delete_nodegroup(**place)
    create(account, instanceTypes=["p5.48xlarge"])
    refused(INVALID, "cannot take one", update, **place, launchTemplate={"id": template, "version": "1"})


def test_another_version_of_a_launch_template_is_checked_like_the_first(account: Account) -> None:
    template = make_template(account)
    create(account, template)
    account.ec2.create_launch_template_version(
        LaunchTemplateId=template, SourceVersion="1", LaunchTemplateData={"InstanceType": "p6e-gb200.36xlarge"}
    )
    place = {"clusterName": "train", "nodegroupName": "gpu", "launchTemplate": {"id": template, "version": "2"}}
    words = r"\[p6e-gb200.36xlarge\] is not a valid instance type"
    refused(INVALID, words, account.eks.update_nodegroup_version, **place)
    assert describe(account)["launchTemplate"]["version"] == "1"


def test_images_can_only_be_upgraded(account: Account) -> None:
    create(account, instanceTypes=["p5.48xlarge"], releaseVersion=RELEASE)
    place, update = {"clusterName": "train", "nodegroupName": "gpu"}, account.eks.update_nodegroup_version
    update(**place, releaseVersion=f"{VERSION}.9-20261101")
    assert describe(account)["releaseVersion"] == f"{VERSION}.9-20261101"
    refused(INVALID, "cannot be rolled back", update, **place, releaseVersion=RELEASE)
