"""Encrypted log groups, and what key policies must allow for them."""

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk.assertions import Annotations, Match

from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.log_groups import LogGroup, log_group


@pytest.fixture(scope="module")
def template(synth):
    def fill(stack):
        log_group(stack, "Logs", name="/aws/fsx/lustre", key=DataKey(stack, "Key", description="Data"))

    return synth(fill)


def test_cloudwatch_logs_may_use_the_key_for_groups_of_the_stack_only(template):
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


def test_log_groups_are_encrypted_keep_events_for_a_year_and_are_retained(template):
    (key,) = template.find_resources("AWS::KMS::Key")
    expected = {"RetentionInDays": 365, "KmsKeyId": {"Fn::GetAtt": [key, "Arn"]}}
    template.has_resource_properties("AWS::Logs::LogGroup", expected)
    template.all_resources(
        "AWS::Logs::LogGroup", {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}
    )


def test_the_name_of_a_group_matches_the_pattern_in_the_key_policy(template):
    (group,) = template.find_resources("AWS::Logs::LogGroup").values()
    start, suffix = group["Properties"]["LogGroupName"]["Fn::Join"][1]
    assert start == "/aws/fsx/lustre/prod-part-"
    assert "AWS::StackId" in str(suffix)


def test_the_policy_of_an_l2_key_allows_cloudwatch_logs(synth):
    template = synth(lambda stack: log_group(stack, "Logs", name="/aws/fsx/lustre", key=kms.Key(stack, "Key")))
    (key,) = template.find_resources("AWS::KMS::Key").values()
    served = [each for each in key["Properties"]["KeyPolicy"]["Statement"] if "Service" in each["Principal"]]
    assert [each["Principal"]["Service"] for each in served] == ["logs.us-east-2.amazonaws.com"]


def test_the_statement_for_the_owner_of_an_imported_key_is_returned_with_a_warning():
    stack = cdk.Stack(cdk.App(), "stack", env=cdk.Environment(account="111122223333", region="us-east-2"))
    key = kms.Key.from_key_arn(stack, "Key", "arn:aws:kms:us-east-2:111122223333:key/1")
    group = log_group(stack, "Logs", name="/aws/fsx/lustre", key=key)
    (statement,) = group.key_policy_statements
    assert stack.resolve(statement.to_statement_json())["Principal"]["Service"]
    warnings = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("Its owner must add"))
    assert len(warnings) == 1


def test_keys_of_the_app_need_no_statement_of_an_owner():
    stack = cdk.Stack(cdk.App(), "stack")
    for key in (DataKey(stack, "Ours", description="Data"), kms.Key(stack, "L2")):
        assert log_group(stack, f"Logs-{key.node.id}", name="/aws/fsx/lustre", key=key).key_policy_statements == ()


def test_the_l2_view_can_be_used_as_the_log_group_of_a_function(synth):
    def fill(stack):
        logs = LogGroup(stack, "Logs", name="jobs", pattern="jobs", key=DataKey(stack, "Key", description="Logs"))
        code = lambda_.Code.from_inline("def handler(event, context): pass")
        lambda_.Function(
            stack,
            "Function",
            runtime=lambda_.Runtime.PYTHON_3_13,
            handler="index.handler",
            code=code,
            log_group=logs.log_group,
        )

    template = synth(fill)
    (group,) = template.find_resources("AWS::Logs::LogGroup")
    template.has_resource_properties("AWS::Lambda::Function", {"LoggingConfig": {"LogGroup": {"Ref": group}}})
