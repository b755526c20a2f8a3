"""Values of Kueue, Volcano and KAI."""

import pytest
import yaml

from tests.kubernetes.environments import GB200, OPERATORS, P5, SCHEDULERS, eks_environment
from ultracluster.kubernetes.kueue import LOCAL_QUEUE
from ultracluster.kubernetes.queues import team_and_queue_objects
from ultracluster.kubernetes.scheduler_charts import scheduler_releases, volcano_levels
from ultracluster.kubernetes.teams import namespace

LAYERS = "topology.k8s.aws/network-node-layer-"


def made(groups=P5, **settings):
    return {release.name: release for release in scheduler_releases(eks_environment(groups, **settings))}


def kueue(groups=P5, **settings):
    """Kueue's configuration as its pod reads it."""
    text = made(groups, **settings)["kueue"].values["managerConfig"]["controllerManagerConfigYaml"]
    return yaml.safe_load(text)


def volcano(**settings):
    """Volcano's scheduler configuration as its pod reads it: actions, and plugins of each tier by name."""
    text = made(**settings)["volcano"].values["custom"]["scheduler_config_override"]
    configuration = yaml.safe_load(text)
    tiers = [{plugin["name"]: plugin for plugin in tier["plugins"]} for tier in configuration["tiers"]]
    return configuration["actions"].split(", "), tiers


@pytest.mark.parametrize(
    ("scheduler", "wanted"),
    [
        ("kueue", {"kueue"}),
        ("volcano", {"volcano"}),
        ("kai", {"kai-scheduler"}),
        ("kueue_with_kai", {"kueue", "kai-scheduler"}),
        ("kueue_with_volcano", {"kueue", "volcano"}),
    ],
)
def test_each_mode_has_its_releases(scheduler, wanted):
    assert set(made(scheduler=scheduler)) == wanted


def test_kueue_manages_only_namespaces_of_teams():
    environment = eks_environment()
    (rule,) = kueue()["managedJobsNamespaceSelector"]["matchExpressions"]
    assert rule["operator"] == "Exists"
    (team,) = environment.teams
    assert rule["key"] in namespace(environment, team)["metadata"]["labels"]
    others = [o for part in team_and_queue_objects(environment) for o in part.items if o["kind"] == "Namespace"]
    assert {o["metadata"]["name"] for o in others} == {team.name}


def test_nothing_in_a_teams_namespace_bypasses_the_quotas():
    configuration = kueue()
    assert configuration["manageJobsWithoutQueueName"]
    assert {"batch/job", "pod", "deployment", "statefulset"} <= set(configuration["integrations"]["frameworks"])
    assert LOCAL_QUEUE == "default"


def test_kueue_admits_only_kinds_of_installed_operators():
    every = kueue(jobs=OPERATORS)["integrations"]["frameworks"]
    kinds = {"jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob", "kubeflow.org/mpijob", "ray.io/rayjob"}
    assert kinds | {"ray.io/raycluster", "leaderworkerset.x-k8s.io/leaderworkerset"} <= set(every)
    assert len(every) == len(set(every))
    assert not any(name.startswith(("ray.io", "kubeflow.org")) for name in kueue()["integrations"]["frameworks"])


def test_kueue_admits_the_jobsets_of_the_trainer():
    assert "jobset.x-k8s.io/jobset" in kueue(jobs=["trainer"])["integrations"]["frameworks"]


def test_queues_cover_every_resource_of_the_device_class_mappings():
    """Jobs that claim from a class of a resource without a quota would wait for ever."""
    for groups, stack in ((P5, "gpu_operator"), (P5, "dra"), (GB200, "gpu_operator"), (GB200, "dra")):
        environment = eks_environment(groups, device_stack=stack)
        mapped = {m["name"] for m in kueue(groups, device_stack=stack)["resources"]["deviceClassMappings"]}
        queues = [o for part in team_and_queue_objects(environment) for o in part.items if o["kind"] == "ClusterQueue"]
        for queue in queues:
            covered = {name for group in queue["spec"]["resourceGroups"] for name in group["coveredResources"]}
            assert mapped <= covered


def test_excluded_resources_have_no_quota():
    environment = eks_environment(device_stack="dra")
    left_out = tuple(kueue(device_stack="dra")["resources"]["excludeResourcePrefixes"])
    queues = [o for part in team_and_queue_objects(environment) for o in part.items if o["kind"] == "ClusterQueue"]
    covered = [r for queue in queues for group in queue["spec"]["resourceGroups"] for r in group["coveredResources"]]
    assert covered
    assert not any(name.startswith(left_out) for name in covered)


