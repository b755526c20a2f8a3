"""Managed Grafana: the API as boto3 sees it, and AWS::Grafana::Workspace."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import boto3
import pytest
from botocore.exceptions import ClientError, ParamValidationError
from moto.backends import get_backend

from handler_parts import Stack
from localaws.resources import NotUpdatable

WORKSPACE = "AWS::Grafana::Workspace"
SAML = {
    "IdpMetadata": {"Url": "https://idp.example.com"},
    "RoleValues": {"Admin": ["ops"]},
    "LoginValidityDuration": 60,
}


class Account(NamedTuple):
    stack: Stack
    grafana: Any
    role: str
    subnets: list[str]
    group: str
    endpoint: str
    prefix_list: str


@pytest.fixture(scope="module")
def one_account(aws: None) -> Account:
    ec2, iam = boto3.client("ec2", "us-east-1"), boto3.client("iam", "us-east-1")
    role = iam.create_role(RoleName="grafana", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnets = [ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{n}.0/24")["Subnet"]["SubnetId"] for n in (0, 1)]
    group = ec2.create_security_group(GroupName="g", Description="g", VpcId=vpc)["GroupId"]
    name = "com.amazonaws.us-east-1.s3"
    endpoint = ec2.create_vpc_endpoint(VpcId=vpc, ServiceName=name)["VpcEndpoint"]["VpcEndpointId"]
    listed = ec2.create_managed_prefix_list(PrefixListName="p", MaxEntries=1, AddressFamily="IPv4")["PrefixList"]
    grafana = boto3.client("grafana", "us-east-1")
    return Account(Stack(), grafana, role, subnets, group, endpoint, listed["PrefixListId"])


@pytest.fixture
def account(one_account: Account) -> Iterator[Account]:
    yield one_account
    get_backend("grafana")["123456789012"]["us-east-1"].reset()


def request(account: Account, **changes: Any) -> dict[str, Any]:
    full = {
        "accountAccessType": "CURRENT_ACCOUNT",
        "permissionType": "CUSTOMER_MANAGED",
        "authenticationProviders": ["AWS_SSO"],
        "workspaceRoleArn": account.role,
        **changes,
    }
    return {name: value for name, value in full.items() if value is not None}


def refused(code: str, text: str, call: Any, **parameters: Any) -> None:
    with pytest.raises(ClientError, match=text) as caught:
        call(**parameters)
    assert caught.value.response["Error"]["Code"] == code, caught.value


def test_versions_can_only_be_upgraded(account: Account) -> None:
    grafana = account.grafana
    assert grafana.list_versions()["grafanaVersions"] == ["8.4", "9.4", "10.4", "12.4"]
    named = {"workspaceId": grafana.create_workspace(**request(account, grafanaVersion="9.4"))["workspace"]["id"]}
    assert grafana.list_versions(**named)["grafanaVersions"] == ["10.4", "12.4"]
    update = grafana.update_workspace_configuration
    refused(
        "ValidationException",
        "upgraded to one of 10.4, 12.4",
        update,
        **named,
        configuration="{}",
        grafanaVersion="8.4",
    )
    update(**named, configuration="{}", grafanaVersion="12.4")
    refused("ValidationException", "upgraded no further", update, **named, configuration="{}", grafanaVersion="13.0")
    shown = grafana.describe_workspace_configuration(**named)
    assert shown["grafanaVersion"] == "12.4"
    assert json.loads(shown["configuration"])["unifiedAlerting"] == {"enabled": True}
    default = grafana.create_workspace(**request(account))["workspace"]
    assert default["grafanaVersion"] == "12.4"


def test_saml_needs_its_provider(account: Account) -> None:
    named = {"workspaceId": account.grafana.create_workspace(**request(account))["workspace"]["id"]}
    update = account.grafana.update_workspace_authentication
    url = {"idpMetadata": {"url": "https://idp.example.com"}}
    refused(
        "ValidationException",
        "SAML is not among",
        update,
        **named,
        authenticationProviders=["AWS_SSO"],
        samlConfiguration=url,
    )
    answer = update(**named, authenticationProviders=["SAML"])["authentication"]
    assert answer == {"providers": ["SAML"], "saml": {"status": "NOT_CONFIGURED"}}
    answer = update(**named, authenticationProviders=["SAML"], samlConfiguration=url)["authentication"]
    assert answer["saml"] == {"status": "CONFIGURED", "configuration": url}


def test_tags_are_found_by_arn(account: Account) -> None:
    made = account.grafana.create_workspace(**request(account, tags={"a": "1"}))["workspace"]["id"]
    arn = f"arn:aws:grafana:us-east-1:123456789012:/workspaces/{made}"
    account.grafana.tag_resource(resourceArn=arn, tags={"b": "2"})
    account.grafana.untag_resource(resourceArn=arn, tagKeys=["a"])
    assert account.grafana.list_tags_for_resource(resourceArn=arn)["tags"] == {"b": "2"}
    unknown = {"resourceArn": f"{arn}0", "tags": {}}
    refused("ResourceNotFoundException", "was not found", account.grafana.tag_resource, **unknown)


# CloudFormation


def properties(account: Account, **changes: Any) -> dict[str, Any]:
    return {
        "AccountAccessType": "CURRENT_ACCOUNT",
        "PermissionType": "CUSTOMER_MANAGED",
        "AuthenticationProviders": ["AWS_SSO"],
        "RoleArn": account.role,
        **changes,
    }


def test_a_failed_resource_leaves_no_workspace(account: Account) -> None:
    both = {"IdpMetadata": {"Url": "https://idp.example.com", "Xml": "<x/>"}}
    wrong = properties(account, AuthenticationProviders=["SAML"], SamlConfiguration=both)
    with pytest.raises(ParamValidationError, match="Can only set one of"):
        account.stack.create(WORKSPACE, **wrong)
    assert account.grafana.list_workspaces()["workspaces"] == []
    old = properties(account, Name="train")
    made = account.stack.make(WORKSPACE, **old)
    with pytest.raises(NotUpdatable, match="Name"):
        account.stack.update(WORKSPACE, made, old, properties(account))
