"""Network interface layouts of instances."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from ultracluster.catalog.instance_types import Efa, InstanceType, InterfaceType

Profile = Literal["fewest_ips", "max_bandwidth", "efa_with_ip", "without_efa"]


class Interface(NamedTuple):
    """One interface of a launch template."""

    card: int
    device: int
    kind: InterfaceType


def interface_layout(instance_type: InstanceType, profile: Profile) -> tuple[Interface, ...]:
    """Interfaces that provide the whole EFA bandwidth of `instance_type`, primary first.

    `fewest_ips` takes one IPv4 address per node: an ENA primary, and `efa-only` on every EFA card. `max_bandwidth` adds
    the ENA interfaces that AWS documents for the type. `efa_with_ip` uses `efa` interfaces with one address each, for
    services that drop `efa-only` interfaces; a card that supports only `efa-only` keeps `efa-only`. Types without EFA
    on card 0 (P6-B300, P6e-GB200) get an ENA primary with every profile. `without_efa` is one ENA interface, which is
    all that types without EFA get.

    Source: EC2 User Guide, "Maximize network bandwidth on EFA-enabled accelerated instances" (2026); for
    `efa_with_ip`, the device indexes of AWS's PCS reference templates (awsome-distributed-ai, July 2026).
    """
    if profile == "without_efa" or instance_type.efa is None:
        return (Interface(0, 0, "interface"),)
    if profile == "efa_with_ip":
        return tuple(_efa_with_ip(instance_type, instance_type.efa))
    layout = [Interface(0, 0, "interface"), *_efa_only(instance_type.efa)]
    if profile == "max_bandwidth":
        layout += [Interface(card, 1, "interface") for card in instance_type.ena_cards]
    return tuple(layout)


def addresses(layout: Sequence[Interface]) -> int:
    """IPv4 addresses of one node with this layout: one for each interface except `efa-only`."""
    return sum(interface.kind != "efa-only" for interface in layout)


def efa_devices(layout: Sequence[Interface]) -> int:
    """EFA devices of one node with this layout."""
    return sum(interface.kind != "interface" for interface in layout)


def _efa_only(efa: Efa) -> Iterator[Interface]:
    """One `efa-only` for each EFA card: device 0, or device 1 on card 0 after the primary."""
    for card in efa.cards:
        yield Interface(card, 1 if card == 0 else 0, "efa-only")


def _efa_with_ip(instance_type: InstanceType, efa: Efa) -> Iterator[Interface]:
    """One `efa` for each EFA card that supports it. If card 0 has EFA, the primary is `efa`, the others device 1."""
    efa_on_card_0 = 0 in efa.cards
    yield Interface(0, 0, "efa" if efa_on_card_0 else "interface")
    for card in efa.cards:
        if card > 0:
            kind: InterfaceType = "efa" if "efa" in instance_type.network_cards[card].interface_types else "efa-only"
            yield Interface(card, int(efa_on_card_0), kind)
