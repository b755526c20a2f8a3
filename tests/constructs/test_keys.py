"""KMS keys, their key policies and their grants."""

import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Match

from ultracluster.constructs.keys import DataKey


@pytest.fixture(scope="module")
def template(synth):
    def fill(stack):
        DataKey(stack, "Key", description="Data")

    return synth(fill)


def test_keys_rotate_and_are_retained(template):
    template.all_resources_properties("AWS::KMS::Key", {"EnableKeyRotation": True})
    template.all_resources("AWS::KMS::Key", {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"})


def test_a_statement_that_is_added_twice_is_in_the_policy_once(synth):
    def fill(stack):
        key = DataKey(stack, "Key", description="Data")
        for _ in range(2):
            key.add_to_policy({"Principal": {"AWS": "*"}, "Action": "kms:Decrypt", "Resource": "*"})

    (key,) = synth(fill).find_resources("AWS::KMS::Key").values()
    assert [each["Action"] for each in key["Properties"]["KeyPolicy"]["Statement"]] == ["kms:*", "kms:Decrypt"]


# with other CDK constructs


def statements(template, kind="AWS::IAM::Policy"):
    return [
        statement
        for policy in template.find_resources(kind).values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]


def test_cdk_constructs_accept_the_key_and_its_l2_view(synth):
    def fill(stack):
        key = DataKey(stack, "Key", description="Data")
        kms.CfnAlias(stack, "Alias", alias_name="alias/data", target_key_id=key)
        s3.Bucket(stack, "Bucket", encryption_key=key.key)

    template = synth(fill)
    (key,) = template.find_resources("AWS::KMS::Key")
    template.has_resource_properties("AWS::KMS::Alias", {"TargetKeyId": {"Fn::GetAtt": [key, "Arn"]}})
    template.has_resource_properties("AWS::S3::Bucket", {"BucketEncryption": Match.any_value()})


def test_grant_decrypt_allows_nothing_else(synth):
    def fill(stack):
        key = DataKey(stack, "Key", description="Data")
        role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
        key.grant_decrypt(role).assert_success()

    template = synth(fill)
    (key,) = template.find_resources("AWS::KMS::Key")
    expected = {"Action": "kms:Decrypt", "Effect": "Allow", "Resource": {"Fn::GetAtt": [key, "Arn"]}}
    assert statements(template) == [expected]
