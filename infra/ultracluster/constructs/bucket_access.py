"""What jobs may do with the buckets of an environment."""

from collections.abc import Sequence
from typing import Any

from aws_cdk import Stack
from aws_cdk.interfaces.aws_iam import IRoleRef
from constructs import Construct

from ultracluster.constructs.acknowledgements import wildcards
from ultracluster.constructs.buckets import TrainingBucket
from ultracluster.constructs.roles import grant

OBJECT_ACTIONS = ("s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")


class BucketAccess(Construct):
    """Lets `role` read and write `buckets`, one or more; deleting is left to people."""

    def __init__(self, scope: Construct, id: str, *, buckets: Sequence[TrainingBucket], role: IRoleRef) -> None:
        super().__init__(scope, id)
        stack = Stack.of(self)
        arns = [_arn_in(stack, bucket) for bucket in buckets]
        objects = [f"{arn}/*" for arn in arns]
        statements: list[dict[str, Any]] = [
            {"Action": "s3:ListBucket", "Resource": arns},
            {"Action": list(OBJECT_ACTIONS), "Resource": objects},
        ]
        if keys := dict.fromkeys(bucket.key for bucket in buckets if bucket.key):
            key_arns = [key.key_arn for key in keys]
            statements.append({"Action": ["kms:Decrypt", "kms:GenerateDataKey"], "Resource": key_arns})
        reason = "objects of the environment's own buckets, whose keys the jobs choose"
        grant(self, "Policy", roles=[role], statements=statements, accepted=wildcards(self, objects, reason))


def _arn_in(stack: Stack, bucket: TrainingBucket) -> str:
    """The bucket's ARN as the template of `stack` will say it: an import, where another stack of the app made it."""
    owner = Stack.of(bucket)
    made_elsewhere = bucket.key is not None and owner is not stack
    return owner.export_value(bucket.bucket_arn) if made_elsewhere else bucket.bucket_arn
