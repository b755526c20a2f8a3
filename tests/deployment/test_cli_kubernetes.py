"""The life of an environment with Kubernetes and the real CDK CLI: deploy, change teams, fail and roll back, destroy.

Each step starts from what the steps before it deployed, so all of them are one test.
"""

import subprocess
import sys

import pytest

from tests.deployment.conftest import DEPLOY, assembly, changed
from tests.synthesis import FILES, ROOT
from ultracluster.cli import seeds
from ultracluster.config.loader import load

NODES = ("compute-cpu", "compute-train")
PARTS = (
    *("network", "storage", "control-plane", "platform", "links", "observability", "alerts", "collection", "grafana"),
    *NODES,
)
STACKS = [f"staging-{part}" for part in PARTS]
NEW = ["staging-compute-more", "staging-compute-scarce", "staging-compute-spare"]
TOGETHER = ("deploy", "staging-compute-*", "--exclusively", "--concurrency", "10", *DEPLOY[2:])
SCARCE = "Groupscarce31BFF24F"
ACCOUNT = "123456789012"


def teams_changed(data):
    pretrain, research = data["control_plane"]["teams"]
    pretrain["gpus"], research["gpus"] = 64, 48
    del research["members"]
    data["control_plane"]["teams"].append({"name": "evaluation", "node_groups": ["train"], "gpus": 16})
    del data["storage"]["lustre"]
    data["storage"]["buckets"].pop("checkpoints")


def joined(data):
    teams_changed(data)
    for name in ("scarce", "more", "spare"):
        purchase = {"type": "on_demand"}
        data["node_groups"].append({"name": name, "instance_type": "p5.48xlarge", "count": 2, "purchase": purchase})
    shares = dict.fromkeys(("train", "scarce", "more", "spare"), 16)
    data["control_plane"]["teams"][2] |= {"node_groups": list(shares), "gpus": shares}


def protected(data):
    data["protect"] = True


@pytest.fixture(scope="module")
def staging(cli, tmp_path_factory):
    """The shipped environment, synthesised by the CLI from app.py; its capacity block exists."""
    for reservation in seeds.reservations(load(FILES["staging"])):
        cli.running.seed(reservation, ACCOUNT)
    folder = str(tmp_path_factory.mktemp("staging"))
    synthesised = cli("synth", "--quiet", "-c", "env=staging", "--output", folder)
    assert synthesised.returncode == 0, synthesised.stderr
    assert "warning" not in synthesised.stderr.lower()
    return folder


@pytest.fixture(scope="module")
def staging_changed(tmp_path_factory):
    return assembly(changed("staging", teams_changed), tmp_path_factory.mktemp("changed"))


@pytest.fixture(scope="module")
def staging_joined(tmp_path_factory):
    return assembly(changed("staging", joined), tmp_path_factory.mktemp("joined"))


@pytest.fixture(scope="module")
def staging_protected(tmp_path_factory):
    return assembly(changed("staging", protected), tmp_path_factory.mktemp("protected"))


def statuses(cli):
    stacks = cli.client("cloudformation").describe_stacks()["Stacks"]
    return {stack["StackName"]: stack["StackStatus"] for stack in stacks if stack["StackName"] in (*STACKS, *NEW)}


def cluster(cli):
    eks = cli.client("eks")
    (name,) = eks.list_clusters()["clusters"]
    return eks.describe_cluster(name=name)["cluster"]


def node_groups(cli):
    """Names of the cluster's node groups, as the file has them."""
    found = cli.client("eks").list_nodegroups(clusterName=cluster(cli)["name"])["nodegroups"]
    return {name.rpartition("-")[0] for name in found}


def groups_of(found):
    """Statuses of the stacks of accelerated node groups."""
    cpu = "staging-compute-cpu"
    return {name: status for name, status in found.items() if name.startswith("staging-compute-") and name != cpu}


def objects(cli, kind):
    return {
        item["metadata"]["name"]: item
        for item in cli.running.kubernetes(cluster(cli)["arn"])["objects"]
        if item["kind"] == kind
    }


def test_life_of_an_environment_with_kubernetes(cli, staging, staging_changed, staging_joined, staging_protected):
    deploy_creates_every_stack(cli, staging)
    second_deploy_changes_nothing(cli, staging)
    charts_are_recorded_with_their_values(cli)
    changed_and_new_teams_get_their_queues(cli, staging_changed)
    storage_removed_from_the_file_is_removed_from_the_cluster(cli)
    group_without_capacity_keeps_later_groups_from_starting_one_by_one(cli, staging_joined)
    group_without_capacity_takes_no_other_with_it(cli, staging_joined)
    next_deployment_adds_the_missing_group(cli, staging_joined)
    destroy_is_refused_while_the_cluster_is_protected(cli, staging_protected)
    destroy_leaves_only_what_is_retained(cli, staging, staging_joined)


def deploy_creates_every_stack(cli, staging):
    deployed = cli("--app", staging, *DEPLOY)
    assert deployed.returncode == 0, deployed.stderr
    assert statuses(cli) == dict.fromkeys(STACKS, "CREATE_COMPLETE")


