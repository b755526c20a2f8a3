"""Names of resources that outlive their stack, and ARNs."""

import hashlib
import json
from functools import cache
from weakref import WeakKeyDictionary

from aws_cdk import Aws, Names, Stack, Token
from constructs import IConstruct

PARTITION, REGION, ACCOUNT = Aws.PARTITION, Aws.REGION, Aws.ACCOUNT_ID
"""Pseudo parameters of CloudFormation. Read once here: each read is a message to Node."""


def own_arn(service: str, resource: str) -> str:
    """ARN of a resource in the stack's own account and Region."""
    return f"arn:{PARTITION}:{service}:{REGION}:{ACCOUNT}:{resource}"


@cache
def stack_suffix() -> str:
    """Eight characters that differ each time the stack is created: the start of the UUID in the stack id.

    A stack with them in its names can be created again beside resources that an earlier one retained. Written as
    JSON, once for all stacks: with `Fn` each function is a message to Node.
    """
    uuid = {"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]}
    return Token.as_string({"Fn::Select": [0, {"Fn::Split": ["-", uuid]}]})


def stable_name(scope: IConstruct, resource: IConstruct | str) -> str:
    """Part of a construct id for `resource` that is the same at each synth: its unique id, or the hash of an id."""
    if not isinstance(resource, str):
        return Names.node_unique_id(resource.node)
    resolved = json.dumps(Stack.of(scope).resolve(resource), sort_keys=True)
    return hashlib.sha256(resolved.encode()).hexdigest()[:8]


def stack_label(scope: IConstruct) -> str:
    """Name of the scope's stack; for a nested stack, whose name is a token, one that its place in the app gives."""
    stack = Stack.of(scope)
    name = stack.stack_name
    return Names.unique_resource_name(stack, separator="-", max_length=64) if "${Token[" in name else name


def unique_in_stack(scope: IConstruct, name: str, *, room: int) -> str:
    """`name`, or for the second construct of a stack that asks for it, `name` with the address of `scope`.

    At most `room` characters.
    """
    taken = _TAKEN.setdefault(Stack.of(scope), set())
    name = name[:room]
    if name in taken:
        name = f"{name[: room - 9]}-{scope.node.addr[:8]}"
    taken.add(name)
    return name


_TAKEN: WeakKeyDictionary[Stack, set[str]] = WeakKeyDictionary()


def bucket_prefix(scope: IConstruct) -> str:
    """Prefix of the names of a stack's buckets. 30 of S3's 63 characters, so that 23 stay for the bucket's own name."""
    return stack_label(scope).lower()[:30]
