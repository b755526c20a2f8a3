"""How a node group launches: one decision over its purchase and placement, with a code for each refusal.

Sources: EC2 User Guide, "Capacity Blocks for ML", "Launch instances using Capacity Blocks" and "Capacity Reservations
in cluster placement groups" (2026); AWS PCS User Guide, capacity block pages (2026); EC2's RequestLaunchTemplateData.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ultracluster.catalog import ultraservers
from ultracluster.config.codes import Code
from ultracluster.config.problems import Path, Problem

if TYPE_CHECKING:
    from ultracluster.config.node_groups import NodeGroup

MarketType = Literal["spot", "capacity-block", "interruptible-capacity-reservation"]

_TAKES_NO_GROUP = ("capacity_block", "interruptible_reservation")

MAXIMUM_BLOCK_INSTANCES = 64
"""Instances of one Capacity Block (EC2 User Guide, "Capacity Blocks for ML")."""

_RESERVATION_ID = re.compile(r"cr-[0-9a-f]{8,17}")
_GROUP_ARN = re.compile(r"arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:\d{12}:group/\S+")


@dataclass(frozen=True)
class Launch:
    """What the launch template of a group says.

    `market` is InstanceMarketOptions' type, None for On-Demand. `reservation_id` or `reservation_group_arn` is the
    capacity reservation target.
    `cluster_group` is True for a cluster placement group of its own, a name for one that exists, False for none.
    """

    market: MarketType | None
    reservation_id: str | None
    reservation_group_arn: str | None
    cluster_group: bool | str


@dataclass(frozen=True)
class Decision:
    """The launch of a group, and what speaks against it. With any error among `problems`, do not launch."""

    launch: Launch
    problems: tuple[Problem, ...]


def decide(group: "NodeGroup") -> Decision:
    """How `group`, of a type in the catalogue, launches.

    Capacity Blocks already sit inside an UltraCluster and take no placement group; everything else keeps a cluster
    placement group, On-Demand Capacity Reservations included.
    """
    purchase = group.purchase
    markets: dict[str, MarketType] = {
        "spot": "spot",
        "capacity_block": "capacity-block",
        "interruptible_reservation": "interruptible-capacity-reservation",
    }
    cluster_group: bool | str
    if isinstance(group.placement, str):
        cluster_group = group.placement == "auto" and purchase.type not in _TAKES_NO_GROUP
    else:
        cluster_group = group.placement.existing
    launch = Launch(
        market=markets.get(purchase.type),
        reservation_id=purchase.reservations[0] if purchase.reservations else None,
        reservation_group_arn=purchase.reservation_group_arn,
        cluster_group=cluster_group,
    )
    return Decision(launch, (*_placement(group), *_reservation(group), *_ultraserver(group)))


def _placement(group: "NodeGroup") -> Iterator[Problem]:
    if isinstance(group.placement, str):
        return
    if group.purchase.type == "capacity_block":
        message = "a capacity block already sits inside an UltraCluster and cannot launch into a placement group"
        yield Problem("placement-with-capacity-block", "placement", message, "set placement: none")
    if group.purchase.type == "interruptible_reservation":
        message = "whether an interruptible reservation launches into a placement group is not documented"
        hint = "set placement: none"
        yield Problem("placement-with-interruptible-reservation", "placement", message, hint, "warning")


def _reservation(group: "NodeGroup") -> Iterator[Problem]:
    purchase = group.purchase
    named = [
        key for key in ("reservation_id", "reservation_group_arn", "reservation_ids") if getattr(purchase, key, None)
    ]
    if purchase.type in ("on_demand", "spot"):
        code: Code = "spot-with-reservation" if purchase.type == "spot" else "on-demand-with-reservation"
        for key in named:
            message = f"{purchase.type} does not run in a reservation, so {key} would be ignored"
            hint = f"remove {key}, or set type: reservation or capacity_block"
            yield Problem(code, ("purchase", key), message, hint)
        return
    if not named:
        key = "reservation_ids" if purchase.ultraserver else "reservation_id"
        message = f"{purchase.type} needs the id of what was bought"
        example = "[cr-...]" if purchase.ultraserver else "cr-..."
        yield Problem("reservation-missing", "purchase", message, f"add {key}: {example}")
    if len(named) > 1:
        message = f"{' and '.join(named)} name more than one target; a launch has one"
        yield Problem("reservation-ambiguous", "purchase", message, f"keep {named[0]}")
    if purchase.type != "reservation" and purchase.reservation_group_arn:
        message = f"{purchase.type} is targeted by its id, not by a resource group"
        hint = "name the reservation with reservation_id"
        yield Problem("reservation-of-other-kind", ("purchase", "reservation_group_arn"), message, hint)
    yield from _reservation_format(group)


def _reservation_format(group: "NodeGroup") -> Iterator[Problem]:
    purchase = group.purchase
    ids: list[Path] = [("reservation_id",)] if purchase.reservation_id else []
    ids = [*ids, *(("reservation_ids", i) for i in range(len(purchase.reservation_ids)))]
    for at, reservation in zip(ids, purchase.reservations, strict=True):
        if not _RESERVATION_ID.fullmatch(reservation):
            message = f"{reservation} is not the id of a capacity reservation, which looks like cr-0123456789abcdef0"
            inside = re.search(r"/(cr-[0-9a-f]{8,17})$", reservation)
            hint = f"set {at[0]}: {inside[1]}" if inside else "copy CapacityReservationId from EC2"
            yield Problem("reservation-id-format", ("purchase", *at), message, hint)
    arn = purchase.reservation_group_arn
    if arn and not _GROUP_ARN.fullmatch(arn):
        message = f"{arn} is not the ARN of a resource group"
        hint = "it looks like arn:aws:resource-groups:us-east-2:111122223333:group/name"
        yield Problem("reservation-id-format", ("purchase", "reservation_group_arn"), message, hint)


def _ultraserver(group: "NodeGroup") -> Iterator[Problem]:
    purchase, hardware = group.purchase, group.hardware
    if hardware.ultraserver_only and purchase.type != "capacity_block":
        message = f"{group.instance_type} is sold only as UltraServer capacity blocks, not {purchase.type}"
        yield Problem("ultraserver-needs-capacity-block", "purchase", message, "set type: capacity_block")
        return
    if not purchase.ultraserver:
        if hardware.ultraserver_only:
            fitting = [u.name for u in ultraservers.values() if group.max_count % u.instances == 0]
            message = f"{group.instance_type} comes in UltraServers: {', '.join(ultraservers)}"
            hint = f"add ultraserver: {[*ultraservers, *fitting][-1]} and reservation_ids: [cr-...]"
            yield Problem("ultraserver-missing", "purchase", message, hint)
        elif purchase.reservation_ids:
            message = "several reservations are for UltraServers; a group launches into one"
            hint = "name it with reservation_id, and the others in groups of their own"
            yield Problem("ultraserver-blocks", ("purchase", "reservation_ids"), message, hint)
        elif purchase.type == "capacity_block" and group.max_count > MAXIMUM_BLOCK_INSTANCES:
            message = f"{group.max_count} instances; a capacity block has at most {MAXIMUM_BLOCK_INSTANCES}"
            yield Problem("capacity-block-too-large", "count", message, "split the group, one block each")
        return
    if purchase.ultraserver not in ultraservers:
        message = f"{purchase.ultraserver} is no UltraServer; there are {', '.join(ultraservers)}"
        yield Problem("value-not-allowed", ("purchase", "ultraserver"), message, "choose one of them")
        return
    for i, reservation in enumerate(purchase.reservation_ids):
        if reservation in purchase.reservation_ids[:i]:
            message = f"{reservation} is reservation_ids[{purchase.reservation_ids.index(reservation)}] already"
            at = ("purchase", "reservation_ids", i)
            yield Problem("duplicate-name", at, message, "name the block of the other UltraServer")
    bought = ultraservers[purchase.ultraserver]
    if bought.instance_type is not hardware:
        message = f"{bought.name} is made of {bought.instance_type.name}, not of {group.instance_type}"
        yield Problem("ultraserver-mismatch", "instance_type", message, f"set it to {bought.instance_type.name}")
        return
    if purchase.reservation_id:
        message = "an UltraServer's reservations are a list, one block each"
        yield Problem("ultraserver-blocks", ("purchase", "reservation_id"), message, "write reservation_ids: [cr-...]")
    wanted = bought.instances * max(1, len(purchase.reservation_ids))
    if purchase.reservation_ids and not group.min_count == group.max_count == wanted:
        blocks = len(purchase.reservation_ids)
        blocks_have = "1 block has" if blocks == 1 else f"{blocks} blocks have"
        message = f"{blocks_have} {wanted} instances: a {bought.name} is {bought.instances}"
        yield Problem("ultraserver-count", "count", message, f"set count: {wanted}")
