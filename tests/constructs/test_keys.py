"""KMS keys, and the log groups that they encrypt."""

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Annotations, Match

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


# plugging into other CDK code


def statements(template, kind="AWS::IAM::Policy"):
    return [
        statement
        for policy in template.find_resources(kind).values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]


def test_cdk_constructs_take_a_data_key_as_it_is(synth):
    def fill(stack):
        key = DataKey(stack, "Key", description="Data")
        kms.CfnAlias(stack, "Alias", alias_name="alias/data", target_key_id=key)
        s3.Bucket(stack, "Bucket", encryption_key=key.key)

    template = synth(fill)
    (key,) = template.find_resources("AWS::KMS::Key")
    template.has_resource_properties("AWS::KMS::Alias", {"TargetKeyId": {"Fn::GetAtt": [key, "Arn"]}})
    template.has_resource_properties("AWS::S3::Bucket", {"BucketEncryption": Match.any_value()})


def test_a_grant_allows_nothing_but_what_it_says(synth):
    def fill(stack):
        key = DataKey(stack, "Key", description="Data")
        role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
        key.grant_decrypt(role).assert_success()

    template = synth(fill)
    (key,) = template.find_resources("AWS::KMS::Key")
    expected = {"Action": "kms:Decrypt", "Effect": "Allow", "Resource": {"Fn::GetAtt": [key, "Arn"]}}
    assert statements(template) == [expected]


def test_the_statement_for_a_key_that_is_not_managed_here_is_returned_and_warned_of():
    stack = cdk.Stack(cdk.App(), "stack", env=cdk.Environment(account="111122223333", region="us-east-2"))
    key = kms.Key.from_key_arn(stack, "Key", "arn:aws:kms:us-east-2:111122223333:key/1")
    group = log_group(stack, "Logs", name="/aws/fsx/lustre", key=key)
    (statement,) = group.key_policy_statements
    assert stack.resolve(statement.to_statement_json())["Principal"]["Service"]
    warnings = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("Its owner must add"))
    assert len(warnings) == 1


def test_nothing_is_left_to_the_owner_of_a_key_that_this_app_manages():
    stack = cdk.Stack(cdk.App(), "stack")
    for key in (DataKey(stack, "Ours", description="Data"), kms.Key(stack, "L2")):
        assert log_group(stack, f"Logs-{key.node.id}", name="/aws/fsx/lustre", key=key).key_policy_statements == ()
