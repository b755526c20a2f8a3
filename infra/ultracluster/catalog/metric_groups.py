"""Groups of metrics that an environment can give up, with the alerts that need them. `make docs` writes the data.

The metrics themselves, and the rules of alerts, are in `ultracluster.telemetry`, a floor above the environment file.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Literal

from ultracluster.catalog.records import records

Plane = Literal["pcs", "eks"]

METRIC_GROUPS: Mapping[str, Mapping[Plane, tuple[str, ...]]] = MappingProxyType(
    {
        name: MappingProxyType({plane: tuple(alerts) for plane, alerts in planes.items()})
        for name, planes in records("metric_groups")["groups"].items()
    }
)
"""Names of alerts by group, such as nccl/p2p, and by the control planes on which the group is collected."""


def nearest_groups(name: str) -> tuple[str, ...]:
    """The groups that `name` probably means: all groups of an exporter, or the most similar ones."""
    of_exporter = tuple(group for group in METRIC_GROUPS if group.startswith(f"{name.partition('/')[0]}/"))
    similar = get_close_matches(name, METRIC_GROUPS, n=2, cutoff=0.7)
    return tuple(similar) or of_exporter
