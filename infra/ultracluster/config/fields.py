"""Field types that several sections share, the words that explain their patterns, and values that the CDK provides."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Discriminator, Field, Tag, ValidationInfo, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticCustomError

from ultracluster.config.problems import Collector

Item = TypeVar("Item")

Many = Annotated[tuple[Item, ...], Field(strict=False)]
"""A list in the file, a tuple in the model; its items stay strict."""

FORMATS: dict[str, str] = {}
"""The format of each pattern, in words."""


def text(pattern: str, form: str, **constraints: Any) -> Any:
    """A text field that must match `pattern`. Messages and help name the pattern as `form`, in words."""
    if FORMATS.setdefault(pattern, form) != form:
        raise ValueError(f"{pattern} has two different explanations")
    return Field(pattern=pattern, description=f"Format: {form}.", **constraints)


_TOKEN = re.compile(r"[$#]\{Token\[")
"""A CDK token as text: `${Token[TOKEN.12]}`, or `#{Token[TOKEN.12]}` for a list."""

_PARAMETER_DUMMY = "dummy-value-for-"

VPC_DUMMIES = frozenset({"vpc-12345"})
SUBNET_DUMMIES = frozenset({"s-12345", "s-67890", "p-12345", "p-67890"})
ZONE_DUMMIES = frozenset({"dummy1a", "dummy1b", "dummy1c"})
IMAGE_DUMMIES = frozenset({"ami-1234"})
_DUMMIES = VPC_DUMMIES | SUBNET_DUMMIES | ZONE_DUMMIES | IMAGE_DUMMIES
"""Dummies that look-ups of the CDK return until `cdk.context.json` holds the real value.

Source: aws-cdk-lib 2.275: `Vpc.fromLookup`, `Stack.availabilityZones`, `LookupMachineImage`. The dummy of
`StringParameter.valueFromLookup` is `dummy-value-for-` and the name of the parameter.
"""

CDK_VALUE = "cdk_value"
"""Pydantic's error type for a token or dummy in a file."""


def from_cdk(value: str) -> bool:
    """Whether `value` is a CDK token or the dummy of a look-up. Rules cannot judge it: the real value comes later."""
    return bool(_TOKEN.search(value)) or value in _DUMMIES or value.startswith(_PARAMETER_DUMMY)


def cdk_value(dummies: frozenset[str] = frozenset()) -> WrapValidator:
    """Accepts a CDK token, or one of the `dummies`, whatever the pattern of the field; never from a file."""

    def accept(value: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        if not isinstance(value, str) or not (
            value in dummies or _TOKEN.search(value) or value.startswith(_PARAMETER_DUMMY)
        ):
            return check(value)
        if isinstance(info.context, Collector) and info.context.from_file:
            raise PydanticCustomError(CDK_VALUE, "a token or dummy of the CDK")
        return value

    return WrapValidator(accept)


def _kind(value: object) -> str:
    if isinstance(value, dict | BaseModel):
        return "<mapping>"
    if isinstance(value, str):
        return "<text>"
    if isinstance(value, list | tuple):
        return "<list>"
    return "<number>" if type(value) is int else "<neither>"


KIND = Discriminator(_kind)
"""Chooses the side of a union by the kind of the value, so that an error names that side only."""

TEXT, NUMBER, MAPPING, LIST, FLAG = Tag("<text>"), Tag("<number>"), Tag("<mapping>"), Tag("<list>"), Tag("<flag>")


def _switch(value: object) -> str:
    return "<mapping>" if isinstance(value, dict | BaseModel) else "<flag>"


SWITCH = Discriminator(_switch)
"""Chooses the mapping for a mapping, and true or false for everything else."""


def kind_of(value: Any) -> str | None:
    """The tag of the side of a union that `type` names: in brackets, which no key of a file has."""
    kind = value.get("type") if isinstance(value, Mapping) else getattr(value, "type", None)
    return f"<{kind}>" if isinstance(kind, str) else None


_HEX = "([0-9a-f]{8}|[0-9a-f]{17})"
"""End of the id of an EC2 resource: 17 hexadecimal digits, or 8 in old accounts (EC2 User Guide, "Resource IDs")."""

TextOrNumber = Annotated[Annotated[str, TEXT] | Annotated[int, NUMBER], KIND]

Name = Annotated[
    str,
    text(
        r"^[a-z]([a-z0-9-]{0,13}[a-z0-9])?$",
        "a name of up to 15 lower-case letters, digits and hyphens that starts with a letter and ends without a hyphen",
    ),
]
"""Name of a node group, queue, pool or file system. PCS allows 25 characters; 15 leave room for a suffix."""

BucketName = Annotated[str, text(r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", "an S3 bucket name"), cdk_value()]
Image = Annotated[
    str,
    text(
        rf"^(auto|ami-{_HEX}|ssm:(/[a-zA-Z0-9_.-]+){{1,15}})$",
        "auto, ami-0123456789abcdef0 or ssm:/path with at most 15 parts of letters, digits, _ . and -",
        max_length=len("ssm:") + 1011,
    ),
    cdk_value(IMAGE_DUMMIES),
]
VpcId = Annotated[str, text(rf"^vpc-{_HEX}$", "a VPC id such as vpc-0123456789abcdef0"), cdk_value(VPC_DUMMIES)]
SubnetId = Annotated[
    str, text(rf"^subnet-{_HEX}$", "a subnet id such as subnet-0123456789abcdef0"), cdk_value(SUBNET_DUMMIES)
]
SecurityGroupId = Annotated[str, text(rf"^sg-{_HEX}$", "a security group id such as sg-0123456789abcdef0"), cdk_value()]
FileSystemId = Annotated[str, text(rf"^fs-{_HEX}$", "a file system id such as fs-0123456789abcdef0"), cdk_value()]
"""Id of a file system of FSx or EFS."""
PolicyArn = Annotated[
    str,
    text(
        r"^arn:aws[a-z-]*:iam::(\d{12}|aws):policy/([!-.0-~]+/)*[a-zA-Z0-9_+=,.@-]{1,128}$",
        "a policy ARN such as arn:aws:iam::111122223333:policy/name",
    ),
    cdk_value(),
]
RoleArn = Annotated[
    str,
    text(
        r"^arn:aws[a-z-]*:iam::\d{12}:role/([!-.0-~]+/)*[a-zA-Z0-9_+=,.@-]{1,64}$",
        "a role ARN such as arn:aws:iam::111122223333:role/name",
    ),
    cdk_value(),
]
KeyArn = Annotated[
    str,
    text(
        r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/(mrk-[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$",
        "a KMS key ARN such as arn:aws:kms:us-east-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef",
    ),
    cdk_value(),
]
PublicCidr = Annotated[
    str, text(r"^(\d{1,3}\.){3}\d{1,3}/\d{1,2}$", "a public network such as 54.240.143.0/24"), cdk_value()
]
CpuType = Annotated[str, text(r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$", "an instance type such as m7i.4xlarge")]

MIRROR = (
    r"^oci://[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*(:\d{1,5})?"
    r"(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$"
)
"""A registry and a path in it (OCI Distribution Specification 1.1, "Pulling manifests": names of repositories)."""

MIRROR_FORM = "an OCI reference such as oci://registry/path, in lower case and without a tag"

Mirror = Annotated[str, text(MIRROR, MIRROR_FORM), cdk_value()]
