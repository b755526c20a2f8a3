"""What jobs may do with the buckets of an environment."""

from collections.abc import Sequence
from typing import Any

from aws_cdk import Stack
from aws_cdk.interfaces.aws_iam import IRoleRef
from aws_cdk.interfaces.aws_s3 import IBucketRef
from constructs import Construct

from ultracluster.constructs.acknowledgements import wildcards
from ultracluster.constructs.buckets import TrainingBucket, encryption_key
from ultracluster.constructs.endpoints import read_statements
from ultracluster.constructs.references import bucket_reference, expect_list, key_arn, role_object
from ultracluster.constructs.roles import managed_policy

OBJECT_ACTIONS = ("s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")


class BucketAccess(Construct):
    """Managed policies that let `role` list, read and write `buckets`, without deleting objects.

    The role may also list and read `read_only` buckets, by name. Raises WrongReference.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        buckets: Sequence[IBucketRef],
        role: IRoleRef,
        read_only: Sequence[str] = (),
    ) -> None:
        super().__init__(scope, id)
        expect_list(read_only, "read_only")
        role = role_object(role)
        if buckets:
            self._read_write(buckets, role)
        if read_only:
            statements = read_statements(read_only)
            accepted = wildcards(self, statements[-1]["Resource"], "buckets that the environment only reads")
            managed_policy(self, "ReadOnly", roles=[role], statements=statements, accepted=accepted)

    def _read_write(self, buckets: Sequence[IBucketRef], role: IRoleRef) -> None:
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
        managed_policy(self, "Policy", roles=[role], statements=statements, accepted=accepted)


def _arn_in(stack: Stack, bucket: IBucketRef) -> str:
    """The bucket's ARN as in the template of `stack`: an import where another stack of the app creates the bucket."""
    arn = bucket_reference(bucket).bucket_arn
    if not isinstance(bucket, TrainingBucket) or not bucket.created:
        return arn
    owner = Stack.of(bucket)
    return arn if owner is stack else owner.export_value(arn)
