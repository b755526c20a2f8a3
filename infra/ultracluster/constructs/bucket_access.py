"""What jobs may do with the buckets of an environment."""

from collections.abc import Sequence
from typing import Any

from aws_cdk import Stack
from aws_cdk.interfaces.aws_iam import IRoleRef
from aws_cdk.interfaces.aws_s3 import IBucketRef
from constructs import Construct

from ultracluster.constructs.acknowledgements import wildcards
from ultracluster.constructs.buckets import TrainingBucket, encryption_key
from ultracluster.constructs.references import bucket_reference, key_arn, role_object
from ultracluster.constructs.roles import managed_policy

OBJECT_ACTIONS = ("s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")


class BucketAccess(Construct):
    """A managed policy that lets `role` list, read and write one or more `buckets`, without deleting objects.

    Raises WrongReference.
    """

    def __init__(self, scope: Construct, id: str, *, buckets: Sequence[IBucketRef], role: IRoleRef) -> None:
        super().__init__(scope, id)
        stack = Stack.of(self)
        arns = [_arn_in(stack, bucket) for bucket in buckets]
        objects = [f"{arn}/*" for arn in arns]
        statements: list[dict[str, Any]] = [
            {"Action": "s3:ListBucket", "Resource": arns},
            {"Action": list(OBJECT_ACTIONS), "Resource": objects},
        ]
        keys = [key for key in map(encryption_key, buckets) if key]
        if key_arns := list(dict.fromkeys(map(key_arn, keys))):
            statements.append({"Action": ["kms:Decrypt", "kms:GenerateDataKey"], "Resource": key_arns})
        reason = "objects of the environment's own buckets, whose keys the jobs choose"
        accepted = wildcards(self, objects, reason)
        managed_policy(self, "Policy", roles=[role_object(role)], statements=statements, accepted=accepted)


def _arn_in(stack: Stack, bucket: IBucketRef) -> str:
    """The bucket's ARN as in the template of `stack`: an import where another stack of the app creates the bucket."""
    arn = bucket_reference(bucket).bucket_arn
    if not isinstance(bucket, TrainingBucket) or not bucket.created:
        return arn
    owner = Stack.of(bucket)
    return arn if owner is stack else owner.export_value(arn)
