"""`ultracluster validate --explain` tells what the templates say: the same steps, in the same order."""

import re
from pathlib import Path

import pytest

from tests.synthesis import FILES, synthesise, templates
from ultracluster.config.bootstrap import MAXIMUM_POLICIES
from ultracluster.config.loader import load
from ultracluster.nodes.plan import boot_plans

SLURM = sorted(name for name, file in FILES.items() if load(file).control_plane.type == "pcs")
KUBERNETES = sorted(set(FILES) - set(SLURM))

USERS = """\
users:
  - {name: ada, uid: 5001, keys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJjj4hZUJKvKUZvdJTYtZhy0pXwv4gTeDBDfQkGyjlS1 ada]}
"""


def told(environment) -> dict[str, list[str]]:
    """Names of the steps of each group; scripts of the user are one step."""
    plans = boot_plans(environment)
    return {
        plan.name: distinct(["run-bootstrap" if step.sha256 else step.name for step in plan.steps]) for plan in plans
    }


def on_slurm(parts) -> dict[str, list[str]]:
    found = {}
    for resource in parts["compute"]["Resources"].values():
        if resource["Type"] == "AWS::PCS::ComputeNodeGroup":
            stages = resource["Properties"]["NodeLifecycleActions"]["Stages"]
            name = resource["Properties"]["Name"].rpartition("-")[0]
            found[name] = [action["Name"] for stage in stages.values() for action in stage]
    return found


def distinct(steps: list[str]) -> list[str]:
    return [step for i, step in enumerate(steps) if step not in steps[:i]]


@pytest.mark.parametrize("name", SLURM)
def test_the_plan_of_slurm_is_that_of_the_templates(name):
    found = {group: distinct(steps) for group, steps in on_slurm(templates(name)).items()}
    assert told(load(FILES[name])) == found


@pytest.mark.parametrize("name", KUBERNETES)
def test_the_plan_of_kubernetes_is_that_of_user_data(name):
    texts = {
        part.removeprefix("compute-"): str(resource["Properties"]["LaunchTemplateData"]["UserData"]).replace(
            "\\n", "\n"
        )
        for part, template in templates(name).items()
        for resource in template["Resources"].values()
        if part.startswith("compute-") and resource["Type"] == "AWS::EC2::LaunchTemplate"
    }
    for group, steps in told(load(FILES[name])).items():
        ran = re.findall(r"\brun (?:required|optional) ([a-z0-9-]+)", texts[group])
        # pods accept a node once it has joined
        booted = [step for step in steps if step != "node-acceptance"]
        assert ["run-bootstrap" if step == "run-from-s3" else step for step in ran] == booted


def test_homes_users_and_scripts_are_in_the_plan(tmp_path):
    (tmp_path / "site.sh").write_text("#!/bin/bash\ntrue\n")
    (tmp_path / "users.yaml").write_text(USERS)
    text = Path(FILES["dev"]).read_text().replace("node_groups:\n", "access: {users: users.yaml}\nnode_groups:\n")
    text = re.sub(r"(?m)^  login: \{", "  login: {bootstrap: [site.sh], ", text)
    file = tmp_path / "dev.yaml"
    file.write_text(text)
    environment = load(file)
    found = {group: distinct(steps) for group, steps in on_slurm(synthesise(environment)).items()}
    assert told(environment) == found
    assert {"create-users", "run-bootstrap"} <= set(found["login"])


def test_a_role_has_room_for_the_policies_that_a_group_may_name(tmp_path):
    """IAM attaches 10 managed policies to a role; an update of the scripts adds one before it removes the old one."""
    (tmp_path / "users.yaml").write_text(USERS)
    policies = [f"arn:aws:iam::111122223333:policy/p{i}" for i in range(MAXIMUM_POLICIES)]
    text = Path(FILES["dev"]).read_text().replace("node_groups:\n", "access: {users: users.yaml}\nnode_groups:\n")
    text = re.sub(r"(?m)^  login: \{", f"  login: {{policies: [{', '.join(policies)}], ", text)
    text = text.replace("storage:\n", "storage:\n  read_only_buckets: [commoncrawl]\n")
    file = tmp_path / "dev.yaml"
    file.write_text(text)
    parts = synthesise(load(file))["compute"]["Resources"]
    own = {
        name: resource["Properties"]["ManagedPolicyArns"]
        for name, resource in parts.items()
        if resource["Type"] == "AWS::IAM::Role" and policies[0] in resource["Properties"]["ManagedPolicyArns"]
    }
    attached = [
        reference.get("Ref")
        for resource in parts.values()
        if resource["Type"] == "AWS::IAM::ManagedPolicy"
        for reference in resource["Properties"].get("Roles", [])
    ]
    found = {name: len(arns) + attached.count(name) + 1 for name, arns in own.items()}
    [node_role] = [name for name in found if name.startswith("Nodes")]
    assert found[node_role] == 10
    assert max(found.values()) == 10
