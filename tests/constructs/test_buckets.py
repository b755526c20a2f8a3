"""Buckets for data sets and checkpoints."""

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Match, Template

from ultracluster.config.buckets import Bucket, Lifecycle
from ultracluster.constructs.buckets import TrainingBucket
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.pcs_role import PcsNodeRole
from ultracluster.errors import InvalidArgument

BUCKETS = {
    "datasets": Bucket(),
    "checkpoints": Bucket(lifecycle=Lifecycle(noncurrent_days=30)),
    "theirs": Bucket(existing="their-bucket"),
}


@pytest.fixture(scope="module")
def made():
    return {}


@pytest.fixture(scope="module")
def template(synth, made):
    def fill(stack):
        key = DataKey(stack, "Key", description="Data")
        made.update(
            {
                name: TrainingBucket(stack, name, settings=settings, key=None if settings.existing else key)
                for name, settings in BUCKETS.items()
            }
        )

    return synth(fill)


def bucket(template, name):
    """Properties of the bucket called `name`."""
    return next(
        resource["Properties"]
        for logical_id, resource in template.find_resources("AWS::S3::Bucket").items()
        if logical_id.startswith(name)
    )


def test_an_existing_bucket_is_not_created(template, made):
    assert made["theirs"].bucket_name == "their-bucket"
    template.resource_count_is("AWS::S3::Bucket", 3)  # the two that were asked for, and the one of access logs


@pytest.mark.parametrize("name", ["datasets", "checkpoints"])
def test_objects_are_encrypted_with_our_key_and_a_bucket_key(template, name):
    (rule,) = bucket(template, name)["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    (key,) = template.find_resources("AWS::KMS::Key")
    assert rule["BucketKeyEnabled"] is True
    assert rule["ServerSideEncryptionByDefault"] == {
        "SSEAlgorithm": "aws:kms",
        "KMSMasterKeyID": {"Fn::GetAtt": [key, "Arn"]},
    }


@pytest.mark.parametrize("name", ["datasets", "checkpoints", "AccessLogs"])
def test_buckets_are_versioned_and_block_public_access(template, name):
    properties = bucket(template, name)
    assert properties["VersioningConfiguration"] == {"Status": "Enabled"}
    assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}


@pytest.mark.parametrize("kind", ["AWS::S3::Bucket", "AWS::S3::BucketPolicy", "AWS::KMS::Key"])
def test_buckets_policies_and_keys_are_retained_once_created(template, kind):
    for logical_id, resource in template.find_resources(kind).items():
        policy = "Retain" if logical_id.startswith("AccessLogs") else "RetainExceptOnCreate"
        assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == (policy, "Retain"), logical_id


def test_bucket_policies_deny_plain_http_and_old_tls(template):
    conditions = [{"Bool": {"aws:SecureTransport": "false"}}, {"NumericLessThan": {"s3:TlsVersion": 1.2}}]
    for condition in conditions:
        statement = Match.object_like({"Effect": "Deny", "Condition": condition, "Principal": {"AWS": "*"}})
        template.all_resources_properties(
            "AWS::S3::BucketPolicy", {"PolicyDocument": Match.object_like({"Statement": Match.array_with([statement])})}
        )


def test_parts_of_incomplete_uploads_are_deleted_after_a_week(template):
    (rule,) = bucket(template, "datasets")["LifecycleConfiguration"]["Rules"]
    assert rule == {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}, "Status": "Enabled"}


def test_old_versions_expire_if_the_settings_say_so_and_current_ones_never(template):
    (rule,) = bucket(template, "checkpoints")["LifecycleConfiguration"]["Rules"]
    assert rule["NoncurrentVersionExpiration"] == {"NoncurrentDays": 30}
    assert not any(name.startswith("Expiration") for name in rule)


def test_names_differ_for_each_creation_of_the_stack(template):
    name = bucket(template, "datasets")["BucketName"]["Fn::Join"][1]
    assert name[0] == "prod-part-datasets-"
    assert "AWS::StackId" in str(name[1])


def test_access_logs_have_the_name_of_the_bucket_as_prefix(template):
    (logs,) = [each for each in template.find_resources("AWS::S3::Bucket") if each.startswith("AccessLogs")]
    for name in ("datasets", "checkpoints"):
        expected = {"DestinationBucketName": {"Ref": logs}, "LogFilePrefix": f"{name}/"}
        assert bucket(template, name)["LoggingConfiguration"] == expected


