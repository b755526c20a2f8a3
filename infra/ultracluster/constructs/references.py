"""What constructs accept from other code: CDK's reference interfaces (`aws_cdk.interfaces`), or the id of a resource.

L1, L2 and imported resources satisfy the interfaces, `Vpc.from_lookup` with its dummy values too. They cannot be tested
with isinstance, so a wrong object is recognised by the attribute that it lacks. Reading a reference is a message to
Node: constructs read it once and keep the string.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from aws_cdk.interfaces.aws_ec2 import ISecurityGroupRef, ISubnetRef, IVPCRef
from aws_cdk.interfaces.aws_iam import IInstanceProfileRef, IRoleRef
from aws_cdk.interfaces.aws_kms import IKeyRef
from aws_cdk.interfaces.aws_logs import ILogGroupRef
from aws_cdk.interfaces.aws_s3 import BucketReference, IBucketRef

from ultracluster.errors import UltraclusterError

Vpc = IVPCRef | str
"""A VPC of any CDK app, or its id."""
Subnet = ISubnetRef | str
"""A subnet of any CDK app, or its id."""
SecurityGroup = ISecurityGroupRef | str
"""A security group of any CDK app, or its id."""
Role = IRoleRef | str
"""An IAM role of any CDK app, or its ARN."""

_TOKEN = "${Token["  # noqa: S105 - how the CDK writes a value that is known only at deployment
_IDS: dict[str, tuple[str, ...]] = {
    "VPC": ("vpc-",),
    # dummy values of the CDK before a look-up: s-12345 for public and p-12345 for private subnets
    "subnet": ("subnet-", "s-", "p-"),
    "security group": ("sg-",),
}
"""How ids begin."""


class WrongReference(UltraclusterError, TypeError):
    """An object does not implement the interface that the construct takes."""


def vpc_id(vpc: Vpc) -> str:
    """Id of a VPC. Raises WrongReference."""
    return _id(vpc, "VPC") if isinstance(vpc, str) else str(_read(vpc, "vpc_ref", "aws_ec2.IVPCRef", "VPC").vpc_id)


def subnet_id(subnet: Subnet) -> str:
    """Id of a subnet. Raises WrongReference."""
    if isinstance(subnet, str):
        return _id(subnet, "subnet")
    return str(_read(subnet, "subnet_ref", "aws_ec2.ISubnetRef", "subnet").subnet_id)


def security_group_id(group: SecurityGroup) -> str:
    """Id of a security group. Raises WrongReference."""
    if isinstance(group, str):
        return _id(group, "security group")
    return str(_read(group, "security_group_ref", "aws_ec2.ISecurityGroupRef", "security group").security_group_id)


def key_arn(key: IKeyRef) -> str:
    """ARN of a KMS key. Raises WrongReference, for an alias too: services store the key that an alias points to."""
    if hasattr(key, "alias_name"):
        raise WrongReference("the key is a KMS alias, which is not accepted. Pass the key that the alias points to")
    arn = str(_read(key, "key_ref", "aws_kms.IKeyRef", "KMS key").key_arn)
    if ":alias/" in arn:
        raise WrongReference(f"the key is the KMS alias {arn}. Pass the key that the alias points to")
    return arn


def role_arn(role: Role) -> str:
    """ARN of an IAM role. Raises WrongReference."""
    if isinstance(role, str):
        if not role.startswith("arn:") and _TOKEN not in role:
            raise WrongReference(f"{role!r} is not the ARN of a role. Pass an ARN, or an aws_iam.IRoleRef")
        return role
    return str(_read(role, "role_ref", "aws_iam.IRoleRef", "role").role_arn)


def role_object(role: IRoleRef) -> IRoleRef:
    """The role itself, for a property that takes no ARN. Raises WrongReference."""
    _read(role, "role_ref", "aws_iam.IRoleRef", "role")
    return role


def instance_profile_arn(profile: IInstanceProfileRef) -> str:
    """ARN of an instance profile. Raises WrongReference."""
    reference = _read(profile, "instance_profile_ref", "aws_iam.IInstanceProfileRef", "instance profile")
    return str(reference.instance_profile_arn)


def bucket_reference(bucket: IBucketRef) -> BucketReference:
    """Name and ARN of a bucket. Raises WrongReference."""
    reference: BucketReference = _read(bucket, "bucket_ref", "aws_s3.IBucketRef", "bucket")
    return reference


def log_group_name(group: ILogGroupRef) -> str:
    """Name of a log group. Raises WrongReference."""
    return str(_read(group, "log_group_ref", "aws_logs.ILogGroupRef", "log group").log_group_name)


def expect(value: object, kind: type, argument: str) -> None:
    """Raises WrongReference unless the value of an argument is of a class of this package."""
    if not isinstance(value, kind):
        raise WrongReference(f"{argument} is of type {type(value).__name__}. Pass ultracluster.{kind.__name__}")


def expect_list(value: object, argument: str) -> None:
    """Raises WrongReference for text or a mapping where a list is wanted: Python would take it apart."""
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise WrongReference(f"{argument} is of type {type(value).__name__}. Pass a list")


def _read(value: object, attribute: str, interface: str, what: str) -> Any:
    try:
        return getattr(value, attribute)
    except AttributeError:
        raise WrongReference(
            f"the {what} is of type {_kind(value)}, which has no {attribute}. "
            f"Pass an aws_cdk.interfaces.{interface}: an L1, L2 or imported {what}"
        ) from None


def _kind(value: object) -> str:
    """What a caller would call the object: a proxy of an imported resource has no class name of its own."""
    name = type(value).__name__
    return "another resource" if name == "InterfaceDynamicProxy" else name


def _id(text: str, what: str) -> str:
    if _TOKEN in text or text.startswith(_IDS[what]):
        return text
    raise WrongReference(f"{text!r} is not the id of a {what}. Pass {_IDS[what][0]}..., or a {what} of the CDK")
