"""Resources that a property refers to: which call finds each kind, and the refusal of one that does not exist."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from botocore import xform_name
from botocore.exceptions import ClientError

from localaws.resources import Context, HandlerError, Properties
from localaws.rows import answers, shapes


class Lookup(NamedTuple):
    """The call that describes a kind of resource, and the member with its identifier.

    `name` is the part of the property's value that the member takes, `exact` the member of the answer that is equal
    to it, for calls that find by prefix.
    """

    service: str
    action: str
    member: str
    name: str = ".+"
    exact: str = ""
    more: Mapping[str, Any] = {}


_AFTER_SLASH = "[^/]+$"

LOOKUPS = {
    "Elastic IP address": Lookup("ec2", "DescribeAddresses", "AllocationIds"),
    "KMS key": Lookup("kms", "DescribeKey", "KeyId"),
    "NAT gateway": Lookup(
        "ec2", "DescribeNatGateways", "NatGatewayIds", more={"Filters": [{"Name": "state", "Values": ["available"]}]}
    ),
    "VPC": Lookup("ec2", "DescribeVpcs", "VpcIds"),
    "bucket": Lookup("s3", "HeadBucket", "Bucket", name="[^:/]+(?=/|$)"),
    "capacity reservation": Lookup("ec2", "DescribeCapacityReservations", "CapacityReservationIds"),
    "function": Lookup("lambda", "GetFunctionConfiguration", "FunctionName"),
    "instance profile": Lookup("iam", "GetInstanceProfile", "InstanceProfileName", name=_AFTER_SLASH),
    "instance type": Lookup("ec2", "DescribeInstanceTypes", "InstanceTypes"),
    "internet gateway": Lookup("ec2", "DescribeInternetGateways", "InternetGatewayIds"),
    "key pair": Lookup("ec2", "DescribeKeyPairs", "KeyNames"),
    "log group": Lookup(
        "logs", "DescribeLogGroups", "logGroupNamePrefix", name="[^:]+(?=:[*]$|$)", exact="logGroupName"
    ),
    "PCS cluster": Lookup("pcs", "GetCluster", "clusterIdentifier", name=_AFTER_SLASH),
    "placement group": Lookup("ec2", "DescribePlacementGroups", "GroupNames"),
    "placement group ID": Lookup("ec2", "DescribePlacementGroups", "GroupIds"),
    "policy": Lookup("iam", "GetPolicy", "PolicyArn"),
    "prefix list": Lookup("ec2", "DescribeManagedPrefixLists", "PrefixListIds"),
    "queue": Lookup("sqs", "GetQueueUrl", "QueueName", name="[^:]+$"),
    "resource group": Lookup("resource-groups", "GetGroup", "GroupName", name=_AFTER_SLASH),
    "role": Lookup("iam", "GetRole", "RoleName", name=_AFTER_SLASH),
    "route table": Lookup("ec2", "DescribeRouteTables", "RouteTableIds"),
    "security group": Lookup("ec2", "DescribeSecurityGroups", "GroupIds"),
    "subnet": Lookup("ec2", "DescribeSubnets", "SubnetIds"),
    "topic": Lookup("sns", "GetTopicAttributes", "TopicArn"),
}
"""The look-up of each kind of resource, by its name in messages."""


def existing(context: Context, kind: str, value: str) -> Mapping[str, Any]:
    """The resource of this kind with this id, name or ARN, as its service describes it. HandlerError without one."""
    look = LOOKUPS[kind]
    found = re.search(look.name, value)
    name = found[0] if found else value
    member = shapes.members(shapes.operation(look.service, look.action).input_shape)[look.member]
    call = getattr(context.client(look.service), xform_name(look.action))
    shown = f"{kind} {value if look.name == _AFTER_SLASH else name}"
    try:
        answer = call(**{look.member: [name] if member.type_name == "list" else name}, **look.more)
        return answers.payload(answer, {look.exact: name} if look.exact else {})
    except ClientError as error:
        raise HandlerError(f"{shown} does not exist ({error.response['Error'].get('Code')})") from error
    except HandlerError as error:
        raise HandlerError(f"{shown} does not exist") from error


def known(context: Context, kind: str, value: str) -> Mapping[str, Any]:
    """`existing`, looked up once a deployment: for what does not change, such as a subnet's VPC."""
    if (kind, value) not in context.found:
        context.found[kind, value] = existing(context, kind, value)
    return context.found[kind, value]


TARGETS = {"lambda": "function", "sns": "topic", "sqs": "queue"}


def existing_target(context: Context, arn: str, *services: str) -> None:
    """HandlerError when the target of a rule or schedule does not exist, or is of none of these services."""
    service = arn.split(":")[2]
    if service not in services:
        *others, last = (f"{TARGETS[each]}s" for each in services)
        raise HandlerError(f"the embedded AWS supports only {', '.join(others)} and {last} as targets, not {arn}")
    known(context, TARGETS[service], arn)


def check_references(context: Context, must_exist: Mapping[str, str], old: Properties, new: Properties) -> None:
    """HandlerError for a new value of a property in `must_exist` that no resource of its kind has."""
    for path, kind in must_exist.items():
        before, after = (answers.every(properties, path) for properties in (old, new))
        for value in dict.fromkeys(after):
            if value not in before:
                known(context, kind, value)
