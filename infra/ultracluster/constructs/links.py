"""Links between folders of a Lustre file system and prefixes of buckets: FSx data repository associations."""

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import aws_fsx as fsx
from constructs import Construct

from ultracluster.config.storage import Event, S3Link
from ultracluster.constructs.buckets import TrainingBucket
from ultracluster.constructs.keys import let_use
from ultracluster.constructs.lustre import TrainingFileSystem
from ultracluster.constructs.names import ACCOUNT, PARTITION, REGION, bucket_prefix

LINK_ROLE = "aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_*"
"""The service-linked role of a file system's S3 links; its name ends with the file system's id."""


class S3Links(Construct):
    """The links that `settings` name, one after the other, and what they need of the buckets' keys.

    FSx queues associations, and how many it takes at once is nowhere promised. Each may read the listing of a whole
    bucket before it is there, so they stand apart from the file system, and nothing waits for them. The key of a
    bucket of this app learns to serve them; an imported bucket's key is its owner's.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Sequence[S3Link],
        file_system: TrainingFileSystem,
        buckets: Mapping[str, TrainingBucket],
    ) -> None:
        super().__init__(scope, id)
        made: list[fsx.CfnDataRepositoryAssociation] = []
        for link in settings:
            association = fsx.CfnDataRepositoryAssociation(
                self,
                f"Link{link.path}",
                file_system_id=file_system.file_system_id,
                **_association(link, buckets[link.bucket].bucket_name),
            )
            if made:
                association.add_resource_dependency(made[-1])
            made.append(association)
        for bucket in {link.bucket: buckets[link.bucket] for link in settings}.values():
            _let_links_use_key(bucket)


def _association(link: S3Link, bucket_name: str) -> dict[str, Any]:
    """What a link says of its association. Metadata is imported once, at creation, where events are imported later."""
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


def _let_links_use_key(bucket: TrainingBucket) -> None:
    """Lets the links' service-linked role use the key of `bucket`, for objects of this stack's buckets alone.

    The role's name and the bucket's are patterns: both come after the key. An imported bucket's key is its owner's.

    Source: FSx for Lustre User Guide, "Working with server-side encrypted Amazon S3 buckets" (2026).
    """
    if bucket.key is None:
        return
    arn = f"arn:{PARTITION}"
    let_use(
        bucket.key,
        {
            "Principal": {"AWS": f"{arn}:iam::{ACCOUNT}:root"},
            "Action": ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"],
            "Resource": "*",
            "Condition": {
                "StringEquals": {"kms:CallerAccount": ACCOUNT, "kms:ViaService": f"s3.{REGION}.amazonaws.com"},
                "ArnLike": {"aws:PrincipalArn": f"{arn}:iam::{ACCOUNT}:role/{LINK_ROLE}"},
                "StringLike": {"kms:EncryptionContext:aws:s3:arn": f"{arn}:s3:::{bucket_prefix(bucket)}-*"},
            },
        },
    )
