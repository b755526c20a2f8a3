"""AWS Parallel Computing Service: Slurm versions, cluster sizes, quotas and settings.

Source of every figure: `data/pcs.json`.
"""

from datetime import date
from typing import Any, Literal

from ultracluster.catalog.records import records

Size = Literal["small", "medium", "large"]
Form = Literal["time", "yes_no", "number", "oversubscribe"]

_PCS: dict[str, Any] = records("pcs")

SLURM_VERSIONS: dict[str, date] = {
    version: date.fromisoformat(entry["end_of_life"]) for version, entry in _PCS["slurm_versions"].items()
}
SIZES: dict[Size, int] = {size: entry["nodes"] for size, entry in _PCS["sizes"].items()}
MAXIMUM_NODE_GROUPS: int = _PCS["maximum_node_groups"]
MAXIMUM_QUEUES: int = _PCS["maximum_queues"]
IMAGE_PARAMETER: str = _PCS["image_parameter"]
"""Public SSM parameter of AWS's PCS-ready image, with `{architecture}` to fill in."""
CLUSTER_SETTINGS: frozenset[str] = frozenset(_PCS["settings"]["cluster"])
QUEUE_SETTINGS: frozenset[str] = frozenset(_PCS["settings"]["queue"])
NODE_GROUP_SETTINGS: frozenset[str] = frozenset(_PCS["settings"]["compute_node_group"])
NODE_GROUP_SETTINGS_SINCE: dict[str, str] = _PCS["compute_node_group_settings_since"]
"""First version of Slurm with which PCS takes a parameter of a compute node group."""
CGROUP_SETTINGS: frozenset[str] = frozenset(_PCS["settings"]["cgroup"])
SLURMDBD_SETTINGS: frozenset[str] = frozenset(_PCS["settings"]["slurmdbd"])
FORMS: dict[str, Form] = {name: form for form, names in _PCS["forms"].items() for name in names}
"""Form of the value of each Slurm setting whose form slurm.conf fixes."""
MINIMUM: dict[str, int] = _PCS["minimum"]
"""Smallest value that PCS accepts for a Slurm setting."""
HEALTH_CHECK_TIMEOUT_SECONDS: int = _PCS["health_check_timeout_seconds"]
"""Slurm's limit for a health check program, which PCS does not let change."""
AGENT_VERSION: str = _PCS["agent_version"]
"""The first version of the PCS agent that runs node lifecycle actions."""


def smallest_size(nodes: int) -> Size | None:
    """The smallest cluster size that manages `nodes` nodes; None if even the largest is too small."""
    return next((size for size, limit in SIZES.items() if nodes <= limit), None)
