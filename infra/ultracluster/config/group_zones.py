"""Rules about the zones of node groups and pools: their names, and a subnet with room for the nodes in each."""

import re
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network

from ultracluster.catalog import (
    InstanceType,
    addresses,
    capacity_block_places,
    catalog,
    instance_types,
    listed_zones,
    offered_zones,
)
from ultracluster.config.fields import from_cdk
from ultracluster.config.fleet import Fleet
from ultracluster.config.karpenter import KarpenterPool
from ultracluster.config.network import RESERVED_ADDRESSES, ZONE_LETTERS, is_zone_id, subnet_plan, zone_plan
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.problems import Path, Problem

_POOLS: Path = ("control_plane", "karpenter", "pools")


def zone_problems(
    fleet: Fleet, region: str, own_zone: str, *, pods: int, pools: Sequence[KarpenterPool] = ()
) -> Iterator[Problem]:
    """Problems of `zones` of node groups and pools, at paths of the file. `pods` are addresses of a node's pods."""
    groups: list[tuple[Path, Sequence[str]]] = [
        (("node_groups", i), group.zones) for i, group in enumerate(fleet.node_groups)
    ]
    groups += [((*_POOLS, i), pool.zones) for i, pool in enumerate(pools)]
    for path, zones in groups:
        for j, zone in enumerate(zones):
            if zone == own_zone or from_cdk(zone):
                continue
            at: Path = (*path, "zones", j)
            if not re.fullmatch(rf"{re.escape(region)}[{ZONE_LETTERS}]", zone):
                message = f"{zone} is not an Availability Zone of {region}, such as {region}a"
                if is_zone_id(zone):
                    message = f"{zone} is the id of a zone; zones takes names, such as {region}a"
                yield Problem("zone-outside-region", at, message, f"set {region}a, or another zone of {region}")
                continue
            yield from _subnet(fleet, zone, at, pods)


def room_of_pools(
    fleet: Fleet, own_zone: str, own_nodes: int, *, pods: int, pools: Sequence[KarpenterPool]
) -> Iterator[Problem]:
    """Warnings about pools that cannot reach their limits: the subnets that are created have too few addresses.

    `own_nodes` are the addresses that others take in the subnet of `own_zone`. Karpenter launches no node in a full
    subnet (Karpenter 1.14, "NodeClasses").
    """
    create = fleet.network.create
    if create is None or any(problem.severity == "error" for problem in create.problems()):
        return
    for i, pool in enumerate(pools):
        zones = pool.zones or (own_zone,)
        left = sum(
            _addresses(create.block, zone, own_zone) - (own_nodes if zone == own_zone else _taken(fleet, zone, pods))
            for zone in zones
        )
        needed = min((pool.most(each) * _of_node(pool, each, pods) for each in pool.hardware), default=0)
        if needed > max(left, 0):
            have = "have" if len(zones) > 1 else "has"
            message = f"nodes up to the limits need {needed} addresses or more; {' and '.join(zones)} {have} "
            message += f"{max(left, 0)} left"
            hint = "lower limits, or set a wider network.create.cidr"
            yield Problem("pool-above-subnet", (*_POOLS, i, "limits"), message, hint, "warning")


def types_in_zones(fleet: Fleet, region: str, own_zone: str) -> Iterator[Problem]:
    """Warnings about zones that were not listed, and about types that no zone of their node group was listed with."""
    yield from _unlisted_zone(region, own_zone, ("availability_zone",))
    for i, group in fleet.known_groups:
        at: Path = ("node_groups", i)
        for j, zone in enumerate(group.zones):
            if zone != own_zone:
                yield from _unlisted_zone(region, zone, (*at, "zones", j))
        if group.purchase.type == "capacity_block" or group.hardware.ultraserver_only:
            yield from _blocks_in_zone(group, region, own_zone, (*at, "instance_type"))
            continue
        for j, name in enumerate(group.types):
            where: Path = ("instance_type",) if group.instance_type is not None else ("instance_types", j)
            yield from _type_in_zones(name, region, group.zones or (own_zone,), (*at, *where))


