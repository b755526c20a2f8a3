"""Quotas, borrowing and priorities under Kueue."""

import pytest

from tests.kubernetes.fleet import fleet, one_team
from tests.kubernetes.schemas import check
from ultracluster.catalog import catalog
from ultracluster.kubernetes.kueue import (
    cpu_flavors,
    device_class_mappings,
    fleet_cohort,
    kueue_topologies,
    priority_classes,
    resource_flavor,
    team_queues,
)

MIXED = {"train": ("p5en.48xlarge", 4), "small": ("p5.4xlarge", 6)}
MIXED_TEAMS = (
    {"name": "pretrain", "node_groups": ["train"], "gpus": 16},
    {"name": "research", "node_groups": ["small", "train"], "gpus": {"small": 4, "train": 8}, "may_borrow": True},
)


def queues(environment, team):
    """Cohort, cluster queue and local queue of a team."""
    (found,) = [one for one in environment.teams if one.name == team]
    return team_queues(environment, found)


def flavors(environment):
    return [resource_flavor(environment, group) for group in environment.node_groups]


def quotas(obj):
    """Nominal quotas by flavor and resource."""
    return {
        (flavor["name"].partition(".")[0], resource["name"]): resource["nominalQuota"]
        for group in obj["spec"]["resourceGroups"]
        for flavor in group["flavors"]
        for resource in flavor["resources"]
    }


def everything(environment):
    teams = (obj for team in environment.teams for obj in team_queues(environment, team))
    return [
        *kueue_topologies(environment),
        *priority_classes(),
        *flavors(environment),
        *cpu_flavors(environment),
        fleet_cohort(environment),
        *teams,
    ]


@pytest.mark.parametrize("stack", ["gpu_operator", "device_plugin", "dra"])
@pytest.mark.parametrize("hardware", catalog.values(), ids=lambda hardware: hardware.name)
def test_objects_follow_the_crds_of_kueue(hardware, stack):
    nodes = 36 if hardware.ultraserver_only else 4
    for obj in everything(one_team(hardware.name, nodes, hardware.gpu_count * nodes, device_stack=stack)):
        check(obj)


@pytest.mark.parametrize("scheduler", ["kueue", "kueue_with_kai", "kueue_with_volcano"])
def test_objects_of_several_node_groups_follow_the_crds(scheduler):
    for obj in everything(fleet(MIXED, MIXED_TEAMS, scheduler=scheduler)):
        check(obj)


def test_a_quota_of_96_gpus_is_twelve_nodes_of_p5en():
    quota = quotas(queues(fleet(), "pretrain")[1])
    assert quota["train", "nvidia.com/gpu"] == 96
    assert quota["train", "vpc.amazonaws.com/efa"] == 12 * 16
    assert quota["train", "cpu"] == 12 * 192
    assert quota["train", "memory"] == f"{12 * 2048}Gi"


@pytest.mark.parametrize(
    ("name", "efa_per_gpu"),
    [
        ("p5.4xlarge", 1),
        ("p5.48xlarge", 4),
        ("p5e.48xlarge", 4),
        ("p5en.48xlarge", 2),
        ("p6-b200.48xlarge", 1),
        ("p6-b300.48xlarge", 2),
        ("p6e-gb200.36xlarge", 1),
    ],
)
def test_the_quota_of_efa_devices_follows_the_gpus(name, efa_per_gpu):
    hardware = catalog[name]
    gpus = hardware.gpu_count * 36
    quota = quotas(queues(one_team(name, 36, gpus), "pretrain")[1])
    assert quota["train", "vpc.amazonaws.com/efa"] == gpus * efa_per_gpu


def test_a_team_that_may_not_borrow_borrows_nothing():
    def limits(team):
        (group,) = queues(fleet(), team)[1]["spec"]["resourceGroups"]
        of_gpus = [flavor for flavor in group["flavors"] if flavor["name"].startswith("train")]
        return {resource.get("borrowingLimit") for flavor in of_gpus for resource in flavor["resources"]}

    assert limits("pretrain") == {0}
    assert limits("research") == {None}


def test_a_team_borrows_only_from_its_own_node_groups():
    environment = fleet(MIXED, MIXED_TEAMS)
    assert {flavor for flavor, _ in quotas(queues(environment, "pretrain")[1])} == {"cpu", "train"}
    assert {flavor for flavor, _ in quotas(queues(environment, "research")[1])} == {"cpu", "small", "train"}


def test_quotas_add_up_to_the_fleet():
    environment = fleet(MIXED, MIXED_TEAMS)
    whole = [fleet_cohort(environment)]
    whole += [queues(environment, team)[1] for team in ("pretrain", "research")]

    def total(flavor, resource):
        return sum(quotas(obj).get((flavor, resource), 0) for obj in whole)

    assert total("train", "nvidia.com/gpu") == 4 * 8
    assert total("train", "vpc.amazonaws.com/efa") == 4 * 16
    assert total("train", "cpu") == 4 * 192
    assert total("small", "nvidia.com/gpu") == 6
    assert total("small", "cpu") == 6 * 16


