"""The two kinds of things that are put into a cluster, and what only the deployment knows about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ultracluster.catalog.software import Chart

Object = dict[str, Any]
"""A Kubernetes object as JSON has it."""


@dataclass(frozen=True)
class Release:
    """A Helm release of `chart` with `values`. `after` names what must be in the cluster before it.

    `waits` has Helm wait until it runs, and undo an upgrade that does not. What runs on accelerated nodes must not: one
    node out of order would undo the upgrade of all.
    """

    name: str
    chart: Chart
    values: Mapping[str, Any]
    after: tuple[str, ...] = ()
    waits: bool = True


@dataclass(frozen=True)
class Objects:
    """Kubernetes objects that come and go together. `retained` ones stay when they leave the file."""

    name: str
    items: tuple[Object, ...]
    after: tuple[str, ...] = ()
    retained: bool = False


@dataclass(frozen=True)
class FileSystem:
    """The FSx file system that pods mount: its id, host name and Lustre mount name."""

    file_system_id: str
    dns_name: str
    mount_name: str


@dataclass(frozen=True)
class Elastic:
    """What Karpenter launches nodes with: where it hears of interruptions, and where its nodes go."""

    interruption_queue: str
    node_role_name: str
    node_subnet_id: str
    cpu_subnet_ids: tuple[str, ...]
    efa_security_group_id: str
    cluster_security_group_id: str


@dataclass(frozen=True)
class Deployed:
    """Names and ids that the other stacks create. They may be tokens: put them into values, do not look into them."""

    cluster_name: str
    file_system: FileSystem | None = None
    buckets: Mapping[str, str] = field(default_factory=dict)
    elastic: Elastic | None = None
