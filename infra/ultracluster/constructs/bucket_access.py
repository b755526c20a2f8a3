"""What jobs may do with the buckets of an environment."""

from collections.abc import Sequence
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk.interfaces.aws_iam import IRoleRef
from aws_cdk.interfaces.aws_s3 import IBucketRef
from constructs import Construct

from ultracluster.constructs.acknowledgements import wildcards
from ultracluster.constructs.buckets import TrainingBucket, encryption_key
from ultracluster.constructs.endpoints import read_statements
from ultracluster.constructs.keys import DataKey, add_to_key_policy
from ultracluster.constructs.names import ACCOUNT, PARTITION, REGION
from ultracluster.constructs.references import bucket_reference, expect_list, key_arn, role_object
from ultracluster.constructs.roles import managed_policy
from ultracluster.errors import InvalidArgument

READ_ACTION = "s3:GetObject"
WRITE_ACTIONS = ("s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")


OWN_KEYS = (DataKey, kms.Key, kms.CfnKey)
"""Keys that this app creates. Their key policies trust the account."""


class BucketAccess(Construct):
    """Managed policies that let `role` list, read and write `buckets`, without deleting objects.

    With `prefix`, which ends with a slash, it may write only objects whose keys start so. It may use the keys of the
    buckets only through S3. The role may also list and read `read_only` buckets, by name.

    Raises InvalidArgument, WrongReference.
    """

    key_policy_statements: tuple[iam.PolicyStatement, ...] = ()
    """What the policies of the buckets' keys must allow; empty for keys that this app manages."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        buckets: Sequence[IBucketRef],
        role: IRoleRef,
        read_only: Sequence[str] = (),
        prefix: str = "",
    ) -> None:
        super().__init__(scope, id)
        expect_list(read_only, "read_only")
        if prefix.startswith("/") or (prefix and not prefix.endswith("/")):
            raise InvalidArgument(f"prefix is {prefix!r}. Pass a prefix such as teams/research/")
        role = role_object(role)
        if buckets:
            self._read_write(buckets, role, prefix)
        if read_only:
            statements = read_statements(read_only)
            accepted = wildcards(self, statements[-1]["Resource"], "buckets that the environment only reads")
            managed_policy(self, "ReadOnly", roles=[role], statements=statements, accepted=accepted)

    def _read_write(self, buckets: Sequence[IBucketRef], role: IRoleRef, prefix: str) -> None:
        stack = Stack.of(self)
        arns = [_arn_in(stack, bucket) for bucket in buckets]
        objects = [f"{arn}/*" for arn in arns]
        written = [f"{arn}/{prefix}*" for arn in arns]
        statements: list[dict[str, Any]] = [
            {"Action": "s3:ListBucket", "Resource": arns},
            {"Action": READ_ACTION, "Resource": objects},
            {"Action": list(WRITE_ACTIONS), "Resource": written},
        ]
        keys = [key for key in map(encryption_key, buckets) if key]
        if key_arns := list(dict.fromkeys(map(key_arn, keys))):
            through_s3 = {"StringEquals": {"kms:ViaService": f"s3.{REGION}.amazonaws.com"}}
            actions = ["kms:Decrypt", "kms:GenerateDataKey"]
            statements.append({"Action": actions, "Resource": key_arns, "Condition": through_s3})
            # the IAM policy is enough where the key policy trusts the account, as KMS's default key policy does
            root = {"AWS": f"arn:{PARTITION}:iam::{ACCOUNT}:root"}
            trust = {"Principal": root, "Action": actions, "Resource": "*", "Condition": through_s3}
            foreign = {key_arn(key): key for key in keys if not isinstance(key, OWN_KEYS)}
            self.key_policy_statements = tuple(
                statement for key in foreign.values() for statement in add_to_key_policy(stack, key, trust)
            )
        reason = "objects of the environment's own buckets, whose keys the jobs choose"
        accepted = wildcards(self, [*objects, *written], reason)
        managed_policy(self, "Policy", roles=[role], statements=statements, accepted=accepted)


def _arn_in(stack: Stack, bucket: IBucketRef) -> str:
    """The bucket's ARN as in the template of `stack`: an import where another stack of the app creates the bucket."""
    arn = bucket_reference(bucket).bucket_arn
    if not isinstance(bucket, TrainingBucket) or not bucket.created:
        return arn
    owner = Stack.of(bucket)
    return arn if owner is stack else owner.export_value(arn)