def pool_types_in_zone(pools: Sequence[KarpenterPool], region: str, own_zone: str) -> Iterator[Problem]:
    """The same warnings about pools of Karpenter."""
    for i, pool in enumerate(pools):
        for j, zone in enumerate(pool.zones):
            if zone != own_zone:
                yield from _unlisted_zone(region, zone, (*_POOLS, i, "zones", j))
        for j, name in enumerate(pool.instance_types):
            if name in instance_types and not instance_types[name].ultraserver_only:
                yield from _type_in_zones(name, region, pool.zones or (own_zone,), (*_POOLS, i, "instance_types", j))


def _unlisted_zone(region: str, zone: str, at: Path) -> Iterator[Problem]:
    listed = listed_zones(region)
    if listed and re.fullmatch(rf"{re.escape(region)}[{ZONE_LETTERS}]", zone) and zone not in listed:
        message = f"{zone} was not listed among the zones of {region}: {', '.join(listed)}"
        yield Problem("zone-not-listed", at, message, "`aws ec2 describe-availability-zones` lists yours", "warning")


def _type_in_zones(name: str, region: str, zones: Sequence[str], at: Path) -> Iterator[Problem]:
    listed = listed_zones(region)
    offered = offered_zones(name, region)
    # an unlisted zone has its own warning, and of Regions without a list nothing is known
    if {*zones} & {*offered} or (name not in catalog and not {*zones} & {*listed}):
        return
    where = ", ".join(offered) or f"no zone of {region}"
    message = f"{name} was not listed in {' and '.join(zones)}; it was listed in {where}"
    hint = "check with AWS that the zone offers the type"
    yield Problem("type-not-listed-in-zone", at, message, hint, "warning")


def _blocks_in_zone(group: NodeGroup, region: str, zone: str, at: Path) -> Iterator[Problem]:
    name, places = group.hardware.name, capacity_block_places(group.hardware.name)
    if name in catalog and not {region, zone} & {*places}:
        where = ", ".join(places) or f"no zone of {region}"
        message = f"{name} was not listed for capacity blocks in {zone}; it was listed in {where}"
        hint = "check with AWS that the zone offers the type"
        yield Problem("type-not-listed-in-zone", at, message, hint, "warning")


def _of_node(pool: KarpenterPool, hardware: InstanceType, pods: int) -> int:
    """Addresses of a node with those of its pods: small types hold fewer than the VPC CNI would keep warm."""
    return min(addresses(pool.layout) + pods, hardware.max_interfaces * hardware.ipv4_per_interface)


def _subnet(fleet: Fleet, zone: str, at: Path, pods: int) -> Iterator[Problem]:
    create, existing = fleet.network.create, fleet.network.existing
    if existing and zone not in existing.zone_subnet_ids:
        message = f"network.existing names no subnet in {zone}"
        hint = f"add zone_subnet_ids: {{{zone}: subnet-...}} to network.existing"
        yield Problem("zone-without-subnet", at, message, hint)
    if create is None or any(problem.severity == "error" for problem in create.problems()):
        return
    has, needed = _addresses(create.block, zone, ""), _taken(fleet, zone, pods)
    if needed > has:
        names = _names([group for _, group in fleet.known_groups if zone in group.zones])
        message = f"the subnet of nodes in {zone} has {has} addresses; the nodes of {names} need {needed}"
        yield Problem("subnet-too-small", at, message, "set a wider network.create.cidr, or lower count")


def _addresses(block: IPv4Network, zone: str, own_zone: str) -> int:
    """Addresses of the subnet of nodes in `zone`; in `own_zone` that of the environment."""
    if zone == own_zone:
        return subnet_plan(block).node_addresses
    plan = zone_plan(block)
    return plan[zone[-1]].num_addresses - RESERVED_ADDRESSES if zone[-1] in plan else 0


def _taken(fleet: Fleet, zone: str, pods: int) -> int:
    """Addresses that the node groups need in `zone`."""
    groups = [group for _, group in fleet.known_groups if zone in group.zones]
    return sum(group.max_count * (addresses(group.layout("eks")) + pods) for group in groups)


def _names(groups: Sequence[NodeGroup]) -> str:
    return " and ".join(group.name for group in groups)
