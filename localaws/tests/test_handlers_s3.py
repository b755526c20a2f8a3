"""S3 buckets and their policies."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from handler_parts import Stack, tags
from localaws.resources import HandlerError

BUCKET = "AWS::S3::Bucket"


def settings(stack: Stack, bucket: str) -> dict[str, Any]:
    """Every setting of a bucket as S3's API returns it; None where it is not set."""
    s3 = stack.client("s3")
    calls = {
        "get_bucket_encryption": "ServerSideEncryptionConfiguration",
        "get_bucket_versioning": "Status",
        "get_public_access_block": "PublicAccessBlockConfiguration",
        "get_bucket_ownership_controls": "OwnershipControls",
        "get_bucket_lifecycle_configuration": "Rules",
        "get_bucket_logging": "LoggingEnabled",
        "get_bucket_tagging": "TagSet",
    }
    found: dict[str, Any] = {}
    for call, member in calls.items():
        try:
            found[member] = getattr(s3, call)(Bucket=bucket).get(member)
        except ClientError:
            found[member] = None
    return found


AES256 = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}, "BucketKeyEnabled": False}]}

RULES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"ExpirationInDays": 90, "Prefix": "tmp/"}, {"Expiration": {"Days": 90}, "Filter": {"Prefix": "tmp/"}}),
    ({"ExpiredObjectDeleteMarker": True}, {"Expiration": {"ExpiredObjectDeleteMarker": True}}),
    (
        {"NoncurrentVersionExpiration": {"NoncurrentDays": 30, "NewerNoncurrentVersions": 3}},
        {"NoncurrentVersionExpiration": {"NoncurrentDays": 30, "NewerNoncurrentVersions": 3}},
    ),
    ({"NoncurrentVersionExpirationInDays": 5}, {"NoncurrentVersionExpiration": {"NoncurrentDays": 5}}),
    (
        {"Transitions": [{"StorageClass": "INTELLIGENT_TIERING", "TransitionInDays": 1}]},
        {"Transitions": [{"StorageClass": "INTELLIGENT_TIERING", "Days": 1}]},
    ),
    (
        {
            "NoncurrentVersionTransitions": [
                {"StorageClass": "GLACIER", "TransitionInDays": 30, "NewerNoncurrentVersions": 2}
            ]
        },
        {
            "NoncurrentVersionTransitions": [
                {"StorageClass": "GLACIER", "NoncurrentDays": 30, "NewerNoncurrentVersions": 2}
            ]
        },
    ),
    (
        {"ExpirationInDays": 1, "TagFilters": tags(kind="scratch")},
        {"Expiration": {"Days": 1}, "Filter": {"Tag": {"Key": "kind", "Value": "scratch"}}},
    ),
    (
        {"ExpirationInDays": 1, "ObjectSizeGreaterThan": "1024"},
        {"Expiration": {"Days": 1}, "Filter": {"ObjectSizeGreaterThan": 1024}},
    ),
    (
        {"ExpirationInDays": 1, "Prefix": "a/", "ObjectSizeLessThan": "9", "TagFilters": tags(a="b", c="d")},
        {
            "Expiration": {"Days": 1},
            "Filter": {"And": {"Prefix": "a/", "ObjectSizeLessThan": 9, "Tags": tags(a="b", c="d")}},
        },
    ),
]


@pytest.mark.parametrize(("rule", "shown"), RULES)
def test_lifecycle_rule_is_read_back(stack, rule, shown):
    rules = [{"Id": "r", "Status": "Enabled", **rule}]
    bucket = stack.make(BUCKET, LifecycleConfiguration={"Rules": rules})
    whole = {"ID": "r", "Status": "Enabled", "Filter": {"Prefix": ""}, **shown}
    assert settings(stack, bucket)["Rules"] == [whole]


def test_bucket_outside_us_east_1(stack):
    there = Stack("eu-north-1")
    bucket = there.make(BUCKET)
    assert there.client("s3").get_bucket_location(Bucket=bucket)["LocationConstraint"] == "eu-north-1"


def test_bucket_with_a_version_is_not_deleted(stack):
    s3 = stack.client("s3")
    bucket = stack.make(BUCKET, VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket=bucket, Key="a", Body=b"")
    s3.delete_object(Bucket=bucket, Key="a")
    with pytest.raises(ClientError, match="BucketNotEmpty"):
        stack.delete(BUCKET, bucket)


def test_bucket_policy_is_read_back_and_not_evaluated(stack):
    s3 = stack.client("s3")
    bucket = stack.make(BUCKET)
    tls = {
        "Effect": "Deny",
        "Principal": {"AWS": "*"},
        "Action": "s3:*",
        "Resource": [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    old = {"Bucket": bucket, "PolicyDocument": {"Version": "2012-10-17", "Statement": [tls]}}
    assert stack.create("AWS::S3::BucketPolicy", **old) == (bucket, {})
    assert json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"]) == old["PolicyDocument"]
    s3.put_object(Bucket=bucket, Key="a", Body=b"data")
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"data"
    removed = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "a"}]})
    assert [item["Key"] for item in removed["Deleted"]] == ["a"]

    new = {"Bucket": bucket, "PolicyDocument": {"Version": "2012-10-17", "Statement": [{**tls, "Sid": "Tls"}]}}
    with pytest.raises(HandlerError, match="already exists"):
        stack.create("AWS::S3::BucketPolicy", **new)
    stack.update("AWS::S3::BucketPolicy", bucket, old, new)
    assert json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"]) == new["PolicyDocument"]
    stack.delete("AWS::S3::BucketPolicy", bucket)
    with pytest.raises(ClientError, match="NoSuchBucketPolicy"):
        s3.get_bucket_policy(Bucket=bucket)
