"""The Prometheus workspace and the rights that it gives."""

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


def test_it_keeps_metrics_as_long_as_asked(template):
    _, resource = workspace(template)
    assert resource["Properties"]["WorkspaceConfiguration"] == {"RetentionPeriodInDays": 400}


def test_it_is_encrypted_with_our_key_and_retained(template):
    (key,) = template.find_resources("AWS::KMS::Key")
    _, resource = workspace(template)
    assert resource["Properties"]["KmsKeyArn"] == {"Fn::GetAtt": [key, "Arn"]}
    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("Retain", "Retain")


def test_it_logs_to_a_vended_group_by_the_arn_with_the_star(template):
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
def test_writers_only_write_and_readers_only_read_this_workspace(template, policy, actions):
    found = template.find_resources("AWS::IAM::ManagedPolicy").items()
    (document,) = [each["Properties"]["PolicyDocument"] for name, each in found if name.startswith(policy)]
    arn = {"Fn::GetAtt": [workspace(template)[0], "Arn"]}
    assert document["Statement"] == [{"Action": actions, "Effect": "Allow", "Resource": arn}]
