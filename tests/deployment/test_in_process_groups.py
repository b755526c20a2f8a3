"""Stacks of node groups, deployed in this process: one group apart from the other, the way there, and later changes."""

from dataclasses import replace

import pytest

from localaws import faults
from localaws.accounts import DEFAULT as ACCOUNT
from localaws.services.capacity import seed_reservation
from tests.deployment.conftest import changed
from tests.deployment.in_process import change, client, cluster, create, deployed_as, deployed_for, failures, needed
from tests.synthesis import FILES, synthesise, templates
from ultracluster.catalog.eks import KUBERNETES_VERSIONS, REPAIRS
from ultracluster.cli import seeds
from ultracluster.config.loader import load

NAME = "eks-volcano"
GROUPS = ("compute-train", "compute-try")


@pytest.fixture
def environment():
    return load(FILES[NAME])


@pytest.fixture
def without_groups():
    return {part: template for part, template in templates(NAME).items() if part not in GROUPS}


def in_one_stack():
    """The template of `<env>-compute` before each node group had a stack: the same resources, in one."""
    one = templates(NAME)[GROUPS[0]]
    for part in GROUPS[1:]:
        one["Resources"] |= templates(NAME)[part]["Resources"]
    return one


def node_groups(environment):
    eks, name = client(environment, "eks"), cluster(environment)["name"]
    return set(eks.list_nodegroups(clusterName=name)["nodegroups"])


def short(names):
    """Names as the file has them, without the CPU nodes, which have a stack of their own too."""
    return {name.rpartition("-")[0] for name in names} - {"cpu"}


def test_a_group_without_capacity_leaves_the_other_and_is_added_later(environment, without_groups):
    with deployed_as(environment, without_groups):
        train, other = (templates(NAME)[part] for part in GROUPS)
        faults.inject("insufficient-capacity", "AWS::EKS::Nodegroup", operations=("create",))
        assert create(environment, GROUPS[0], train) == "ROLLBACK_COMPLETE"
        assert create(environment, GROUPS[1], other) == "CREATE_COMPLETE"
        assert short(node_groups(environment)) == {"system", "try"}
        client(environment, "cloudformation").delete_stack(StackName=f"{NAME}-{GROUPS[0]}")
        assert create(environment, GROUPS[0], train) == "CREATE_COMPLETE"
        assert short(node_groups(environment)) == {"system", "train", "try"}


def test_a_stack_of_a_group_beside_the_old_compute_stack_fails_and_leaves_the_nodes_alone(environment, without_groups):
    with deployed_as(environment, {**without_groups, "compute": in_one_stack()}):
        before = node_groups(environment)
        assert create(environment, GROUPS[0], templates(NAME)[GROUPS[0]]) == "ROLLBACK_COMPLETE"
        assert "NodeGroup already exists with name" in " ".join(failures(environment, GROUPS[0]).values())
        assert node_groups(environment) == before


def test_stacks_of_groups_follow_the_deleted_compute_stack(environment, without_groups):
    with deployed_as(environment, {**without_groups, "compute": in_one_stack()}):
        before = node_groups(environment)
        client(environment, "cloudformation").delete_stack(StackName=f"{NAME}-compute")
        assert short(node_groups(environment)) == {"system"}
        for part in GROUPS:
            assert create(environment, part, templates(NAME)[part]) == "CREATE_COMPLETE"
        assert node_groups(environment) == before


def test_renamed_groups_are_created_beside_the_old_compute_stack(environment, without_groups):
    parts = synthesise(changed(NAME, renamed))
    with deployed_as(environment, {**without_groups, "compute": in_one_stack()}):
        for part in ("compute-train2", "compute-try2"):
            assert create(environment, part, parts[part]) == "CREATE_COMPLETE"
        assert short(node_groups(environment)) == {"system", "train", "try", "train2", "try2"}
        client(environment, "cloudformation").delete_stack(StackName=f"{NAME}-compute")
        assert short(node_groups(environment)) == {"system", "train2", "try2"}


COMBINED = "Version and ReleaseVersion updates cannot be combined with other updates"
TRAIN = "compute-train"
NEWER = "1.35.9-20261001"


