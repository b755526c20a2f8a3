"""Names of things that outlive their stack, so that the same stack can be made again beside what it left behind."""

from aws_cdk import Fn, Stack
from constructs import IConstruct


def stack_suffix(scope: IConstruct) -> str:
    """Eight characters that differ each time the stack is created: the start of its id's UUID."""
    uuid = Fn.select(2, Fn.split("/", Stack.of(scope).stack_id))
    return Fn.select(0, Fn.split("-", uuid))


def bucket_prefix(scope: IConstruct) -> str:
    """Start of the names of a stack's buckets. 30 of S3's 63 characters, so that 23 stay for the bucket's own name."""
    return Stack.of(scope).stack_name.lower()[:30]
