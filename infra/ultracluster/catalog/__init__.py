"""What AWS sells: instance types, their GPUs and network cards, UltraServers, and zones."""

from ultracluster.catalog.ec2_types import instance_types
from ultracluster.catalog.instance_types import (
    Efa,
    Gpu,
    InstanceStore,
    InstanceType,
    NetworkCard,
    NvLink,
    Published,
    SoftwareMinima,
    UltraClusterType,
    UltraServer,
    UnknownInstanceType,
    catalog,
    ultraservers,
)
from ultracluster.catalog.interfaces import Interface, Profile, addresses, efa_devices, interface_layout
from ultracluster.catalog.offerings import capacity_block_places, listed_zones, offered_zones

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
    "UltraClusterType",
    "UltraServer",
    "UnknownInstanceType",
    "addresses",
    "capacity_block_places",
    "catalog",
    "efa_devices",
    "instance_types",
    "interface_layout",
    "listed_zones",
    "offered_zones",
    "ultraservers",
]
