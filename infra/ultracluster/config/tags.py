"""Rules about the tags of an environment: what EC2, IAM and CloudFormation accept on every resource.

Sources: EC2 User Guide, "Tag restrictions" (2026); IAM User Guide, "Tags for IAM resources" (2026).
"""

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field

from ultracluster.config.problems import Problem

Tags = Mapping[Annotated[str, Field(min_length=1, max_length=128)], Annotated[str, Field(min_length=1, max_length=256)]]
"""Keys and values of tags."""

MAXIMUM_TAGS = 50
"""Tags of one resource (EC2 User Guide, "Tag restrictions")."""

OWN_PREFIX = "ultracluster:"
"""Start of the keys of the package's own tags."""

OWN_TAGS = 3
"""Tags that the package adds to a node: Name, ultracluster:environment and ultracluster:node-group."""

_RESERVED = "aws:"
_SYMBOLS = "_.:/=+-@"
_WORDS = "letters, digits, spaces and _ . : / = + - @"


_KUBERNETES = ("kubernetes.io/cluster", "karpenter.sh/", "karpenter.k8s.aws/", "eks:")
"""Starts of tag keys by which EKS and Karpenter find their own resources (EC2NodeClass of Karpenter, its rules)."""


def tag_problems(tags: Mapping[str, str], at: str, *, on_eks: bool = False) -> Iterator[Problem]:
    """Problems of `tags`, the value of the key `at` of the environment."""
    yield from _count(tags, at)
    yield from _reserved(tags, at)
    if on_eks:
        yield from _kubernetes(tags, at)
    yield from _characters(tags, at)
    yield from _letter_case(tags, at)


def _count(tags: Mapping[str, str], at: str) -> Iterator[Problem]:
    allowed = MAXIMUM_TAGS - OWN_TAGS
    if len(tags) > allowed:
        message = f"{len(tags)} tags; a resource has at most {MAXIMUM_TAGS}, of which ultracluster sets {OWN_TAGS}"
        yield Problem("tags-too-many", at, message, f"keep at most {allowed} tags")


def _reserved(tags: Mapping[str, str], at: str) -> Iterator[Problem]:
    """AWS reserves `aws:` in any case, for keys and for values; the package overwrites keys of its own prefix."""
    for key, value in tags.items():
        if key.lower().startswith(_RESERVED):
            message = f"{key} begins with {_RESERVED}, which AWS reserves"
            yield Problem("tag-reserved", (at, key), message, "choose a key with another prefix")
        elif key.lower() == "name":
            message = f"{key} is the name that ultracluster or AWS gives each resource"
            yield Problem("tag-reserved", (at, key), message, "choose another key")
        elif key.lower().startswith(OWN_PREFIX):
            message = f"{key} begins with {OWN_PREFIX}, the prefix of the tags that ultracluster sets"
            yield Problem("tag-reserved", (at, key), message, "choose a key with another prefix")
        elif value.lower().startswith(_RESERVED):
            message = f"the value {value} begins with {_RESERVED}, which AWS reserves"
            yield Problem("tag-reserved", (at, key), message, "choose another value")


def _kubernetes(tags: Mapping[str, str], at: str) -> Iterator[Problem]:
    for key in tags:
        if prefix := next((prefix for prefix in _KUBERNETES if key.startswith(prefix)), None):
            message = f"{key} begins with {prefix}, by which EKS and Karpenter find their own resources"
            yield Problem("tag-reserved", (at, key), message, "choose a key with another prefix")


def _characters(tags: Mapping[str, str], at: str) -> Iterator[Problem]:
    """IAM, FSx and AMP accept letters, digits and spaces of any language, and some symbols (patterns of their APIs)."""
    for key, value in tags.items():
        for text, what in ((key, "the key"), (value, "the value")):
            refused = [character for character in text if not _accepted(character)]
            if refused:
                message = f"{what} contains {' '.join(dict.fromkeys(refused))}; allowed: {_WORDS}"
                hint = f"set {''.join(c if _accepted(c) else '-' for c in text)} as {what}"
                yield Problem("tag-characters", (at, key), message, hint)


def _letter_case(tags: Mapping[str, str], at: str) -> Iterator[Problem]:
    """Keys of an IAM role's tags are not case-sensitive (IAM User Guide, "Case sensitivity")."""
    seen: dict[str, str] = {}
    for key in tags:
        first = seen.setdefault(key.lower(), key)
        if first != key:
            message = f"{key} and {first} differ in case only, and are one key for IAM roles"
            yield Problem("tag-letter-case", (at, key), message, f"remove {key} or {first}")


def _accepted(character: str) -> bool:
    return character in _SYMBOLS or unicodedata.category(character)[0] in "LZN"
