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
    """Lets `role` read and write `buckets`, one or more; deleting is left to people."""

    def __init__(self, scope: Construct, id: str, *, buckets: Sequence[s3.IBucket], role: iam.IRole) -> None:
        super().__init__(scope, id)
        arns = [_arn_in(self, bucket) for bucket in buckets]
        objects = [f"{arn}/*" for arn in arns]
        statements = [_allow(["s3:ListBucket"], arns), _allow(OBJECT_ACTIONS, objects)]
        if keys := list(dict.fromkeys(bucket.encryption_key.key_arn for bucket in buckets if bucket.encryption_key)):
            statements.append(_allow(["kms:Decrypt", "kms:GenerateDataKey"], keys))
        policy = iam.ManagedPolicy(self, "Policy", statements=statements, roles=[role])
        reason = "objects of the environment's own buckets, whose keys the jobs choose"
        findings = (f"AwsSolutions-IAM5[Resource::{_shown(Stack.of(self).resolve(arn))}]" for arn in objects)
        acknowledge(policy, dict.fromkeys(findings, reason))


def _arn_in(scope: Construct, bucket: s3.IBucket) -> str:
    """The bucket's ARN as the template of `scope` will say it: an import, where another stack of the app made it."""
    owner = Stack.of(bucket)
    imported = isinstance(owner.resolve(bucket.bucket_name), str)
    made_elsewhere = owner is not Stack.of(scope) and not imported
    return owner.export_value(bucket.bucket_arn) if made_elsewhere else bucket.bucket_arn


def _allow(actions: Sequence[str], resources: Sequence[str]) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=list(actions), resources=list(resources))


def _shown(value: Any) -> str:
    """An ARN as cdk-nag writes it in a finding: references in angle brackets."""
    match value:
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return f"<{name}.{attribute}>"
        case {"Fn::ImportValue": str(name)}:
            return name
        case {"Ref": str(name)}:
            return f"<{name}>"
        case {"Fn::Join": [str(separator), list(parts)]}:
            return separator.join(map(_shown, parts))
    return str(value)
