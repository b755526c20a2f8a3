"""AWS::PCS::* created from template properties and read back through boto3."""

import re
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
from pcs_parts import Account, make_account, make_template

GPUS = {"Name": "gpu", "Type": "h100", "File": "/dev/nvidia[0-7]", "Count": "8"}
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


def settings(**values: str) -> list[dict[str, str]]:
    return [{"ParameterName": name, "ParameterValue": value} for name, value in values.items()]


def test_a_cluster_is_created_updated_and_deleted(account: Account, stack: Stack) -> None:
    old = cluster(
        account,
        SlurmConfiguration={
            "Accounting": {"Mode": "STANDARD", "DefaultPurgeTimeInDays": 30},
            "ScaleDownIdleTimeInSeconds": 60,
            "SlurmCustomSettings": settings(Prolog="/p", Epilog="/e"),
            "CgroupCustomSettings": settings(ConstrainCores="yes"),
        },
        Tags={"team": "a", "old": "1"},
    )
    made = stack.create(CLUSTER, **old)
    found = account.pcs.get_cluster(clusterIdentifier="train")["cluster"]
    assert made.physical_id == made.attributes["Arn"] == found["arn"]
    assert made.attributes["Id"] == found["id"]
    assert [end["Type"] for end in made.attributes["Endpoints"]] == ["SLURMCTLD", "SLURMDBD"]
    tags = account.pcs.list_tags_for_resource(resourceArn=found["arn"])["tags"]
    assert tags["aws:cloudformation:stack-name"] == "Train"
    assert found["slurmConfiguration"]["accounting"] == {"mode": "STANDARD", "defaultPurgeTimeInDays": 30}

    new = cluster(
        account,
        Scheduler={"Type": "SLURM", "Version": "26.05"},
        SlurmConfiguration={"Accounting": {"Mode": "STANDARD"}, "SlurmCustomSettings": settings(Prolog="/q")},
        Tags={"team": "b"},
    )
    stack.update(CLUSTER, made.physical_id, old, new)
    found = account.pcs.get_cluster(clusterIdentifier="train")["cluster"]
    configuration = found["slurmConfiguration"]
    assert found["scheduler"]["version"] == "26.05"
    assert configuration["accounting"] == {"mode": "STANDARD", "defaultPurgeTimeInDays": -1}
    assert configuration["scaleDownIdleTimeInSeconds"] == 600
    assert configuration["slurmCustomSettings"] == [{"parameterName": "Prolog", "parameterValue": "/q"}]
    assert "cgroupCustomSettings" not in configuration
    tags = account.pcs.list_tags_for_resource(resourceArn=found["arn"])["tags"]
    assert (tags["team"], "old" in tags, tags["aws:cloudformation:logical-id"]) == ("b", False, "Thing")

    bare = cluster(account, Scheduler={"Type": "SLURM", "Version": "26.05"})
    stack.update(CLUSTER, made.physical_id, new, bare)
    configuration = account.pcs.get_cluster(clusterIdentifier="train")["cluster"]["slurmConfiguration"]
    assert configuration["accounting"]["mode"] == "NONE"
    assert "slurmCustomSettings" not in configuration

    stack.delete(CLUSTER, made.physical_id, **bare)
    assert account.pcs.list_clusters()["clusters"] == []


def test_names_are_generated_within_their_limits(account: Account, stack: Stack) -> None:
    unnamed = {name: value for name, value in cluster(account).items() if name != "Name"}
    made = stack.create(CLUSTER, **unnamed)
    names = [account.pcs.list_clusters()["clusters"][0]["name"]]
    properties = group(account, made.attributes["Id"])
    del properties["Name"]
    stack.create(GROUP, **properties)
    stack.create(QUEUE, ClusterId=made.attributes["Id"])
    listed = {"clusterIdentifier": made.attributes["Id"]}
    names.append(account.pcs.list_compute_node_groups(**listed)["computeNodeGroups"][0]["name"])
    names.append(account.pcs.list_queues(**listed)["queues"][0]["name"])
    assert all(re.fullmatch(r"Train-Thing-[A-Z0-9]{12}", name) for name in names), names