def train_group(environment):
    eks, name = client(environment, "eks"), cluster(environment)["name"]
    (found,) = (each for each in eks.list_nodegroups(clusterName=name)["nodegroups"] if each.startswith("train-"))
    return eks.describe_nodegroup(clusterName=name, nodegroupName=found)["nodegroup"]


def pinned_to(release):
    def change(data):
        data["control_plane"]["image_release"] = release

    return change


def unpinned(data):
    del data["control_plane"]["image_release"]


def upgrade_package(monkeypatch):
    """A version of the package that brings a newer image and another list of repairs."""
    version = KUBERNETES_VERSIONS["1.35"]
    monkeypatch.setitem(KUBERNETES_VERSIONS, "1.35", replace(version, image_release=NEWER))
    monkeypatch.setattr("ultracluster.constructs.eks_nodes.REPAIRS", REPAIRS[:-1])


def test_an_upgrade_of_the_package_leaves_pinned_images_alone_and_they_follow_alone(monkeypatch):
    with deployed_for("staging", TRAIN) as staging:
        before = train_group(staging)
        upgrade_package(monkeypatch)
        pinned = synthesise(load(FILES["staging"]))[TRAIN]
        assert change(staging, TRAIN, pinned) == "UPDATE_COMPLETE"
        after = train_group(staging)
        assert after["releaseVersion"] == before["releaseVersion"]
        assert len(after["nodeRepairConfig"]["nodeRepairConfigOverrides"]) == len(REPAIRS) - 1
        assert change(staging, TRAIN, synthesise(changed("staging", pinned_to(NEWER)))[TRAIN]) == "UPDATE_COMPLETE"
        assert train_group(staging)["releaseVersion"] == NEWER


def test_an_upgrade_that_changes_images_and_repairs_is_refused_and_goes_in_two_steps(monkeypatch):
    free = changed("staging", unpinned)
    with deployed_as(free, needed(synthesise(free), TRAIN)):
        before = train_group(free)
        upgrade_package(monkeypatch)
        assert change(free, TRAIN, synthesise(free)[TRAIN]) == "UPDATE_ROLLBACK_COMPLETE"
        assert COMBINED in failures(free, TRAIN).values()
        assert train_group(free) == {**before, "modifiedAt": train_group(free)["modifiedAt"]}
        old = synthesise(changed("staging", pinned_to(before["releaseVersion"])))[TRAIN]
        assert change(free, TRAIN, old) == "UPDATE_COMPLETE"
        assert change(free, TRAIN, synthesise(free)[TRAIN]) == "UPDATE_COMPLETE"
        assert train_group(free)["releaseVersion"] == NEWER


def test_another_launch_template_together_with_another_size_is_refused():
    with deployed_for("staging", TRAIN) as staging:
        both = synthesise(changed("staging", resized))[TRAIN]
        assert change(staging, TRAIN, both) == "UPDATE_ROLLBACK_COMPLETE"
        assert COMBINED in failures(staging, TRAIN).values()


def test_the_next_capacity_block_takes_two_deployments():
    def started(data):
        data["node_groups"][0]["purchase"]["starts"] = "2030-01-08T11:30:00Z"

    def next_block(data):
        started(data)
        data["node_groups"][0]["purchase"]["reservation_id"] = "cr-0fedcba9876543210"

    with deployed_for("staging", TRAIN) as staging:
        after = changed("staging", next_block)
        for reservation in seeds.reservations(after):
            seed_reservation(**reservation, account=ACCOUNT)
        assert change(staging, TRAIN, synthesise(after)[TRAIN]) == "UPDATE_ROLLBACK_COMPLETE"
        assert COMBINED in failures(staging, TRAIN).values()
        assert change(staging, TRAIN, synthesise(changed("staging", started))[TRAIN]) == "UPDATE_COMPLETE"
        assert change(staging, TRAIN, synthesise(after)[TRAIN]) == "UPDATE_COMPLETE"


def resized(data):
    data["node_groups"][0] |= {"count": 8, "root_volume_gib": 500}
    data["control_plane"]["teams"][0]["gpus"] = 32


