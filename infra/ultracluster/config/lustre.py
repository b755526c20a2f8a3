"""The FSx for Lustre file system with its links to buckets."""

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Annotated, Literal

from pydantic import Field

from ultracluster.catalog import lustre
from ultracluster.config import effect_rules as rules
from ultracluster.config.backups import unsupported
from ultracluster.config.effects import IN_PLACE
from ultracluster.config.fields import KIND, NUMBER, TEXT, Many, text
from ultracluster.config.problems import Problem, rule
from ultracluster.config.root_squash import NID, NID_FORM, root_squash_problems
from ultracluster.config.settings import Settings

MountPath = Annotated[
    str,
    text(
        r"^(/[a-z0-9][a-z0-9_-]*)+$",
        "an absolute path of lower-case letters, digits, _ and -, without a slash at the end, such as /fsx",
        max_length=200,
    ),
]
"""Where nodes mount a file system."""

Deployment = Literal["persistent_2", "scratch_2", "intelligent_tiering"]
Event = Literal["new", "changed", "deleted"]

MAXIMUM_FOLDER_BYTES = 255
"""Bytes of a file name in Lustre (Lustre Operations Manual, "File Name and Path Size Limits")."""

_SMALLEST = {
    "capacity_gib": lustre.SMALL_CAPACITIES_GIB[0],
    "throughput_mbps_per_tib": lustre.THROUGHPUT_TIERS[0],
    "throughput_capacity_mbps": lustre.THROUGHPUT_CAPACITY_STEP_MBPS,
}


class S3Link(Settings):
    """A data repository association: links a folder of the file system to a prefix of a bucket."""

    path: Annotated[
        str,
        text(r"^/[^\s]*$", "an absolute path in the file system such as /datasets", max_length=4096),
        rules.LINK_KEY,
    ]
    """Folder of the file system, from its root."""
    bucket: Annotated[str, rules.LINK_KEY]
    """Key of the bucket under storage.buckets."""
    prefix: Annotated[
        str, text(r"^([^/\s]\S*)?$", "a prefix without a leading slash such as raw/v1", max_length=900), rules.LINK_KEY
    ] = ""
    """Prefix in the bucket. Empty: the whole bucket."""
    import_events: Annotated[Many[Event], rules.IMPORTS] = ()
    """Changes in the bucket that FSx imports into the folder automatically."""
    export_events: Annotated[Many[Event], rules.EXPORTS] = ()
    """Changes in the folder that FSx exports to the bucket automatically."""

    @rule
    def _plain_folders(self) -> Iterator[Problem]:
        """A folder has one path, whose parts Lustre can store: at most 255 bytes, not empty, neither . nor .."""
        for key, folder in (("path", self.path[1:]), ("prefix", self.prefix)):
            problem = _folder_problem(folder.removesuffix("/"))
            if problem:
                yield Problem("invalid-format", key, f"{key} {problem}", f"correct {key}")

    @rule
    def _distinct_events(self) -> Iterator[Problem]:
        """CloudFormation refuses an event that is listed twice (AWS::FSx::DataRepositoryAssociation, uniqueItems)."""
        for key, events in (("import_events", self.import_events), ("export_events", self.export_events)):
            for i, event in enumerate(events):
                if event in events[:i]:
                    message = f"{event} is already {key}[{events.index(event)}]"
                    yield Problem("duplicate-name", (key, i), message, "remove the duplicate")

    @property
    def folder(self) -> str:
        """`path` with a trailing slash, so that paths compare folder by folder."""
        return self.path.rstrip("/") + "/"

    @property
    def s3_folder(self) -> str:
        """Bucket key and prefix with a trailing slash."""
        return f"{self.bucket}/{self.prefix}".rstrip("/") + "/"


