"""KMS keys, and the log groups that they encrypt."""

import pytest
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Match

from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.log_groups import log_group


@pytest.fixture(scope="module")
def template(synth):
    def fill(stack):
        log_group(stack, "Logs", name="/aws/fsx/lustre", key=DataKey(stack, "Key", description="Data"))

    return synth(fill)


def test_keys_rotate_and_are_retained(template):
    template.all_resources_properties("AWS::KMS::Key", {"EnableKeyRotation": True})
    template.all_resources("AWS::KMS::Key", {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"})


def test_logs_may_use_a_key_for_the_groups_of_its_stack_alone(template):
    statement = {
        "Principal": {"Service": "logs.us-east-2.amazonaws.com"},
        "Condition": {
            "ArnLike": {
                "kms:EncryptionContext:aws:logs:arn": "arn:aws:logs:us-east-2:111122223333:log-group:"
                "/aws/fsx/lustre/prod-part-*"
            }
        },
    }
    document = {"Statement": Match.array_with([Match.object_like(statement)])}
    template.has_resource_properties("AWS::KMS::Key", {"KeyPolicy": Match.object_like(document)})


def test_log_groups_are_encrypted_kept_for_a_year_and_retained(template):
    (key,) = template.find_resources("AWS::KMS::Key")
    expected = {"RetentionInDays": 365, "KmsKeyId": {"Fn::GetAtt": [key, "Arn"]}}
    template.has_resource_properties("AWS::Logs::LogGroup", expected)
    template.all_resources("AWS::Logs::LogGroup", {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"})


def test_a_group_s_name_fits_the_pattern_that_its_key_serves(template):
    (group,) = template.find_resources("AWS::Logs::LogGroup").values()
    start, suffix = group["Properties"]["LogGroupName"]["Fn::Join"][1]
    assert start == "/aws/fsx/lustre/prod-part-"
    assert "AWS::StackId" in str(suffix)


def test_the_policy_of_an_l2_key_lets_cloudwatch_logs_use_it(synth):
    template = synth(lambda stack: log_group(stack, "Logs", name="/aws/fsx/lustre", key=kms.Key(stack, "Key")))
    (key,) = template.find_resources("AWS::KMS::Key").values()
    served = [each for each in key["Properties"]["KeyPolicy"]["Statement"] if "Service" in each["Principal"]]
    assert [each["Principal"]["Service"] for each in served] == ["logs.us-east-2.amazonaws.com"]


def test_a_statement_that_is_added_twice_stands_in_the_policy_once(synth):
    def fill(stack):
        key = DataKey(stack, "Key", description="Data")
        for _ in range(2):
            key.add_to_policy({"Principal": {"AWS": "*"}, "Action": "kms:Decrypt", "Resource": "*"})

    (key,) = synth(fill).find_resources("AWS::KMS::Key").values()
    assert [each["Action"] for each in key["Properties"]["KeyPolicy"]["Statement"]] == ["kms:*", "kms:Decrypt"]
