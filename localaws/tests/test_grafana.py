"""Managed Grafana: the API as boto3 sees it, and AWS::Grafana::Workspace."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import boto3
import pytest
from botocore.exceptions import ClientError, ParamValidationError
from moto import mock_aws
from moto.backends import get_backend

from handler_parts import Stack, tags
from localaws.resources import NotUpdatable
from localaws.services import activate

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
def one_account() -> Iterator[Account]:
    activate()
    with mock_aws():
        ec2, iam = boto3.client("ec2", "us-east-1"), boto3.client("iam", "us-east-1")
        role = iam.create_role(RoleName="grafana", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        subnets = [ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{n}.0/24")["Subnet"]["SubnetId"] for n in (0, 1)]
        group = ec2.create_security_group(GroupName="g", Description="g", VpcId=vpc)["GroupId"]
        name = "com.amazonaws.us-east-1.s3"
        endpoint = ec2.create_vpc_endpoint(VpcId=vpc, ServiceName=name)["VpcEndpoint"]["VpcEndpointId"]
        listed = ec2.create_managed_prefix_list(PrefixListName="p", MaxEntries=1, AddressFamily="IPv4")["PrefixList"]
        grafana = boto3.client("grafana", "us-east-1")
        yield Account(Stack(), grafana, role, subnets, group, endpoint, listed["PrefixListId"])


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


def test_a_workspace_is_read_back_updated_and_deleted(account: Account) -> None:
    made = account.grafana.create_workspace(
        **request(
            account,
            workspaceName="train",
            workspaceDescription="GPU cluster",
            workspaceDataSources=["PROMETHEUS"],
            grafanaVersion="10.4",
            configuration=json.dumps({"plugins": {"pluginAdminEnabled": True}}),
            tags={"a": "b"},
        )
    )["workspace"]
    named = {"workspaceId": made["id"]}
    found = account.grafana.describe_workspace(**named)["workspace"]
    assert found == made
    assert (
        found.items()
        >= {
            "name": "train",
            "description": "GPU cluster",
            "dataSources": ["PROMETHEUS"],
            "grafanaVersion": "10.4",
            "status": "ACTIVE",
            "workspaceRoleArn": account.role,
            "tags": {"a": "b"},
            "endpoint": f"{made['id']}.grafana-workspace.us-east-1.amazonaws.com",
            "authentication": {"providers": ["AWS_SSO"]},
        }.items()
    )
    assert [one["name"] for one in account.grafana.list_workspaces()["workspaces"]] == ["train"]
    sign_in = account.grafana.describe_workspace_authentication(**named)["authentication"]
    assert sign_in["awsSso"]["ssoClientId"].startswith("ins-")
    access = {"prefixListIds": [account.prefix_list], "vpceIds": [account.endpoint]}
    vpc = {"subnetIds": account.subnets, "securityGroupIds": [account.group]}
    account.grafana.update_workspace(**named, workspaceName="other", networkAccessControl=access, vpcConfiguration=vpc)
    found = account.grafana.describe_workspace(**named)["workspace"]
    assert (found["name"], found["networkAccessControl"], found["vpcConfiguration"]) == ("other", access, vpc)
    account.grafana.update_workspace(**named, removeNetworkAccessConfiguration=True, removeVpcConfiguration=True)
    found = account.grafana.describe_workspace(**named)["workspace"]
    assert not {"networkAccessControl", "vpcConfiguration"} & found.keys()
    account.grafana.delete_workspace(**named)
    refused("ResourceNotFoundException", "was not found", account.grafana.describe_workspace, **named)


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


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"workspaceRoleArn": None}, "CUSTOMER_MANAGED needs a role"),
        ({"workspaceRoleArn": "arn:aws:iam::123456789012:role/none"}, "role/none does not exist"),
        ({"grafanaVersion": "11.0"}, "11.0 cannot be created; choose one of 8.4, 9.4, 10.4, 12.4"),
        ({"authenticationProviders": []}, "one or more are needed"),
        ({"authenticationProviders": ["AWS_SSO", "AWS_SSO"]}, "each once"),
        ({"authenticationProviders": ["OKTA"]}, "enum value set"),
        ({"permissionType": "ANY"}, "enum value set"),
        ({"workspaceName": "a b"}, "regular expression"),
        ({"configuration": "{]"}, "must be JSON"),
        ({"configuration": '{"alerting": {}}'}, "must be JSON"),
        ({"grafanaVersion": "8.4", "configuration": '{"plugins": {"pluginAdminEnabled": true}}'}, "version 9 or later"),
        ({"grafanaVersion": "9.4", "ipAddressType": "DualStack"}, "version 10 or later"),
        ({"kmsKeyId": "none"}, "KMS key none does not exist"),
        ({"vpcConfiguration": {"subnetIds": ["subnet-0", "subnet-1"], "securityGroupIds": ["sg-0"]}}, "does not exist"),
        ({"networkAccessControl": {"prefixListIds": ["pl-0"], "vpceIds": []}}, "pl-0 does not exist"),
        ({"networkAccessControl": {"prefixListIds": [], "vpceIds": ["vpce-0"] * 6}}, "at most 5, not 6"),
    ],
)
def test_a_wrong_workspace_is_refused(account: Account, change: dict[str, Any], text: str) -> None:
    refused("ValidationException", text, account.grafana.create_workspace, **request(account, **change))
    assert account.grafana.list_workspaces()["workspaces"] == []


def test_a_workspace_is_in_one_vpc(account: Account) -> None:
    ec2 = boto3.client("ec2", "us-east-1")
    vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    far = ec2.create_security_group(GroupName="far", Description="far", VpcId=vpc)["GroupId"]
    wrong = request(account, vpcConfiguration={"subnetIds": account.subnets, "securityGroupIds": [far]})
    refused("ValidationException", "must be in one VPC", account.grafana.create_workspace, **wrong)


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


def test_the_resource_is_created_updated_and_deleted(account: Account) -> None:
    old = properties(
        account,
        Name="train",
        Description="GPU cluster",
        DataSources=["PROMETHEUS", "CLOUDWATCH"],
        NotificationDestinations=["SNS"],
        GrafanaVersion="10.4",
        PluginAdminEnabled=True,
        AuthenticationProviders=["AWS_SSO", "SAML"],
        SamlConfiguration=SAML,
        NetworkAccessControl={"VpceIds": [account.endpoint]},
        VpcConfiguration={"SubnetIds": account.subnets, "SecurityGroupIds": [account.group]},
        ClientToken="once",
        Tags=tags(team="a", old="1"),
    )
    made = account.stack.create(WORKSPACE, **old)
    named = {"workspaceId": made.physical_id}
    found = account.grafana.describe_workspace(**named)["workspace"]
    assert (
        made.attributes.items()
        >= {
            "Id": made.physical_id,
            "Endpoint": found["endpoint"],
            "GrafanaVersion": "10.4",
            "Status": "ACTIVE",
            "SamlConfigurationStatus": "CONFIGURED",
        }.items()
    )
    assert found["networkAccessControl"] == {"prefixListIds": [], "vpceIds": [account.endpoint]}
    assert found["vpcConfiguration"]["subnetIds"] == account.subnets
    assert (found["name"], found["description"]) == ("train", "GPU cluster")
    assert (found["dataSources"], found["notificationDestinations"]) == (["PROMETHEUS", "CLOUDWATCH"], ["SNS"])
    saml = account.grafana.describe_workspace_authentication(**named)["authentication"]["saml"]["configuration"]
    assert saml["idpMetadata"] == {"url": "https://idp.example.com"}
    assert (saml["roleValues"], saml["loginValidityDuration"]) == ({"admin": ["ops"]}, 60)
    configuration = account.grafana.describe_workspace_configuration(**named)["configuration"]
    assert json.loads(configuration)["plugins"] == {"pluginAdminEnabled": True}
    assert found["tags"] == {"team": "a", "old": "1"}

    new = properties(
        account,
        Name="other",
        GrafanaVersion="12.4",
        ClientToken="once",
        DataSources=["PROMETHEUS"],
        Tags=tags(team="b"),
    )
    updated = account.stack.update(WORKSPACE, made.physical_id, old, new)
    found = account.grafana.describe_workspace(**named)["workspace"]
    assert (found["name"], found["description"], found["grafanaVersion"]) == ("other", "", "12.4")
    assert (found["dataSources"], found["notificationDestinations"]) == (["PROMETHEUS"], [])
    assert not {"networkAccessControl", "vpcConfiguration"} & found.keys()
    assert found["authentication"] == {"providers": ["AWS_SSO"]}
    assert found["tags"] == {"team": "b"}
    assert updated.attributes["SamlConfigurationStatus"] == "NOT_CONFIGURED"
    configuration = account.grafana.describe_workspace_configuration(**named)["configuration"]
    assert json.loads(configuration)["plugins"] == {"pluginAdminEnabled": False}

    account.stack.delete(WORKSPACE, made.physical_id)
    assert account.grafana.list_workspaces()["workspaces"] == []


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
