"""What nodes do at boot, as `ultracluster validate --explain` tells it: for every shipped environment."""

import re

import pytest

from tests.synthesis import FILES
from ultracluster.config.health import Health
from ultracluster.config.loader import load
from ultracluster.nodes.plan import LOGGED, boot_plans, summary
from ultracluster.nodes.steps import Step

PLANS = {name: boot_plans(load(file)) for name, file in FILES.items()}


@pytest.mark.parametrize("name", PLANS)
def test_every_group_has_a_plan_and_every_step_says_what_it_does(name):
    environment = load(FILES[name])
    groups = [group.name for group in environment.launched_groups]
    login = ["login"] if environment.control_plane.type == "pcs" else []
    assert [plan.name for plan in PLANS[name]] == [*login, *groups]
    for plan in PLANS[name]:
        assert plan.nodes
        assert plan.steps
        for step in plan.steps:
            assert len(step.does) > 10
            assert not re.search(r"\$\d", step.does)


def test_what_a_failure_does_depends_on_control_plane_step_and_script():
    login, train = PLANS["p5en.48xlarge"]
    assert {step.failure for step in login.steps} == {"the node stays", LOGGED}
    drained = "the node joins and is drained"
    assert {step.failure for step in train.steps} == {"the node takes no jobs; PCS terminates it", drained, LOGGED}
    [staging] = PLANS["staging"]
    assert "the node powers off before it joins, and is replaced" in {step.failure for step in staging.steps}


def test_the_minutes_of_acceptance_are_told():
    fast, full = [plans[1] for plans in (PLANS["p5en.48xlarge"], PLANS["prod"])]
    [admits] = [step for step in fast.steps if step.name == "admit-jobs"]
    assert admits.does == "The last step before jobs, after fast checks of at most 1 minute"
    [admits] = [step for step in full.steps if step.name == "admit-jobs"]
    assert admits.does.endswith("after full checks of 4 to 12 minutes")
    [staging] = PLANS["staging"]
    assert staging.steps[-1].name == "node-acceptance"
    assert staging.steps[-1].does == "the startup taint is removed after full checks of 4 to 12 minutes"
    assert staging.steps[-1].failure == "the node keeps a taint and waits for a person"
    [other] = boot_plans(load(FILES["staging"]).model_copy(update={"health": Health()}))
    assert other.steps[-1].does.endswith("after fast checks of at most 1 minute")
    health = Health(accept="full", on_failure="replace")
    [other] = boot_plans(load(FILES["staging"]).model_copy(update={"health": health}))
    assert other.steps[-1].failure == "the node keeps a taint and powers off"


def test_a_sentence_has_the_arguments_of_its_step():
    assert summary(Step("mount-scratch", ("/scratch",))) == "Mounts the NVMe instance store at /scratch"
    assert summary(Step("collect-efa", ("15",))).endswith("every 15 seconds")


def test_arguments_that_a_step_lacks_or_nobody_knows_yet_are_left_out():
    cpu, gpu = (summary(Step("run-exporters", images)) for images in (("agent", "node"), ("agent", "node", "dcgm")))
    assert cpu == "Runs node exporter node, Prometheus as agent agent, as containers of systemd units"
    assert "and, on nodes with GPUs, DCGM exporter dcgm, as containers" in gpu
    shipped = summary(Step("ship-logs", ("us-east-2", "LOG-GROUP")))
    assert shipped.endswith("logs of the node to the log group in Region us-east-2")