class LustreServers(Settings):
    """Servers and disks of Lustre. `persistent_2` and `scratch_2` are SSD, `intelligent_tiering` is elastic.

    SSD file systems take `capacity_gib` in GiB, `persistent_2` also `throughput_mbps_per_tib` in MB/s per TiB;
    Intelligent-Tiering takes `throughput_capacity_mbps` in MBps.

    Source of the rules: FSx for Lustre User Guide (2026); figures in `infra/ultracluster/catalog/data/lustre.json`.
    """

    deployment: Annotated[Deployment, rules.FILE_SYSTEM_KIND] = "persistent_2"
    """Deployment type. persistent_2 keeps data when a server fails; scratch_2 does not."""
    capacity_gib: Annotated[Annotated[int, Field(gt=0)] | None, rules.CAPACITY] = None
    """Storage capacity in GiB, for SSD file systems."""
    throughput_mbps_per_tib: Annotated[int | None, rules.TIER] = None
    """Throughput tier in MB/s per TiB, for persistent_2."""
    throughput_capacity_mbps: Annotated[int | None, rules.ONLY_HIGHER] = None
    """Throughput capacity in MBps, for intelligent_tiering."""
    efa: Annotated[bool, rules.FILE_SYSTEM_EFA] = False
    """Whether clients connect over EFA. Cannot be changed later."""
    metadata_iops: Annotated[
        Annotated[Literal["automatic"], TEXT] | Annotated[int, NUMBER], KIND, rules.ONLY_HIGHER
    ] = "automatic"
    """Metadata IOPS. automatic: follows the capacity."""
    compression: Annotated[Literal["lz4", "none"], IN_PLACE] = "lz4"
    """Data compression of new files."""

    @property
    def ssd(self) -> bool:
        """Whether this is an SSD file system, with provisioned capacity."""
        return self.deployment != "intelligent_tiering"

    @property
    def file_servers(self) -> int:
        """File servers. Each takes one address in the node subnet."""
        if self.ssd:
            iops = None if self.metadata_iops == "automatic" else self.metadata_iops
            tier = self.throughput_mbps_per_tib
            return lustre.file_servers(self.capacity_gib or 0, tier, efa=self.efa, metadata_iops=iops)
        return -(-(self.throughput_capacity_mbps or 0) // lustre.THROUGHPUT_CAPACITY_STEP_MBPS) + 1

    @rule
    def _settings_of_the_deployment(self) -> Iterator[Problem]:
        """Settings that each deployment type requires or ignores (CreateFileSystemLustreConfiguration)."""
        needs = {
            "persistent_2": ("capacity_gib", "throughput_mbps_per_tib"),
            "scratch_2": ("capacity_gib",),
            "intelligent_tiering": ("throughput_capacity_mbps",),
        }[self.deployment]
        if missing := [key for key in needs if getattr(self, key) is None]:
            message = f"{self.deployment} requires {' and '.join(missing)}"
            hint = " and ".join(f"{key}: {_SMALLEST[key]}" for key in missing)
            at = missing[0] if len(missing) == 1 else ()
            yield Problem("lustre-setting-missing", at, message, f"set {hint}, or more")
        for key in ("capacity_gib", "throughput_mbps_per_tib", "throughput_capacity_mbps"):
            value = getattr(self, key)
            if key not in needs and value is not None:
                message = f"{key} does not apply to {self.deployment}, which takes {' and '.join(needs)}"
                yield Problem("lustre-setting-ignored", key, message, f"remove {key}")
        if self.deployment == "scratch_2" and self.metadata_iops != "automatic":
            message = "metadata_iops does not apply to scratch_2, whose metadata performance is fixed"
            yield Problem("lustre-setting-ignored", "metadata_iops", message, "remove metadata_iops")

    @rule
    def _tier(self) -> Iterator[Problem]:
        """PerUnitStorageThroughput of PERSISTENT_2 SSD."""
        tier = self.throughput_mbps_per_tib
        if self.deployment == "persistent_2" and tier is not None and tier not in lustre.THROUGHPUT_TIERS:
            allowed = ", ".join(map(str, lustre.THROUGHPUT_TIERS))
            message = f"{tier} MB/s/TiB is not a throughput tier; allowed: {allowed}"
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
            message = f"{capacity} GiB is not a valid capacity; allowed: {small} and multiples of {step}"
            larger = next((size for size in lustre.SMALL_CAPACITIES_GIB if size > capacity), _next(capacity, step))
            yield Problem("lustre-capacity", "capacity_gib", message, f"set capacity_gib: {larger}")

    @rule
    def _efa_capacity(self) -> Iterator[Problem]:
        """EFA file systems consist of whole object servers (FSx User Guide, "EFA-enabled file systems")."""
        step = lustre.EFA_STEP_GIB.get(self.throughput_mbps_per_tib or 0)
        if self.efa and self.ssd and step and self.capacity_gib is not None and self.capacity_gib % step:
            tier = self.throughput_mbps_per_tib
            message = f"{self.capacity_gib} GiB is not valid with efa; allowed: multiples of {step} at {tier} MB/s/TiB"
            hint = f"set capacity_gib: {_next(self.capacity_gib, step)}"
            yield Problem("lustre-efa-capacity", "capacity_gib", message, hint)

    @rule
    def _efa_deployment(self) -> Iterator[Problem]:
        """EFA requires PERSISTENT_2 with a metadata configuration (FSx User Guide, "EFA-enabled file systems")."""
        if self.efa and self.deployment == "scratch_2":
            message = "scratch_2 does not support EFA; persistent_2 and intelligent_tiering do"
            yield Problem("lustre-efa-deployment", "efa", message, "set deployment: persistent_2, or set efa: false")

    @rule
    def _throughput_capacity(self) -> Iterator[Problem]:
        """ThroughputCapacity of Intelligent-Tiering."""
        value, step = self.throughput_capacity_mbps, lustre.THROUGHPUT_CAPACITY_STEP_MBPS
        if self.ssd or value is None:
            return
        if value % step or not step <= value <= lustre.THROUGHPUT_CAPACITY_MAXIMUM_MBPS:
            maximum = lustre.THROUGHPUT_CAPACITY_MAXIMUM_MBPS
            message = f"{value} MBps is not a valid throughput capacity; allowed: multiples of {step} up to {maximum}"
            hint = f"set throughput_capacity_mbps: {min(_next(max(value, 1), step), maximum)}"
            yield Problem("lustre-throughput-capacity", "throughput_capacity_mbps", message, hint)

    @rule
    def _metadata(self) -> Iterator[Problem]:
        """MetadataConfiguration.Iops; Intelligent-Tiering accepts provisioned IOPS only."""
        allowed = lustre.METADATA_IOPS if self.ssd else lustre.INTELLIGENT_TIERING_METADATA_IOPS
        if self.deployment == "scratch_2" or (self.metadata_iops == "automatic" and self.ssd):
            return
        if self.metadata_iops not in allowed:
            figures = ", ".join(map(str, allowed))
            message = f"{self.metadata_iops} is not allowed for {self.deployment}; allowed: {figures}"
            wanted = 0 if self.metadata_iops == "automatic" else self.metadata_iops
            hint = f"set metadata_iops: {_at_least(wanted, allowed)}"
            yield Problem("lustre-metadata-iops", "metadata_iops", message, hint)


class Lustre(LustreServers):
    """An FSx for Lustre file system. `persistent_2` and `scratch_2` are SSD, `intelligent_tiering` is elastic.

    SSD file systems take `capacity_gib` in GiB, `persistent_2` also `throughput_mbps_per_tib` in MB/s per TiB;
    Intelligent-Tiering takes `throughput_capacity_mbps` in MBps.
    """

    mount_path: Annotated[MountPath, rules.MOUNT_PATH] = "/fsx"
    """Path where nodes mount the file system."""
    root_squash: Annotated[
        Annotated[str, text(r"^\d{1,10}:\d{1,10}$", "UID:GID such as 65534:65534")] | None, IN_PLACE
    ] = None
    """UID:GID that root of a client is mapped to, except on the clients of no_squash_nids."""
    no_squash_nids: Annotated[
        Many[Annotated[str, text(NID, NID_FORM, max_length=43)]], Field(max_length=64), IN_PLACE
    ] = ()
    """Clients whose root stays root: the hosts that create folders and set owners."""
    links: Annotated[Many[S3Link], rules.LINK] = ()
    """Folders that are linked to a prefix of a bucket."""

    @property
    def unbacked(self) -> tuple[str, str] | None:
        """Why FSx makes no backups of it, and what to do; None if it makes them."""
        return unsupported(temporary=self.deployment == "scratch_2", linked=bool(self.links))

    @rule
    def _root_squash_leaves_an_administrator(self) -> Iterator[Problem]:
        """Rules of LustreRootSquashConfiguration, and of what is left to do for root (FSx API Reference, 2026)."""
        yield from root_squash_problems(self.root_squash, self.no_squash_nids)

    @rule
    def _links(self) -> Iterator[Problem]:
        """Paths and prefixes of associations must not overlap; "/" overlaps all (FSx User Guide, DRA overview)."""
        if self.links and not self.ssd:
            message = "intelligent_tiering does not support data repository associations; persistent_2 and scratch_2 do"
            yield Problem("links-not-supported", "links", message, "remove links, or set deployment: persistent_2")
        if len(self.links) > lustre.MAXIMUM_LINKS:
            message = f"{len(self.links)} links; the maximum is {lustre.MAXIMUM_LINKS} per file system"
            yield Problem(
                "wrong-length", "links", message, "merge links of the same bucket into one link with a common prefix"
            )
        for (i, first), (j, second) in combinations(enumerate(self.links), 2):
            if _overlap(first.folder, second.folder):
                message = f"{second.path} overlaps {first.path} of links[{i}]; a path must not contain another"
                yield Problem(
                    "link-overlap", ("links", j, "path"), message, "choose a folder that overlaps no other link"
                )
            if _overlap(first.s3_folder, second.s3_folder):
                message = (
                    f"{second.s3_folder} overlaps {first.s3_folder} of links[{i}]; a prefix must not contain another"
                )
                yield Problem(
                    "link-overlap", ("links", j, "prefix"), message, "choose a prefix that overlaps no other link"
                )


def _folder_problem(folder: str) -> str | None:
    """What is wrong with the path of a folder, None for a path that is fine."""
    parts = folder.split("/") if folder else []
    if any(unicodedata.category(character)[0] in "CZ" for character in folder):
        return "contains a non-printable character"
    if "" in parts:
        return "contains a folder without a name: //"
    if "." in parts or ".." in parts:
        return "contains '.' or '..' as a folder"
    if any(len(part.encode()) > MAXIMUM_FOLDER_BYTES for part in parts):
        return f"contains a folder name of more than {MAXIMUM_FOLDER_BYTES} bytes"
    return None


def _at_least(value: int, allowed: Sequence[int]) -> int:
    """The smallest allowed figure that is at least `value`, or else the largest."""
    return next((figure for figure in allowed if figure >= value), allowed[-1])


def _next(value: int, step: int) -> int:
    return -(-value // step) * step


def _overlap(first: str, second: str) -> bool:
    return first.startswith(second) or second.startswith(first)
