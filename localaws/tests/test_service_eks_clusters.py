"""EKS clusters as boto3 sees them: what is made is read back, and what AWS refuses is refused."""

import datetime
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto.backends import get_backend
from moto.moto_api import state_manager

from eks_parts import (
    NEXT,
    OLD,
    REGION,
    VERSION,
    Account,
    clear,
    cluster_request,
    group_request,
    make_account,
    make_role,
    make_subnet,
    refused,
)
from localaws.services import eks_clusters
from localaws.services.eks_store import DEFAULT_VERSION, IMAGE_RELEASES
from localaws.services.service import Refusal

INVALID, WRONG, BUSY = "InvalidParameterException", "InvalidRequestException", "ResourceInUseException"


@pytest.fixture(scope="module")
def one_account(aws: None) -> Account:
    return make_account()


@pytest.fixture
def account(one_account: Account) -> Iterator[Account]:
    yield one_account
    clear()


def create(account: Account, **changes: Any) -> dict[str, Any]:
    return dict(account.eks.create_cluster(**cluster_request(account, **changes))["cluster"])


def describe(account: Account) -> dict[str, Any]:
    return dict(account.eks.describe_cluster(name="train")["cluster"])


def test_omitted_members_have_the_defaults_of_aws(account: Account) -> None:
    request = cluster_request(account)
    del request["version"], request["accessConfig"]
    found = account.eks.create_cluster(**request)["cluster"]
    assert found["version"] == DEFAULT_VERSION
    assert found["accessConfig"]["authenticationMode"] == "CONFIG_MAP"
    assert found["resourcesVpcConfig"]["endpointPublicAccess"] is True
    assert found["deletionProtection"] is False
    assert found["kubernetesNetworkConfig"]["serviceIpv4Cidr"] == "10.100.0.0/16"
    assert [setup["enabled"] for setup in found["logging"]["clusterLogging"]] == [False]


def test_the_clusters_security_group_exists_until_the_cluster_is_deleted(account: Account) -> None:
    group_id = create(account)["resourcesVpcConfig"]["clusterSecurityGroupId"]
    (group,) = account.ec2.describe_security_groups(GroupIds=[group_id])["SecurityGroups"]
    assert group["VpcId"] == account.vpc
    assert {"Key": "kubernetes.io/cluster/train", "Value": "owned"} in group["Tags"]
    assert group["IpPermissions"][0]["UserIdGroupPairs"][0]["GroupId"] == group_id
    account.eks.delete_cluster(name="train")
    refused("InvalidGroup.NotFound", group_id, account.ec2.describe_security_groups, GroupIds=[group_id])
    assert account.eks.list_clusters()["clusters"] == []


def test_subnets_with_control_plane_interfaces_are_not_deleted(account: Account) -> None:
    own = make_subnet(account.ec2, account.vpc, "10.0.5.0/24", "us-east-2c")
    subnets = [account.subnets[0], own]
    create(account, resourcesVpcConfig={"securityGroupIds": [account.group], "subnetIds": subnets})
    found = account.ec2.describe_network_interfaces()["NetworkInterfaces"]
    assert {interface["SubnetId"] for interface in found} == set(subnets)
    assert account.group in [group["GroupId"] for group in found[0]["Groups"]]
    refused("DependencyViolation", "has dependencies", account.ec2.delete_subnet, SubnetId=own)
    account.eks.delete_cluster(name="train")
    account.ec2.delete_subnet(SubnetId=own)


def test_a_version_is_supported_until_its_extended_support_ends() -> None:
    eks_clusters.check_version("1.31", datetime.date(2026, 11, 25))
    with pytest.raises(Refusal, match=r"version 1\.31; supported: 1\.32, 1\.33"):
        eks_clusters.check_version("1.31", datetime.date(2026, 11, 26))


def groups() -> dict[str, Any]:
    found = boto3.client("logs", REGION).describe_log_groups(logGroupNamePrefix="/aws/eks/")["logGroups"]
    return {group["logGroupName"]: group for group in found}


def test_eks_creates_a_missing_log_group_without_key_and_once_more_after_the_cluster(account: Account) -> None:
    logging = {"clusterLogging": [{"types": ["audit"], "enabled": True}]}
    create(account, logging=logging)
    assert "kmsKeyId" not in groups()["/aws/eks/train/cluster"]
    account.eks.delete_cluster(name="train")
    logs = boto3.client("logs", REGION)
    logs.delete_log_group(logGroupName="/aws/eks/train/cluster")
    assert "/aws/eks/train/cluster" in groups()
    logs.delete_log_group(logGroupName="/aws/eks/train/cluster")
    assert groups() == {}


def test_eks_creates_no_log_group_without_a_type_of_log(account: Account) -> None:
    create(account)
    assert groups() == {}


def test_a_protected_cluster_is_not_deleted(account: Account) -> None:
    create(account, deletionProtection=True)
    refused(WRONG, "deletion protection", account.eks.delete_cluster, name="train")
    account.eks.update_cluster_config(name="train", deletionProtection=False)
    account.eks.delete_cluster(name="train")
    assert account.eks.list_clusters()["clusters"] == []


