"""S3 buckets and their policies."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from handler_parts import Stack, tags
from localaws.resources import HandlerError

BUCKET = "AWS::S3::Bucket"


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
    assert stack.client("s3").get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"] == [whole]


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


def test_a_bucket_has_one_policy_and_it_is_not_evaluated(stack):
    s3 = stack.client("s3")
    bucket = stack.make(BUCKET)
    tls = {"Effect": "Deny", "Principal": {"AWS": "*"}, "Action": "s3:*", "Resource": f"arn:aws:s3:::{bucket}/*"}
    denied = {**tls, "Condition": {"Bool": {"aws:SecureTransport": "false"}}}
    properties = {"Bucket": bucket, "PolicyDocument": {"Version": "2012-10-17", "Statement": [denied]}}
    stack.create("AWS::S3::BucketPolicy", **properties)
    s3.put_object(Bucket=bucket, Key="a", Body=b"data")
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"data"
    removed = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "a"}]})
    assert [item["Key"] for item in removed["Deleted"]] == ["a"]
    with pytest.raises(HandlerError, match="already exists"):
        stack.create("AWS::S3::BucketPolicy", **properties)
