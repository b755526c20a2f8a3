"""Rules about capacity reservations that several node groups name."""

from collections.abc import Iterator

from ultracluster.config.fleet import Fleet
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.problems import Path, Problem


def reservation_problems(fleet: Fleet) -> Iterator[Problem]:
    """Validation problems of reservations, at paths of the file.

    A reservation has one instance type (EC2 API, CreateCapacityReservation and PurchaseCapacityBlock, 2026). A node
    group launches all instances of its UltraServers, so a second group with one of them launches none.
    """
    used: dict[str, NodeGroup] = {}
    for i, group in fleet.known_groups:
        for key, reservation in group.purchase.reservations_by_path:
            first = used.setdefault(reservation, group)
            if first is group:
                continue
            at: Path = ("node_groups", i, "purchase", *key)
            if not {*first.types} & {*group.types}:
                message = f"{reservation} is the reservation of {first.name}, for {first.types[0]}; a reservation has "
                message += "one instance type"
                hint = f"set the id of a reservation for {group.types[0]}"
                yield Problem("reservation-of-other-type", at, message, hint)
            elif group.purchase.ultraserver and first.purchase.ultraserver:
                message = f"{reservation} is already a block of {first.name}, which launches all of its instances"
                yield Problem("ultraserver-block-twice", at, message, "set the reservation id of the other UltraServer")
