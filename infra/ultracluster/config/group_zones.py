"""Rules about the zones of node groups: their names, and a subnet with room for the nodes in each."""

import re
from collections.abc import Iterator, Sequence

from ultracluster.catalog import addresses
from ultracluster.config.fields import from_cdk
from ultracluster.config.fleet import Fleet
from ultracluster.config.network import RESERVED_ADDRESSES, ZONE_LETTERS, zone_plan
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.problems import Path, Problem


def zone_problems(fleet: Fleet, region: str, own_zone: str, *, pods: int) -> Iterator[Problem]:
    """Problems of `zones` of node groups, at paths of the file. `pods` are the addresses of the pods of a node."""
    for i, group in enumerate(fleet.node_groups):
        for j, zone in enumerate(group.zones):
            if zone == own_zone or from_cdk(zone):
                continue
            at: Path = ("node_groups", i, "zones", j)
            if not re.fullmatch(rf"{re.escape(region)}[{ZONE_LETTERS}]", zone):
                message = f"{zone} is not an Availability Zone of {region}, such as {region}a"
                yield Problem("zone-outside-region", at, message, f"set {region}a, or another zone of {region}")
                continue
            yield from _subnet(fleet, zone, at, pods)


def _subnet(fleet: Fleet, zone: str, at: Path, pods: int) -> Iterator[Problem]:
    create, existing = fleet.network.create, fleet.network.existing
    if existing and zone not in existing.zone_subnet_ids:
        message = f"network.existing names no subnet in {zone}"
        hint = f"add zone_subnet_ids: {{{zone}: subnet-...}} to network.existing"
        yield Problem("zone-without-subnet", at, message, hint)
    if create is None or any(problem.severity == "error" for problem in create.problems()):
        return
    plan = zone_plan(create.block)
    has = plan[zone[-1]].num_addresses - RESERVED_ADDRESSES if zone[-1] in plan else 0
    groups = [group for _, group in fleet.known_groups if zone in group.zones]
    needed = sum(group.max_count * (addresses(group.layout("eks")) + pods) for group in groups)
    if needed > has:
        message = f"the subnet of nodes in {zone} has {has} addresses; the nodes of {_names(groups)} need {needed}"
        yield Problem("subnet-too-small", at, message, "set a wider network.create.cidr, or lower count")


def _names(groups: Sequence[NodeGroup]) -> str:
    return " and ".join(group.name for group in groups)
