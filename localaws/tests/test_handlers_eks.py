"""AWS::EKS::* created from template properties and read back through boto3."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.moto_api import state_manager

from eks_parts import (
    POD_ACTIONS,
    REGION,
    VERSION,
    Account,
    clear,
    make_account,
    make_role,
    make_template,
)
from handler_parts import Stack
from localaws.resources import HandlerError
from localaws.services import activate

CLUSTER, GROUP, ADDON, ENTRY, IDENTITY, CAPABILITY = (
    f"AWS::EKS::{name}"
    for name in ("Cluster", "Nodegroup", "Addon", "AccessEntry", "PodIdentityAssociation", "Capability")
)
ROLE = "arn:aws:iam::111122223333:role/Platform"


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    activate()
    with mock_aws():
        account = make_account()
        make_role(account.iam, "capability", "capabilities.eks.amazonaws.com", *POD_ACTIONS)
        yield account


@pytest.fixture
def stack(account: Account) -> Iterator[Stack]:
    yield Stack(REGION)
    clear()


def cluster(account: Account, **changes: Any) -> dict[str, Any]:
    vpc = {"SubnetIds": account.subnets, **changes.pop("ResourcesVpcConfig", {})}
    access = {"AuthenticationMode": "API", "BootstrapClusterCreatorAdminPermissions": False}
    full = {"Name": "train", "Version": VERSION, "RoleArn": account.cluster_role, "AccessConfig": access}
    return {**full, "ResourcesVpcConfig": vpc, **changes}


def group(account: Account, template: str, **changes: Any) -> dict[str, Any]:
    return {
        "ClusterName": "train",
        "NodegroupName": "gpu",
        "NodeRole": account.node_role,
        "Subnets": account.subnets[:1],
        "AmiType": "AL2023_x86_64_NVIDIA",
        "LaunchTemplate": {"Id": template, "Version": "1"},
        **changes,
    }


def described(account: Account) -> dict[str, Any]:
    return dict(account.eks.describe_cluster(name="train")["cluster"])


def test_a_handler_waits_until_its_cluster_is_active(account: Account, stack: Stack) -> None:
    state_manager.set_transition("eks::cluster", {"progression": "manual", "times": 3})
    try:
        stack.create(CLUSTER, **cluster(account))
    finally:
        state_manager.unset_transition("eks::cluster")
    assert described(account)["status"] == "ACTIVE"


def test_unsupported_property_fails_by_name(account: Account, stack: Stack) -> None:
    remote = {"RemoteNodeNetworks": [{"Cidrs": ["10.80.0.0/16"]}]}
    with pytest.raises(HandlerError, match="does not support RemoteNetworkConfig"):
        stack.create(CLUSTER, **cluster(account, RemoteNetworkConfig=remote))
    with pytest.raises(HandlerError, match="Tier: 'tier-3xl' is not one of"):
        stack.create(CLUSTER, **cluster(account, ControlPlaneScalingConfig={"Tier": "tier-3xl"}))


def test_a_node_group_keeps_its_launch_template(account: Account, stack: Stack) -> None:
    stack.create(CLUSTER, **cluster(account))
    old = group(account, make_template(account))
    stack.create(GROUP, **old)
    without = {key: value for key, value in old.items() if key != "LaunchTemplate"}
    with pytest.raises(HandlerError, match="must keep its LaunchTemplate"):
        stack.update(GROUP, "train/gpu", old, without)
    with pytest.raises(ClientError, match="cannot change to"):
        stack.update(GROUP, "train/gpu", old, group(account, make_template(account)))


def test_refusals_of_the_service_reach_the_stack(account: Account, stack: Stack) -> None:
    with pytest.raises(ClientError, match="No cluster found for name: train"):
        stack.create(GROUP, **group(account, make_template(account)))
    stack.create(CLUSTER, **cluster(account))
    template = make_template(account, NetworkInterfaces=[{"DeviceIndex": 0, "SubnetId": account.subnets[0]}])
    with pytest.raises(ClientError, match="subnet in its network interfaces"):
        stack.create(GROUP, **group(account, template))


def test_an_entry_with_an_unknown_policy_leaves_nothing_behind(account: Account, stack: Stack) -> None:
    stack.create(CLUSTER, **cluster(account))
    wrong = [{"PolicyArn": "arn:aws:iam::aws:policy/AdministratorAccess", "AccessScope": {"Type": "cluster"}}]
    with pytest.raises(ClientError, match="not an access policy"):
        stack.create(ENTRY, ClusterName="train", PrincipalArn=ROLE, AccessPolicies=wrong)
    assert account.eks.list_access_entries(clusterName="train")["accessEntries"] == []