def second_deploy_changes_nothing(cli, staging):
    again = cli("--app", staging, *DEPLOY)
    assert again.returncode == 0, again.stderr
    assert again.stderr.count("(no changes)") + again.stdout.count("(no changes)") == len(STACKS)


def charts_are_recorded_with_their_values(cli):
    releases = {release["name"]: release for release in cli.running.kubernetes(cluster(cli)["arn"])["releases"]}
    operator = releases["gpu-operator"]["values"]
    assert (operator["driver"]["enabled"], operator["toolkit"]["enabled"]) == (False, False)
    efa = releases["aws-efa-k8s-device-plugin"]["values"]
    assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in efa["tolerations"]


def changed_and_new_teams_get_their_queues(cli, staging_changed):
    before = cluster(cli)["arn"]
    deployed = cli("--app", staging_changed, "deploy", "staging-platform", "--exclusively", *DEPLOY[2:])
    assert deployed.returncode == 0, deployed.stderr
    assert cluster(cli)["arn"] == before
    assert set(objects(cli, "ClusterQueue")) == {"pretrain", "research", "evaluation"}
    assert {"pretrain", "research", "evaluation"} <= set(objects(cli, "Namespace"))
    entries = cli.client("eks").list_access_entries(clusterName=cluster(cli)["name"])["accessEntries"]
    assert not [entry for entry in entries if entry.endswith("role/Research")]


def storage_removed_from_the_file_is_removed_from_the_cluster(cli):
    claims = cli.running.kubernetes(cluster(cli)["arn"])["objects"]
    kept = {item["metadata"]["name"] for item in claims if item["kind"] == "PersistentVolumeClaim"}
    assert kept == {"home", "datasets-bucket", "datasets-team"}


def group_without_capacity_keeps_later_groups_from_starting_one_by_one(cli, staging_joined):
    """The CLI deploys one stack after the other by default, in no fixed order, and starts none after a failure."""
    cli.running.inject("insufficient-capacity", "AWS::EKS::Nodegroup", operations=["create"])
    failed = cli("--app", staging_joined, "deploy", *NEW, "--exclusively", *DEPLOY[2:])
    assert failed.returncode != 0
    assert [status for name, status in statuses(cli).items() if name in NEW] == ["ROLLBACK_COMPLETE"]
    assert node_groups(cli) == {"system", "cpu", "train"}


def group_without_capacity_takes_no_other_with_it(cli, staging_joined):
    """With --concurrency of at least the number of stacks, every stack has started before one fails."""
    published = cli("--app", staging_joined, "publish-assets", "--unstable=publish-assets", *NEW)
    assert published.returncode == 0, published.stderr  # so that all stacks start at once
    cli.running.inject("insufficient-capacity", SCARCE, operations=["create"])
    failed = cli("--app", staging_joined, *TOGETHER)
    assert failed.returncode != 0
    assert "AsgInstanceLaunchFailures" in failed.stdout + failed.stderr
    assert groups_of(statuses(cli)) == {
        "staging-compute-train": "UPDATE_COMPLETE",
        "staging-compute-scarce": "ROLLBACK_COMPLETE",
        "staging-compute-more": "CREATE_COMPLETE",
        "staging-compute-spare": "CREATE_COMPLETE",
    }
    assert node_groups(cli) == {"system", "cpu", "train", "more", "spare"}


def next_deployment_adds_the_missing_group(cli, staging_joined):
    before = {name: status for name, status in statuses(cli).items() if name != "staging-compute-scarce"}
    deployed = cli("--app", staging_joined, *TOGETHER)
    assert deployed.returncode == 0, deployed.stderr
    assert node_groups(cli) == {"system", "cpu", "train", "scarce", "more", "spare"}
    assert {name: statuses(cli)[name] for name in before} == before


def destroy_is_refused_while_the_cluster_is_protected(cli, staging_protected):
    before = cluster(cli)
    assert before["deletionProtection"] is False
    deployed = cli("--app", staging_protected, "deploy", "staging-control-plane", "--exclusively", *DEPLOY[2:])
    assert deployed.returncode == 0, deployed.stderr
    assert cluster(cli)["arn"] == before["arn"]
    cloudformation = cli.client("cloudformation")
    for stack in STACKS:
        cloudformation.update_termination_protection(StackName=stack, EnableTerminationProtection=False)
    refused = cli("--app", staging_protected, "destroy", "staging-control-plane", "--force")
    assert refused.returncode != 0
    assert cluster(cli)["deletionProtection"] is True


def destroy_leaves_only_what_is_retained(cli, staging, staging_joined):
    assert cli("--app", staging_joined, "destroy", *NEW, "--exclusively", "--force").returncode == 0
    script = [sys.executable, str(ROOT / "scripts/unprotect.py"), staging]
    subprocess.run(script, env=cli.variables, cwd=ROOT, check=True)
    destroyed = cli("--app", staging, "destroy", "--all", "--force")
    assert destroyed.returncode == 0, destroyed.stdout + destroyed.stderr
    assert statuses(cli) == {}
    assert cli.client("eks").list_clusters()["clusters"] == []
    assert cli.client("grafana").list_workspaces()["workspaces"] == []
    assert len(cli.client("fsx").describe_file_systems()["FileSystems"]) == 1
