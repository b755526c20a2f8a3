"""What jobs may do with the buckets of an environment."""

from collections.abc import Sequence
from typing import Any

from aws_cdk import Annotations, Arn, ArnFormat, Stack, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk.interfaces.aws_iam import IRoleRef
from aws_cdk.interfaces.aws_s3 import IBucketRef
from constructs import Construct

from ultracluster.config.buckets import Access
from ultracluster.constructs.acknowledgements import wildcards
from ultracluster.constructs.buckets import TrainingBucket, encryption_key
from ultracluster.constructs.endpoints import read_statements
from ultracluster.constructs.keys import DataKey, add_to_key_policy
from ultracluster.constructs.names import REGION
from ultracluster.constructs.references import bucket_reference, expect_list, key_arn, role_object
from ultracluster.constructs.roles import managed_policy, statement_text
from ultracluster.errors import InvalidArgument

READ_ACTION = "s3:GetObject"
WRITE_ACTIONS = ("s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
DELETE_ACTION = "s3:DeleteObject"

OWN_KEYS = (DataKey, kms.Key, kms.CfnKey)
"""Keys that this app creates. Their key policies trust the account."""


class BucketAccess(Construct):
    """Managed policies with which `role` uses `buckets`.

    `access` in the settings of a TrainingBucket says how. Other buckets are listed, read and written. With `prefix`,
    which ends with a slash, the role may write and delete only objects whose keys start so. It deletes no versions, and
    uses the keys of the buckets only through S3. The role may also list and read `read_only` buckets, by name.

    Raises InvalidArgument, WrongReference.
    """

    key_policy_statements: tuple[iam.PolicyStatement, ...] = ()
    """What the policies of the buckets' keys must allow; empty for keys that this app manages."""

    bucket_policy_statements: tuple[iam.PolicyStatement, ...] = ()
    """What the policies of existing buckets must allow that another account owns, as the account of their key shows."""

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
            self._use(buckets, role, prefix)
        if read_only:
            statements = read_statements(read_only)
            accepted = wildcards(self, statements[-1]["Resource"], "buckets that the environment only reads")
            managed_policy(self, "ReadOnly", roles=[role], statements=statements, accepted=accepted)

    def _use(self, buckets: Sequence[IBucketRef], role: IRoleRef, prefix: str) -> None:
        stack = Stack.of(self)
        arns = {bucket: _arn_in(stack, bucket) for bucket in buckets}
        objects = [f"{arn}/*" for arn in arns.values()]
        written = [f"{arn}/{prefix}*" for bucket, arn in arns.items() if _access(bucket) != "read"]
        deleted = [f"{arn}/{prefix}*" for bucket, arn in arns.items() if _access(bucket) == "write_and_delete"]
        statements: list[dict[str, Any]] = [
            {"Action": "s3:ListBucket", "Resource": list(arns.values())},
            {"Action": READ_ACTION, "Resource": objects},
            *([{"Action": list(WRITE_ACTIONS), "Resource": written}] if written else []),
            *([{"Action": DELETE_ACTION, "Resource": deleted}] if deleted else []),
            *self._key_statements(stack, buckets),
        ]
        reason = "objects of the environment's own buckets, whose keys the jobs choose"
        accepted = wildcards(self, [*objects, *written], reason)
        managed_policy(self, "Policy", roles=[role], statements=statements, accepted=accepted)
        foreign = [bucket for bucket in buckets if _of_another_account(stack, bucket)]
        self.bucket_policy_statements = tuple(self._ask_owner(stack, arns[bucket], bucket) for bucket in foreign)

    def _key_statements(self, stack: Stack, buckets: Sequence[IBucketRef]) -> list[dict[str, Any]]:
        """The use of the buckets' keys. Whoever only reads needs no data keys."""
        through_s3 = {"StringEquals": {"kms:ViaService": f"s3.{REGION}.amazonaws.com"}}
        keys = {key_arn(key): key for bucket in buckets if (key := encryption_key(bucket))}
        writers = [bucket for bucket in buckets if _access(bucket) != "read"]
        writing = dict.fromkeys(key_arn(key) for bucket in writers if (key := encryption_key(bucket)))
        reading = [arn for arn in keys if arn not in writing]
        # the IAM policy is enough where the key policy trusts the account, as KMS's default key policy does
        root = {"AWS": f"arn:{stack.partition}:iam::{stack.account}:root"}
        found = []
        for actions, arns in ((["kms:Decrypt", "kms:GenerateDataKey"], [*writing]), (["kms:Decrypt"], reading)):
            if arns:
                found.append({"Action": actions, "Resource": arns, "Condition": through_s3})
            trust = {"Principal": root, "Action": actions, "Resource": "*", "Condition": through_s3}
            for arn in arns:
                if not isinstance(keys[arn], OWN_KEYS):
                    self.key_policy_statements += add_to_key_policy(stack, keys[arn], trust)
        return found

    def _ask_owner(self, stack: Stack, arn: str, bucket: IBucketRef) -> iam.PolicyStatement:
        """The statement for the policy of a bucket of another account, which a warning shows at synth."""
        actions = {
            "read": ["s3:ListBucket", READ_ACTION],
            "write": ["s3:ListBucket", READ_ACTION, *WRITE_ACTIONS],
            "write_and_delete": ["s3:ListBucket", READ_ACTION, *WRITE_ACTIONS, DELETE_ACTION],
        }[_access(bucket)]
        statement = iam.PolicyStatement(
            actions=actions,
            resources=[arn, f"{arn}/*"],
            principals=[iam.ArnPrincipal(f"arn:{stack.partition}:iam::{stack.account}:root")],
        )
        shown, name = statement_text(stack, statement), bucket_reference(bucket).bucket_name
        message = f"the key of the bucket {name} is another account's. If the bucket is too, its owner must add this "
        message += f"statement to the bucket policy, unless the policy allows it already: {shown}"
        Annotations.of(stack).add_warning_v2(f"ultracluster:bucket-policy:{name}", message)
        return statement


def _access(bucket: IBucketRef) -> Access:
    return bucket.access if isinstance(bucket, TrainingBucket) else "write"


def _of_another_account(stack: Stack, bucket: IBucketRef) -> bool:
    """Whether an existing bucket has a key of an account that is known not to be the stack's."""
    key = encryption_key(bucket)
    if key is None or isinstance(key, OWN_KEYS):
        return False
    owner = Arn.split(key_arn(key), ArnFormat.SLASH_RESOURCE_NAME).account
    known = owner and not Token.is_unresolved(owner) and not Token.is_unresolved(stack.account)
    return bool(known and owner != stack.account)


def _arn_in(stack: Stack, bucket: IBucketRef) -> str:
    """The bucket's ARN as in the template of `stack`: an import where another stack of the app creates the bucket."""
    arn = bucket_reference(bucket).bucket_arn
    if not isinstance(bucket, TrainingBucket) or not bucket.created:
        return arn
    owner = Stack.of(bucket)
    return arn if owner is stack else owner.export_value(arn)
