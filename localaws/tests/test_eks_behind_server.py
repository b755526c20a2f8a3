"""EKS behind the server: ARNs in paths, cluster contents over HTTP, and the inventory."""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import boto3
import pytest

from eks_parts import ADMIN, REGION, VERSION
from kubectl_parts import chart, kueue, manifest, platform, put_asset, resource, role
from localaws import accounts, server
from localaws.inventory import inventory

ARN = f"arn:aws:eks:{REGION}:{accounts.DEFAULT}:cluster/train"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[server.Server]:
    folder = tmp_path_factory.mktemp("localaws")
    started = server.serve(REGION, folder=folder)
    put_asset(client=client(started, "s3"))
    yield started
    server.stop(folder)


def client(running: server.Server, service: str) -> Any:
    return boto3.client(service, region_name=REGION, **running.connection(accounts.DEFAULT))


@pytest.fixture
def resources(running: server.Server) -> dict[str, Any]:
    """A platform with nodes, an add-on, a chart and queues, deployed and protected unless it is already."""
    objects = [kueue("ClusterQueue", "train"), kueue("LocalQueue", "a"), kueue("LocalQueue", "b")]
    more = {
        "NodeRole": role("ec2.amazonaws.com"),
        "Nodes": resource(
            "EKS::Nodegroup",
            ClusterName={"Ref": "Cluster"},
            NodegroupName="system",
            NodeRole={"Fn::GetAtt": ["NodeRole", "Arn"]},
            Subnets=[{"Ref": "SubnetA"}],
            InstanceTypes=["m7i.2xlarge"],
        ),
        "Dns": resource(
            "EKS::Addon", ClusterName={"Ref": "Cluster"}, AddonName="coredns", AddonVersion="v1.12.0-eksbuild.1"
        ),
        "Kueue": chart(),
        "Queues": manifest("Kueue", objects=objects),
    }
    found = platform(**more)
    found["Cluster"]["Properties"]["DeletionProtection"] = True
    cloudformation = client(running, "cloudformation")
    body = json.dumps({"Resources": found})
    with suppress(cloudformation.exceptions.AlreadyExistsException):
        cloudformation.create_stack(StackName="platform", TemplateBody=body, Capabilities=["CAPABILITY_IAM"])
    cloudformation.get_waiter("stack_create_complete").wait(
        StackName="platform", WaiterConfig={"Delay": 1, "MaxAttempts": 30}
    )
    return found


def test_principals_and_resources_are_found_by_their_arns(running: server.Server, resources: dict[str, Any]) -> None:
    eks = client(running, "eks")
    principals = eks.list_access_entries(clusterName="train", associatedPolicyArn=ADMIN)["accessEntries"]
    entry = eks.describe_access_entry(clusterName="train", principalArn=principals[0])["accessEntry"]
    assert entry["principalArn"] == principals[0]
    eks.tag_resource(resourceArn=entry["accessEntryArn"], tags={"a": "b"})
    assert eks.list_tags_for_resource(resourceArn=entry["accessEntryArn"])["tags"]["a"] == "b"


def test_contents_of_a_cluster_are_read_over_http(running: server.Server, resources: dict[str, Any]) -> None:
    found = running.kubernetes(ARN)
    assert [release["values"] for release in found["releases"]] == [{"replicas": 2}]
    assert [thing["kind"] for thing in found["objects"]] == ["ClusterQueue", "LocalQueue", "LocalQueue"]
    with pytest.raises(server.ServerError, match="no such cluster"):
        running.kubernetes(ARN + "x")


def test_the_inventory_shows_a_platform(running: server.Server, resources: dict[str, Any]) -> None:
    found = [
        (row.kind, row.name, row.details)
        for row in inventory(accounts.DEFAULT, REGION, running.connection(accounts.DEFAULT))
    ]
    assert (
        "EKS cluster",
        "train",
        f"Kubernetes {VERSION}, standard, private endpoint, protected from deletion",
    ) in found
    (nodes,) = [details for kind, name, details in found if (kind, name) == ("Node group", "system")]
    assert nodes.startswith("2 (1 to 2) x m7i.2xlarge, on_demand, AL2023_x86_64_STANDARD 1.")
    assert ("Add-on", "coredns", "v1.12.0-eksbuild.1") in found
    entries = {details for kind, _, details in found if kind == "Access entry"}
    assert entries == {"AmazonEKSClusterAdminPolicy", "EC2_LINUX"}
    assert ("Helm release", "kueue", "kueue 0.19.2 in kueue-system, revision 1") in found
    assert ("Kubernetes objects", "LocalQueue", "2 of kueue.x-k8s.io/v1beta2") in found


def test_the_role_of_a_scraper_has_an_entry_and_instances_are_listed(
    running: server.Server, resources: dict[str, Any]
) -> None:
    """The name of a service in the path of a request is not the host of a Region."""
    eks, ec2 = client(running, "eks"), client(running, "ec2")
    principal = f"arn:aws:iam::{accounts.DEFAULT}:role/aws-service-role/scraper.aps.amazonaws.com/Scraper_1"
    eks.create_access_entry(clusterName="train", principalArn=principal)
    found = eks.describe_access_entry(clusterName="train", principalArn=principal)["accessEntry"]
    eks.delete_access_entry(clusterName="train", principalArn=principal)
    assert found["principalArn"] == principal
    image = ec2.register_image(Name="host", Architecture="arm64", RootDeviceName="/dev/xvda")["ImageId"]
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "dev-host"}]}]
    made = ec2.run_instances(ImageId=image, InstanceType="t4g.small", MinCount=1, MaxCount=1, TagSpecifications=tags)
    instance = made["Instances"][0]["InstanceId"]
    rows = inventory(accounts.DEFAULT, REGION, running.connection(accounts.DEFAULT))
    assert ("Instance", instance, "dev-host: t4g.small, running") in [(row.kind, row.name, row.details) for row in rows]
    ec2.terminate_instances(InstanceIds=[instance])
    assert instance not in [
        row.name for row in inventory(accounts.DEFAULT, REGION, running.connection(accounts.DEFAULT))
    ]
