"""Resources that CloudFormation would create at the same time although their service takes one at a time.

The engine creates one resource after another, so it finds such resources in the template: new ones that share a
property, with no path of dependencies between them.
"""

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations

from localaws.templates import Declaration

ONE_AT_A_TIME: dict[str, tuple[tuple[str, ...], str]] = {
    "AWS::Logs::Delivery": (
        ("DeliverySourceName", "DeliveryDestinationArn"),
        "Requested resource is currently being updated. Please try again later. "
        "(Operation: CreateDelivery, Error Code: ConflictException)",
    ),
}
"""By type: the properties that name what is locked, and the error (terraform-provider-aws issues 42194 and 42947)."""


def clashes(wanted: Mapping[str, Declaration], new: Collection[str]) -> dict[str, str]:
    """By logical id: the errors of resources that would be created at the same time as one before them."""
    found: dict[str, str] = {}
    for first, second in combinations([wanted[name] for name in wanted if name in new], 2):
        if first.type != second.type or first.type not in ONE_AT_A_TIME:
            continue
        locked, error = ONE_AT_A_TIME[first.type]
        shared = any(first.properties.get(name) == second.properties.get(name) is not None for name in locked)
        if shared and first.logical_id not in set(_needed(second.logical_id, wanted)):
            found[second.logical_id] = error
    return found


def _needed(name: str, wanted: Mapping[str, Declaration]) -> Iterator[str]:
    """Everything that a resource waits for."""
    for other in wanted[name].needs:
        yield other
        yield from _needed(other, wanted)
