"""The typed store: what it derives from botocore's models, and what every service of it must say."""

import datetime
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.core.utils import get_service_model
from moto.moto_api import state_manager

from localaws.services import activate, models
from localaws.services.actions import BACKENDS, VERBS, Actions, derived
from localaws.services.aps import ApsActions
from localaws.services.eks import EksActions
from localaws.services.fsx import FsxActions
from localaws.services.grafana import GrafanaActions
from localaws.services.pcs import PcsActions
from localaws.services.references import References
from localaws.services.service import Refusal, invalid

SERVICES = (ApsActions, EksActions, FsxActions, GrafanaActions, PcsActions)
REGION = "us-east-1"


@pytest.fixture(autouse=True)
def _aws() -> Iterator[None]:
    activate()
    with mock_aws():
        yield


@pytest.mark.parametrize("service", SERVICES)
def test_rules_are_of_operations_of_the_service_and_have_a_source(service: type[Actions]) -> None:
    known = set(get_service_model(service.service).operation_names)
    for rule in service.rules:
        assert set(rule.operations.split()) <= known, rule
        assert rule.source, rule


@pytest.mark.parametrize("service", SERVICES)
def test_every_kind_can_be_created_found_and_deleted(service: type[Actions]) -> None:
    verbs: dict[str, set[str]] = {kind.noun: set() for kind in service.kinds}
    for _, verb, kind in derived(service):
        verbs[kind.noun].add(verb)
    for noun, found in verbs.items():
        assert {"create", "delete"} <= found, noun
        assert found & {"read", "list_all"}, noun
        assert found <= set(VERBS.values())


def test_a_description_has_the_members_that_requests_have_under_its_names() -> None:
    grafana = get_service_model("grafana")
    request = {"workspaceName": "a", "kmsKeyId": "k", "authenticationProviders": ["SAML"], "clientToken": "t"}
    assert models.stored(grafana, "Workspace", "CreateWorkspace", request) == {"name": "a", "kmsKeyId": "k"}


def test_states_are_as_the_model_has_them() -> None:
    def shape(service: str, noun: str) -> Any:
        return models.description_shape(get_service_model(service), noun)

    assert models.state(shape("amp", "Workspace"), "ACTIVE") == {"status": {"statusCode": "ACTIVE"}}
    assert models.state(shape("fsx", "FileSystem"), "AVAILABLE") == {"Lifecycle": "AVAILABLE"}
    assert models.state(shape("eks", "AccessEntry"), "ACTIVE") == {}
    assert [models.ready(shape(*each)) for each in (("fsx", "Backup"), ("eks", "Addon"))] == ["AVAILABLE", "ACTIVE"]


@pytest.mark.parametrize(("service", "reason"), [("pcs", "fieldValidationFailed"), ("amp", "FIELD_VALIDATION_FAILED")])
def test_errors_get_the_members_that_their_shape_determines(service: str, reason: str) -> None:
    error = invalid("size", "too large.")
    models.complete(get_service_model(service), error)
    assert error.reason == reason
    assert error.fieldList == [{"name": "size", "message": "too large."}]
    full = Refusal("ServiceQuotaExceededException", "full", quotaCode="workspaces")
    models.complete(get_service_model(service), full)
    assert full.serviceCode == {"pcs": "pcs", "amp": "aps"}[service]
    assert hasattr(full, "quotaCode") == (service == "amp")


def test_blocks_are_merged_at_every_depth_and_lists_replaced() -> None:
    old = {"a": {"b": {"c": 1, "d": 2}}, "e": [1]}
    assert models.merged(old, {"a": {"b": {"c": 3}}, "e": [2]}) == {"a": {"b": {"c": 3, "d": 2}}, "e": [2]}
    assert old["a"] == {"b": {"c": 1, "d": 2}}


def test_lists_have_pages_and_waiters_wait() -> None:
    amp = boto3.client("amp", REGION)
    state_manager.set_transition("amp::workspace", {"progression": "manual", "times": 2})
    try:
        made = [amp.create_workspace(alias=f"w{number}") for number in range(3)]
        assert made[0]["status"] == {"statusCode": "CREATING"}
        config = {"Delay": 0, "MaxAttempts": 5}
        amp.get_waiter("workspace_active").wait(workspaceId=made[0]["workspaceId"], WaiterConfig=config)
    finally:
        state_manager.unset_transition("amp::workspace")
    pages = list(amp.get_paginator("list_workspaces").paginate(PaginationConfig={"PageSize": 2}))
    assert [[one["alias"] for one in page["workspaces"]] for page in pages] == [["w0", "w1"], ["w2"]]


