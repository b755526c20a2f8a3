"""Links between folders of a Lustre file system and prefixes of buckets: FSx data repository associations."""

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import Token
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_iam as iam
from aws_cdk.interfaces.aws_s3 import IBucketRef
from constructs import Construct

from ultracluster.config.lustre import Event, S3Link
from ultracluster.constructs.buckets import TrainingBucket, encryption_key
from ultracluster.constructs.keys import add_to_key_policy
from ultracluster.constructs.lustre import LustreFileSystem
from ultracluster.constructs.names import ACCOUNT, PARTITION, REGION, bucket_prefix
from ultracluster.constructs.references import bucket_reference, expect
from ultracluster.errors import InvalidArgument

LINK_ROLE = "aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_fs-*"
"""The service-linked role of a file system's S3 links; its name ends with the file system's id."""


class S3Links(Construct):
    """Data repository associations, created one after the other, and the key policy statements that they need.

    `buckets` maps the names that `settings` use to buckets. FSx queues associations, and how many it accepts at
    once is not documented. An association may import the listing of a whole bucket when it is created, which can take
    hours: keep it in a stack that no node waits for. Raises InvalidArgument for a bucket that `buckets` lacks.
    """

    key_policy_statements: tuple[iam.PolicyStatement, ...]
    """What the owners of the buckets' keys must add to the key policies; empty for keys that this app manages."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Sequence[S3Link],
        file_system: LustreFileSystem,
        buckets: Mapping[str, IBucketRef],
    ) -> None:
        super().__init__(scope, id)
        expect(file_system, LustreFileSystem, "file_system")
        if missing := [link.bucket for link in settings if link.bucket not in buckets]:
            raise InvalidArgument(f"buckets has no {', '.join(missing)}. Pass each bucket by the name in settings")
        self._associations: list[fsx.CfnDataRepositoryAssociation] = []
        for link in settings:
            association = fsx.CfnDataRepositoryAssociation(
                self,
                f"Link{link.path}",
                file_system_id=file_system.file_system_id,
                **_association(link, bucket_reference(buckets[link.bucket]).bucket_name),
            )
            if self._associations:
                association.add_resource_dependency(self._associations[-1])
            self._associations.append(association)
        linked = {link.bucket: buckets[link.bucket] for link in settings}.values()
        self.key_policy_statements = tuple(statement for bucket in linked for statement in _allow_key_use(self, bucket))

    @property
    def association_ids(self) -> list[str]:
        """Ids of the associations, dra-..., in the order of `settings`."""
        return [association.attr_association_id for association in self._associations]


def _association(link: S3Link, bucket_name: str) -> dict[str, Any]:
    """Properties of the association for a link. With import events, metadata is imported once at creation too."""
    policies = {"autoImportPolicy": link.import_events, "autoExportPolicy": link.export_events}
    given = {name: {"events": _events(events)} for name, events in policies.items() if events}
    return {
        "file_system_path": link.path,
        "data_repository_path": f"s3://{bucket_name}/{link.prefix}".rstrip("/"),
        "batch_import_meta_data_on_create": bool(link.import_events),
        **({"s3": given} if given else {}),
    }


def _events(events: Sequence[Event]) -> list[str]:
    return [event.upper() for event in events]


def _allow_key_use(scope: Construct, bucket: IBucketRef) -> tuple[iam.PolicyStatement, ...]:
    """Allows the service-linked role of the links to use the key of `bucket`, for objects of the bucket.

    The statement grants to the role itself: to name the account would only let IAM policies decide, and that of the
    role has S3 actions alone. The role is a pattern in a condition, since FSx creates it after the key. The name of a
    TrainingBucket is a pattern too, which matches all buckets of its stack. Does nothing for a bucket whose key is not
    known.

    Source: FSx for Lustre User Guide, "Working with server-side encrypted Amazon S3 buckets" (2026).
    """
    key = encryption_key(bucket)
    if key is None:
        return ()
    arn = f"arn:{PARTITION}"
    return add_to_key_policy(
        scope,
        key,
        {
            "Principal": {"AWS": "*"},
            "Action": ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"],
            "Resource": "*",
            "Condition": {
                "StringEquals": {"kms:CallerAccount": ACCOUNT, "kms:ViaService": f"s3.{REGION}.amazonaws.com"},
                "ArnLike": {"aws:PrincipalArn": f"{arn}:iam::{ACCOUNT}:role/{LINK_ROLE}"},
                "StringLike": {"kms:EncryptionContext:aws:s3:arn": _encryption_context(bucket)},
            },
        },
    )


def _encryption_context(bucket: IBucketRef) -> str | list[str]:
    """Patterns of the encryption context: the ARN of the bucket with S3 Bucket Keys, that of the object without.

    A name that is known only at deployment cannot be used: bucket and key would depend on each other.
    """
    arn = f"arn:{PARTITION}:s3:::"
    if isinstance(bucket, TrainingBucket) and bucket.created:
        return f"{arn}{bucket_prefix(bucket)}-*"
    name = bucket_reference(bucket).bucket_name
    return f"{arn}*" if Token.is_unresolved(name) else [f"{arn}{name}", f"{arn}{name}/*"]
