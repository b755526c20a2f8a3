"""A whole EKS platform as one CloudFormation stack: created, extended, rolled back, protected, deleted."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from eks_parts import REGION
from kubectl_parts import chart, kueue, manifest, platform, put_asset, resource, role
from localaws import faults, local_aws
from localaws.services.capacity import seed_reservation
from localaws.services.kubernetes import contents
from stack_parts import Stacks

IAM = {"Capabilities": ["CAPABILITY_IAM"]}
ARN = f"arn:aws:eks:{REGION}:123456789012:cluster/train"
RESERVATION = "cr-0123456789abcdef0"
PLACE = {"clusterName": "train", "nodegroupName": "gpu"}


def template(*, size: int = 4, quota: int = 32, **launch: Any) -> dict[str, Any]:
    queue = kueue("ClusterQueue", "train", quota=quota)
    data = {
        "InstanceType": "p5.48xlarge",
        "InstanceMarketOptions": {"MarketType": "capacity-block"},
        "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": RESERVATION}},
        "NetworkInterfaces": [
            {"DeviceIndex": 0, "Groups": [{"Fn::GetAtt": ["Cluster", "ClusterSecurityGroupId"]}]},
            {"DeviceIndex": 1, "NetworkCardIndex": 1, "InterfaceType": "efa-only"},
        ],
        **launch,
    }
    return copy.deepcopy(
        platform(
            NodeRole=role("ec2.amazonaws.com"),
            Launch=resource("EC2::LaunchTemplate", LaunchTemplateData=data),
            Nodes=resource(
                "EKS::Nodegroup",
                ClusterName={"Ref": "Cluster"},
                NodegroupName="gpu",
                NodeRole={"Fn::GetAtt": ["NodeRole", "Arn"]},
                Subnets=[{"Ref": "SubnetA"}],
                AmiType="AL2023_x86_64_NVIDIA",
                CapacityType="CAPACITY_BLOCK",
                LaunchTemplate={"Id": {"Ref": "Launch"}, "Version": {"Fn::GetAtt": ["Launch", "LatestVersionNumber"]}},
                ScalingConfig={"MinSize": 0, "MaxSize": 8, "DesiredSize": size},
                UpdateConfig={"MaxUnavailable": 1, "UpdateStrategy": "MINIMAL"},
            ),
            Storage=resource("EKS::Addon", ClusterName={"Ref": "Cluster"}, AddonName="aws-fsx-csi-driver"),
            Kueue=chart("Nodes", Values=json.dumps({"quota": quota})),
            Queues=manifest("Kueue", objects=[queue]),
        )
    )


@pytest.fixture
def stacks() -> Iterator[Stacks]:
    with local_aws():
        put_asset()
        seed_reservation(RESERVATION, "p5.48xlarge", f"{REGION}a", 8)
        yield Stacks()


def group() -> dict[str, Any]:
    return dict(boto3.client("eks", REGION).describe_nodegroup(**PLACE)["nodegroup"])


def state() -> tuple[int, list[Any], list[Any]]:
    """Nodes, quotas of releases and quotas of queues."""
    found = contents(ARN)
    assert found
    releases = [release["values"]["quota"] for release in found["releases"]]
    return group()["scalingConfig"]["desiredSize"], releases, [queue["spec"]["quota"] for queue in found["objects"]]


def test_stack_of_an_eks_platform_is_created_updated_and_deleted(stacks: Stacks) -> None:
    eks, ec2 = boto3.client("eks", REGION), boto3.client("ec2", REGION)
    assert stacks.create(template(), **IAM) == "CREATE_COMPLETE", stacks.events()
    assert state() == (4, [32], [32])
    assert eks.list_addons(clusterName="train")["addons"] == ["aws-fsx-csi-driver"]
    assert len(eks.list_access_entries(clusterName="train")["accessEntries"]) == 2  # of kubectl and of the nodes

    assert stacks.update(template(size=8, quota=64), **IAM) == "UPDATE_COMPLETE"
    assert state() == (8, [64], [64])

    assert stacks.delete() == "DELETE_COMPLETE"
    assert eks.list_clusters()["clusters"] == []
    assert [vpc["IsDefault"] for vpc in ec2.describe_vpcs()["Vpcs"]] == [True]
    assert contents(ARN) is None


def test_an_update_that_eks_refuses_is_rolled_back(stacks: Stacks) -> None:
    stacks.create(template(), **IAM)
    assert stacks.update(template(size=9, quota=64), **IAM) == "UPDATE_ROLLBACK_COMPLETE"
    assert "desired capacity 9 can't be greater than max size 8" in stacks.event_reason("Nodes", "UPDATE_FAILED")
    stops = template(InstanceInitiatedShutdownBehavior="terminate")
    assert stacks.update(stops, **IAM) == "UPDATE_ROLLBACK_COMPLETE"
    assert "should not specify an instance initiated shutdown" in stacks.event_reason("Nodes", "UPDATE_FAILED")
    assert state() == (4, [32], [32])
    assert group()["launchTemplate"]["version"] == "3"  # created again by the rollback


def test_contents_of_the_cluster_are_rolled_back(stacks: Stacks) -> None:
    stacks.create(template(), **IAM)
    faults.inject("access-denied", "Queues", operations=("update",))
    assert stacks.update(template(size=8, quota=64), **IAM) == "UPDATE_ROLLBACK_COMPLETE"
    assert state() == (4, [32], [32])


def test_a_creation_that_fails_leaves_nothing(stacks: Stacks) -> None:
    broken = template()
    broken["Kueue"]["Properties"].pop("Version")
    assert stacks.create(broken, **IAM) == "ROLLBACK_COMPLETE"
    assert "an OCI chart needs a Version" in stacks.event_reason("Kueue", "CREATE_FAILED")
    assert boto3.client("eks", REGION).list_clusters()["clusters"] == []
    assert len(boto3.client("ec2", REGION).describe_vpcs()["Vpcs"]) == 1


def test_a_stack_with_a_protected_cluster_is_not_deleted(stacks: Stacks) -> None:
    protected = platform()
    protected["Cluster"]["Properties"]["DeletionProtection"] = True
    stacks.create(protected, **IAM)
    assert stacks.delete() == "DELETE_FAILED"
    assert "InvalidRequestException" in stacks.event_reason("Cluster", "DELETE_FAILED")
    boto3.client("eks", REGION).update_cluster_config(name="train", deletionProtection=False)
    assert stacks.delete() == "DELETE_COMPLETE"
