"""Buckets for data sets and checkpoints."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import jsii
from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.interfaces import ResourceEnvironment
from aws_cdk.interfaces.aws_kms import IKeyRef
from aws_cdk.interfaces.aws_s3 import BucketReference, IBucketRef
from constructs import Construct

from ultracluster.config.buckets import Access, Bucket
from ultracluster.constructs.acknowledgements import acknowledge
from ultracluster.constructs.cloudwatch import service_metric
from ultracluster.constructs.keys import DECRYPT, ENCRYPT, grant_key
from ultracluster.constructs.names import ACCOUNT, PARTITION, bucket_prefix, stack_suffix, unique_in_stack
from ultracluster.constructs.references import expect, key_arn
from ultracluster.constructs.retention import retain, retain_always
from ultracluster.constructs.roles import policy_document
from ultracluster.errors import InvalidArgument

if TYPE_CHECKING:
    from aws_cdk import aws_cloudwatch as cloudwatch

ABANDONED_UPLOAD_DAYS = 7
"""When the parts of an incomplete multipart upload are deleted (S3 User Guide's own example)."""

ACCESS_LOGS_KEPT_DAYS = 365

READ = ("s3:GetObject", "s3:GetObjectVersion", "s3:ListBucket")
WRITE = ("s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts", "s3:ListBucketMultipartUploads")
DELETE = ("s3:DeleteObject",)

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
"""Properties of every bucket: versioned, no public access, owned by the account."""


@jsii.implements(IBucketRef)
class TrainingBucket(Construct):
    """A bucket: encrypted with `key`, versioned, private, TLS 1.2 or newer only, retained on delete and replacement.

    Current versions never expire: a link of the file system may need them. Access is logged to a bucket that all
    buckets of the stack share. With `settings.existing` nothing is created: the construct refers to that bucket, and
    `key` is the key that encrypts it, if any. CDK constructs take it as an `IBucketRef`; those that want
    an L2 take `bucket`. Raises InvalidArgument for a new bucket without a key.
    """

    bucket_policy_statements: tuple[iam.PolicyStatement, ...] = ()
    """What the owner of an existing bucket must add to its policy for grants to principals of another account."""

    def __init__(self, scope: Construct, id: str, *, settings: Bucket, key: IKeyRef | None = None) -> None:
        super().__init__(scope, id)
        expect(settings, Bucket, "settings")
        self._access = settings.access
        self._key = key
        self._resource: s3.CfnBucket | None = None
        if settings.existing:
            self._name, self._arn = settings.existing, f"arn:{PARTITION}:s3:::{settings.existing}"
        elif key:
            self._resource = self._create(id, settings, key)
            self._name, self._arn = self._resource.ref, _bucket_policy(self._resource)
        else:
            raise InvalidArgument("key is missing. Pass an aws_cdk.interfaces.aws_kms.IKeyRef, for example a DataKey")

    @property
    def bucket_name(self) -> str:
        """Name of the bucket."""
        return self._name

    @property
    def bucket_arn(self) -> str:
        """ARN of the bucket."""
        return self._arn

    @property
    def key(self) -> IKeyRef | None:
        """The key that encrypts the bucket; None for an existing bucket whose key was not passed."""
        return self._key

    @property
    def access(self) -> Access:
        """Access that `BucketAccess` grants to jobs."""
        return self._access

    @property
    def created(self) -> bool:
        """Whether this construct creates the bucket; False with `settings.existing`."""
        return self._resource is not None

    @property
    def bucket_ref(self) -> BucketReference:
        """Lets CDK constructs take this as an `IBucketRef`."""
        return BucketReference(bucket_arn=self._arn, bucket_name=self._name)

    @property
    def env(self) -> ResourceEnvironment:
        """Account and Region of the bucket."""
        return self._resource.env if self._resource else Stack.of(self).env

    @cached_property
    def bucket(self) -> s3.IBucket:
        """The bucket as an L2, created on first use. Its bucket policy cannot be changed through this view."""
        key = kms.Key.from_key_arn(self, "KeyView", key_arn(self._key)) if self._key else None
        return s3.Bucket.from_bucket_attributes(
            self, "BucketView", bucket_arn=self._arn, bucket_name=self._name, encryption_key=key
        )

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allows `grantee` to list and read objects, and to decrypt them."""
        return self._grant(grantee, READ, DECRYPT)

    def grant_read_write(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allows `grantee` to list, read and write objects. Deleting takes `grant_delete`."""
        return self._grant(grantee, (*READ, *WRITE), (*DECRYPT, *ENCRYPT))

    def grant_delete(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allows `grantee` to delete objects; earlier versions remain."""
        return self._grant(grantee, DELETE, ())

    def metric_bucket_size_bytes(self, **options: Any) -> "cloudwatch.Metric":
        """Size of all versions in bytes, once a day. `options` are further arguments of `cloudwatch.Metric`."""
        return self._metric("BucketSizeBytes", "StandardStorage", options)

    def metric_number_of_objects(self, **options: Any) -> "cloudwatch.Metric":
        """Number of objects of all versions, once a day. `options` are further arguments of `cloudwatch.Metric`."""
        return self._metric("NumberOfObjects", "AllStorageTypes", options)

    def _grant(self, grantee: iam.IGrantable, actions: Sequence[str], key_actions: Sequence[str]) -> iam.Grant:
        """Grants in the policy of the grantee, which is enough for a bucket of the same account."""
        arns = [self._arn, f"{self._arn}/*"]
        grant = iam.Grant.add_to_principal(grantee=grantee, actions=list(actions), resource_arns=arns)
        if not self.created:
            principals = [grantee.grant_principal]
            statement = iam.PolicyStatement(actions=list(actions), resources=arns, principals=principals)
            self.bucket_policy_statements = (*self.bucket_policy_statements, statement)
        if self._key and key_actions:
            grant = grant.combine(grant_key(self._key, grantee, *key_actions))
        return grant

    def _metric(self, name: str, storage_type: str, options: Mapping[str, Any]) -> "cloudwatch.Metric":
        """Source: S3 User Guide, "Metrics and dimensions" (2026), daily storage metrics."""
        daily = {"period": Duration.days(1), "statistic": "Average", **options}
        return service_metric("AWS/S3", name, {"BucketName": self._name, "StorageType": storage_type}, daily)

    def _create(self, id: str, settings: Bucket, key: IKeyRef) -> s3.CfnBucket:
        with_key = {"sseAlgorithm": "aws:kms", "kmsMasterKeyId": key_arn(key)}
        old_versions = settings.lifecycle.noncurrent_days if settings.lifecycle else None
        return s3.CfnBucket(
            Construct(self, "Resource"),
            "Resource",
            bucket_name=f"{bucket_prefix(self)}-{unique_in_stack(self, id.lower(), room=23)}-{stack_suffix()}",
            bucket_encryption=_encryption({"serverSideEncryptionByDefault": with_key, "bucketKeyEnabled": True}),
            lifecycle_configuration={"rules": [_lifecycle(old_versions)]},
            logging_configuration={
                "destinationBucketName": access_log_bucket(Stack.of(self)).ref,
                "logFilePrefix": f"{id.lower()}/",
            },
            **PRIVATE,
        )


def encryption_key(bucket: IBucketRef) -> IKeyRef | None:
    """The key that encrypts a bucket: of a TrainingBucket or an L2 bucket; None where it is not known."""
    if isinstance(bucket, TrainingBucket):
        return bucket.key
    key: IKeyRef | None = getattr(bucket, "encryption_key", None)
    return key


def access_log_bucket(stack: Stack) -> s3.CfnBucket:
    """The bucket for the access logs of the stack's buckets, created on first use."""
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
    # S3 may deliver logs while the other resources of the stack are still being created, and a bucket with an object
    # cannot be deleted: a roll-back that deletes this bucket would fail. Its generated name never blocks the next try.
    _bucket_policy(bucket, logging, keep=retain_always)
    reason = "S3 delivers access logs only to buckets whose default encryption is SSE-S3."
    acknowledge(bucket, {"NIST.800.53.R5-S3DefaultEncryptionKMS": reason})
    return bucket


def _bucket_policy(
    bucket: s3.CfnBucket, allowed: Mapping[str, Any] | None = None, keep: Callable[..., None] = retain
) -> str:
    """Creates the bucket policy, retains bucket and policy with `keep`, and returns the ARN of the bucket.

    `allowed` is a statement without Resource, for the objects of the bucket.
    """
    arn = bucket.attr_arn
    denied = {"Effect": "Deny", "Principal": {"AWS": "*"}, "Action": "s3:*", "Resource": [arn, f"{arn}/*"]}
    statements = [
        {**denied, "Condition": {"Bool": {"aws:SecureTransport": "false"}}},
        {**denied, "Condition": {"NumericLessThan": {"s3:TlsVersion": 1.2}}},
        *([{**allowed, "Resource": f"{arn}/*"}] if allowed else []),
    ]
    policy = s3.CfnBucketPolicy(bucket, "Policy", bucket=bucket, policy_document=policy_document(statements))
    keep(bucket, policy)
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
