"""AWS::PCS::* created from template properties and read back through boto3."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.backends import get_backend
from moto.moto_api import state_manager

from handler_parts import Stack
from localaws.resources import HandlerError
from localaws.services import activate
from pcs_parts import Account, make_account

CLUSTER, GROUP, QUEUE = (f"AWS::PCS::{name}" for name in ("Cluster", "ComputeNodeGroup", "Queue"))


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    activate()
    with mock_aws():
        yield make_account()


@pytest.fixture
def stack(account: Account) -> Iterator[Stack]:
    yield Stack()
    get_backend("pcs")["123456789012"]["us-east-1"].reset()


def cluster(account: Account, **changes: Any) -> dict[str, Any]:
    return {
        "Name": "train",
        "Size": "SMALL",
        "Scheduler": {"Type": "SLURM", "Version": "25.11"},
        "Networking": {"SubnetIds": [account.subnet], "SecurityGroupIds": [account.group]},
        **changes,
    }


def group(account: Account, cluster_id: str, **changes: Any) -> dict[str, Any]:
    return {
        "ClusterId": cluster_id,
        "Name": "gpu",
        "InstanceConfigs": [{"InstanceType": "p5.48xlarge"}],
        "SubnetIds": [account.subnet],
        "IamInstanceProfileArn": account.profile,
        "ScalingConfiguration": {"MinInstanceCount": 0, "MaxInstanceCount": 4},
        "CustomLaunchTemplate": {"TemplateId": account.template, "Version": "1"},
        **changes,
    }


def test_refusals_of_the_service_reach_the_stack(account: Account, stack: Stack) -> None:
    home = stack.create(CLUSTER, **cluster(account)).attributes["Id"]
    properties = group(account, home)
    del properties["CustomLaunchTemplate"]
    with pytest.raises(ClientError, match="needs a launch template"):
        stack.create(GROUP, **properties)
    with pytest.raises(ClientError, match="does not exist"):
        stack.create(GROUP, **group(account, home, SubnetIds=["subnet-0123456789"]))
    key = {"AuthKey": {"SecretArn": "arn", "SecretVersion": "1"}}
    with pytest.raises(HandlerError, match="AuthKey of SlurmConfiguration"):
        stack.create(CLUSTER, **cluster(account, SlurmConfiguration=key))
    empty = cluster(account, Name="other", SlurmConfiguration={"SlurmCustomSettings": []})
    with pytest.raises(ClientError, match="the list is empty"):
        stack.create(CLUSTER, **empty)
    arn = account.pcs.get_cluster(clusterIdentifier=home)["cluster"]["arn"]
    with pytest.raises(HandlerError, match="SlurmCustomSettings is an empty list"):
        stack.update(CLUSTER, arn, cluster(account), {**empty, "Name": "train"})


def test_a_handler_waits_until_its_resource_is_active(account: Account, stack: Stack) -> None:
    state_manager.set_transition("pcs::cluster", {"progression": "manual", "times": 3})
    try:
        made = stack.create(CLUSTER, **cluster(account))
    finally:
        state_manager.unset_transition("pcs::cluster")
    assert made.attributes["Status"] == "ACTIVE"