def test_tags_of_an_unknown_arn_are_refused_as_the_model_says() -> None:
    for service, name, code in (
        ("amp", "resourceArn", "ResourceNotFoundException"),
        ("eks", "resourceArn", "NotFoundException"),
        ("fsx", "ResourceARN", "ResourceNotFound"),
    ):
        with pytest.raises(ClientError) as caught:
            boto3.client(service, REGION).list_tags_for_resource(
                **{name: f"arn:aws:{service}:us-east-1:123456789012:x/y"}
            )
        assert caught.value.response["Error"]["Code"] == code


def test_backups_outlive_their_file_system() -> None:
    ec2, fsx = boto3.client("ec2", REGION), boto3.client("fsx", REGION)
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    made = fsx.create_file_system(FileSystemType="WINDOWS", StorageCapacity=64, SubnetIds=[subnet])["FileSystem"]
    backup = fsx.create_backup(FileSystemId=made["FileSystemId"], Tags=[{"Key": "a", "Value": "b"}])["Backup"]
    fsx.delete_file_system(FileSystemId=made["FileSystemId"])
    (found,) = fsx.describe_backups()["Backups"]
    assert (found["Lifecycle"], found["Tags"]) == ("AVAILABLE", [{"Key": "a", "Value": "b"}])
    assert found["FileSystem"]["StorageCapacity"] == 64
    fsx.delete_backup(BackupId=backup["BackupId"])
    with pytest.raises(ClientError, match="BackupNotFound"):
        fsx.describe_backups(BackupIds=[backup["BackupId"]])


def test_a_failed_creation_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise Refusal("ServiceLimitExceeded", "no address is left")

    monkeypatch.setattr(References, "network_interface", full)
    fsx, subnet = boto3.client("fsx", REGION), boto3.client("ec2", REGION).describe_subnets()["Subnets"][0]["SubnetId"]
    with pytest.raises(ClientError, match="no address is left"):
        fsx.create_file_system(FileSystemType="WINDOWS", StorageCapacity=64, SubnetIds=[subnet])
    assert fsx.describe_file_systems()["FileSystems"] == []


def test_a_number_is_not_given_twice() -> None:
    grafana, iam = boto3.client("grafana", REGION), boto3.client("iam")
    role = iam.create_role(RoleName="grafana", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    access = {"accountAccessType": "CURRENT_ACCOUNT", "permissionType": "CUSTOMER_MANAGED", "workspaceRoleArn": role}
    workspace = grafana.create_workspace(**access, authenticationProviders=["AWS_SSO"])["workspace"]["id"]
    named = {"workspaceId": workspace}
    named["serviceAccountId"] = grafana.create_workspace_service_account(**named, name="a", grafanaRole="ADMIN")["id"]
    token = grafana.create_workspace_service_account_token
    ids = [token(**named, name=name, secondsToLive=60)["serviceAccountToken"]["id"] for name in "ab"]
    grafana.delete_workspace_service_account_token(**named, tokenId=ids[0])
    again = token(**named, name="c", secondsToLive=60)["serviceAccountToken"]
    assert (ids, again["id"]) == (["1", "2"], "3")
    listed = grafana.list_workspace_service_account_tokens(**named)["serviceAccountTokens"]
    assert [set(one) & {"key"} for one in listed] == [set(), set()]
    assert listed[0]["expiresAt"] - listed[0]["createdAt"] == datetime.timedelta(seconds=60)


def test_messages_contain_names_as_they_are() -> None:
    made = boto3.client("amp", REGION).create_workspace()["workspaceId"]
    (item,) = BACKENDS["amp"]["123456789012"][REGION].items
    assert str(item.store.refusal(item.kind, "ConflictException", "no {cluster}", made).message) == "no {cluster}"
    assert item.store.missing(item.kind, "{x}").message == "Workspace {x} was not found."


def test_stores_are_apart_by_region() -> None:
    boto3.client("amp", REGION).create_workspace()
    assert boto3.client("amp", "eu-west-1").list_workspaces()["workspaces"] == []
    assert {"amp", "eks", "fsx", "grafana", "pcs"} <= set(BACKENDS)
