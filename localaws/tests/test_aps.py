"""Managed Prometheus: the API as boto3 sees it, and AWS::APS::Workspace."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.backends import get_backend

from handler_parts import Stack

WORKSPACE = "AWS::APS::Workspace"
ERRORS, QUERIES, NONE = (
    f"arn:aws:logs:us-east-1:123456789012:log-group:/amp/{n}:*" for n in ("errors", "queries", "no")
)


class Account(NamedTuple):
    stack: Stack
    amp: Any
    key: str


@pytest.fixture(scope="module")
def one_account(aws: None) -> Account:
    logs = boto3.client("logs", "us-east-1")
    for name in ("/amp/errors", "/amp/queries"):
        logs.create_log_group(logGroupName=name)
    key = boto3.client("kms", "us-east-1").create_key()["KeyMetadata"]["Arn"]
    return Account(Stack(), boto3.client("amp", "us-east-1"), key)


@pytest.fixture
def account(one_account: Account) -> Iterator[Account]:
    yield one_account
    get_backend("amp")["123456789012"]["us-east-1"].reset()


@pytest.fixture
def workspace(account: Account) -> dict[str, str]:
    return {"workspaceId": account.amp.create_workspace(alias="train")["workspaceId"]}


def refused(code: str, text: str, call: Any, **parameters: Any) -> None:
    with pytest.raises(ClientError, match=text) as caught:
        call(**parameters)
    assert caught.value.response["Error"]["Code"] == code, caught.value


def destinations(arn: str, threshold: int = 100) -> list[dict[str, Any]]:
    return [{"cloudWatchLogs": {"logGroupArn": arn}, "filters": {"qspThreshold": threshold}}]


def test_a_workspace_keeps_its_key(account: Account) -> None:
    made = account.amp.create_workspace(alias="train", kmsKeyArn=account.key, tags={"a": "b"})
    found = account.amp.describe_workspace(workspaceId=made["workspaceId"])["workspace"]
    assert (found["kmsKeyArn"], found["alias"], found["tags"]) == (account.key, "train", {"a": "b"})
    assert found["prometheusEndpoint"].endswith(f"/workspaces/{made['workspaceId']}/")
    account.amp.create_workspace(alias="other")
    listed = account.amp.list_workspaces(alias="tra")["workspaces"]
    assert [(one["alias"], one["kmsKeyArn"]) for one in listed] == [("train", account.key)]
    account.amp.update_workspace_alias(workspaceId=made["workspaceId"], alias="new")
    assert account.amp.describe_workspace(workspaceId=made["workspaceId"])["workspace"]["alias"] == "new"


def test_wrong_workspaces_are_refused(account: Account) -> None:
    unknown = account.key[:-1] + ("0" if account.key[-1] != "0" else "1")
    refused("ValidationException", "does not exist or is not enabled", account.amp.create_workspace, kmsKeyArn=unknown)
    refused(
        "ValidationException",
        "regular expression",
        account.amp.create_workspace,
        kmsKeyArn="alias/some-long-alias-name",
    )
    missing = {"workspaceId": "ws-none"}
    for call in (account.amp.describe_workspace, account.amp.delete_workspace, account.amp.update_workspace_alias):
        refused("ResourceNotFoundException", "ws-none was not found", call, **missing)
    for _ in range(25):
        account.amp.create_workspace()
    refused("ServiceQuotaExceededException", "25 workspaces", account.amp.create_workspace)


def test_configuration_has_limits(account: Account, workspace: dict[str, str]) -> None:
    describe, update = account.amp.describe_workspace_configuration, account.amp.update_workspace_configuration
    assert describe(**workspace)["workspaceConfiguration"]["retentionPeriodInDays"] == 150
    limits = [{"limits": {"maxSeries": 1000}, "labelSet": {"team": "a"}}]
    update(**workspace, retentionPeriodInDays=1095, limitsPerLabelSet=limits)
    found = describe(**workspace)["workspaceConfiguration"]
    assert (found["retentionPeriodInDays"], found["limitsPerLabelSet"]) == (1095, limits)
    assert found["outOfOrderTimeWindowInSeconds"] == 60
    refused("ValidationException", "at most 1095, not 1096", update, **workspace, retentionPeriodInDays=1096)
    refused("ValidationException", "at most 600, not 601", update, **workspace, outOfOrderTimeWindowInSeconds=601)


def test_logging_is_configured_separately(account: Account, workspace: dict[str, str]) -> None:
    amp = account.amp
    refused("ResourceNotFoundException", "no logging", amp.describe_logging_configuration, **workspace)
    create = amp.create_logging_configuration
    refused("ValidationException", "regular expression", create, **workspace, logGroupArn=ERRORS.removesuffix(":*"))
    refused("ValidationException", "not a log group", create, **workspace, logGroupArn=NONE)
    create(**workspace, logGroupArn=ERRORS)
    refused("ConflictException", "has a logging configuration already", create, **workspace, logGroupArn=ERRORS)
    found = amp.describe_logging_configuration(**workspace)["loggingConfiguration"]
    assert (found["logGroupArn"], found["status"]) == (ERRORS, {"statusCode": "ACTIVE"})
    amp.update_logging_configuration(**workspace, logGroupArn=QUERIES)
    assert amp.describe_logging_configuration(**workspace)["loggingConfiguration"]["logGroupArn"] == QUERIES
    amp.delete_logging_configuration(**workspace)
    refused("ResourceNotFoundException", "no logging", amp.delete_logging_configuration, **workspace)


def test_query_logging_is_configured_separately(account: Account, workspace: dict[str, str]) -> None:
    amp = account.amp
    create = amp.create_query_logging_configuration
    bare = destinations(QUERIES.removesuffix(":*"))
    refused("ValidationException", "regular expression", create, **workspace, destinations=bare)
    refused("ValidationException", "not a log group", create, **workspace, destinations=destinations(NONE))
    create(**workspace, destinations=destinations(QUERIES))
    found = amp.describe_query_logging_configuration(**workspace)["queryLoggingConfiguration"]
    assert found["destinations"] == destinations(QUERIES)
    amp.update_query_logging_configuration(**workspace, destinations=destinations(ERRORS, 5))
    found = amp.describe_query_logging_configuration(**workspace)["queryLoggingConfiguration"]
    assert found["destinations"] == destinations(ERRORS, 5)
    amp.delete_query_logging_configuration(**workspace)
    refused("ResourceNotFoundException", "no queryLogging", amp.describe_query_logging_configuration, **workspace)


# CloudFormation


def query_logging(arn: str) -> dict[str, Any]:
    return {"Destinations": [{"CloudWatchLogs": {"LogGroupArn": arn}, "Filters": {"QspThreshold": 7}}]}


def test_a_failed_resource_leaves_no_workspace(account: Account) -> None:
    for wrong, text in (
        ({"LoggingConfiguration": {"LogGroupArn": NONE}}, "not a log group"),
        ({"QueryLoggingConfiguration": query_logging(NONE)}, "not a log group"),
        ({"WorkspaceConfiguration": {"RetentionPeriodInDays": 2000}}, "at most 1095"),
    ):
        with pytest.raises(ClientError, match=text):
            account.stack.create(WORKSPACE, **wrong)
    assert account.amp.list_workspaces()["workspaces"] == []
