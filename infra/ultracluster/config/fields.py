"""Types that several sections share, and how their patterns are put into words."""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Discriminator, Field, Tag

Item = TypeVar("Item")

Many = Annotated[tuple[Item, ...], Field(strict=False)]
"""A list in the file, a tuple in the model; its items stay strict."""

LOOKS_LIKE: dict[str, str] = {}
"""What text of a pattern looks like, in words, for the refusal of other text."""


def text(pattern: str, looks_like: str, **constraints: Any) -> Any:
    """A field of text that follows `pattern`; a refusal explains the pattern as `looks_like`."""
    if LOOKS_LIKE.setdefault(pattern, looks_like) != looks_like:
        raise ValueError(f"{pattern} is put into two different words")
    return Field(pattern=pattern, description=f"Looks like: {looks_like}.", **constraints)


def _kind(value: object) -> str:
    if isinstance(value, dict | BaseModel):
        return "<mapping>"
    if isinstance(value, str):
        return "<text>"
    return "<number>" if type(value) is int else "<neither>"


KIND = Discriminator(_kind)
"""Tells the sides of a union apart by the kind of the value, so that a refusal speaks of one side only."""

TEXT, NUMBER, MAPPING = Tag("<text>"), Tag("<number>"), Tag("<mapping>")

TextOrNumber = Annotated[Annotated[str, TEXT] | Annotated[int, NUMBER], KIND]

Name = Annotated[
    str, text(r"^[a-z][a-z0-9-]{0,14}$", "a name of up to 15 lower-case letters, digits and hyphens, a letter first")
]
"""Name of a node group or queue: 15 characters leave PCS's 25 room for a suffix."""

BucketName = Annotated[str, text(r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", "the name of an S3 bucket")]
Image = Annotated[str, text(r"^(auto|ami-[0-9a-f]{8,17}|ssm:/\S+)$", "auto, ami-0123456789abcdef0 or ssm:/path")]
VpcId = Annotated[str, text(r"^vpc-[0-9a-f]{8,17}$", "vpc-0123456789abcdef0")]
SubnetId = Annotated[str, text(r"^subnet-[0-9a-f]{8,17}$", "subnet-0123456789abcdef0")]
PolicyArn = Annotated[
    str, text(r"^arn:aws[a-z-]*:iam::(\d{12}|aws):policy/.+$", "arn:aws:iam::111122223333:policy/name")
]
RoleArn = Annotated[str, text(r"^arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+$", "arn:aws:iam::111122223333:role/name")]
PublicCidr = Annotated[str, text(r"^(\d{1,3}\.){3}\d{1,3}/\d{1,2}$", "a public network, 54.240.143.0/24")]
CpuType = Annotated[str, text(r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$", "m7i.4xlarge")]
