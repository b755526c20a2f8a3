"""A first deployment that fails, with the real CDK CLI and Kubernetes: fix the cause and deploy again."""

import pytest

from tests.deployment.conftest import assembly, deploy_after_a_failure_of_each_stack, guarded, statuses
from tests.synthesis import FILES, ROOT
from ultracluster.cli import seeds
from ultracluster.config.loader import load

ACCOUNT = "123456789012"
UNPROTECT = "aws eks update-cluster-config --name CLUSTER --no-deletion-protection"


@pytest.fixture(scope="module")
def staging(cli, tmp_path_factory):
    for reservation in seeds.reservations(load(FILES["staging"])):
        cli.running.seed(reservation, ACCOUNT)
    return assembly(load(FILES["staging"]), tmp_path_factory.mktemp("staging"))


@pytest.fixture(scope="module")
def protected(tmp_path_factory):
    return assembly(guarded("staging"), tmp_path_factory.mktemp("guarded"))


def test_every_stack_whose_first_deployment_failed_is_deployed_by_the_next_run(cli, staging):
    left = dict(deploy_after_a_failure_of_each_stack(cli, staging, "staging"))
    assert left.keys() == {"bucket", "log group"}
    assert left["bucket"].startswith("staging-storage-accesslogs")
    assert left["log group"].startswith("/aws/eks/staging-")


def test_a_protected_cluster_is_unprotected_too_before_the_next_run(cli, protected):
    assert UNPROTECT in (ROOT / "docs/operations-kubernetes.md").read_text()
    deploy = ("--app", protected, "deploy", "guarded-control-plane", "--require-approval", "never")
    cli.running.inject("quota-exceeded", "AWS::EKS::Addon")
    assert cli(*deploy).returncode != 0
    assert statuses(cli, "guarded")["control-plane"] == "ROLLBACK_FAILED"
    (cluster,) = [name for name in cli.client("eks").list_clusters()["clusters"] if name.startswith("guarded-")]
    assert cli(*deploy).returncode != 0
    cloudformation = cli.client("cloudformation")
    cloudformation.update_termination_protection(StackName="guarded-control-plane", EnableTerminationProtection=False)
    cli.client("eks").update_cluster_config(name=cluster, deletionProtection=False)
    deployed = cli(*deploy)
    assert deployed.returncode == 0, deployed.stderr
    assert statuses(cli, "guarded")["control-plane"] == "CREATE_COMPLETE"
    assert cluster not in cli.client("eks").list_clusters()["clusters"]