def test_a_group_and_its_queue_are_created_updated_and_deleted(account: Account, stack: Stack) -> None:
    home = stack.create(CLUSTER, **cluster(account))
    script = {"Name": "mount", "ScriptSource": {"ScriptLocation": "s3://bucket/mount.sh"}, "Arguments": ["/fsx"]}
    old = group(
        account,
        home.attributes["Id"],
        AmiId="ami-0abc",
        PurchaseOption="SPOT",
        SpotOptions={"AllocationStrategy": "lowest-price"},
        NodeLifecycleActions={"Stages": {"NodeReady": [script]}},
        SlurmConfiguration={
            "ScaleDownIdleTimeInSeconds": 60,
            "SlurmCustomSettings": settings(Weight="2", Gres="gpu:h100:8"),
            "GresCustomSettings": [GPUS],
        },
        Tags={"a": "1"},
    )
    made = stack.create(GROUP, **old)
    named = {"clusterIdentifier": "train", "computeNodeGroupIdentifier": "gpu"}
    found = account.pcs.get_compute_node_group(**named)["computeNodeGroup"]
    assert (made.physical_id, made.attributes["Id"]) == (found["arn"], found["id"])
    assert found["slurmConfiguration"]["gresCustomSettings"] == [GPUS]
    assert found["nodeLifecycleActions"]["stages"]["nodeReady"][0]["arguments"] == ["/fsx"]
    assert found["customLaunchTemplate"] == {"id": account.template, "version": "1"}
    assert found["spotOptions"] == {"allocationStrategy": "lowest-price"}

    second = make_template(account.ec2, account.group)
    new = group(
        account,
        home.attributes["Id"],
        CustomLaunchTemplate={"TemplateId": second, "Version": "1"},
        ScalingConfiguration={"MinInstanceCount": 1, "MaxInstanceCount": 8},
    )
    stack.update(GROUP, made.physical_id, old, new)
    found = account.pcs.get_compute_node_group(**named)["computeNodeGroup"]
    assert found["customLaunchTemplate"]["id"] == second
    assert found["scalingConfiguration"] == {"minInstanceCount": 1, "maxInstanceCount": 8}
    assert found["purchaseOption"] == "ONDEMAND"
    dropped = {"amiId", "spotOptions", "nodeLifecycleActions", "slurmConfiguration"}
    assert not dropped & found.keys()

    uses = [{"ComputeNodeGroupId": made.attributes["Id"]}]
    first = {"ClusterId": home.attributes["Id"], "Name": "all", "ComputeNodeGroupConfigurations": uses}
    queue = stack.create(QUEUE, **first, SlurmConfiguration={"SlurmCustomSettings": settings(Default="YES")})
    shown = account.pcs.get_queue(clusterIdentifier="train", queueIdentifier="all")["queue"]
    assert (queue.physical_id, queue.attributes["Id"]) == (shown["arn"], shown["id"])
    assert shown["computeNodeGroupConfigurations"] == [{"computeNodeGroupId": made.attributes["Id"]}]
    before = {**first, "SlurmConfiguration": {"SlurmCustomSettings": settings(Default="YES")}}
    stack.update(QUEUE, queue.physical_id, before, {"ClusterId": home.attributes["Id"], "Name": "all"})
    shown = account.pcs.get_queue(clusterIdentifier="train", queueIdentifier="all")["queue"]
    assert shown["computeNodeGroupConfigurations"] == []
    assert not shown.get("slurmConfiguration")

    stack.delete(QUEUE, queue.physical_id)
    stack.delete(GROUP, made.physical_id)
    stack.delete(CLUSTER, home.physical_id)
    assert account.pcs.list_clusters()["clusters"] == []


def test_spot_without_options_has_the_default_strategy(account: Account, stack: Stack) -> None:
    home = stack.create(CLUSTER, **cluster(account)).attributes["Id"]
    spot = group(account, home, PurchaseOption="SPOT")
    old = {**spot, "SpotOptions": {"AllocationStrategy": "lowest-price"}}
    made = stack.create(GROUP, **old)
    stack.update(GROUP, made.physical_id, old, spot)
    found = account.pcs.get_compute_node_group(clusterIdentifier=home, computeNodeGroupIdentifier="gpu")
    strategy = found["computeNodeGroup"]["spotOptions"]["allocationStrategy"]
    assert strategy == "price-capacity-optimized"


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


def test_a_group_keeps_its_launch_template(account: Account, stack: Stack) -> None:
    home = stack.create(CLUSTER, **cluster(account)).attributes["Id"]
    old = group(account, home)
    made = stack.create(GROUP, **old)
    new = {name: value for name, value in old.items() if name != "CustomLaunchTemplate"}
    with pytest.raises(HandlerError, match="must keep customLaunchTemplate"):
        stack.update(GROUP, made.physical_id, old, new)


def test_a_handler_waits_until_its_resource_is_active(account: Account, stack: Stack) -> None:
    state_manager.set_transition("pcs::cluster", {"progression": "manual", "times": 3})
    try:
        made = stack.create(CLUSTER, **cluster(account))
    finally:
        state_manager.unset_transition("pcs::cluster")
    assert made.attributes["Status"] == "ACTIVE"
