"""Where each network interface of an accelerated instance goes."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from ultracluster.catalog.instance_types import InstanceType, InterfaceType

Profile = Literal["fewest_ips", "max_bandwidth", "efa_with_ip"]


class Interface(NamedTuple):
    """One interface of a launch template."""

    card: int
    device: int
    kind: InterfaceType


def interface_layout(instance_type: InstanceType, profile: Profile) -> tuple[Interface, ...]:
    """Interfaces that give `instance_type` its whole EFA bandwidth, primary first.

    `fewest_ips` spends one IPv4 address a node: a plain primary and `efa-only` on every EFA card. `max_bandwidth` adds
    the ENA interfaces that AWS documents for the type. `efa_with_ip` wires `efa` interfaces, one address each, for
    launchers that do not pass `efa-only` on; a card that takes only `efa-only` keeps it. Types without EFA on card 0
    (P6-B300, P6e-GB200) get a plain primary under every profile.

    Source: EC2 User Guide, "Maximize network bandwidth on EFA-enabled accelerated instances" (2026); for
    `efa_with_ip`, the device indexes of AWS's PCS reference templates (awsome-distributed-ai, July 2026).
    """
    if profile == "efa_with_ip":
        return tuple(_efa_with_ip(instance_type))
    layout = [Interface(0, 0, "interface"), *_efa_only(instance_type)]
    if profile == "max_bandwidth":
        layout += [Interface(card, 1, "interface") for card in instance_type.ena_cards]
    return tuple(layout)


def addresses(layout: Sequence[Interface]) -> int:
    """IPv4 addresses that one node with this layout takes: one for each interface but `efa-only`."""
    return sum(interface.kind != "efa-only" for interface in layout)


def _efa_only(instance_type: InstanceType) -> Iterator[Interface]:
    """One `efa-only` for each EFA card, at device 0, or at device 1 behind the primary on card 0."""
    for card in instance_type.efa.cards:
        yield Interface(card, 1 if card == 0 else 0, "efa-only")


def _efa_with_ip(instance_type: InstanceType) -> Iterator[Interface]:
    """One `efa` for each EFA card that takes it. On card 0 it is the primary, and the others sit at 1."""
    efa_on_card_0 = 0 in instance_type.efa.cards
    yield Interface(0, 0, "efa" if efa_on_card_0 else "interface")
    for card in instance_type.efa.cards:
        if card > 0:
            kind: InterfaceType = "efa" if "efa" in instance_type.network_cards[card].interface_types else "efa-only"
            yield Interface(card, int(efa_on_card_0), kind)
