"""Log groups of pods and nodes, and the role of Fluent Bit."""

import pytest

from tests.constructs.test_scraper import imported
from ultracluster.constructs.eks_logs import ClusterLogs
from ultracluster.constructs.keys import DataKey


@pytest.fixture(scope="module")
def template(synth):
    def fill(stack):
        key = DataKey(stack, "Key", description="Logs")
        ClusterLogs(stack, "Logs", cluster=imported(stack), retention_days=90, key=key)

    return synth(fill)


def test_groups_are_encrypted_retained_and_have_the_retention(template):
    (key,) = template.find_resources("AWS::KMS::Key")
    groups = template.find_resources("AWS::Logs::LogGroup")
    assert len(groups) == 2
    for group in groups.values():
        assert group["Properties"]["RetentionInDays"] == 90
        assert group["Properties"]["KmsKeyId"] == {"Fn::GetAtt": [key, "Arn"]}
        assert (group["DeletionPolicy"], group["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")


def test_fluent_bit_writes_streams_of_both_groups_and_nothing_else(template):
    (policy,) = template.find_resources("AWS::IAM::ManagedPolicy").values()
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
    assert statement["Action"] == ["logs:CreateLogStream", "logs:PutLogEvents"]
    groups = template.find_resources("AWS::Logs::LogGroup")
    assert statement["Resource"] == [{"Fn::GetAtt": [name, "Arn"]} for name in groups]


def test_the_role_is_that_of_fluent_bit_s_pods(template):
    (found,) = template.find_resources("AWS::EKS::PodIdentityAssociation").values()
    (role,) = template.find_resources("AWS::IAM::Role")
    assert found["Properties"]["RoleArn"] == {"Fn::GetAtt": [role, "Arn"]}
    assert (found["Properties"]["Namespace"], found["Properties"]["ServiceAccount"]) == ("monitoring", "fluent-bit")
    assert set(found["DependsOn"]) == set(template.find_resources("AWS::IAM::ManagedPolicy"))
