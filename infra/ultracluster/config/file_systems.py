"""File systems beside the first Lustre: homes, and further or existing ones."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from ultracluster.catalog import nfs
from ultracluster.config import effect_rules as rules
from ultracluster.config.effects import IN_PLACE
from ultracluster.config.fields import FileSystemId, Name, SecurityGroupId, kind_of, text
from ultracluster.config.lustre import Lustre, LustreServers, MountPath
from ultracluster.config.problems import Problem, rule
from ultracluster.config.settings import Settings

HOME = "/home"
"""Where homes are mounted."""

MAXIMUM_MORE = 8
"""Further file systems of an environment: a script of a PCS node takes 20 arguments (PCS API, 2026)."""

OpenZfsDeployment = Literal["single_az_ha_2", "single_az_2", "single_az_ha_1", "single_az_1"]


class _Existing(Settings):
    """A file system that may exist. An existing one is used unchanged."""

    type: Annotated[str, rules.FILE_SYSTEM_KIND]
    """The service."""
    existing: Annotated[FileSystemId | None, rules.EXISTING_FILE_SYSTEM] = None
    """Id of an existing file system in the VPC of the environment. Without it, a file system is created."""
    security_group: Annotated[SecurityGroupId | None, IN_PLACE] = None
    """Security group of an existing file system. Rules that let the nodes in are added; without it, its owner does
    that."""

    # keys that an existing file system takes, and those that only it takes
    USED: ClassVar[frozenset[str]] = frozenset({"type", "name", "mount_path", "existing", "security_group"})
    ONLY_EXISTING: ClassVar[tuple[str, ...]] = ("security_group",)

    def problems(self) -> Iterator[Problem]:
        """Problems of this section's rules. Rules for new file systems do not apply to an existing one."""
        # a value that is the default says nothing: an environment that was written out has all of them
        fields = type(self).model_fields.items()
        given = [key for key, field in fields if getattr(self, key) != field.default]
        if self.existing is None:
            for key in self.ONLY_EXISTING:
                if key in given:
                    message = f"{key} is for an existing file system, so it would be ignored"
                    yield Problem("file-system-setting-ignored", key, message, f"remove {key}, or set existing")
            yield from super().problems()
            return
        for key in given:
            if key not in self.USED and key not in self.ONLY_EXISTING:
                message = (
                    f"{self.existing} is an existing file system, which is used unchanged, so {key} would be ignored"
                )
                yield Problem("file-system-setting-ignored", key, message, f"remove {key}, or remove existing")


class OpenZfs(_Existing):
    """An FSx for OpenZFS file system, mounted over NFS 4.2, with snapshots and quotas of users.

    `single_az_ha_2` has NVMe caches and a second file server that takes over within a minute; `single_az_2` has the
    caches only, `single_az_ha_1` the second server only, `single_az_1` neither.

    Source: FSx for OpenZFS User Guide (2026); figures in `infra/ultracluster/catalog/data/openzfs.json`.
    """

    type: Annotated[Literal["openzfs"], rules.FILE_SYSTEM_KIND]
    """The service."""
    deployment: Annotated[OpenZfsDeployment, rules.FILE_SYSTEM_KIND] = "single_az_ha_2"
    """Deployment type. Not every Region has every type."""
    capacity_gib: Annotated[Annotated[int, Field(ge=nfs.SMALLEST_GIB, le=nfs.LARGEST_GIB)] | None, rules.CAPACITY] = (
        None
    )
    """Storage capacity in GiB. It can grow later, by at least a tenth, and never shrink."""
    throughput_mbps: Annotated[int | None, rules.OPENZFS_THROUGHPUT] = None
    """Throughput capacity in MBps, for all clients together."""
    volume: Annotated[
        str, text(r"^/fsx(/[A-Za-z0-9_.-]+)*$", "the path of a volume such as /fsx/home"), rules.MOUNTED
    ] = "/fsx"
    """Volume of an existing file system that is mounted. /fsx is the root volume."""

    ONLY_EXISTING: ClassVar[tuple[str, ...]] = ("security_group", "volume")

    @property
    def addresses(self) -> int:
        """Addresses that it takes in the node subnet."""
        return 0 if self.existing else nfs.ADDRESSES[self.deployment]

    @rule
    def _sizes(self) -> Iterator[Problem]:
        """Settings that a new file system requires (CreateFileSystemOpenZFSConfiguration)."""
        for key, smallest in (("capacity_gib", nfs.SMALLEST_GIB), ("throughput_mbps", self._throughputs[0])):
            if getattr(self, key) is None:
                message = f"a new OpenZFS file system requires {key}"
                yield Problem("file-system-setting-missing", key, message, f"set {key}: {smallest}, or more")

    @rule
    def _throughput(self) -> Iterator[Problem]:
        """ThroughputCapacity by DeploymentType."""
        value, allowed = self.throughput_mbps, self._throughputs
        if value is not None and value not in allowed:
            figures = ", ".join(map(str, allowed))
            message = f"{value} MBps is not a throughput capacity of {self.deployment}; allowed: {figures}"
            larger = next((figure for figure in allowed if figure >= value), allowed[-1])
            yield Problem("openzfs-throughput", "throughput_mbps", message, f"set throughput_mbps: {larger}")

    @property
    def _throughputs(self) -> tuple[int, ...]:
        return nfs.THROUGHPUTS_MBPS[self.deployment]


