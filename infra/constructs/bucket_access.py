"""What jobs may do with the buckets of an environment."""

from collections.abc import Sequence
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.constructs.acknowledgements import acknowledge

OBJECT_ACTIONS = ("s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")


class BucketAccess(Construct):
    """A managed policy to read and write `buckets`, one or more; deleting is left to people.

    It lives with the buckets, so that whatever runs the jobs only attaches it.
    """

    def __init__(self, scope: Construct, id: str, *, buckets: Sequence[s3.IBucket]) -> None:
        super().__init__(scope, id)
        objects = [bucket.arn_for_objects("*") for bucket in buckets]
        statements = [
            _allow(["s3:ListBucket"], [bucket.bucket_arn for bucket in buckets]),
            _allow(OBJECT_ACTIONS, objects),
        ]
        if keys := list(dict.fromkeys(bucket.encryption_key.key_arn for bucket in buckets if bucket.encryption_key)):
            statements.append(_allow(["kms:Decrypt", "kms:GenerateDataKey"], keys))
        self._policy = iam.ManagedPolicy(self, "Policy", statements=statements)
        reason = "objects of the environment's own buckets, whose keys the jobs choose"
        findings = (f"AwsSolutions-IAM5[Resource::{_shown(Stack.of(self).resolve(arn))}]" for arn in objects)
        acknowledge(self._policy, dict.fromkeys(findings, reason))

    @property
    def policy(self) -> iam.IManagedPolicy:
        """The policy."""
        return self._policy


def _allow(actions: Sequence[str], resources: Sequence[str]) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=list(actions), resources=list(resources))


def _shown(value: Any) -> str:
    """An ARN as cdk-nag writes it in a finding: references in angle brackets."""
    match value:
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return f"<{name}.{attribute}>"
        case {"Ref": str(name)}:
            return f"<{name}>"
        case {"Fn::Join": [str(separator), list(parts)]}:
            return separator.join(map(_shown, parts))
    return str(value)
