"""The life of an environment with the real CDK CLI: deploy, change nothing, grow, fail and roll back, recover, destroy.

Each step starts from what the steps before it deployed, so all of them are one test.
"""

import subprocess
import sys

import pytest

from tests.deployment.conftest import DEPLOY, assembly, changed
from tests.synthesis import FILES, ROOT

PARTS = ("network", "storage", "control-plane", "observability", "alerts", "compute", "links")
STACKS = [f"dev-{part}" for part in PARTS]
TRAIN = "Grouptrain62C5C7B0"


def grown(data):
    data["node_groups"][0]["count"] = {"min": 0, "max": 5}


def joined(data):
    grown(data)
    data["node_groups"].append(
        {"name": "more", "instance_type": "p5.48xlarge", "count": 2, "purchase": {"type": "on_demand"}}
    )
    data["control_plane"]["queues"][0]["node_groups"].append("more")


def widened(data):
    joined(data)
    data["storage"]["buckets"]["results"] = {}
    data["storage"]["lustre"]["links"].append({"path": "/results", "bucket": "results"})


def protected(data):
    widened(data)
    data["protect"] = True


@pytest.fixture(scope="module")
def dev(cli, tmp_path_factory):
    """The shipped dev environment, synthesised by the CLI from app.py."""
    folder = str(tmp_path_factory.mktemp("dev"))
    synthesised = cli("synth", "--quiet", "-c", "env=dev", "--output", folder)
    assert synthesised.returncode == 0, synthesised.stderr
    warnings = [line for line in synthesised.stderr.splitlines() if "warning" in line.lower()]
    paths = ("node_groups[0].image", "control_plane.login.image")
    assert len(warnings) == len(paths)
    for path, warning in zip(paths, warnings, strict=True):
        assert f"{path}: the image is looked up at each deployment" in warning
    return folder


@pytest.fixture(scope="module")
def dev_grown(tmp_path_factory):
    return assembly(changed("dev", grown), tmp_path_factory.mktemp("grown"))


@pytest.fixture(scope="module")
def dev_joined(tmp_path_factory):
    return assembly(changed("dev", joined), tmp_path_factory.mktemp("joined"))


@pytest.fixture(scope="module")
def dev_widened(tmp_path_factory):
    return assembly(changed("dev", widened), tmp_path_factory.mktemp("widened"))


@pytest.fixture(scope="module")
def dev_protected(tmp_path_factory):
    return assembly(changed("dev", protected), tmp_path_factory.mktemp("protected"))


def stack_statuses(cli):
    stacks = cli.client("cloudformation").describe_stacks()["Stacks"]
    return {stack["StackName"]: stack["StackStatus"] for stack in stacks if stack["StackName"] in STACKS}


def resources(cli, stack):
    return {
        resource["LogicalResourceId"]: resource["PhysicalResourceId"]
        for resource in cli.client("cloudformation").describe_stack_resources(StackName=stack)["StackResources"]
    }


def node_groups(cli):
    pcs = cli.client("pcs")
    (cluster,) = pcs.list_clusters()["clusters"]
    names = {
        group["name"]: group["id"]
        for group in pcs.list_compute_node_groups(clusterIdentifier=cluster["id"])["computeNodeGroups"]
    }
    return {
        name.rpartition("-")[0]: pcs.get_compute_node_group(
            clusterIdentifier=cluster["id"], computeNodeGroupIdentifier=identifier
        )["computeNodeGroup"]
        for name, identifier in names.items()
    }


def test_life_of_an_environment(cli, dev, dev_grown, dev_joined, dev_widened, dev_protected):
    refused_group_keeps_the_others_without_rollback(cli, dev)
    deploy_creates_every_stack(cli, dev)
    second_deploy_changes_nothing(cli, dev)
    diff_shows_no_difference(cli, dev)
    diff_shows_a_larger_group_and_no_replacement(cli, dev_grown)
    larger_group_is_updated_in_place(cli, dev_grown)
    refused_group_rolls_back_and_leaves_nodes_and_storage_alone(cli, dev_joined)
    next_deploy_recovers(cli, dev_widened)
    protection_follows_the_file(cli, dev_widened, dev_protected)
    destroy_is_refused_while_stacks_are_protected(cli, dev_protected)
    destroy_leaves_only_what_is_retained(cli, dev_widened)


def refused_group_keeps_the_others_without_rollback(cli, dev):
    cli.running.inject("quota-exceeded", TRAIN, operations=["create"])
    failed = cli("--app", dev, *DEPLOY, "--no-rollback")
    assert failed.returncode != 0
    assert stack_statuses(cli)["dev-compute"] == "CREATE_FAILED"
    assert set(node_groups(cli)) == {"login"}


def deploy_creates_every_stack(cli, dev):
    """The deployment continues where the one before it failed. A group without capacity fails nothing on PCS."""
    login = node_groups(cli)["login"]["id"]
    cli.running.inject("insufficient-capacity", TRAIN, operations=["create"])
    deployed = cli("--app", dev, *DEPLOY, "--no-rollback")
    assert deployed.returncode == 0, deployed.stderr
    assert {name: status for name, status in stack_statuses(cli).items() if name != "dev-compute"} == dict.fromkeys(
        [name for name in STACKS if name != "dev-compute"], "CREATE_COMPLETE"
    )
    assert stack_statuses(cli)["dev-compute"] == "UPDATE_COMPLETE"
    assert {name: group["status"] for name, group in node_groups(cli).items()} == {"login": "ACTIVE", "train": "ACTIVE"}
    assert node_groups(cli)["login"]["id"] == login
    assert node_groups(cli)["train"]["scalingConfiguration"] == {"minInstanceCount": 0, "maxInstanceCount": 2}


