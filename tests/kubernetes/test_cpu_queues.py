"""Pods without GPUs, and jobs on Karpenter's nodes, find a queue with a flavor, by Kueue's own rules."""

import pytest

from tests.kubernetes.fleet import fleet
from tests.kubernetes.kueue_rules import assigned_flavor
from tests.kubernetes.schemas import check
from ultracluster.kubernetes.karpenter import elastic_pools
from ultracluster.kubernetes.queues import team_and_queue_objects

LAUNCHER = {"cpu": 1, "memory": "2Gi"}
NODE = {"cpu": 144, "memory": "1536Gi", "nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 16}
ANY_LEVEL = "kubernetes.io/hostname"


def objects(environment, kind):
    found = [obj for part in team_and_queue_objects(environment) for obj in part.items if obj["kind"] == kind]
    return {obj["metadata"]["name"]: obj for obj in found}


def choose(environment, requests, queue="pretrain", **pod):
    queues, flavors = objects(environment, "ClusterQueue"), objects(environment, "ResourceFlavor")
    cohort = objects(environment, "Cohort").get(queues[queue]["spec"]["cohortName"], {"spec": {}})
    shared = cohort if "resourceGroups" in cohort["spec"] else None
    return assigned_flavor(queues[queue], flavors, requests, shared=shared, **pod)


@pytest.mark.parametrize("team", ["pretrain", "research"])
@pytest.mark.parametrize(
    ("settings", "flavor"),
    [({}, "cpu.hosts"), ({"scheduler": "kueue_with_kai"}, "cpu"), ({"device_stack": "dra"}, "cpu")],
)
def test_a_launcher_runs_on_cpu_nodes(settings, flavor, team):
    assert choose(fleet(**settings), LAUNCHER, team) == flavor


@pytest.mark.parametrize(("team", "flavor"), [("claims", "cpu"), ("both", "cpu"), ("requests", "cpu.hosts")])
def test_a_launcher_runs_on_cpu_nodes_whatever_serves_the_devices_of_its_team(team, flavor):
    """Kueue places no jobs on groups of stack dra, and a queue with both kinds of flavors is not for every pod."""
    groups = {"train": ("p5.48xlarge", 4), "evaluate": ("p5.48xlarge", 2)}
    used = {"claims": ["train"], "both": ["train", "evaluate"], "requests": ["evaluate"]}
    teams = tuple(
        {"name": name, "node_groups": wanted, "gpus": {wanted[0]: 8}, "may_borrow": True}
        for name, wanted in used.items()
    )
    stacks = {"dra": ["train"], "gpu_operator": ["evaluate"]}
    environment = fleet(groups, teams, device_stack=stacks)
    assert choose(environment, LAUNCHER, team, selector={"ultracluster/node-group": "cpu"}) == flavor
    assert set(objects(environment, "Topology")) == {"hosts", "network-3-layers"}


@pytest.mark.parametrize("topology", [None, "topology.k8s.aws/network-node-layer-3"])
def test_a_gpu_job_runs_on_its_group_with_and_without_a_topology_annotation(topology):
    assert choose(fleet(), NODE, topology=topology) == "train.network-3-layers"
    assert choose(fleet(), NODE, topology=topology, selector={"ultracluster/node-group": "cpu"}) is None


def test_pods_without_gpus_use_accelerated_nodes_once_the_share_of_the_team_is_used():
    """A team's share of two m7i.4xlarge is 15 CPUs, so a pod of 16 does not fit there."""
    assert choose(fleet(), {"cpu": 15, "memory": "60Gi"}) == "cpu.hosts"
    assert choose(fleet(), {"cpu": 16, "memory": "60Gi"}) == "train.network-3-layers"
    assert choose(fleet(), {"cpu": 16, "memory": "60Gi"}, selector={"ultracluster/node-group": "cpu"}) is None


def test_without_cpu_nodes_a_launcher_runs_on_the_accelerated_nodes():
    environment = fleet(cpu_nodes={"count": 0})
    assert set(objects(environment, "ResourceFlavor")) == {"train.network-3-layers"}
    assert choose(environment, LAUNCHER) == "train.network-3-layers"


def test_teams_divide_the_cpu_nodes_and_borrow_none_of_them():
    for queue in objects(fleet(), "ClusterQueue").values():
        (group,) = queue["spec"]["resourceGroups"]
        cpu = next(flavor for flavor in group["flavors"] if flavor["name"] == "cpu.hosts")
        quotas = {entry["name"]: entry["nominalQuota"] for entry in cpu["resources"]}
        assert quotas == {"cpu": 15, "memory": "60Gi", "nvidia.com/gpu": 0, "vpc.amazonaws.com/efa": 0}
        assert {entry["borrowingLimit"] for entry in cpu["resources"]} == {0}


def test_a_queue_does_not_mix_flavors_with_and_without_a_topology():
    """Pods without a topology annotation would get only the flavors without one."""
    environment = fleet(karpenter=True)
    flavors = objects(environment, "ResourceFlavor")
    for queue in objects(environment, "ClusterQueue").values():
        names = [flavor["name"] for group in queue["spec"]["resourceGroups"] for flavor in group["flavors"]]
        assert len({"topologyName" in flavors[name]["spec"] for name in names}) == 1


def test_a_job_reaches_every_elastic_pool_by_the_elastic_queue():
    environment, local = fleet(karpenter=True), objects(fleet(karpenter=True), "LocalQueue")
    assert local["elastic"]["metadata"]["namespace"] == "research"
    assert local["elastic"]["spec"]["clusterQueue"] == "research.elastic"
    for pool in elastic_pools(environment):
        half = {"cpu": pool.cpus // 4, "memory": f"{pool.memory_gib // 4}Gi"}
        if pool.gpus:
            half["nvidia.com/gpu"] = pool.gpus // 2
        if pool.efa_devices:
            half["vpc.amazonaws.com/efa"] = pool.efa_devices // 2
        chosen = choose(environment, half, "research.elastic", selector={"ultracluster/node-group": pool.name})
        assert chosen == pool.name


def test_the_elastic_queue_chooses_cpu_nodes_for_launchers_and_a_gpu_pool_for_gpus():
    environment = fleet(karpenter=True)
    assert choose(environment, LAUNCHER, "research.elastic") == "elastic-cpu"
    assert choose(environment, {**LAUNCHER, "nvidia.com/gpu": 1}, "research.elastic") == "elastic-g"
    assert choose(environment, NODE, "research.elastic") == "elastic-p5-48xlarge"


def test_no_team_owns_elastic_quota_and_the_cohort_holds_the_limits_of_the_pools():
    environment = fleet(karpenter=True)
    queues, cohorts = objects(environment, "ClusterQueue"), objects(environment, "Cohort")
    for team, weight in (("pretrain", "4"), ("research", "2")):
        spec = queues[f"{team}.elastic"]["spec"]
        assert spec["cohortName"] == "staging.elastic"
        assert spec["fairSharing"] == {"weight": weight}
        (group,) = spec["resourceGroups"]
        entries = [entry for flavor in group["flavors"] for entry in flavor["resources"]]
        assert {entry["nominalQuota"] for entry in entries} == {0}
        assert not any("borrowingLimit" in entry for entry in entries)
    (group,) = cohorts["staging.elastic"]["spec"]["resourceGroups"]
    gpus = {flavor["name"]: flavor["resources"][2]["nominalQuota"] for flavor in group["flavors"]}
    assert gpus["elastic-cpu"] == 0
    assert gpus["elastic-g"] == 16
    assert gpus["elastic-p5en-48xlarge"] == 2 * 8


@pytest.mark.parametrize("scheduler", ["kueue", "kueue_with_kai", "kueue_with_volcano"])
def test_elastic_objects_follow_the_crds_and_the_limits_of_kueue(scheduler):
    environment = fleet(karpenter=True, scheduler=scheduler)
    for part in team_and_queue_objects(environment):
        for obj in part.items:
            check(obj)
    for queue in objects(environment, "ClusterQueue").values():
        (group,) = queue["spec"]["resourceGroups"]
        assert len(group["flavors"]) <= 16


@pytest.mark.parametrize("scheduler", ["volcano", "kai"])
def test_without_kueue_there_are_no_elastic_queues(scheduler):
    assert not objects(fleet(karpenter=True, scheduler=scheduler), "LocalQueue")
