"""AWS Parallel Computing Service: Slurm versions, cluster sizes, quotas and settings.

Source of every figure: `data/pcs.json`.
"""

from datetime import date
from typing import Any, Literal, NamedTuple

from ultracluster.catalog.records import records

Size = Literal["small", "medium", "large"]
Form = Literal["time", "yes_no", "number", "oversubscribe", "program", "ranges", "count", "ports", "purge"]

_PCS: dict[str, Any] = records("pcs")

SLURM_VERSIONS: dict[str, date] = {
    version: date.fromisoformat(entry["end_of_life"]) for version, entry in _PCS["slurm_versions"].items()
}
NEWEST_SLURM: str = max(SLURM_VERSIONS)
"""Newest Slurm version of this catalogue."""
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
VALUES: dict[str, list[str]] = _PCS["values"]
"""Words that PCS or Slurm takes in a list, by parameter."""
QUEUE_SETTINGS_SINCE: dict[str, str] = _PCS["queue_settings_since"]
"""First version of Slurm with which PCS takes a parameter of a queue."""
NODE_GROUP_IDLE_TIME_SINCE: str = _PCS["node_group_idle_time_since"]
"""First version of Slurm with which PCS takes an idle time of one compute node group."""
SOCKETS_KNOWN_SINCE: str = _PCS["sockets_known_since"]
"""First version of Slurm with which PCS sets the sockets of nodes itself."""
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
UPGRADES: dict[str, tuple[str, ...]] = {
    version: tuple(entry["upgrades_to"]) for version, entry in _PCS["slurm_versions"].items()
}
"""Versions of Slurm to which PCS upgrades a cluster in place, oldest first, by the version that it has."""
REMOVED_WORDS: dict[str, dict[str, list[str]]] = _PCS["removed_words"]
"""Words in parameters of slurm.conf that a version of Slurm has no longer, by version and parameter."""
SPANK_PLUGINS_KEPT_SINCE: str = _PCS["spank_plugins_kept_since"]
"""First version of Slurm to which nodes with SPANK plugins are upgraded one by one."""


class ImageBuild(NamedTuple):
    """A published build of AWS's PCS-ready image: its date, PCS agent, and the versions of Slurm that it has."""

    built: date
    agent: str
    slurm: tuple[str, ...]

    def has(self, slurm_version: str) -> bool:
        """Whether the image has a major version of Slurm such as 25.11."""
        return any(version.startswith(f"{slurm_version}.") for version in self.slurm)


IMAGE_BUILDS: dict[str, ImageBuild] = {
    image: ImageBuild(date.fromisoformat(entry["built"]), entry["agent"], tuple(entry["slurm"]))
    for image, entry in _PCS["image_builds"].items()
}
"""Published builds of AWS's PCS-ready image whose AMI ids are known."""
IMAGE_AGENTS: dict[str, str] = {image: build.agent for image, build in IMAGE_BUILDS.items()}
"""Version of the PCS agent in published builds of AWS's PCS-ready image, by AMI id."""
NEWEST_IMAGE: str = max(IMAGE_BUILDS, key=lambda image: IMAGE_BUILDS[image].built)
"""The newest known build; AWS may have published newer ones."""


def scheduler_parameters(slurm_version: str) -> tuple[str, ...]:
    """Words of SchedulerParameters of PCS itself; lists of clusters name them again, since they may replace them."""
    since: dict[str, str] = _PCS["scheduler_parameters_since"]
    return tuple(word for word, first in since.items() if slurm_version >= first)


def whole_nodes(slurm_version: str) -> tuple[str, str]:
    """The setting of a queue, and its value, with which a job gets whole nodes.

    Source: AWS PCS User Guide, "Custom Slurm settings for AWS PCS queues" (2026): Exclusive replaces the other.
    """
    return (
        ("Exclusive", "NODE") if slurm_version >= QUEUE_SETTINGS_SINCE["Exclusive"] else ("OverSubscribe", "EXCLUSIVE")
    )


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
