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
"""First version of Slurm with which PCS takes a parameter or a gres.conf attribute of a compute node group."""
CLUSTER_SETTINGS_SINCE: dict[str, str] = _PCS["cluster_settings_since"]
"""First version of Slurm with which PCS takes a parameter of a cluster."""
CLUSTER_VALUES_SINCE: dict[str, dict[str, str]] = _PCS["cluster_values_since"]
"""First version of Slurm with which PCS takes a value of a parameter of a cluster, by parameter and value."""
QUEUE_SETTINGS_SINCE: dict[str, str] = _PCS["queue_settings_since"]
"""First version of Slurm with which PCS takes a parameter of a queue."""
NODE_GROUP_IDLE_TIME_SINCE: str = _PCS["node_group_idle_time_since"]
"""First version of Slurm with which PCS takes an idle time of one compute node group."""
GRES_SETTINGS: frozenset[str] = frozenset(_PCS["settings"]["gres"])
"""Attributes of a record of gres.conf that PCS takes for a compute node group."""
CGROUP_SETTINGS: frozenset[str] = frozenset(_PCS["settings"]["cgroup"])
SLURMDBD_SETTINGS: frozenset[str] = frozenset(_PCS["settings"]["slurmdbd"])
FORMS: dict[str, Form] = {name: form for form, names in _PCS["forms"].items() for name in names}
"""Form of the value of each Slurm setting whose form slurm.conf fixes."""
MINIMUM: dict[str, int] = _PCS["minimum"]
"""Smallest value that PCS accepts for a Slurm setting."""
HEALTH_CHECK_TIMEOUT_SECONDS: int = _PCS["health_check_timeout_seconds"]
"""Slurm's limit for a health check program, which PCS does not let change."""
METRICS_SINCE: str = CLUSTER_SETTINGS_SINCE["MetricsType"]
"""First version of Slurm whose controller serves metrics on PCS (AWS PCS User Guide, "Slurm metrics", 2026)."""
AGENT_VERSION: str = _PCS["agent_version"]
"""The first version of the PCS agent that runs node lifecycle actions."""
AGENT_IMAGE_BUILD: date = date.fromisoformat(_PCS["agent_image_build"])
"""The first build of AWS's PCS-ready image that has this agent."""
IMAGE_AGENTS: dict[str, str] = _PCS["image_agents"]
"""Version of the PCS agent in published builds of AWS's PCS-ready image, by AMI id."""


def runs_boot_steps(image: str, architecture: str = "x86_64") -> bool | None:
    """Whether the PCS agent of an image runs node lifecycle actions; None for an image whose agent is not known.

    `auto` is AWS's newest image, which has such an agent since `AGENT_IMAGE_BUILD` on x86_64. For arm64 no list of
    builds was found.
    """
    if image == "auto":
        return True if architecture == "x86_64" else None
    agent = IMAGE_AGENTS.get(image)
    return _numbers(agent) >= _numbers(AGENT_VERSION) if agent else None


def smallest_size(nodes: int) -> Size | None:
    """The smallest cluster size that manages `nodes` nodes; None if even the largest is too small."""
    return next((size for size, limit in SIZES.items() if nodes <= limit), None)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
