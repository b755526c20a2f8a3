"""The added services answer through moto's server too, with the paths and ARNs that boto3 sends."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.server import ThreadedMotoServer

from localaws.services import activate


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    activate()
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def client(endpoint: str, service: str) -> Any:
    keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
    return boto3.client(service, "us-east-2", endpoint_url=endpoint, **keys)


def test_errors_are_those_of_the_pcs_model(endpoint: str) -> None:
    pcs = client(endpoint, "pcs")
    assert pcs.list_clusters()["clusters"] == []
    with pytest.raises(pcs.exceptions.ResourceNotFoundException) as caught:
        pcs.get_cluster(clusterIdentifier="none")
    assert caught.value.response["resourceType"] == "AWS::PCS::Cluster"


def test_grafana_finds_a_workspace_by_path_and_by_arn(endpoint: str) -> None:
    role = client(endpoint, "iam").create_role(RoleName="grafana", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    grafana = client(endpoint, "grafana")
    made = grafana.create_workspace(
        accountAccessType="CURRENT_ACCOUNT",
        permissionType="CUSTOMER_MANAGED",
        authenticationProviders=["SAML"],
        workspaceRoleArn=role,
        tags={"a": "b"},
    )["workspace"]["id"]
    arn = f"arn:aws:grafana:us-east-2:123456789012:/workspaces/{made}"
    grafana.tag_resource(resourceArn=arn, tags={"c": "d"})
    assert grafana.list_tags_for_resource(resourceArn=arn)["tags"] == {"a": "b", "c": "d"}
    grafana.update_workspace_configuration(workspaceId=made, configuration="{}")
    assert grafana.describe_workspace_authentication(workspaceId=made)["authentication"]["providers"] == ["SAML"]
    assert grafana.list_versions(workspaceId=made)["grafanaVersions"] == []


def test_prometheus_and_fsx_are_served_by_the_added_classes(endpoint: str) -> None:
    amp, fsx = client(endpoint, "amp"), client(endpoint, "fsx")
    made = amp.create_workspace()["workspaceId"]
    assert (
        amp.describe_workspace_configuration(workspaceId=made)["workspaceConfiguration"]["retentionPeriodInDays"] == 150
    )
    with pytest.raises(ClientError, match="no queryLogging"):
        amp.describe_query_logging_configuration(workspaceId=made)
    assert fsx.describe_data_repository_associations()["Associations"] == []
    with pytest.raises(fsx.exceptions.FileSystemNotFound):
        fsx.describe_file_systems(FileSystemIds=["fs-0123456789abcdef0"])


def test_recovery_points_are_found_in_a_vault_with_slashes_in_its_name(endpoint: str) -> None:
    efs, backup = client(endpoint, "efs"), client(endpoint, "backup")
    made = efs.create_file_system(CreationToken="home", Tags=[{"Key": "a", "Value": "b"}])["FileSystemId"]
    efs.put_backup_policy(FileSystemId=made, BackupPolicy={"Status": "ENABLED"})
    vault = {"BackupVaultName": "aws/efs/automatic-backup-vault"}
    (point,) = backup.list_recovery_points_by_backup_vault(**vault, ByResourceType="EFS")["RecoveryPoints"]
    assert point["ResourceArn"].endswith(made)
    assert backup.list_tags(ResourceArn=point["RecoveryPointArn"])["Tags"] == {"a": "b"}
    with pytest.raises(backup.exceptions.ResourceNotFoundException):
        backup.list_recovery_points_by_backup_vault(BackupVaultName="other")
    with pytest.raises(ClientError, match="Explicit deny"):
        backup.delete_recovery_point(**vault, RecoveryPointArn=point["RecoveryPointArn"])
