"""Names of things that outlive their stack, so that the same stack can be made again beside what it left behind."""

from functools import cache

from aws_cdk import Stack, Token
from constructs import IConstruct


@cache
def stack_suffix() -> str:
    """Eight characters that differ each time the stack is created: the start of its id's UUID.

    Written out, and once for all stacks: each of CloudFormation's functions is a call to Node otherwise.
    """
    uuid = {"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]}
    return Token.as_string({"Fn::Select": [0, {"Fn::Split": ["-", uuid]}]})


def bucket_prefix(scope: IConstruct) -> str:
    """Start of the names of a stack's buckets. 30 of S3's 63 characters, so that 23 stay for the bucket's own name."""
    return Stack.of(scope).stack_name.lower()[:30]