def test_access_logs_expire_after_a_year(template):
    (rule,) = bucket(template, "AccessLogs")["LifecycleConfiguration"]["Rules"]
    assert rule["ExpirationInDays"] == 365


def test_an_app_without_feature_flags_can_create_buckets():
    stack = cdk.Stack(cdk.App(), "plain")
    key = DataKey(stack, "Key", description="Data")
    for name in ("Datasets", "Checkpoints"):
        TrainingBucket(stack, name, settings=Bucket(), key=key)
    template = Template.from_stack(stack)
    template.resource_count_is("AWS::S3::Bucket", 3)
    (policy,) = [each for each in template.find_resources("AWS::S3::BucketPolicy") if each.startswith("AccessLogs")]
    assert "logging.s3.amazonaws.com" in str(template.to_json()["Resources"][policy])


# with other CDK constructs


def role(stack):
    return iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))


def granted(template):
    return {
        action
        for policy in template.find_resources("AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }


@pytest.mark.parametrize(
    ("grant", "allowed", "refused"),
    [
        ("grant_read", {"s3:GetObject", "s3:ListBucket", "kms:Decrypt"}, {"s3:PutObject", "kms:GenerateDataKey*"}),
        ("grant_read_write", {"s3:GetObject", "s3:PutObject", "kms:GenerateDataKey*"}, {"s3:DeleteObject"}),
        ("grant_delete", {"s3:DeleteObject"}, {"s3:GetObject", "s3:PutObject", "kms:Decrypt"}),
    ],
)
def test_each_grant_allows_only_its_own_actions(synth, grant, allowed, refused):
    def fill(stack):
        bucket = TrainingBucket(stack, "data", settings=Bucket(), key=DataKey(stack, "Key", description="Data"))
        getattr(bucket, grant)(role(stack)).assert_success()

    actions = granted(synth(fill))
    assert allowed <= actions
    assert not refused & actions


def test_a_node_role_can_be_granted_access(synth):
    def fill(stack):
        bucket = TrainingBucket(stack, "data", settings=Bucket(), key=DataKey(stack, "Key", description="Data"))
        bucket.grant_read(PcsNodeRole(stack, "Nodes"))

    template = synth(fill)
    (policy,) = template.find_resources("AWS::IAM::Policy").values()
    (node_role,) = template.find_resources("AWS::IAM::Role")
    assert policy["Properties"]["Roles"] == [{"Ref": node_role}]


def test_the_statement_for_the_owner_of_an_existing_bucket_is_kept():
    stack = cdk.Stack(cdk.App(), "stack")
    bucket = TrainingBucket(stack, "theirs", settings=Bucket(existing="their-bucket"))
    bucket.grant_read(role(stack)).assert_success()
    (statement,) = (stack.resolve(each.to_statement_json()) for each in bucket.bucket_policy_statements)
    assert statement["Action"] == ["s3:GetObject", "s3:GetObjectVersion", "s3:ListBucket"]
    assert "their-bucket" in str(statement["Resource"])
    assert statement["Principal"]["AWS"]


def test_cdk_constructs_accept_the_bucket_and_its_l2_view(synth):
    def fill(stack):
        bucket = TrainingBucket(stack, "data", settings=Bucket(), key=DataKey(stack, "Key", description="Data"))
        s3.CfnBucketPolicy(stack, "Policy", bucket=bucket, policy_document={})
        bucket.bucket.grant_read(role(stack))
        cloudwatch.Alarm(stack, "Alarm", metric=bucket.metric_bucket_size_bytes(), threshold=1e15, evaluation_periods=1)

    template = synth(fill)
    assert "kms:Decrypt" in granted(template)
    template.has_resource_properties("AWS::CloudWatch::Alarm", {"Namespace": "AWS/S3", "MetricName": "BucketSizeBytes"})


def test_a_new_bucket_needs_a_key():
    with pytest.raises(InvalidArgument, match="key is missing"):
        TrainingBucket(cdk.Stack(cdk.App(), "stack"), "data", settings=Bucket())
