"""How a node group launches: one decision from its purchase and placement, and the rules about both.

Sources: EC2 User Guide, "Capacity Blocks for ML", "Launch instances using Capacity Blocks" and "Capacity Reservations
in cluster placement groups" (2026); AWS PCS User Guide, "Using ODCRs with AWS PCS" and capacity block pages (2026);
ParallelCluster, PlacementGroupCapacityReservationValidator (2026); EC2's RequestLaunchTemplateData.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ultracluster.catalog import InstanceType, ultraservers
from ultracluster.config.codes import Code
from ultracluster.config.fields import from_cdk
from ultracluster.config.problems import Problem
from ultracluster.config.purchase import Placement, Purchase

MarketType = Literal["spot", "capacity-block", "interruptible-capacity-reservation"]

_MARKETS: dict[str, MarketType] = {
    "spot": "spot",
    "capacity_block": "capacity-block",
    "interruptible_reservation": "interruptible-capacity-reservation",
}

_WITH_GROUP = ("on_demand", "spot")
"""Purchases that get a new placement group under `placement: auto`."""

MAXIMUM_BLOCK_INSTANCES = 64
"""Instances of one Capacity Block (EC2 User Guide, "Capacity Blocks for ML")."""

_RESERVATION_ID = re.compile(r"cr-([0-9a-f]{8}|[0-9a-f]{17})")
_GROUP_ARN = re.compile(r"arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:\d{12}:group/[a-zA-Z0-9_.-]{1,300}(/[a-z0-9]+)?")


@dataclass(frozen=True)
class Launch:
    """Market, capacity reservation and placement group of a launch template.

    `market` is InstanceMarketOptions' type, None for On-Demand. `reservation_id` or `reservation_group_arn` is the
    capacity reservation target. `cluster_group` is True for a new cluster placement group, the name of an existing
    one, or False for no placement group.
    """

    market: MarketType | None
    reservation_id: str | None
    reservation_group_arn: str | None
    cluster_group: bool | str


class Request(NamedTuple):
    """Input of the launch rules: the instances of a node group, their purchase and their placement."""

    hardware: InstanceType
    min_count: int
    max_count: int
    purchase: Purchase
    placement: Placement


def decide(purchase: Purchase, placement: Placement, *, efa: bool = True) -> Launch:
    """How instances with this purchase and placement launch.

    `auto` creates a cluster placement group for On-Demand and Spot instances with EFA only. Capacity Blocks are already
    inside an UltraCluster and take no placement group. An On-Demand Capacity Reservation takes only the placement group
    that it was created in: with another, EC2 reports insufficient capacity although the reservation has capacity left.
    """
    cluster_group: bool | str
    if isinstance(placement, str):
        cluster_group = placement == "auto" and purchase.type in _WITH_GROUP and efa
    else:
        cluster_group = placement.existing
    return Launch(
        market=_MARKETS.get(purchase.type),
        reservation_id=purchase.reservations[0] if purchase.reservations else None,
        reservation_group_arn=purchase.reservation_group_arn,
        cluster_group=cluster_group,
    )


def launch_problems(request: Request) -> Iterator[Problem]:
    """Problems of a node group's purchase and placement, at paths of the node group."""
    yield from _placement(request)
    yield from _reservation(request.purchase)
    yield from _ultraserver(request)


def _placement(request: Request) -> Iterator[Problem]:
    if isinstance(request.placement, str):
        return
    if request.purchase.type == "capacity_block":
        message = "a capacity block is already inside an UltraCluster and cannot launch into a placement group"
        yield Problem("placement-with-capacity-block", "placement", message, "set placement: none")
    if request.purchase.type == "interruptible_reservation":
        message = "AWS does not document whether an interruptible reservation can launch into a placement group"
        hint = "set placement: none"
        yield Problem("placement-with-interruptible-reservation", "placement", message, hint, "warning")
    if request.purchase.type == "reservation":
        group = request.placement.existing
        message = (
            f"the reservation launches into {group} only if it was created in that placement group; otherwise EC2 "
        )
        message += "reports insufficient capacity"
        hint = "check PlacementGroupArn in `aws ec2 describe-capacity-reservations`; without one, set placement: none"
        yield Problem("placement-with-reservation", "placement", message, hint, "warning")


def _reservation(purchase: Purchase) -> Iterator[Problem]:
    named = [
        key for key in ("reservation_id", "reservation_group_arn", "reservation_ids") if getattr(purchase, key, None)
    ]
    if purchase.type in ("on_demand", "spot"):
        code: Code = "spot-with-reservation" if purchase.type == "spot" else "on-demand-with-reservation"
        for key in named:
            message = f"{purchase.type} does not launch into reservations, so {key} would be ignored"
            hint = f"remove {key}, or set type: reservation or type: capacity_block"
            yield Problem(code, ("purchase", key), message, hint)
        return
    if not named:
        key = "reservation_ids" if purchase.ultraserver else "reservation_id"
        message = f"{purchase.type} requires {key}"
        message += " or reservation_group_arn" if purchase.type == "reservation" else ""
        example = "[cr-...]" if purchase.ultraserver else "cr-..."
        yield Problem("reservation-missing", "purchase", message, f"add {key}: {example}")
    if len(named) > 1:
        message = f"{' and '.join(named)} are set; a launch template has one capacity reservation target"
        yield Problem("reservation-ambiguous", "purchase", message, f"keep {named[0]}, and remove the other")
    if purchase.type != "reservation" and purchase.reservation_group_arn:
        message = f"{purchase.type} is targeted by reservation id, not by resource group"
        hint = "replace reservation_group_arn with reservation_id: cr-..."
        yield Problem("reservation-of-other-kind", ("purchase", "reservation_group_arn"), message, hint)
    yield from _reservation_format(purchase)