def test_claimed_gpus_count_as_gpus():
    mappings = kueue(device_stack="dra")["resources"]["deviceClassMappings"]
    assert {"name": "nvidia.com/gpu", "deviceClassNames": ["gpu.nvidia.com"]} in mappings


def test_kueue_evicts_and_requeues_jobs_whose_pods_do_not_start():
    waits = kueue()["waitForPodsReady"]
    assert waits["blockAdmission"] is False
    assert waits["requeuingStrategy"]["backoffLimitCount"] > 0


def test_volcano_holds_quotas_only_where_kueue_does_not():
    alone, beside = volcano(scheduler="volcano"), volcano(scheduler="kueue_with_volcano")
    assert "capacity" in alone[1][0]
    assert not any("capacity" in tier or "proportion" in tier for tier in beside[1])
    assert not {"reclaim", "preempt", "gangreclaim", "gangpreempt"} & set(beside[0])


def test_volcano_reclaims_whole_gangs_only():
    actions, tiers = volcano(scheduler="volcano")
    assert {"gangreclaim", "gangpreempt"} <= set(actions)
    assert not {"reclaim", "preempt"} & set(actions)
    assert {"priority", "gang", "conformance", "capacity"} <= set(tiers[0])


@pytest.mark.parametrize("scheduler", ["volcano", "kueue_with_volcano"])
def test_volcano_prefers_close_nodes_and_packs_them(scheduler):
    _, tiers = volcano(scheduler=scheduler)
    plugins = {name: plugin for tier in tiers for name, plugin in tier.items()}
    assert {"gang", "priority", "predicates", "network-topology-aware"} <= set(plugins)
    assert plugins["binpack"]["arguments"]["binpack.resources"] == "nvidia.com/gpu"


def test_volcano_counts_claims_under_dra():
    for stack, counts in (("dra", True), ("gpu_operator", False)):
        _, tiers = volcano(scheduler="volcano", device_stack=stack)
        assert tiers[0]["capacity"]["arguments"]["capacity.DynamicResourceAllocationEnable"] is counts


@pytest.mark.parametrize(
    ("groups", "wanted"),
    [
        (P5, (1, 2, 3)),
        ({"train": "p6-b200.48xlarge"}, (1, 2, 3, 4)),
        ({"a": "p5.48xlarge", "b": "p6-b200.48xlarge"}, (1, 2, 3)),
        ({"a": "p5.48xlarge", "b": "p5.4xlarge"}, (1, 2, 3)),
        ({"a": "p5.4xlarge"}, ()),
    ],
)
def test_volcano_uses_the_network_layers_that_all_types_have(groups, wanted):
    assert volcano_levels(eks_environment(groups)) == tuple(f"{LAYERS}{number}" for number in wanted)


def test_volcano_uses_nvlink_domains_if_all_groups_are_ultraservers():
    assert volcano_levels(eks_environment(GB200)) == ("nvidia.com/gpu.clique",)


def test_volcano_discovers_one_topology_that_ends_with_the_host():
    """Volcano drops the last level and takes names of up to 20 characters."""
    custom = made(scheduler="volcano")["volcano"].values["custom"]
    (source,) = custom["controller_config_override"]["networkTopologyDiscovery"]
    ((name, levels),) = source["config"]["networkTopologyTypes"].items()
    assert (source["source"], source["enabled"]) == ("label", True)
    assert len(name) <= 20
    assert levels[0] == {"nodeLabel": f"{LAYERS}1"}
    assert levels[-1] == {"nodeLabel": "kubernetes.io/hostname"}


def test_volcano_discovers_no_topology_without_documented_layers():
    custom = made({"a": "p5.4xlarge"}, scheduler="volcano")["volcano"].values["custom"]
    assert "controller_config_override" not in custom


def test_replicas_elect_a_leader():
    custom = made(scheduler="volcano")["volcano"].values["custom"]
    assert custom["scheduler_replicas"] > 1
    assert custom["leader_elect_enable"]
    kai = made(scheduler="kai")["kai-scheduler"].values
    assert kai["operator"]["replicaCount"] > 1
    assert kai["global"]["leaderElection"]
    assert made()["kueue"].values["controllerManager"]["replicas"] > 1
    assert kueue()["leaderElection"]["leaderElect"]


def test_kais_chart_creates_no_default_queue():
    assert made(scheduler="kai")["kai-scheduler"].values["defaultQueue"] == {"createDefaultQueue": False}


def test_kai_does_not_copy_topologies_of_kueue():
    assert made(scheduler="kueue_with_kai")["kai-scheduler"].values["topologyMigration"] == {"enabled": False}


def test_schedulers_are_installed_first():
    for scheduler in SCHEDULERS:
        assert all(release.after == () for release in made(scheduler=scheduler).values())
