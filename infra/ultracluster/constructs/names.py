"""How things are called: names that outlive their stack, and ARNs."""

from functools import cache

from aws_cdk import Aws, Stack, Token
from constructs import IConstruct

PARTITION, REGION, ACCOUNT = Aws.PARTITION, Aws.REGION, Aws.ACCOUNT_ID
"""Where a stack is deployed, as CloudFormation will say. Read once: each reading of them is a call to Node."""


def own_arn(service: str, resource: str) -> str:
    """ARN of a resource in the stack's own account and Region."""
    return f"arn:{PARTITION}:{service}:{REGION}:{ACCOUNT}:{resource}"


@cache
def stack_suffix() -> str:
    """Eight characters that differ each time the stack is created: the start of its id's UUID.

    With them in its name, a stack can be made again beside what it left behind. Written out, and once for all stacks:
    each of CloudFormation's functions is a call to Node otherwise.
    """
    uuid = {"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]}
    return Token.as_string({"Fn::Select": [0, {"Fn::Split": ["-", uuid]}]})


def bucket_prefix(scope: IConstruct) -> str:
    """Start of the names of a stack's buckets. 30 of S3's 63 characters, so that 23 stay for the bucket's own name."""
    return Stack.of(scope).stack_name.lower()[:30]
