"""Karpenter's pools of the environment file, deployed in this process, and the way to the default ones and back."""

import pytest

from tests.deployment.conftest import changed
from tests.deployment.in_process import change, client, cluster, deployed_whole, objects, update
from tests.synthesis import synthesise

NAME = "eks-karpenter"


@pytest.fixture(scope="module")
def deployed():
    with deployed_whole(NAME) as environment:
        yield environment


def named(environment, *kinds):
    return {(item["kind"], item["metadata"]["name"]): item for item in objects(environment) if item["kind"] in kinds}


def test_nodes_of_a_pool_are_launched_in_subnets_of_its_zones(deployed):
    ec2 = client(deployed, "ec2")
    for pool in deployed.pools:
        spec = named(deployed, "EC2NodeClass")["EC2NodeClass", f"elastic-{pool.name}"]["spec"]
        subnets = [term["id"] for term in spec["subnetSelectorTerms"]]
        found = ec2.describe_subnets(SubnetIds=subnets)["Subnets"]
        zones = pool.zones or (deployed.availability_zone,)
        assert sorted(subnet["AvailabilityZone"] for subnet in found) == sorted(zones)
        assert not any(subnet["MapPublicIpOnLaunch"] for subnet in found)


def test_only_nodes_with_efa_have_the_security_group_of_efa(deployed):
    ec2 = client(deployed, "ec2")
    for pool in deployed.pools:
        spec = named(deployed, "EC2NodeClass")["EC2NodeClass", f"elastic-{pool.name}"]["spec"]
        ids = [term["id"] for term in spec["securityGroupSelectorTerms"]]
        groups = ec2.describe_security_groups(GroupIds=ids)["SecurityGroups"]
        assert any("EFA" in group["Description"] for group in groups) == pool.efa


KINDS = ("NodePool", "EC2NodeClass", "NodeOverlay", "ResourceFlavor", "Cohort")
OWN = {"elastic-prep", "elastic-eval", "elastic-try"}


def elastic(environment):
    """Names of objects for Karpenter's nodes by kind, and the cohort of the teams' queues."""
    found = named(environment, *KINDS, "ClusterQueue")
    cohorts = {
        item["spec"]["cohortName"]
        for (kind, name), item in found.items()
        if name.endswith(".elastic") and kind == "ClusterQueue"
    }
    names = {kind: {name for each, name in found if each == kind} for kind in KINDS}
    return names, cohorts


def without_eval(data):
    pools = data["control_plane"]["karpenter"]["pools"]
    data["control_plane"]["karpenter"]["pools"] = [pool for pool in pools if pool["name"] != "eval"]


def default(data):
    data["control_plane"]["karpenter"] = True


def update_platform_first(environment):
    """The way to fewer zones: the network cannot drop a subnet whose export the platform still imports."""
    assert change(environment, "platform", synthesise(environment)["platform"]) == "UPDATE_COMPLETE"
    update(environment)


def test_what_leaves_the_file_is_deleted_and_the_rest_stays(deployed):
    names, cohorts = elastic(deployed)
    assert names["NodePool"] == names["EC2NodeClass"] == OWN
    assert cohorts == {f"{NAME}.pools"}

    fewer = changed(NAME, without_eval)
    assert change(fewer, "network", synthesise(fewer)["network"]) == "UPDATE_ROLLBACK_COMPLETE"
    update_platform_first(fewer)
    names, _ = elastic(deployed)
    assert names["NodePool"] == names["EC2NodeClass"] == OWN - {"elastic-eval"}
    assert "elastic-eval" not in names["ResourceFlavor"]
    vpc = {"Name": "vpc-id", "Values": [cluster(deployed)["resourcesVpcConfig"]["vpcId"]]}
    subnets = client(deployed, "ec2").describe_subnets(Filters=[vpc])["Subnets"]
    zones = {subnet["AvailabilityZone"] for subnet in subnets}
    assert "us-east-2c" not in zones

    update_platform_first(changed(NAME, default))
    names, cohorts = elastic(deployed)
    assert "elastic-g" in names["NodePool"] & names["ResourceFlavor"]
    assert not OWN & (names["NodePool"] | names["ResourceFlavor"] | names["EC2NodeClass"])
    assert (names["NodeOverlay"], cohorts) == ({"huge-pages"}, {f"{NAME}.elastic"})
    assert f"{NAME}.pools" not in names["Cohort"]

    update(changed(NAME, lambda _: None))
    names, cohorts = elastic(deployed)
    assert names["NodePool"] == names["EC2NodeClass"] == OWN
    assert {name for name in names["ResourceFlavor"] if name.startswith("elastic-")} == OWN
    assert (names["NodeOverlay"], cohorts) == ({"huge-pages-of-pools"}, {f"{NAME}.pools"})
