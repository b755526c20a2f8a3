"""AWS Regions with their partition, and the Regions of services that not every Region has.

Source of every list: `data/regions.json`.
"""

from typing import Any

from ultracluster.catalog.records import records

_REGIONS: dict[str, Any] = records("regions")

READ: str = _REGIONS["read"]
"""Date of the lists."""
PARTITIONS: dict[str, str] = {
    region: partition for partition, regions in _REGIONS["regions"].items() for region in regions
}
"""Partition of each Region."""
PCS_REGIONS: frozenset[str] = frozenset(_REGIONS["pcs"])
GRAFANA_REGIONS: frozenset[str] = frozenset(_REGIONS["grafana"])
ZONE_ID_PREFIXES: dict[str, str] = _REGIONS["zone_id_prefixes"]
"""Start of the ids of a Region's Availability Zones: `use1` of us-east-1. Some Regions are missing."""
