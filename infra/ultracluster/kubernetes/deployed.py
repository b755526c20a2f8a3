"""Names and ids of deployed resources, for use in values and objects. They may be tokens: never parse them."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class FileSystem:
    """The FSx for Lustre file system that pods mount."""

    file_system_id: str
    dns_name: str
    mount_name: str


@dataclass(frozen=True)
class NfsExport:
    """A folder of a file system that pods mount over NFS, with the options of the mount."""

    server: str
    folder: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class KarpenterResources:
    """What Karpenter launches nodes with, and the queue that announces interruptions of nodes to it.

    `zone_subnet_ids` are the subnets of nodes by Availability Zone.
    """

    interruption_queue: str
    node_role_name: str
    node_subnet_id: str
    cpu_subnet_ids: tuple[str, ...]
    efa_security_group_id: str
    cluster_security_group_id: str
    zone_subnet_ids: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LogGroups:
    """Names of the log groups of pods and nodes, and their Region."""

    pods: str
    nodes: str
    region: str


@dataclass(frozen=True)
class DeployedResources:
    """Resources of the other stacks. `buckets` maps their keys in the environment file to bucket names.

    `home` is the file system of homes, `more` maps further file systems by their names.
    """

    cluster_name: str
    file_system: FileSystem | None = None
    buckets: Mapping[str, str] = field(default_factory=dict)
    karpenter: KarpenterResources | None = None
    logs: LogGroups | None = None
    home: NfsExport | None = None
    more: Mapping[str, FileSystem | NfsExport] = field(default_factory=dict)
