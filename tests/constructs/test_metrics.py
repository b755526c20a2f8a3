"""Prometheus workspaces and their grants."""

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam

from ultracluster.config.observability import Observability
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.metrics import MetricsWorkspace


@pytest.fixture(scope="module")
def template(synth):
    def fill(stack):
        key = DataKey(stack, "Key", description="Metrics")
        metrics = MetricsWorkspace(stack, "Metrics", settings=Observability(retention_days=400), key=key)
        metrics.grant_remote_write(iam.ManagedPolicy(stack, "Writer"))
        metrics.grant_query(iam.ManagedPolicy(stack, "Reader"))

    return synth(fill)


def workspace(template):
    ((logical_id, resource),) = template.find_resources("AWS::APS::Workspace").items()
    return logical_id, resource


def test_retention_is_that_of_the_settings(template):
    _, resource = workspace(template)
    assert resource["Properties"]["WorkspaceConfiguration"] == {"RetentionPeriodInDays": 400}


def test_the_workspace_is_encrypted_with_our_key_and_retained(template):
    (key,) = template.find_resources("AWS::KMS::Key")
    _, resource = workspace(template)
    assert resource["Properties"]["KmsKeyArn"] == {"Fn::GetAtt": [key, "Arn"]}
    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")


def test_the_log_group_is_named_by_its_arn_with_the_wildcard(template):
    ((group, properties),) = template.find_resources("AWS::Logs::LogGroup").items()
    _, resource = workspace(template)
    assert resource["Properties"]["LoggingConfiguration"] == {"LogGroupArn": {"Fn::GetAtt": [group, "Arn"]}}
    assert properties["Properties"]["LogGroupName"]["Fn::Join"][1][0].startswith("/aws/vendedlogs/")


@pytest.mark.parametrize(
    ("policy", "actions"),
    [
        ("Writer", "aps:RemoteWrite"),
        ("Reader", ["aps:GetLabels", "aps:GetMetricMetadata", "aps:GetSeries", "aps:QueryMetrics"]),
    ],
)
def test_grants_allow_only_writing_or_only_reading_this_workspace(template, policy, actions):
    found = template.find_resources("AWS::IAM::ManagedPolicy").items()
    (document,) = [each["Properties"]["PolicyDocument"] for name, each in found if name.startswith(policy)]
    arn = {"Fn::GetAtt": [workspace(template)[0], "Arn"]}
    assert document["Statement"] == [{"Action": actions, "Effect": "Allow", "Resource": arn}]


@pytest.fixture(scope="module")
def imported(synth):
    def fill(stack):
        metrics = MetricsWorkspace.from_workspace_id(stack, "Metrics", "ws-1")
        role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
        metrics.grant_remote_write(role).assert_success()
        metrics.grant_query(role).assert_success()
        cdk.CfnOutput(stack, "RemoteWrite", value=metrics.remote_write_url)

    return synth(fill)


def test_an_imported_workspace_creates_nothing_and_gives_its_url(imported):
    imported.resource_count_is("AWS::APS::Workspace", 0)
    (output,) = imported.find_outputs("RemoteWrite").values()
    assert output["Value"] == "https://aps-workspaces.us-east-2.amazonaws.com/workspaces/ws-1/api/v1/remote_write"


def test_grants_on_an_imported_workspace_name_its_arn(imported):
    (policy,) = imported.find_resources("AWS::IAM::Policy").values()
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
    assert {"aps:RemoteWrite", "aps:QueryMetrics"} <= set(statement["Action"])
    assert statement["Resource"] == "arn:aws:aps:us-east-2:111122223333:workspace/ws-1"
