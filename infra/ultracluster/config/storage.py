"""Storage as a whole: buckets and file systems."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field

from ultracluster.config import effect_rules as rules
from ultracluster.config.backups import Backups, WeeklyTime, backup_problems, window_problems
from ultracluster.config.buckets import READ_ONLY_LIMIT, Bucket, BucketKey, bucket_problems
from ultracluster.config.effects import IN_PLACE
from ultracluster.config.fields import BucketName, Many
from ultracluster.config.file_systems import MAXIMUM_MORE, Efs, Home, More, MoreLustre, OpenZfs
from ultracluster.config.lustre import Lustre
from ultracluster.config.problems import Path, Problem, repeated_names, rule
from ultracluster.config.settings import Settings


class Storage(Settings):
    """Storage that outlives the nodes: buckets and file systems."""

    home: Annotated[Home, rules.FILE_SYSTEM] = "none"
    """File system of /home on all nodes and login nodes, and of a home of each team on EKS. none: each node has its own
    /home, which is lost with the node."""
    buckets: Annotated[Mapping[BucketKey, Bucket], rules.BUCKETS] = Field(default_factory=dict)
    """Buckets, each under a key that links refer to."""
    read_only_buckets: Annotated[Many[BucketName], Field(max_length=READ_ONLY_LIMIT), IN_PLACE] = ()
    """Older form of buckets with `access: read`: names of buckets that jobs list and read but never write."""
    lustre: Annotated[Lustre | None, rules.FILE_SYSTEM] = None
    """The FSx for Lustre file system."""
    more: Annotated[Many[More], Field(max_length=MAXIMUM_MORE), rules.FILE_SYSTEM] = ()
    """Further file systems, and existing ones, which all nodes mount."""
    backups: Annotated[Backups | None, IN_PLACE] = None
    """Automatic daily backups of new file systems. Without it there are none."""
    maintenance_window: Annotated[WeeklyTime | None, IN_PLACE] = None
    """Start of the hour of the week in which AWS may patch new file systems of FSx, in quotes. Without it, FSx chooses
    one."""

    @property
    def homes(self) -> OpenZfs | Efs | None:
        """The file system of homes."""
        return None if isinstance(self.home, str) else self.home

    @property
    def all_lustre(self) -> tuple[tuple[Path, Lustre], ...]:
        """Every Lustre file system that nodes mount, existing ones too, with its path below storage."""
        first: list[tuple[Path, Lustre]] = [(("lustre",), self.lustre)] if self.lustre else []
        return (*first, *((("more", i), each.lustre) for i, each in self._more_lustre))

    @property
    def new_lustre(self) -> tuple[tuple[Path, Lustre], ...]:
        """Those of `all_lustre` that are created."""
        existing = {("more", i) for i, each in self._more_lustre if each.existing}
        return tuple((at, each) for at, each in self.all_lustre if at not in existing)

    @property
    def client(self) -> Lustre | None:
        """The Lustre file system that decides what nodes install: one with EFA if there is one."""
        systems = [each for _, each in self.all_lustre]
        return next((each for each in systems if each.efa), systems[0] if systems else None)

    @property
    def new_nfs(self) -> tuple[tuple[Path, OpenZfs | Efs], ...]:
        """Every OpenZFS and EFS file system that is created, with its path below storage."""
        named: list[tuple[Path, object]] = [(("home",), self.home)]
        named += [(("more", i), each) for i, each in enumerate(self.more)]
        return tuple((at, each) for at, each in named if isinstance(each, OpenZfs | Efs) and not each.existing)

    @property
    def existing_efs(self) -> tuple[tuple[Path, str], ...]:
        """Those of `existing` that are EFS file systems."""
        first = [self.home] if isinstance(self.home, Efs) else []
        ids = {each.existing for each in (*first, *self.more) if isinstance(each, Efs)}
        return tuple((at, name) for at, name in self.existing if name in ids)

    @property
    def existing(self) -> tuple[tuple[Path, str], ...]:
        """Ids of existing file systems, with their path below storage."""
        named: list[tuple[Path, str | None]] = [(("home",), self.homes.existing)] if self.homes else []
        named += [(("more", i), each.existing) for i, each in enumerate(self.more)]
        return tuple((at, name) for at, name in named if name)

    @property
    def nfs(self) -> bool:
        """Whether nodes mount a file system over NFS."""
        return self.homes is not None or any(not isinstance(each, MoreLustre) for each in self.more)

    @property
    def open_folders(self) -> tuple[str, ...]:
        """Paths of nodes that every user may write to: folders of links that export, and new file systems."""
        links = [(self.lustre.mount_path, link) for link in self.lustre.links] if self.lustre else []
        linked = (f"{root}{link.path}" for root, link in links if link.export_events)
        return (*linked, *(each.mount_path for each in self.more if not each.existing))

    @property
    def addresses(self) -> int:
        """Addresses that file systems take in the node subnet."""
        first = self.lustre.file_servers if self.lustre else 0
        homes = self.homes.addresses if self.homes else 0
        return first + homes + sum(each.addresses for each in self.more)

    @property
    def _more_lustre(self) -> list[tuple[int, MoreLustre]]:
        return [(i, each) for i, each in enumerate(self.more) if isinstance(each, MoreLustre)]

    @rule
    def _backups_are_possible(self) -> Iterator[Problem]:
        others = [
            each.type for each in (self.home, *self.more) if isinstance(each, OpenZfs | Efs) and not each.existing
        ]
        systems = [(at, each.unbacked) for at, each in self.new_lustre]
        yield from backup_problems(self.backups, systems, others)
        none, no_fsx = not systems and not others, not systems and "openzfs" not in others
        yield from window_problems(
            backups=none and self.backups is not None, window=no_fsx and self.maintenance_window is not None
        )

    @rule
    def _distinct_file_systems(self) -> Iterator[Problem]:
        yield from repeated_names("more", [each.name for each in self.more])
        first: dict[str, str] = {}
        if self.homes and self.homes.existing:
            first[self.homes.existing] = "home"
        for i, each in enumerate(self.more):
            if each.existing and first.setdefault(each.existing, f"more[{i}]") != f"more[{i}]":
                message = f"{each.existing} is already storage.{first[each.existing]}"
                yield Problem("duplicate-name", ("more", i, "existing"), message, f"remove more[{i}]")

    @rule
    def _buckets(self) -> Iterator[Problem]:
        yield from bucket_problems(self.buckets, self.read_only_buckets)

    @rule
    def _links_name_buckets(self) -> Iterator[Problem]:
        for i, link in enumerate(self.lustre.links if self.lustre else ()):
            if link.bucket not in self.buckets:
                known = f"known keys: {', '.join(self.buckets)}" if self.buckets else "there are no buckets"
                message = f"{link.bucket} is not a key of storage.buckets; {known}"
                at = ("lustre", "links", i, "bucket")
                yield Problem("link-bucket-unknown", at, message, f"add {link.bucket}: {{}} under storage.buckets")

    @rule
    def _exports_are_allowed(self) -> Iterator[Problem]:
        """FSx writes into the bucket by a role of its own, on behalf of whoever writes into the folder: the jobs."""
        for i, link in enumerate(self.lustre.links if self.lustre else ()):
            bucket = self.buckets.get(link.bucket)
            if bucket and bucket.access == "read" and link.export_events:
                message = f"{link.bucket} has access: read, so nothing that jobs write may be exported to it"
                hint = f"remove export_events, or set access: write for {link.bucket}"
                yield Problem("link-export-read-only", ("lustre", "links", i, "export_events"), message, hint)
