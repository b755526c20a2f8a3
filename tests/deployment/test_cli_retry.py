"""A first deployment that fails, with the real CDK CLI and Slurm: fix the cause and deploy again, stack by stack."""

import pytest

from tests.deployment.conftest import assembly, deploy_after_a_failure_of_each_stack, guarded
from tests.synthesis import FILES, ROOT
from ultracluster.config.loader import load

UNPROTECT = (
    "aws cloudformation update-termination-protection --no-enable-termination-protection --stack-name NAME-storage"
)


@pytest.fixture(scope="module")
def dev(tmp_path_factory):
    return assembly(load(FILES["dev"]), tmp_path_factory.mktemp("dev"))


@pytest.fixture(scope="module")
def protected(tmp_path_factory):
    return assembly(guarded("dev"), tmp_path_factory.mktemp("guarded"))


def stack(cli, name):
    (found,) = cli.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
    return found


def test_every_stack_whose_first_deployment_failed_is_deployed_by_the_next_run(cli, dev):
    (left,) = deploy_after_a_failure_of_each_stack(cli, dev, "dev")
    assert left[0] == "bucket"
    assert left[1].startswith("dev-storage-accesslogs")


def test_a_protected_stack_whose_first_deployment_failed_takes_the_one_command_of_the_docs(cli, protected):
    assert UNPROTECT in (ROOT / "docs/operations.md").read_text()
    deploy = ("--app", protected, "deploy", "guarded-storage", "--require-approval", "never")
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
