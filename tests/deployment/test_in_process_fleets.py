"""Whole fleets, deployed in this process: training nodes, other GPUs, and CPU nodes of several types and zones."""

import pytest

from tests.deployment.in_process import client, cluster, deployed_whole


def zones(environment, subnets):
    described = client(environment, "ec2").describe_subnets(SubnetIds=list(subnets))["Subnets"]
    return sorted(subnet["AvailabilityZone"] for subnet in described)


def test_a_fleet_under_slurm():
    with deployed_whole("slurm-whole-fleet") as environment:
        pcs = client(environment, "pcs")
        (found,) = pcs.list_clusters()["clusters"]
        listed = pcs.list_compute_node_groups(clusterIdentifier=found["id"])["computeNodeGroups"]
        ids = {group["name"].rpartition("-")[0]: group["id"] for group in listed}
        groups = {
            name: pcs.get_compute_node_group(clusterIdentifier=found["id"], computeNodeGroupIdentifier=each)[
                "computeNodeGroup"
            ]
            for name, each in ids.items()
        }
        assert set(groups) == {"login", "train", "eval", "prep"}
        prep = groups["prep"]
        assert [each["instanceType"] for each in prep["instanceConfigs"]] == ["c7i.48xlarge", "m7i.48xlarge"]
        assert prep["purchaseOption"] == "SPOT"
        assert prep["scalingConfiguration"] == {"minInstanceCount": 0, "maxInstanceCount": 20}
        assert zones(environment, prep["subnetIds"]) == ["us-east-2a", "us-east-2b"]
        assert zones(environment, groups["train"]["subnetIds"]) == ["us-east-2b"]
        assert groups["eval"]["purchaseOption"] == "ONDEMAND"


@pytest.fixture(scope="module")
def on_eks():
    with deployed_whole("eks-whole-fleet") as environment:
        eks, name = client(environment, "eks"), cluster(environment)["name"]
        names = eks.list_nodegroups(clusterName=name)["nodegroups"]
        described = [eks.describe_nodegroup(clusterName=name, nodegroupName=each)["nodegroup"] for each in names]
        placed = {
            group["nodegroupName"].rpartition("-")[0]: {**group, "zones": zones(environment, group["subnets"])}
            for group in described
        }
        yield placed


def test_a_fleet_under_kubernetes(on_eks):
    assert set(on_eks) == {"system", "cpu", "train", "eval", "prep"}
    assert on_eks["prep"]["instanceTypes"] == ["c7i.48xlarge", "m7i.48xlarge"]
    assert on_eks["prep"]["capacityType"] == "SPOT"
    assert on_eks["prep"]["zones"] == ["us-east-2a", "us-east-2b"]
    assert on_eks["train"]["zones"] == on_eks["eval"]["zones"] == ["us-east-2b"]


@pytest.mark.parametrize(
    ("name", "image", "tainted"),
    [
        ("train", "AL2023_x86_64_NVIDIA", True),
        ("eval", "AL2023_x86_64_NVIDIA", True),
        ("prep", "AL2023_x86_64_STANDARD", False),
    ],
)
def test_only_nodes_with_gpus_have_their_driver_and_their_taint(on_eks, name, image, tainted):
    assert on_eks[name]["amiType"] == image
    assert bool(on_eks[name].get("taints")) is tainted
