"""Buckets for data sets and checkpoints."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultracluster.config.storage import Bucket
from ultracluster.constructs.acknowledgements import acknowledge
from ultracluster.constructs.keys import EncryptionKey
from ultracluster.constructs.names import ACCOUNT, PARTITION, bucket_prefix, stack_suffix
from ultracluster.constructs.roles import policy_document

ABANDONED_UPLOAD_DAYS = 7
"""When parts of an upload that never ended are deleted (S3 User Guide's own example)."""

ACCESS_LOGS_KEPT_DAYS = 365

NOT_REPLICATED = {
    "NIST.800.53.R5-S3BucketReplicationEnabled": "Every version is kept in three zones of the Region. A copy in a "
    "second Region doubles the cost of petabytes that can be made or fetched again; whoever needs one adds a rule."
}

PRIVATE: dict[str, Any] = {
    "versioning_configuration": {"status": "Enabled"},
    "public_access_block_configuration": {
        "blockPublicAcls": True,
        "blockPublicPolicy": True,
        "ignorePublicAcls": True,
        "restrictPublicBuckets": True,
    },
    "ownership_controls": {"rules": [{"objectOwnership": "BucketOwnerEnforced"}]},
}
"""What every bucket has: versions, no public access, one owner."""


class TrainingBucket(Construct):
    """A bucket: encrypted with `key`, versioned, private, TLS 1.2 or newer only, retained on delete and replacement.

    Current versions are never expired: a link of the file system may need them. Who read or wrote what is logged in a
    bucket that all buckets of the stack share. With `settings.existing` that bucket is only referred to.
    """

    def __init__(self, scope: Construct, id: str, *, settings: Bucket, key: EncryptionKey) -> None:
        super().__init__(scope, id)
        if settings.existing:
            self._name, self._arn = settings.existing, f"arn:{PARTITION}:s3:::{settings.existing}"
            self._key = None
        else:
            self._name, self._arn = self._create(id, settings, key)
            self._key = key

    @property
    def bucket_name(self) -> str:
        """Name of the bucket."""
        return self._name

    @property
    def bucket_arn(self) -> str:
        """ARN of the bucket."""
        return self._arn

    @property
    def key(self) -> EncryptionKey | None:
        """The key that encrypts it; None for a bucket that existed before, whose key is its owner's."""
        return self._key

    def _create(self, id: str, settings: Bucket, key: EncryptionKey) -> tuple[str, str]:
        """Name and ARN of the bucket, once it is made."""
        by_key = {"sseAlgorithm": "aws:kms", "kmsMasterKeyId": key.key_arn}
        old_versions = settings.lifecycle.noncurrent_days if settings.lifecycle else None
        bucket = s3.CfnBucket(
            Construct(self, "Resource"),
            "Resource",
            bucket_name=f"{bucket_prefix(self)}-{id.lower()[:23]}-{stack_suffix()}",
            bucket_encryption=_encryption({"serverSideEncryptionByDefault": by_key, "bucketKeyEnabled": True}),
            lifecycle_configuration={"rules": [_lifecycle(old_versions)]},
            logging_configuration={
                "destinationBucketName": access_log_bucket(Stack.of(self)).ref,
                "logFilePrefix": f"{id.lower()}/",
            },
            **PRIVATE,
        )
        return bucket.ref, _close(bucket)


def access_log_bucket(stack: Stack) -> s3.CfnBucket:
    """The bucket that takes the access logs of the stack's buckets; made when first asked for."""
    found = stack.node.try_find_child("AccessLogs")
    if found:
        return cast("s3.CfnBucket", found.node.find_child("Bucket").node.find_child("Resource"))
    expiring = {**_lifecycle(ABANDONED_UPLOAD_DAYS), "expirationInDays": ACCESS_LOGS_KEPT_DAYS}
    bucket = s3.CfnBucket(
        Construct(Construct(stack, "AccessLogs"), "Bucket"),
        "Resource",
        bucket_encryption=_encryption({"serverSideEncryptionByDefault": {"sseAlgorithm": "AES256"}}),
        lifecycle_configuration={"rules": [expiring]},
        **PRIVATE,
    )
    # Source: Amazon S3 User Guide, "Enabling Amazon S3 server access logging" (2026)
    logging = {
        "Principal": {"Service": "logging.s3.amazonaws.com"},
        "Action": "s3:PutObject",
        "Condition": {
            "StringEquals": {"aws:SourceAccount": ACCOUNT},
            "ArnLike": {"aws:SourceArn": f"arn:{PARTITION}:s3:::{bucket_prefix(stack)}-*"},
        },
    }
    _close(bucket, logging)
    reason = "S3 delivers access logs only to buckets whose default encryption is SSE-S3."
    acknowledge(bucket, {"NIST.800.53.R5-S3DefaultEncryptionKMS": reason})
    return bucket


def _close(bucket: s3.CfnBucket, allowed: Mapping[str, Any] | None = None) -> str:
    """Gives a bucket its policy and retains both; `allowed` is what others may do with its objects. Returns its ARN."""
    arn = bucket.attr_arn
    everybody = {"Effect": "Deny", "Principal": {"AWS": "*"}, "Action": "s3:*", "Resource": [arn, f"{arn}/*"]}
    statements = [
        {**everybody, "Condition": {"Bool": {"aws:SecureTransport": "false"}}},
        {**everybody, "Condition": {"NumericLessThan": {"s3:TlsVersion": 1.2}}},
        *([{**allowed, "Resource": f"{arn}/*"}] if allowed else []),
    ]
    policy = s3.CfnBucketPolicy(bucket, "Policy", bucket=bucket, policy_document=policy_document(statements))
    for resource in (bucket, policy):
        resource.apply_removal_policy(RemovalPolicy.RETAIN)
    acknowledge(bucket, NOT_REPLICATED)
    return arn


def _encryption(rule: Mapping[str, Any]) -> dict[str, Sequence[Mapping[str, Any]]]:
    return {"serverSideEncryptionConfiguration": [rule]}


def _lifecycle(noncurrent_days: int | None) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "status": "Enabled",
        "abortIncompleteMultipartUpload": {"daysAfterInitiation": ABANDONED_UPLOAD_DAYS},
    }
    if noncurrent_days:
        rule["noncurrentVersionExpiration"] = {"noncurrentDays": noncurrent_days}
    return rule