def test_every_flavor_of_a_resource_group_lists_the_resources_in_the_same_order():
    """Kueue's webhook refuses another order."""
    environment = fleet(MIXED, MIXED_TEAMS)
    for obj in (fleet_cohort(environment), queues(environment, "research")[1]):
        for group in obj["spec"]["resourceGroups"]:
            for flavor in group["flavors"]:
                assert [resource["name"] for resource in flavor["resources"]] == group["coveredResources"]


def test_the_fleets_cohort_is_the_parent_and_weights_follow_priorities():
    cohorts = {team: queues(fleet(), team)[0] for team in ("pretrain", "research")}
    assert {cohort["spec"]["parentName"] for cohort in cohorts.values()} == {"staging.fleet"}
    weights = {team: int(cohort["spec"]["fairSharing"]["weight"]) for team, cohort in cohorts.items()}
    assert weights["pretrain"] > weights["research"] > 0
    assert queues(fleet(), "pretrain")[1]["spec"]["cohortName"] == cohorts["pretrain"]["metadata"]["name"]


def test_no_team_can_have_the_name_of_the_fleet():
    environment = fleet(teams=({"name": "staging", "node_groups": ["train"], "gpus": 128},))
    assert fleet_cohort(environment)["metadata"]["name"] != "staging"


def test_only_the_teams_namespace_uses_its_queue_by_default():
    _, cluster_queue, local_queue = queues(fleet(), "research")
    assert cluster_queue["spec"]["namespaceSelector"] == {"matchLabels": {"ultracluster/team": "research"}}
    assert local_queue["metadata"] == {"name": "default", "namespace": "research"}
    assert local_queue["spec"] == {"clusterQueue": cluster_queue["metadata"]["name"]}


def test_lent_quota_is_reclaimed_and_borrowing_is_fair_sharing():
    preemption = queues(fleet(), "pretrain")[1]["spec"]["preemption"]
    assert preemption["reclaimWithinCohort"] == "Any"
    assert preemption["withinClusterQueue"] == "LowerPriority"  # no job ends for one of its own priority
    assert "borrowWithinCohort" not in preemption  # Kueue takes it with classic preemption only


def test_a_flavor_selects_a_node_group_and_tolerates_its_taint():
    (flavor,) = flavors(one_team("p6e-gb200.36xlarge", 36, 144))
    assert flavor["spec"]["nodeLabels"] == {"ultracluster/node-group": "train"}
    (taint,), (toleration,) = flavor["spec"]["nodeTaints"], flavor["spec"]["tolerations"]
    assert (taint["key"], taint["effect"]) == (toleration["key"], toleration["effect"])


def test_every_topology_of_a_flavor_exists():
    environment = fleet(MIXED, MIXED_TEAMS)
    known = {topology["metadata"]["name"] for topology in kueue_topologies(environment)}
    found = [*flavors(environment), *cpu_flavors(environment)]
    assert {flavor["spec"]["topologyName"] for flavor in found} == known


@pytest.mark.parametrize(
    "settings", [{"scheduler": "kueue_with_kai"}, {"scheduler": "kueue_with_volcano"}, {"device_stack": "dra"}]
)
def test_a_flavor_has_no_topology_without_topology_aware_scheduling(settings):
    (flavor,) = flavors(fleet(**settings))
    assert "topologyName" not in flavor["spec"]


def test_another_topology_is_another_flavor():
    """The topology of a Kueue flavor is immutable."""
    names = {
        flavors(one_team("p5en.48xlarge", 2, 16))[0]["metadata"]["name"],
        flavors(one_team("p6-b200.48xlarge", 2, 16))[0]["metadata"]["name"],
        flavors(fleet(scheduler="kueue_with_kai"))[0]["metadata"]["name"],
    }
    assert len(names) == 3


def test_priorities_are_in_order():
    values = {priority["metadata"]["name"]: priority["value"] for priority in priority_classes()}
    assert values["high"] > values["normal"] > values["low"]


def test_claims_count_as_resources_with_a_quota():
    (group,) = queues(fleet(device_stack="dra"), "pretrain")[1]["spec"]["resourceGroups"]
    mappings = device_class_mappings(fleet(device_stack="dra"))
    assert {mapping["name"] for mapping in mappings} <= set(group["coveredResources"])
    assert {name for mapping in mappings for name in mapping["deviceClassNames"]} == {
        "gpu.nvidia.com",
        "efa.networking.k8s.aws",
    }
    assert device_class_mappings(fleet()) == []


def test_ultraservers_have_a_channel_for_each_node():
    environment = one_team("p6e-gb200.36xlarge", 36, 144)
    (mapping,) = device_class_mappings(environment)
    assert mapping["deviceClassNames"] == ["compute-domain-default-channel.nvidia.com"]
    assert quotas(queues(environment, "pretrain")[1])["train", mapping["name"]] == 36
