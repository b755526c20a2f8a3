"""Buckets for data sets and checkpoints."""

from typing import Any, cast

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.config.storage import Bucket
from infra.constructs.acknowledgements import acknowledge
from infra.constructs.names import bucket_prefix, stack_suffix

ABANDONED_UPLOAD = Duration.days(7)
"""When parts of an upload that never ended are deleted (S3 User Guide's own example)."""

ACCESS_LOGS_KEPT = Duration.days(365)

NOT_REPLICATED = {
    "NIST.800.53.R5-S3BucketReplicationEnabled": "Every version is kept in three zones of the Region. A copy in a "
    "second Region doubles the cost of petabytes that can be made or fetched again; whoever needs one adds a rule."
}


LOGS_BY_POLICY = "@aws-cdk/aws-s3:serverAccessLogsUseBucketPolicy"
"""The CDK's feature flag for access logs that a bucket policy lets in."""


class TrainingBucket(Construct):
    """A bucket: encrypted with `key`, versioned, private, TLS 1.2 or newer only, retained on delete and replacement.

    Current versions are never expired: a link of the file system may need them. Who read or wrote what is logged in a
    bucket that all buckets of the stack share. With `settings.existing` that bucket is only referred to.
    """

    def __init__(self, scope: Construct, id: str, *, settings: Bucket, key: kms.IKey) -> None:
        super().__init__(scope, id)
        if settings.existing:
            self._bucket: s3.IBucket = s3.Bucket.from_bucket_name(self, "Existing", settings.existing)
        else:
            self._bucket = self._create(id, settings, key)

    @property
    def bucket(self) -> s3.IBucket:
        """The bucket."""
        return self._bucket

    def _create(self, id: str, settings: Bucket, key: kms.IKey) -> s3.Bucket:
        return _private_bucket(
            self,
            "Resource",
            bucket_name=f"{bucket_prefix(self)}-{id.lower()[:23]}-{stack_suffix()}",
            encryption=s3.BucketEncryption.KMS,
            encryption_key=key,
            bucket_key_enabled=True,
            lifecycle_rules=_lifecycle(settings),
            server_access_logs_bucket=access_log_bucket(Stack.of(self)),
            server_access_logs_prefix=f"{id.lower()}/",
        )


def access_log_bucket(stack: Stack) -> s3.Bucket:
    """The bucket that takes the access logs of the stack's buckets; made when first asked for."""
    found = stack.node.try_find_child("AccessLogs")
    if found:
        return cast("s3.Bucket", found.node.find_child("Bucket"))
    scope = Construct(stack, "AccessLogs")
    # otherwise CDK asks for an ACL, and a bucket whose owner is enforced takes none
    scope.node.set_context(LOGS_BY_POLICY, True)  # noqa: FBT003
    bucket = _private_bucket(
        scope,
        "Bucket",
        encryption=s3.BucketEncryption.S3_MANAGED,
        lifecycle_rules=[
            s3.LifecycleRule(
                abort_incomplete_multipart_upload_after=ABANDONED_UPLOAD,
                expiration=ACCESS_LOGS_KEPT,
                noncurrent_version_expiration=ABANDONED_UPLOAD,
            )
        ],
    )
    reason = "S3 delivers access logs only to buckets whose default encryption is SSE-S3."
    acknowledge(bucket, {"NIST.800.53.R5-S3DefaultEncryptionKMS": reason})
    return bucket


def _private_bucket(scope: Construct, id: str, **settings: Any) -> s3.Bucket:
    bucket = s3.Bucket(
        scope,
        id,
        versioned=True,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        enforce_ssl=True,
        minimum_tls_version=1.2,
        removal_policy=RemovalPolicy.RETAIN,
        **settings,
    )
    if bucket.policy:
        bucket.policy.apply_removal_policy(RemovalPolicy.RETAIN)
    acknowledge(bucket, NOT_REPLICATED)
    return bucket


def _lifecycle(settings: Bucket) -> list[s3.LifecycleRule]:
    days = settings.lifecycle.noncurrent_days if settings.lifecycle else None
    return [
        s3.LifecycleRule(
            abort_incomplete_multipart_upload_after=ABANDONED_UPLOAD,
            noncurrent_version_expiration=Duration.days(days) if days else None,
        )
    ]
