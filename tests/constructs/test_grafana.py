"""The Grafana workspace: authentication and permissions."""

import re

import pytest
from aws_cdk.assertions import Match

from ultracluster.config.observability import Grafana, Observability
from ultracluster.constructs.grafana import GrafanaWorkspace, _authentication
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.metrics import MetricsWorkspace
from ultracluster.errors import InvalidArgument


@pytest.fixture(scope="module")
def template(synth):
    def fill(stack):
        key = DataKey(stack, "Key", description="Metrics")
        metrics = MetricsWorkspace(stack, "Metrics", settings=Observability(), key=key)
        GrafanaWorkspace(stack, "Grafana", settings=Grafana(auth="identity_center"), metrics=metrics)

    return synth(fill)


def test_grafana_is_version_12_with_plugin_management(template):
    expected = {"GrafanaVersion": Match.string_like_regexp(r"^12\.\d+$"), "PluginAdminEnabled": True}
    template.has_resource_properties("AWS::Grafana::Workspace", expected)


def test_users_sign_in_with_identity_center_in_this_account(template):
    expected = {
        "AccountAccessType": "CURRENT_ACCOUNT",
        "AuthenticationProviders": ["AWS_SSO"],
        "PermissionType": "CUSTOMER_MANAGED",
    }
    template.has_resource_properties("AWS::Grafana::Workspace", expected)


def test_the_role_may_query_one_workspace_and_read_cloudwatch_metrics(template):
    (workspace,) = template.find_resources("AWS::APS::Workspace")
    (policy,) = template.find_resources("AWS::IAM::ManagedPolicy").values()
    query, every = policy["Properties"]["PolicyDocument"]["Statement"]
    assert set(query["Action"]) == {
        *("aps:DescribeWorkspace", "aps:GetLabels", "aps:GetMetricMetadata", "aps:GetSeries", "aps:QueryMetrics")
    }
    assert query["Resource"] == {"Fn::GetAtt": [workspace, "Arn"]}
    assert {"aps:ListWorkspaces", "cloudwatch:GetMetricData"} < set(every["Action"])
    assert all(re.match(r"\w+:(Describe|Get|List)", action) for action in every["Action"])
    assert not any(action.startswith("logs:") for action in every["Action"])
    template.resource_count_is("AWS::IAM::Policy", 0)


def test_only_workspaces_of_this_account_may_assume_the_role(template):
    trust = {
        "Principal": {"Service": "grafana.amazonaws.com"},
        "Condition": {
            "StringEquals": {"aws:SourceAccount": "111122223333"},
            "StringLike": {"aws:SourceArn": "arn:aws:grafana:us-east-2:111122223333:/workspaces/*"},
        },
    }
    document = Match.object_like({"Statement": [Match.object_like(trust)]})
    template.has_resource_properties("AWS::IAM::Role", {"AssumeRolePolicyDocument": document})


def test_saml_uses_the_metadata_of_the_identity_provider():
    settings = Grafana(auth="saml", saml_metadata_url="https://idp.example.com/metadata")
    assert _authentication(settings) == {
        "authentication_providers": ["SAML"],
        "saml_configuration": {"idpMetadata": {"url": "https://idp.example.com/metadata"}},
    }


def test_without_authentication_a_workspace_is_refused():
    with pytest.raises(InvalidArgument, match="auth is none"):
        _authentication(Grafana())


def test_an_existing_prometheus_workspace_can_be_queried(synth):
    def fill(stack):
        metrics = MetricsWorkspace.from_workspace_id(stack, "Metrics", "ws-1")
        GrafanaWorkspace(stack, "Grafana", settings=Grafana(auth="identity_center"), metrics=metrics)

    template = synth(fill)
    template.resource_count_is("AWS::APS::Workspace", 0)
    (policy,) = template.find_resources("AWS::IAM::ManagedPolicy").values()
    statement, _ = policy["Properties"]["PolicyDocument"]["Statement"]
    assert statement["Resource"] == "arn:aws:aps:us-east-2:111122223333:workspace/ws-1"