def second_deploy_changes_nothing(cli, dev):
    before = {stack: resources(cli, stack) for stack in STACKS}
    again = cli("--app", dev, *DEPLOY)
    assert again.returncode == 0, again.stderr
    assert again.stderr.count("(no changes)") + again.stdout.count("(no changes)") == len(STACKS)
    assert {stack: resources(cli, stack) for stack in STACKS} == before


def diff_shows_no_difference(cli, dev):
    compared = cli("--app", dev, "diff", "--fail")
    assert compared.returncode == 0, compared.stdout + compared.stderr


def diff_shows_a_larger_group_and_no_replacement(cli, dev_grown):
    compared = cli("--app", dev_grown, "diff")
    shown = compared.stdout + compared.stderr
    assert "MaxInstanceCount" in shown
    assert "requires replacement" not in shown
    assert "may be replaced" not in shown


def larger_group_is_updated_in_place(cli, dev_grown):
    before = node_groups(cli)["train"]
    deployed = cli("--app", dev_grown, *DEPLOY)
    assert deployed.returncode == 0, deployed.stderr
    after = node_groups(cli)["train"]
    assert after["id"] == before["id"]
    assert after["scalingConfiguration"]["maxInstanceCount"] == 5
    assert stack_statuses(cli)["dev-compute"] == "UPDATE_COMPLETE"


def refused_group_rolls_back_and_leaves_nodes_and_storage_alone(cli, dev_joined):
    storage, compute = resources(cli, "dev-storage"), resources(cli, "dev-compute")
    cli.running.inject("quota-exceeded", "AWS::PCS::ComputeNodeGroup", operations=["create"])
    failed = cli("--app", dev_joined, *DEPLOY)
    assert failed.returncode != 0
    assert "quota" in (failed.stdout + failed.stderr).lower()
    assert stack_statuses(cli)["dev-compute"] == "UPDATE_ROLLBACK_COMPLETE"
    assert resources(cli, "dev-compute") == compute
    assert resources(cli, "dev-storage") == storage
    assert set(node_groups(cli)) == {"login", "train"}


def next_deploy_recovers(cli, dev_widened):
    file_system = cli.client("fsx").describe_file_systems()["FileSystems"][0]["FileSystemId"]
    deployed = cli("--app", dev_widened, *DEPLOY)
    assert deployed.returncode == 0, deployed.stderr
    assert set(node_groups(cli)) == {"login", "train", "more"}
    fsx = cli.client("fsx")
    assert [system["FileSystemId"] for system in fsx.describe_file_systems()["FileSystems"]] == [file_system]
    links = fsx.describe_data_repository_associations()["Associations"]
    assert {link["FileSystemPath"] for link in links} == {"/datasets", "/checkpoints", "/results"}


def protected_stacks(cli):
    stacks = cli.client("cloudformation").describe_stacks()["Stacks"]
    return {stack["StackName"] for stack in stacks if stack.get("EnableTerminationProtection")} & set(STACKS)


def protection_follows_the_file(cli, dev_widened, dev_protected):
    for folder, expected in (
        (dev_protected, {"dev-storage", "dev-control-plane", "dev-observability"}),
        (dev_widened, set()),
        (dev_protected, {"dev-storage", "dev-control-plane", "dev-observability"}),
    ):
        deployed = cli("--app", folder, *DEPLOY)
        assert deployed.returncode == 0, deployed.stderr
        assert protected_stacks(cli) == expected


def destroy_is_refused_while_stacks_are_protected(cli, dev_protected):
    refused = cli("--app", dev_protected, "destroy", "dev-storage", "--exclusively", "--force")
    assert refused.returncode != 0
    assert "protect" in (refused.stdout + refused.stderr).lower()


def destroy_leaves_only_what_is_retained(cli, dev_widened):
    script = [sys.executable, str(ROOT / "scripts/unprotect.py"), dev_widened]
    subprocess.run(script, env=cli.variables, cwd=ROOT, check=True)
    destroyed = cli("--app", dev_widened, "destroy", "--all", "--force")
    assert destroyed.returncode == 0, destroyed.stdout + destroyed.stderr
    assert stack_statuses(cli) == {}
    assert len(cli.client("fsx").describe_file_systems()["FileSystems"]) == 1
    assert len(cli.client("pcs").list_clusters()["clusters"]) == 1
    kept = [bucket["Name"] for bucket in cli.client("s3").list_buckets()["Buckets"]]
    assert any("datasets" in name for name in kept)
    assert any("checkpoints" in name for name in kept)
    assert cli.client("amp").list_workspaces()["workspaces"]
    assert not cli.client("ec2").describe_launch_templates()["LaunchTemplates"]


def test_a_refused_file_stops_the_cli_with_the_report_and_no_traceback(cli, tmp_path):
    bad = FILES["dev"].read_text().replace("p5.4xlarge", "p5.4xlrage")
    file = ROOT / "environments" / f"{tmp_path.name}.yaml"
    file.write_text(bad)
    try:
        refused = cli("synth", "-c", f"env={file.stem}", "--output", str(tmp_path / "cdk.out"))
    finally:
        file.unlink()
    assert refused.returncode != 0
    assert "[unknown-instance-type]" in refused.stderr
    assert "Traceback" not in refused.stderr
