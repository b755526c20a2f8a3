"""Buckets for data sets and checkpoints."""

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Match, Template

from ultracluster.config.storage import Bucket, Lifecycle
from ultracluster.constructs.buckets import TrainingBucket
from ultracluster.constructs.keys import DataKey

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
            {name: TrainingBucket(stack, name, settings=settings, key=key) for name, settings in BUCKETS.items()}
        )

    return synth(fill)


def bucket(template, name):
    """Properties of the bucket called `name`."""
    return next(
        resource["Properties"]
        for logical_id, resource in template.find_resources("AWS::S3::Bucket").items()
        if logical_id.startswith(name)
    )


def test_an_existing_bucket_is_only_referred_to(template, made):
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
def test_buckets_are_versioned_and_closed_to_the_public(template, name):
    properties = bucket(template, name)
    assert properties["VersioningConfiguration"] == {"Status": "Enabled"}
    assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}


def test_buckets_keys_and_policies_are_retained(template):
    for kind in ("AWS::S3::Bucket", "AWS::S3::BucketPolicy", "AWS::KMS::Key"):
        template.all_resources(kind, {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"})


def test_plain_http_and_old_tls_are_refused_everywhere(template):
    conditions = [{"Bool": {"aws:SecureTransport": "false"}}, {"NumericLessThan": {"s3:TlsVersion": 1.2}}]
    for condition in conditions:
        statement = Match.object_like({"Effect": "Deny", "Condition": condition, "Principal": {"AWS": "*"}})
        template.all_resources_properties(
            "AWS::S3::BucketPolicy", {"PolicyDocument": Match.object_like({"Statement": Match.array_with([statement])})}
        )


def test_parts_of_uploads_that_never_ended_go_after_a_week(template):
    (rule,) = bucket(template, "datasets")["LifecycleConfiguration"]["Rules"]
    assert rule == {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}, "Status": "Enabled"}


def test_old_versions_go_when_asked_and_current_ones_never(template):
    (rule,) = bucket(template, "checkpoints")["LifecycleConfiguration"]["Rules"]
    assert rule["NoncurrentVersionExpiration"] == {"NoncurrentDays": 30}
    assert not any(name.startswith("Expiration") for name in rule)


def test_names_differ_each_time_the_stack_is_made(template):
    name = bucket(template, "datasets")["BucketName"]["Fn::Join"][1]
    assert name[0] == "prod-part-datasets-"
    assert "AWS::StackId" in str(name[1])


def test_access_is_logged_under_the_bucket_s_own_name(template):
    (logs,) = [each for each in template.find_resources("AWS::S3::Bucket") if each.startswith("AccessLogs")]
    for name in ("datasets", "checkpoints"):
        expected = {"DestinationBucketName": {"Ref": logs}, "LogFilePrefix": f"{name}/"}
        assert bucket(template, name)["LoggingConfiguration"] == expected


def test_access_logs_expire_after_a_year(template):
    (rule,) = bucket(template, "AccessLogs")["LifecycleConfiguration"]["Rules"]
    assert rule["ExpirationInDays"] == 365


def test_an_app_without_feature_flags_of_its_own_can_make_buckets():
    stack = cdk.Stack(cdk.App(), "plain")
    key = DataKey(stack, "Key", description="Data")
    for name in ("Datasets", "Checkpoints"):
        TrainingBucket(stack, name, settings=Bucket(), key=key)
    template = Template.from_stack(stack)
    template.resource_count_is("AWS::S3::Bucket", 3)
    (policy,) = [each for each in template.find_resources("AWS::S3::BucketPolicy") if each.startswith("AccessLogs")]
    assert "logging.s3.amazonaws.com" in str(template.to_json()["Resources"][policy])
