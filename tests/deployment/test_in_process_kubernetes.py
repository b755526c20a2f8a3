"""Shipped environments with Kubernetes, deployed in this process: EKS resources and cluster contents."""

import pytest

from localaws.services.kubernetes import contents
from tests.deployment.in_process import client, cluster, deployed_whole, objects
from tests.deployment.whole import WholeEnvironment
from tests.synthesis import FILES
from ultracluster.config.loader import load


@pytest.fixture(scope="module", params=[name for name in FILES if load(FILES[name]).control_plane.type == "eks"])
def deployed(request):
    """A deployed environment."""
    with deployed_whole(request.param) as environment:
        yield environment


class TestWholeEnvironment(WholeEnvironment):
    pass


def node_groups(environment):
    eks, name = client(environment, "eks"), cluster(environment)["name"]
    found = eks.list_nodegroups(clusterName=name)["nodegroups"]
    groups = [eks.describe_nodegroup(clusterName=name, nodegroupName=group)["nodegroup"] for group in found]
    return {group["nodegroupName"].rpartition("-")[0]: group for group in groups}


def test_the_cluster_has_the_settings_of_the_file(deployed):
    found, settings = cluster(deployed), deployed.control_plane
    assert found["version"] == settings.kubernetes_version
    assert found["deletionProtection"] is False
    assert found["resourcesVpcConfig"]["endpointPublicAccess"] == (settings.endpoint == "public_and_private")
    assert found["accessConfig"]["authenticationMode"] == "API"


def test_only_admins_members_the_kubectl_provider_and_the_scraper_have_access_entries(deployed):
    eks, name = client(deployed, "eks"), cluster(deployed)["name"]
    entries = set(eks.list_access_entries(clusterName=name)["accessEntries"])
    named = {*deployed.control_plane.admins, *(role for team in deployed.control_plane.teams for role in team.members)}
    assert named <= entries
    (scraper,) = client(deployed, "amp").list_scrapers()["scrapers"]
    assert scraper["roleArn"] in entries
    # besides: the kubectl provider's role, the nodes' role, and the role of Karpenter's nodes
    assert len(entries - named - {scraper["roleArn"]}) == 2 + bool(deployed.control_plane.karpenter)


def test_every_group_of_the_file_is_a_node_group_besides_the_system_nodes(deployed):
    groups = node_groups(deployed)
    cpu = {"cpu"} if deployed.control_plane.cpu_nodes.count else set()
    assert set(groups) == {"system", *cpu, *(group.name for group in deployed.launched_groups)}
    for group in deployed.launched_groups:
        assert groups[group.name]["scalingConfig"]["maxSize"] == group.max_count
        values = {"nvidia.com/gpu": "present", "ultracluster/not-accepted": "true"}
        taints = [{"key": key, "value": value, "effect": "NO_SCHEDULE"} for key, value in values.items()]
        assert (groups[group.name].get("taints") or []) == (taints if group.hardware.gpu_count else [])
        assert len(groups[group.name]["subnets"]) == max(1, len(group.zones))
    assert len(groups["system"]["subnets"]) == 2
    assert [taint["key"] for taint in groups["system"]["taints"]] == ["CriticalAddonsOnly"]
    assert not any(groups[name].get("taints") for name in cpu)


def test_every_team_has_a_namespace_and_a_queue(deployed):
    namespaces = {item["metadata"]["name"] for item in objects(deployed) if item["kind"] == "Namespace"}
    teams = {team.name for team in deployed.control_plane.teams}
    assert teams <= namespaces
    queues = {item["metadata"]["name"] for item in objects(deployed) if item["kind"] in ("ClusterQueue", "Queue")}
    assert teams <= queues


def test_kueue_quotas_sum_up_to_the_gpus_of_the_fleet_without_spares(deployed):
    if deployed.control_plane.queues_with != "kueue":
        assert not [item for item in objects(deployed) if item["kind"] == "ClusterQueue"]
        return
    quotas = [
        int(resource["nominalQuota"])
        for item in objects(deployed)
        if item["kind"] in ("ClusterQueue", "Cohort")
        for resources in item["spec"].get("resourceGroups", ())
        for flavor in resources["flavors"]
        for resource in flavor["resources"]
        if resource["name"] == "nvidia.com/gpu" and not flavor["name"].startswith("elastic-")
    ]
    spares = deployed.health.spares
    gpus = [(g.max_count - spares.get(g.name, 0)) * g.hardware.gpu_count for g in deployed.node_groups]
    assert sum(quotas) == sum(gpus)


def test_nodes_are_accepted_and_diagnosed_as_the_file_says(deployed):
    health = deployed.health
    pods = {
        item["metadata"]["name"]: item["spec"]["template"]["spec"]
        for item in objects(deployed)
        if item["kind"] == "DaemonSet"
    }
    [agent] = pods["node-acceptance"]["containers"]
    said = {each["name"]: each.get("value") for each in agent["env"]}
    assert (said["ACCEPT"], said["ON_FAILURE"]) == (health.accept, health.on_failure)
    tools = pods.get("node-diagnostics", {"containers": []})["containers"]
    images = {each["image"].rpartition(":")[0].rpartition("/")[2] for each in tools}
    assert images == ({"dcgm", "nccl-tests"} if health.accept == "full" else set())


def test_device_charts_match_the_device_stacks(deployed):
    releases = {release["name"] for release in contents(cluster(deployed)["arn"])["releases"]}
    stacks = deployed.control_plane.used_device_stacks
    assert ("gpu-operator" in releases) == ("gpu_operator" in stacks)
    assert ("aws-dranet" in releases) == ("dra" in stacks)
    assert ("aws-efa-k8s-device-plugin" in releases) == bool(stacks - {"dra"})
    assert not {"gpu-operator", "nvidia-device-plugin"} <= releases or "dra" in stacks
