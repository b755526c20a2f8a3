"""Buckets, and the FSx for Lustre file system with its links to them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Annotated, Literal

from pydantic import Field

from ultracluster.catalog import lustre
from ultracluster.config.fields import KIND, NUMBER, TEXT, BucketName, Many, text
from ultracluster.config.problems import Problem, rule
from ultracluster.config.settings import Settings

Deployment = Literal["persistent_2", "scratch_2", "intelligent_tiering"]
Event = Literal["new", "changed", "deleted"]

_SMALLEST = {
    "capacity_gib": lustre.SMALL_CAPACITIES_GIB[0],
    "throughput_mbps_per_tib": lustre.THROUGHPUT_TIERS[0],
    "throughput_capacity_mbps": lustre.THROUGHPUT_CAPACITY_STEP_MBPS,
}


class Lifecycle(Settings):
    """When a bucket forgets old versions. Current versions are never expired: a link may need them."""

    noncurrent_days: Annotated[int, Field(ge=1)]
    """Days after which a version that was overwritten or deleted is removed."""


class Bucket(Settings):
    """A bucket created encrypted, versioned and retained; or, with `existing`, one that is only used."""

    existing: BucketName | None = None
    """Name of a bucket that exists; without it, one is created."""
    lifecycle: Lifecycle | None = None
    """When old versions are removed."""

    @rule
    def _existing_is_left_alone(self) -> Iterator[Problem]:
        if self.existing and self.lifecycle:
            message = f"the bucket {self.existing} exists, and its lifecycle is not changed from here"
            yield Problem("bucket-settings-ignored", "lifecycle", message, "remove lifecycle, or remove existing")


class S3Link(Settings):
    """A data repository association: a folder of the file system that shows a prefix of a bucket."""

    path: Annotated[str, text(r"^/[^\s]*$", "a path from the root of the file system, /datasets", max_length=4096)]
    """Folder of the file system."""
    bucket: str
    """Key of the bucket under storage.buckets."""
    prefix: Annotated[str, text(r"^([^/\s]\S*)?$", "a prefix without a slash at its start, raw/v1", max_length=900)] = (
        ""
    )
    """Prefix in the bucket; empty is all of it."""
    import_events: Many[Event] = ()
    """Changes in the bucket that appear in the folder by themselves."""
    export_events: Many[Event] = ()
    """Changes in the folder that are written to the bucket by themselves."""

    @property
    def folder(self) -> str:
        """`path` with a slash at its end, so that prefixes compare as folders."""
        return self.path.rstrip("/") + "/"

    @property
    def s3_folder(self) -> str:
        """Bucket key and prefix with a slash at the end."""
        return f"{self.bucket}/{self.prefix}".rstrip("/") + "/"


class Lustre(Settings):
    """An FSx for Lustre file system. `persistent_2` and `scratch_2` are SSD; `intelligent_tiering` grows by itself.

    `capacity_gib` in GiB and `throughput_mbps_per_tib` in MB/s per TiB for SSD, `throughput_capacity_mbps` in MBps for
    Intelligent-Tiering. `root_squash` is the UID:GID that root becomes.

    Source of the rules: FSx for Lustre User Guide (2026); figures in `infra/ultracluster/catalog/data/lustre.json`.
    """

    deployment: Deployment = "persistent_2"
    """Deployment type. persistent_2 keeps data when a server fails; scratch_2 does not."""
    capacity_gib: Annotated[int, Field(gt=0)] | None = None
    """Capacity in GiB, of SSD file systems."""
    throughput_mbps_per_tib: int | None = None
    """Throughput tier in MB/s per TiB, of persistent_2."""
    throughput_capacity_mbps: int | None = None
    """Throughput in MBps, of intelligent_tiering."""
    efa: bool = False
    """Whether clients reach it over EFA. Cannot be changed later."""
    metadata_iops: Annotated[Annotated[Literal["automatic"], TEXT] | Annotated[int, NUMBER], KIND] = "automatic"
    """Metadata IOPS; automatic follows the capacity."""
    compression: Literal["lz4", "none"] = "lz4"
    """Compression of files as they are written."""
    mount_path: Annotated[str, text(r"^/[a-z0-9][a-z0-9/_-]*$", "an absolute path, /fsx")] = "/fsx"
    """Where nodes mount it."""
    root_squash: Annotated[str, text(r"^\d{1,10}:\d{1,10}$", "UID:GID, 65534:65534")] | None = None
    """UID:GID that root on a client becomes."""
    links: Many[S3Link] = ()
    """Folders that show a bucket's prefix."""

    @property
    def ssd(self) -> bool:
        """Whether capacity is provisioned."""
        return self.deployment != "intelligent_tiering"

    @property
    def file_servers(self) -> int:
        """Servers, hence addresses in the node subnet, that the file system takes."""
        if self.ssd:
            iops = None if self.metadata_iops == "automatic" else self.metadata_iops
            tier = self.throughput_mbps_per_tib
            return lustre.file_servers(self.capacity_gib or 0, tier, efa=self.efa, metadata_iops=iops)
        return -(-(self.throughput_capacity_mbps or 0) // lustre.THROUGHPUT_CAPACITY_STEP_MBPS) + 1

    @rule
    def _settings_of_the_deployment(self) -> Iterator[Problem]:
        """Which figures a deployment type needs, and which it would ignore (CreateFileSystemLustreConfiguration)."""
        needs = {
            "persistent_2": ("capacity_gib", "throughput_mbps_per_tib"),
            "scratch_2": ("capacity_gib",),
            "intelligent_tiering": ("throughput_capacity_mbps",),
        }[self.deployment]
        for key in ("capacity_gib", "throughput_mbps_per_tib", "throughput_capacity_mbps"):
            value = getattr(self, key)
            if key in needs and value is None:
                message = f"{self.deployment} needs {key}"
                yield Problem("lustre-setting-missing", key, message, f"set {key}: {_SMALLEST[key]}, or more")
            elif key not in needs and value is not None:
                message = f"{value} means nothing to {self.deployment}, which takes {' and '.join(needs)}"
                yield Problem("lustre-setting-ignored", key, message, f"remove {key}")
        if self.deployment == "scratch_2" and self.metadata_iops != "automatic":
            message = f"{self.metadata_iops} means nothing to scratch_2, whose metadata performance is fixed"
            yield Problem("lustre-setting-ignored", "metadata_iops", message, "remove metadata_iops")

    @rule
    def _tier(self) -> Iterator[Problem]:
        """PerUnitStorageThroughput of PERSISTENT_2 SSD."""
        tier = self.throughput_mbps_per_tib
        if self.deployment == "persistent_2" and tier is not None and tier not in lustre.THROUGHPUT_TIERS:
            allowed = ", ".join(map(str, lustre.THROUGHPUT_TIERS))
            message = f"{tier} is not a throughput tier; allowed are {allowed}"
            hint = f"set throughput_mbps_per_tib: {_at_least(tier, lustre.THROUGHPUT_TIERS)}"
            yield Problem("lustre-throughput-tier", "throughput_mbps_per_tib", message, hint)

    @rule
    def _capacity(self) -> Iterator[Problem]:
        """SSD file systems without EFA come in 1,200 GiB, 2,400 GiB and multiples of 2,400 GiB."""
        capacity, step = self.capacity_gib, lustre.CAPACITY_STEP_GIB
        if self.efa or not self.ssd or capacity is None or capacity in lustre.SMALL_CAPACITIES_GIB:
            return
        if capacity % step:
            small = " or ".join(map(str, lustre.SMALL_CAPACITIES_GIB))
            message = f"{capacity} GiB is not a size; allowed are {small} and multiples of {step}"
            yield Problem("lustre-capacity", "capacity_gib", message, f"set capacity_gib: {_next(capacity, step)}")

    @rule
    def _efa_capacity(self) -> Iterator[Problem]:
        """EFA file systems come in whole object servers (FSx User Guide, "EFA-enabled file systems")."""
        step = lustre.EFA_STEP_GIB.get(self.throughput_mbps_per_tib or 0)
        if self.efa and self.ssd and step and self.capacity_gib is not None and self.capacity_gib % step:
            tier = self.throughput_mbps_per_tib
            message = f"{self.capacity_gib} GiB with efa; allowed are multiples of {step} at {tier} MB/s/TiB"
            hint = f"set capacity_gib: {_next(self.capacity_gib, step)}"
            yield Problem("lustre-efa-capacity", "capacity_gib", message, hint)

    @rule
    def _efa_deployment(self) -> Iterator[Problem]:
        """EFA needs PERSISTENT_2 with a metadata configuration (FSx User Guide, "EFA-enabled file systems")."""
        if self.efa and self.deployment == "scratch_2":
            message = "scratch_2 has no EFA; persistent_2 and intelligent_tiering have"
            yield Problem("lustre-efa-deployment", "efa", message, "set deployment: persistent_2, or efa: false")

    @rule
    def _throughput_capacity(self) -> Iterator[Problem]:
        """ThroughputCapacity of Intelligent-Tiering."""
        value, step = self.throughput_capacity_mbps, lustre.THROUGHPUT_CAPACITY_STEP_MBPS
        if self.ssd or value is None:
            return
        if value % step or not step <= value <= lustre.THROUGHPUT_CAPACITY_MAXIMUM_MBPS:
            maximum = lustre.THROUGHPUT_CAPACITY_MAXIMUM_MBPS
            message = f"{value} MBps is not a throughput capacity; allowed are multiples of {step} up to {maximum}"
            hint = f"set throughput_capacity_mbps: {min(_next(max(value, 1), step), maximum)}"
            yield Problem("lustre-throughput-capacity", "throughput_capacity_mbps", message, hint)

    @rule
    def _metadata(self) -> Iterator[Problem]:
        """MetadataConfiguration.Iops; Intelligent-Tiering takes only provisioned ones."""
        allowed = lustre.METADATA_IOPS if self.ssd else lustre.INTELLIGENT_TIERING_METADATA_IOPS
        if self.deployment == "scratch_2" or (self.metadata_iops == "automatic" and self.ssd):
            return
        if self.metadata_iops not in allowed:
            figures = ", ".join(map(str, allowed))
            message = f"{self.metadata_iops} is not allowed for {self.deployment}; allowed are {figures}"
            wanted = 0 if self.metadata_iops == "automatic" else self.metadata_iops
            hint = f"set metadata_iops: {_at_least(wanted, allowed)}"
            yield Problem("lustre-metadata-iops", "metadata_iops", message, hint)

    @rule
    def _links(self) -> Iterator[Problem]:
        """Paths and prefixes of associations may not overlap, and "/" stands alone (FSx User Guide, DRA overview)."""
        if self.links and not self.ssd:
            message = "intelligent_tiering takes no data repository associations; persistent_2 and scratch_2 do"
            yield Problem("links-not-supported", "links", message, "remove links, or change deployment")
        if len(self.links) > lustre.MAXIMUM_LINKS:
            message = f"{len(self.links)} links; a file system has at most {lustre.MAXIMUM_LINKS}"
            yield Problem("wrong-length", "links", message, "merge links, or use prefixes of one bucket")
        for (i, first), (j, second) in combinations(enumerate(self.links), 2):
            if _overlap(first.folder, second.folder):
                message = f"{second.path} overlaps {first.path} of links[{i}]; paths may not contain each other"
                yield Problem("link-overlap", ("links", j, "path"), message, "give each link a folder of its own")
            if _overlap(first.s3_folder, second.s3_folder):
                message = (
                    f"{second.s3_folder} overlaps {first.s3_folder} of links[{i}]; prefixes may not contain each other"
                )
                yield Problem("link-overlap", ("links", j, "prefix"), message, "give each link a prefix of its own")


class Storage(Settings):
    """What outlives the nodes."""

    buckets: Mapping[
        Annotated[
            str,
            text(
                r"^[a-z][a-z0-9-]{0,19}$", "a name of up to 20 lower-case letters, digits and hyphens, a letter first"
            ),
        ],
        Bucket,
    ] = Field(default_factory=dict)
    """Buckets by a name that links refer to."""
    lustre: Lustre | None = None
    """The FSx for Lustre file system."""

    @rule
    def _links_name_buckets(self) -> Iterator[Problem]:
        for i, link in enumerate(self.lustre.links if self.lustre else ()):
            if link.bucket not in self.buckets:
                known = ", ".join(self.buckets) or "none"
                message = f"{link.bucket} is not under storage.buckets; known are: {known}"
                at = ("lustre", "links", i, "bucket")
                yield Problem("link-bucket-unknown", at, message, f"add {link.bucket}: {{}} under storage.buckets")


def _at_least(value: int, allowed: Sequence[int]) -> int:
    """The smallest allowed figure that is not below `value`, or the largest there is."""
    return next((figure for figure in allowed if figure >= value), allowed[-1])


def _next(value: int, step: int) -> int:
    return -(-value // step) * step


def _overlap(first: str, second: str) -> bool:
    return first.startswith(second) or second.startswith(first)
