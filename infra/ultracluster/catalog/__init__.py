"""What AWS sells: accelerated instance types, their GPUs and network cards, UltraServers, and zones."""

from ultracluster.catalog.instance_types import (
    Efa,
    Gpu,
    InstanceStore,
    InstanceType,
    NetworkCard,
    NvLink,
    Published,
    SoftwareMinima,
    UltraServer,
    UnknownInstanceType,
    catalog,
    ultraservers,
)
from ultracluster.catalog.interfaces import Interface, Profile, addresses, interface_layout
from ultracluster.catalog.offerings import capacity_block_places, offered_zones

__all__ = [
    "Efa",
    "Gpu",
    "InstanceStore",
    "InstanceType",
    "Interface",
    "NetworkCard",
    "NvLink",
    "Profile",
    "Published",
    "SoftwareMinima",
    "UltraServer",
    "UnknownInstanceType",
    "addresses",
    "capacity_block_places",
    "catalog",
    "interface_layout",
    "offered_zones",
    "ultraservers",
]
