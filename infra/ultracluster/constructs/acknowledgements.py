"""Accepted findings of security scanners, each with the reason for a reviewer."""

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import Acknowledgment, Stack, Validations
from constructs import IConstruct


def acknowledge(construct: IConstruct, reasons: Mapping[str, str]) -> None:
    """Accepts findings on `construct` and its children; `reasons` maps rule ids to reasons."""
    rules = [Acknowledgment(id=rule, reason=reason) for rule, reason in reasons.items()]
    Validations.of(construct).acknowledge(*rules)


def wildcards(scope: IConstruct, resources: Sequence[str], reason: str) -> dict[str, str]:
    """Maps the id of the cdk-nag finding on each of `resources`, which have a wildcard, to `reason`."""
    named: list[Any] = Stack.of(scope).resolve(list(resources))
    return {f"AwsSolutions-IAM5[Resource::{_shown(resource)}]": reason for resource in named}


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
