"""A first deployment that fails, with the real CDK CLI and Slurm: fix the cause and deploy again, stack by stack."""

import pytest

from tests.deployment.conftest import DEPLOY, assembly, changed, last_resources, statuses
from tests.deployment.leftovers import found, owned
from tests.synthesis import ROOT

UNPROTECT = (
    "aws cloudformation update-termination-protection --no-enable-termination-protection --stack-name NAME-storage"
)


def protected(data):
    data["name"], data["protect"] = "guarded", True


@pytest.fixture(scope="module")
def dev(tmp_path_factory):
    return assembly(changed("dev", lambda _: None), tmp_path_factory.mktemp("dev"))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    return assembly(changed("dev", protected), tmp_path_factory.mktemp("guarded"))


def stack(cli, name):
    (found,) = cli.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
    return found


def test_every_stack_whose_first_deployment_failed_is_deployed_by_the_next_run(cli, dev):
    failed = set()
    failing = last_resources("dev")
    for logical_id in failing.values():
        cli.running.inject("quota-exceeded", logical_id)
    for _ in failing:  # each run ends at the first stack that fails
        assert cli("--app", dev, *DEPLOY).returncode != 0
        failed |= {part for part, status in statuses(cli, "dev").items() if status == "ROLLBACK_COMPLETE"}
    assert failed == set(failing)
    assert cli.running.faults() == []
    deployed = cli("--app", dev, *DEPLOY)
    assert deployed.returncode == 0, deployed.stderr
    assert statuses(cli, "dev") == dict.fromkeys(failing, "CREATE_COMPLETE")
    (left,) = [row for row in found(cli.client) if row[1] not in owned(cli.client)]
    assert left[0] == "bucket"
    assert left[1].startswith("dev-storage-accesslogs")


def test_a_protected_stack_whose_first_deployment_failed_takes_the_one_command_of_the_docs(cli, guarded):
    assert UNPROTECT in (ROOT / "docs/operations.md").read_text()
    deploy = ("--app", guarded, "deploy", "guarded-storage", "--require-approval", "never")
    cli.running.inject("quota-exceeded", "AWS::FSx::FileSystem")
    assert cli(*deploy).returncode != 0
    failed = stack(cli, "guarded-storage")
    assert (failed["StackStatus"], failed["EnableTerminationProtection"]) == ("ROLLBACK_COMPLETE", True)
    refused = cli(*deploy)
    assert refused.returncode != 0
    assert "TerminationProtection is enabled" in refused.stdout + refused.stderr
    cloudformation = cli.client("cloudformation")
    cloudformation.update_termination_protection(StackName="guarded-storage", EnableTerminationProtection=False)
    deployed = cli(*deploy)
    assert deployed.returncode == 0, deployed.stderr
    made = stack(cli, "guarded-storage")
    assert (made["StackStatus"], made["EnableTerminationProtection"]) == ("CREATE_COMPLETE", True)
