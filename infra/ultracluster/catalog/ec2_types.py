"""All EC2 instance types: those of the catalogue, and every other that EC2 described when the list was read.

The list ages: a newer type is missing. Source: `data/ec2_types.json`.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any

from ultracluster.catalog.instance_types import (
    Efa,
    InstanceStore,
    InstanceType,
    NetworkCard,
    UnknownInstanceType,
    UsageClass,
    catalog,
)
from ultracluster.catalog.records import records

USAGE_CLASSES: tuple[UsageClass, ...] = ("on-demand", "spot")
"""How EC2 sells a type whose record names nothing else."""


class _InstanceTypes(Mapping[str, InstanceType]):
    """Instance types by name, each made when it is asked for. An unknown name raises UnknownInstanceType."""

    def __getitem__(self, name: str) -> InstanceType:
        """The type called `name`."""
        if name in catalog:
            return catalog[name]
        if name not in self:
            raise UnknownInstanceType(name, nearest=nearest(name))
        return _described(name)

    def __contains__(self, name: object) -> bool:
        family, _, size = str(name).partition(".")
        return name in catalog or size in _families().get(family, {}).get("sizes", ())

    def __iter__(self) -> Iterator[str]:
        listed = (f"{family}.{size}" for family, entry in _families().items() for size in entry["sizes"])
        return iter(dict.fromkeys((*catalog, *listed)))

    def __len__(self) -> int:
        return sum(1 for _ in self)


instance_types: Mapping[str, InstanceType] = _InstanceTypes()


def read_on() -> str:
    """Date of the list."""
    date: str = records("ec2_types")["read"]
    return date


def nearest(name: str) -> tuple[str, ...]:
    """Up to three types that are most like `name`: of its family, or else of a family with a similar name."""
    family, _, size = name.lower().partition(".")
    families = {**_families(), **{each.family: {"sizes": [each.name.partition(".")[2]]} for each in _unlisted()}}
    alike = [family] if family in families else get_close_matches(family, families, n=2)
    found = [
        (near, each) for near in alike for each in get_close_matches(size, families[near]["sizes"], n=3, cutoff=0.4)
    ]
    return tuple(f"{near}.{each}" for near, each in found)[:3]


def family_types(family: str) -> tuple[str, ...]:
    """Types of a family; empty for an unknown family."""
    sizes = dict.fromkeys(_families().get(family, {}).get("sizes", ()))
    own = [each.name for each in catalog.values() if each.family == family]
    return tuple(dict.fromkeys((*(f"{family}.{size}" for size in sizes), *own)))


def nearest_families(family: str) -> tuple[str, ...]:
    """Up to three families with a name like `family`."""
    known = {**_families(), **{each.family: None for each in catalog.values()}}
    return tuple(get_close_matches(family.lower(), known, n=3))


def _unlisted() -> list[InstanceType]:
    """Types of the catalogue that EC2's records lack."""
    return [each for each in catalog.values() if each.family not in _families()]


def _families() -> dict[str, Any]:
    families: dict[str, Any] = records("ec2_types")["families"]
    return families


@cache
def _described(name: str) -> InstanceType:
    family, _, size = name.partition(".")
    shared = _families()[family]
    record = shared["sizes"][size]
    gpus, gpu_mib = record.get("gpus", (0, 0))
    disks, disk_gb = record.get("disks", (0, 0))
    cards = tuple(_cards(record["cards"]))
    part = "part of a GPU" if shared.get("gpu") and not gpus else None
    return InstanceType(
        name=name,
        architecture=shared["architecture"],
        vcpus=record["vcpus"],
        cores=record["cores"],
        memory_gib=record["memory"],
        gpu_model=shared.get("gpu") if gpus else None,
        gpu_count=gpus,
        gpu_memory_mib=gpu_mib,
        accelerator=part or shared.get("accelerator"),
        network_cards=cards,
        max_interfaces=record["interfaces"],
        ipv4_per_interface=record["addresses"],
        efa=_efa(cards, record["efa"]) if "efa" in record else None,
        ena_cards=(),
        instance_store=InstanceStore(disks, disk_gb),
        topology_depth=None,
        usage_classes=frozenset(record.get("bought", USAGE_CLASSES)),
    )


def _cards(runs: list[list[Any]]) -> Iterator[NetworkCard]:
    index = 0
    for number, gbps, interfaces, efa in runs:
        for _ in range(number):
            yield NetworkCard(index, gbps, ("interface", "efa", "efa-only") if efa else ("interface",), interfaces)
            index += 1


def _efa(cards: tuple[NetworkCard, ...], interfaces: int) -> Efa:
    """One EFA on each card that supports it."""
    able = [card for card in cards if "efa" in card.interface_types][:interfaces]
    return Efa(None, tuple(card.index for card in able), able[0].gbps, interfaces)