def _reservation_format(purchase: Purchase) -> Iterator[Problem]:
    for at, reservation in purchase.reservations_by_path:
        if not from_cdk(reservation) and not _RESERVATION_ID.fullmatch(reservation):
            message = f"{reservation} is not the id of a capacity reservation, such as cr-0123456789abcdef0"
            inside = re.search(rf"/({_RESERVATION_ID.pattern})$", reservation)
            hint = f"set {at[0]}: {inside[1]}" if inside else "copy CapacityReservationId from EC2"
            yield Problem("reservation-id-format", ("purchase", *at), message, hint)
    arn = purchase.reservation_group_arn
    if arn and not from_cdk(arn) and not _GROUP_ARN.fullmatch(arn):
        message = f"{arn} is not the ARN of a resource group"
        hint = "use the form arn:aws:resource-groups:us-east-2:111122223333:group/name"
        yield Problem("reservation-id-format", ("purchase", "reservation_group_arn"), message, hint)


def _ultraserver(request: Request) -> Iterator[Problem]:
    purchase, hardware = request.purchase, request.hardware
    if hardware.ultraserver_only and purchase.type != "capacity_block":
        message = f"{hardware.name} is sold only in capacity blocks of UltraServers, not as {purchase.type}"
        yield Problem("ultraserver-needs-capacity-block", "purchase", message, "set type: capacity_block")
        return
    if not purchase.ultraserver:
        if hardware.ultraserver_only:
            fitting = [u.name for u in ultraservers.values() if request.max_count % u.instances == 0]
            message = f"{hardware.name} is sold in UltraServers: {', '.join(ultraservers)}"
            hint = f"add ultraserver: {[*ultraservers, *fitting][-1]} and reservation_ids: [cr-...]"
            yield Problem("ultraserver-missing", "purchase", message, hint)
        elif purchase.reservation_ids:
            message = "reservation_ids is for UltraServers; use reservation_id"
            hint = f"set reservation_id: {purchase.reservation_ids[0]}"
            hint += ", and use another node group for each other id" if len(purchase.reservation_ids) > 1 else ""
            yield Problem("ultraserver-blocks", ("purchase", "reservation_ids"), message, hint)
        elif purchase.type == "capacity_block" and request.max_count > MAXIMUM_BLOCK_INSTANCES:
            message = f"{request.max_count} instances; a capacity block has at most {MAXIMUM_BLOCK_INSTANCES}"
            yield Problem(
                "capacity-block-too-large",
                "count",
                message,
                "split the node group, one capacity block each",
            )
        return
    if purchase.ultraserver not in ultraservers:
        message = f"{purchase.ultraserver} is not an UltraServer; allowed: {', '.join(ultraservers)}"
        hint = f"set ultraserver: {' or '.join(ultraservers)}"
        yield Problem("value-not-allowed", ("purchase", "ultraserver"), message, hint)
        return
    for i, reservation in enumerate(purchase.reservation_ids):
        if reservation in purchase.reservation_ids[:i]:
            message = f"{reservation} is already reservation_ids[{purchase.reservation_ids.index(reservation)}]"
            at = ("purchase", "reservation_ids", i)
            yield Problem("duplicate-name", at, message, "set the reservation id of the other UltraServer")
    bought = ultraservers[purchase.ultraserver]
    if bought.instance_type is not hardware:
        message = f"{bought.name} consists of {bought.instance_type.name} instances, not {hardware.name}"
        yield Problem(
            "ultraserver-mismatch", "instance_type", message, f"set instance_type: {bought.instance_type.name}"
        )
        return
    if purchase.reservation_id:
        message = "UltraServers take reservation_ids, one id per UltraServer"
        yield Problem(
            "ultraserver-blocks",
            ("purchase", "reservation_id"),
            message,
            f"replace reservation_id with reservation_ids: [{purchase.reservation_id}]",
        )
    wanted = bought.instances * max(1, len(purchase.reservation_ids))
    if purchase.reservation_ids and not request.min_count == request.max_count == wanted:
        blocks = len(purchase.reservation_ids)
        ids_need = "1 reservation id needs" if blocks == 1 else f"{blocks} reservation ids need"
        message = f"a {bought.name} has {bought.instances} instances, so {ids_need} count {wanted}"
        yield Problem("ultraserver-count", "count", message, f"set count: {wanted}")
