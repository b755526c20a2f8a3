"""Which stacks have termination protection, what a synth says about it, and which environments have Grafana."""

import json
import re

import aws_cdk as cdk
import pytest
import yaml

from tests.synthesis import FILES, ROOT, flags
from ultracluster.config.loader import check
from ultracluster.config.source import parse
from ultracluster.stacks import build_app

STATEFUL_STACKS = {"storage", "control-plane", "observability"}


def assembly(name, tmp_path, **changes):
    environment = check(parse(json.dumps({**yaml.safe_load(FILES[name].read_text()), **changes}))).environment
    return build_app(environment, app=cdk.App(outdir=str(tmp_path), context=flags())).synth()


@pytest.mark.parametrize("name", ["dev", "staging"])
def test_stacks_with_data_are_protected_if_the_file_says_so(name, tmp_path):
    found = assembly(name, tmp_path, protect=True)
    protected = {stack.stack_name.removeprefix(f"{name}-") for stack in found.stacks if stack.termination_protection}
    assert protected == STATEFUL_STACKS
    clusters = [
        resource["Properties"]["DeletionProtection"]
        for stack in found.stacks
        for resource in stack.template["Resources"].values()
        if resource["Type"] == "AWS::EKS::Cluster"
    ]
    assert clusters == ([True] if name == "staging" else [])
    assert messages(found) == []


@pytest.mark.parametrize("name", ["dev", "staging"])
def test_the_docs_say_which_stacks_a_destruction_deletes_before_protection_stops_it(name, tmp_path):
    """The CDK CLI deletes dependents first, and asks CloudFormation for one stack after the other."""
    found = assembly(name, tmp_path, protect=True)
    protected = {stack.stack_name for stack in found.stacks if stack.termination_protection}
    unprotected = {stack.stack_name.removeprefix(f"{name}-") for stack in found.stacks} - {
        each.removeprefix(f"{name}-") for each in protected | {f"{name}-network"}
    }
    text = (ROOT / "docs" / "operations.md").read_text().split("## Protect an environment")[1].split("\n## ")[0]
    assert "`cdk destroy --all` is not refused as a whole" in text
    for part in unprotected:
        assert f"`NAME-{'compute' if part.startswith('compute') else part}" in text, part


def test_no_stack_is_protected_by_default_and_a_synth_says_how_without_a_warning(tmp_path):
    found = assembly("dev", tmp_path)
    assert not any(stack.termination_protection for stack in found.stacks)
    ((level, text),) = messages(found)
    assert level == cdk.cx_api.SynthesisMessageLevel.INFO
    assert "Set protect: true after the first deployment." in text


def test_no_environment_has_grafana_unless_its_file_asks_for_it(tmp_path):
    assert "grafana" not in {stack.stack_name.removeprefix("dev-") for stack in assembly("dev", tmp_path).stacks}
    for name in ("prod", "staging"):
        assert yaml.safe_load(FILES[name].read_text())["observability"]["grafana"]["auth"] == "identity_center"


def test_grafana_is_alone_in_an_unprotected_stack_that_no_other_stack_needs(tmp_path):
    found = assembly("dev", tmp_path, protect=True, observability={"grafana": {"auth": "identity_center"}})
    stacks = {stack.stack_name.removeprefix("dev-"): stack for stack in found.stacks}
    assert not stacks["grafana"].termination_protection
    homes = {
        part
        for part, stack in stacks.items()
        for resource in stack.template["Resources"].values()
        if resource["Type"].startswith("AWS::Grafana::")
    }
    assert homes == {"grafana"}
    needed = {dependency.id for stack in found.stacks for dependency in stack.dependencies}
    assert "dev-observability" in needed
    assert "dev-grafana" not in needed
    imports = set(re.findall(r'"Fn::ImportValue": "(dev-observability:[^"]+)"', json.dumps(stacks["grafana"].template)))
    without = {each.stack_name: each for each in assembly("dev", tmp_path / "without").stacks}["dev-observability"]
    exports = {each["Export"]["Name"] for each in without.template["Outputs"].values()}
    assert imports
    assert imports <= exports, "a file without Grafana would delete exports that the old stack imports"


def test_the_last_node_group_with_efa_can_go(tmp_path):
    """The stack of the network is deployed first, while the stack of the nodes still imports what they had."""
    (group,) = yaml.safe_load(FILES["dev"].read_text())["node_groups"]
    old = {stack.stack_name: stack for stack in assembly("dev", tmp_path / "old").stacks}
    imports = set(re.findall(r'"Fn::ImportValue": "(dev-network:[^"]+)"', json.dumps(old["dev-compute"].template)))
    assert any("Efa" in each for each in imports)
    found = assembly("dev", tmp_path / "new", node_groups=[{**group, "interfaces": "without_efa"}]).stacks
    new = {stack.stack_name: stack for stack in found}
    assert "Efa" not in json.dumps(new["dev-compute"].template["Resources"])
    assert imports <= {each["Export"]["Name"] for each in new["dev-network"].template["Outputs"].values()}


def test_the_stack_that_subscribes_to_the_topic_of_repairs_waits_for_it(tmp_path):
    """It imports nothing. SNS answers NotFound for a topic that another deployment is about to create."""
    found = assembly("dev", tmp_path, observability={"auto_repair": True}).stacks
    stacks = {stack.stack_name: stack for stack in found}
    assert "dev-observability" in {dependency.id for dependency in stacks["dev-repair"].dependencies}


def messages(found):
    return [(message.level, message.entry.data) for stack in found.stacks for message in stack.messages]


@pytest.mark.parametrize("name", FILES)
def test_shipped_files_are_first_deployments(name):
    assert "protect" not in yaml.safe_load(FILES[name].read_text())