class Efs(_Existing):
    """An Amazon EFS file system: NFS 4.1. It grows and shrinks with its files, so it takes no capacity."""

    type: Annotated[Literal["efs"], rules.FILE_SYSTEM_KIND]
    """The service."""

    @property
    def addresses(self) -> int:
        """Addresses that it takes in the node subnet."""
        return 0 if self.existing else 1


class _More(_Existing):
    """A further file system, with a name and a place of its own."""

    name: Annotated[Name, rules.FILE_SYSTEM_KIND]
    """Name of the file system in this file, in its stack and in the volumes of teams."""
    mount_path: Annotated[MountPath, rules.MOUNT_PATH]
    """Path where nodes mount the file system, and pods of teams its volume."""
    read_only: Annotated[bool, rules.MOUNTED] = False
    """Whether an existing file system is mounted read-only."""

    ONLY_EXISTING: ClassVar[tuple[str, ...]] = ("security_group", "read_only")


class MoreOpenZfs(OpenZfs, _More):
    """A further FSx for OpenZFS file system, or an existing one."""

    ONLY_EXISTING: ClassVar[tuple[str, ...]] = ("security_group", "read_only", "volume")


class MoreEfs(Efs, _More):
    """A further EFS file system, or an existing one."""


class MoreLustre(LustreServers, _More):
    """A further FSx for Lustre file system, or an existing one; without links, and without root squash."""

    type: Annotated[Literal["lustre"], rules.FILE_SYSTEM_KIND]
    """The service."""

    USED: ClassVar[frozenset[str]] = _Existing.USED | {"efa"}

    def problems(self) -> Iterator[Problem]:
        """Problems of this section's rules."""
        yield from super().problems()
        if self.existing and self.efa and not self.security_group:
            message = "EFA needs rules that name the security group of the file servers, which is not known"
            hint = "set security_group: sg-..., or remove efa"
            yield Problem("file-system-setting-missing", "security_group", message, hint)

    @property
    def lustre(self) -> Lustre:
        """The file system as one that nodes mount. Of an existing one only `efa` and `mount_path` have a meaning."""
        names = ("efa", "mount_path") if self.existing else (*LustreServers.model_fields, "mount_path")
        # without rules: those of this section have judged the values, and report them
        return Lustre.model_construct(**{name: getattr(self, name) for name in names})

    @property
    def addresses(self) -> int:
        """Addresses that it takes in the node subnet."""
        return 0 if self.existing else self.file_servers


def _home_kind(value: Any) -> str | None:
    return f"<{value}>" if isinstance(value, str) else kind_of(value)


Home = Annotated[
    Annotated[OpenZfs, Tag("<openzfs>")] | Annotated[Efs, Tag("<efs>")] | Annotated[Literal["none"], Tag("<none>")],
    Discriminator(_home_kind),
]
"""The file system of homes, or none: each node then has homes of its own."""

More = Annotated[
    Annotated[MoreLustre, Tag("<lustre>")]
    | Annotated[MoreOpenZfs, Tag("<openzfs>")]
    | Annotated[MoreEfs, Tag("<efs>")],
    Discriminator(kind_of),
]
"""A further file system of any service."""