def test_a_cluster_with_node_groups_or_capabilities_is_not_deleted(account: Account) -> None:
    create(account)
    account.eks.create_nodegroup(**group_request(account, instanceTypes=["p5.48xlarge"]))
    refused(BUSY, "nodegroups attached: gpu", account.eks.delete_cluster, name="train")
    account.eks.delete_nodegroup(clusterName="train", nodegroupName="gpu")
    role = make_role(account.iam, "kro", "capabilities.eks.amazonaws.com", "sts:AssumeRole", "sts:TagSession")
    place = {"clusterName": "train", "capabilityName": "kro"}
    account.eks.create_capability(**place, type="KRO", roleArn=role, deletePropagationPolicy="RETAIN")
    refused(BUSY, "capabilities attached: kro", account.eks.delete_cluster, name="train")


def test_one_kind_of_update_at_a_time(account: Account) -> None:
    create(account)
    update = account.eks.update_cluster_config
    two = {"deletionProtection": True, "upgradePolicy": {"supportType": "STANDARD"}}
    refused(INVALID, "Only one type of update", update, name="train", **two)
    refused(INVALID, "Only one type of update", update, name="train")
    made = update(name="train", upgradePolicy={"supportType": "STANDARD"})["update"]
    found = account.eks.describe_update(name="train", updateId=made["id"])["update"]
    assert (found["type"], found["status"]) == ("UpgradePolicyUpdate", "Successful")
    assert describe(account)["upgradePolicy"] == {"supportType": "STANDARD"}


def test_logs_are_switched_on_and_off(account: Account) -> None:
    create(account, logging={"clusterLogging": [{"types": ["api", "audit"], "enabled": True}]})
    change = {"clusterLogging": [{"types": ["audit"], "enabled": False}, {"types": ["scheduler"], "enabled": True}]}
    account.eks.update_cluster_config(name="train", logging=change)
    on, off = describe(account)["logging"]["clusterLogging"]
    assert (on["types"], on["enabled"]) == (["api", "scheduler"], True)
    assert (off["types"], off["enabled"]) == (["audit", "authenticator", "controllerManager"], False)


def test_the_network_changes_within_its_vpc(account: Account) -> None:
    create(account)
    third = make_subnet(account.ec2, account.vpc, "10.0.7.0/24", "us-east-2c")
    subnets = [account.subnets[1], third]
    account.eks.update_cluster_config(name="train", resourcesVpcConfig={"subnetIds": subnets})
    assert describe(account)["resourcesVpcConfig"]["subnetIds"] == subnets
    found = account.ec2.describe_network_interfaces()["NetworkInterfaces"]
    assert {interface["SubnetId"] for interface in found} == set(subnets)
    only = {"subnetIds": [third]}
    refused(INVALID, "two different AZs", account.eks.update_cluster_config, name="train", resourcesVpcConfig=only)


def test_authentication_mode_can_only_move_towards_api(account: Account) -> None:
    create(account, accessConfig={"authenticationMode": "API_AND_CONFIG_MAP"})
    update = account.eks.update_cluster_config
    update(name="train", accessConfig={"authenticationMode": "API"})
    back = {"authenticationMode": "CONFIG_MAP"}
    refused(INVALID, "from API to CONFIG_MAP", update, name="train", accessConfig=back)


def test_a_cluster_is_upgraded_one_minor_version_at_a_time_after_its_nodes(account: Account) -> None:
    create(account, version=OLD)
    update = account.eks.update_cluster_version
    refused(INVALID, f"from {OLD} to {NEXT}", update, name="train", version=NEXT)
    account.eks.create_nodegroup(**group_request(account, instanceTypes=["p5.48xlarge"]))
    update(name="train", version=VERSION)
    refused(WRONG, f"gpu is at {OLD}", update, name="train", version=NEXT)
    account.eks.update_nodegroup_version(clusterName="train", nodegroupName="gpu")
    update(name="train", version=NEXT)
    assert describe(account)["version"] == NEXT
    refused(INVALID, f"from {NEXT} to {VERSION}", update, name="train", version=VERSION)
    group = account.eks.describe_nodegroup(clusterName="train", nodegroupName="gpu")["nodegroup"]
    assert group["releaseVersion"] == IMAGE_RELEASES[VERSION]


def test_a_cluster_that_is_being_made_takes_no_updates(account: Account) -> None:
    state_manager.set_transition("eks::cluster", {"progression": "manual", "times": 3})
    try:
        create(account)
        refused(BUSY, "CREATING", account.eks.update_cluster_config, name="train", deletionProtection=True)
        account.eks.get_waiter("cluster_active").wait(name="train", WaiterConfig={"Delay": 0, "MaxAttempts": 5})
    finally:
        state_manager.unset_transition("eks::cluster")


def test_tags_are_changed_by_arn(account: Account) -> None:
    arn = create(account, tags={"a": "1", "b": "2"})["arn"]
    account.eks.tag_resource(resourceArn=arn, tags={"a": "3"})
    account.eks.untag_resource(resourceArn=arn, tagKeys=["b"])
    assert account.eks.list_tags_for_resource(resourceArn=arn)["tags"] == {"a": "3"} == describe(account)["tags"]
    refused("NotFoundException", "No resource", account.eks.list_tags_for_resource, resourceArn=arn + "x")


def test_regions_and_accounts_are_apart(account: Account) -> None:
    create(account)
    assert get_backend("eks")["123456789012"]["us-west-2"].clusters == {}
    refused("ResourceNotFoundException", "No cluster found", account.eks.describe_cluster, name="other")