def retagged(data):
    data["tags"] = {"team": "research", "cost center/x": "7"}


@pytest.mark.parametrize("name", ["dev", "staging"])
def test_another_tag_changes_tags_of_node_groups_and_queues_only(name):
    before, after = templates(name), synthesise(changed(name, retagged))
    for part, template in after.items():
        for logical_id, resource in template["Resources"].items():
            old, tags = before[part]["Resources"][logical_id], resource.get("Properties", {}).get("Tags")
            if tags and tags != old["Properties"].get("Tags"):
                values = tags if isinstance(tags, dict) else {each["Key"]: each["Value"] for each in tags}
                assert values["cost center/x"] == "7"
                kinds = ("AWS::EKS::Nodegroup", "AWS::PCS::ComputeNodeGroup", "AWS::PCS::Queue", "AWS::IAM::Role")
                assert resource["Type"] in kinds
                old["Properties"]["Tags"] = tags
            assert resource == old


def test_another_tag_leaves_the_nodes_of_eks_alone():
    with deployed_for("staging", TRAIN) as staging:
        before, again = train_group(staging), changed("staging", retagged)
        assert change(again, TRAIN, synthesise(again)[TRAIN]) == "UPDATE_COMPLETE"
        after = train_group(staging)
        assert after["launchTemplate"] == before["launchTemplate"]
        assert after["tags"]["cost center/x"] == "7"
        assert "stage" not in after["tags"]
        # back to the old tags, together with another launch template
        both = synthesise(changed("staging", with_node_tags))[TRAIN]
        assert change(staging, TRAIN, both) == "UPDATE_ROLLBACK_COMPLETE"
        assert COMBINED in failures(staging, TRAIN).values()


def with_node_tags(data):
    data["node_tags"] = {"cost center/x": "7"}


def test_another_tag_of_nodes_launches_them_anew():
    with deployed_for("staging", TRAIN) as staging:
        before = train_group(staging)
        assert change(staging, TRAIN, synthesise(changed("staging", with_node_tags))[TRAIN]) == "UPDATE_COMPLETE"
        assert int(train_group(staging)["launchTemplate"]["version"]) == int(before["launchTemplate"]["version"]) + 1


def test_another_tag_leaves_the_nodes_of_pcs_alone():
    with deployed_for("dev", "compute") as dev:
        pcs = client(dev, "pcs")
        (found,) = pcs.list_clusters()["clusters"]
        listed = pcs.list_compute_node_groups(clusterIdentifier=found["id"])["computeNodeGroups"]

        def groups():
            for group in listed:
                place = {"clusterIdentifier": found["id"], "computeNodeGroupIdentifier": group["id"]}
                yield pcs.get_compute_node_group(**place)["computeNodeGroup"]

        before = list(groups())
        again = changed("dev", retagged)
        assert change(again, "compute", synthesise(again)["compute"]) == "UPDATE_COMPLETE"
        assert list(groups()) == before
        assert pcs.list_tags_for_resource(resourceArn=before[0]["arn"])["tags"]["cost center/x"] == "7"


def test_the_longest_stack_name_has_at_most_128_characters():
    longest = changed("eks-gb200", with_long_names)
    names = [f"{longest.name}-{part}" for part in synthesise(longest)]
    assert max(len(name) for name in names) <= 128
    assert sum("-compute-g" in name for name in names) == len(longest.launched_groups)


def renamed(data):
    for group in data["node_groups"]:
        group["name"] += "2"
    for team in data["control_plane"]["teams"]:
        team["node_groups"] = [f"{name}2" for name in team["node_groups"]]
        if isinstance(team["gpus"], dict):
            team["gpus"] = {f"{name}2": gpus for name, gpus in team["gpus"].items()}


def with_long_names(data):
    data["name"] = "n" * 20
    (group,) = data["node_groups"]
    group["name"] = "g" * 15
    group["purchase"]["starts"] = "2029-01-08T11:30:00Z"  # YAML reads it as a time
    for team in data["control_plane"]["teams"]:
        team["node_groups"] = ["g" * 15]
