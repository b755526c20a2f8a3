"""Findings of security scanners that we accept, each with the reason a reviewer reads."""

from collections.abc import Mapping

from aws_cdk import Acknowledgment, Validations
from constructs import IConstruct


def acknowledge(construct: IConstruct, reasons: Mapping[str, str]) -> None:
    """Accepts findings on `construct` and below it: rule id to reason."""
    rules = [Acknowledgment(id=rule, reason=reason) for rule, reason in reasons.items()]
    Validations.of(construct).acknowledge(*rules)
