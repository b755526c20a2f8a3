"""Storage as a whole: buckets and file systems."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field

from ultracluster.config.backups import Backups, WeeklyTime, backup_problems, window_problems
from ultracluster.config.buckets import READ_ONLY_LIMIT, Bucket, BucketKey, bucket_problems
from ultracluster.config.fields import BucketName, Many
from ultracluster.config.lustre import Lustre
from ultracluster.config.problems import Problem, rule
from ultracluster.config.settings import Settings


class Storage(Settings):
    """Storage that outlives the nodes: buckets and the file system."""

    buckets: Mapping[BucketKey, Bucket] = Field(default_factory=dict)
    """Buckets, each under a key that links refer to."""
    read_only_buckets: Annotated[Many[BucketName], Field(max_length=READ_ONLY_LIMIT)] = ()
    """Older form of buckets with `access: read`: names of buckets that jobs list and read but never write."""
    lustre: Lustre | None = None
    """The FSx for Lustre file system."""
    backups: Backups | None = None
    """Automatic daily backups of the file system. Without it there are none."""
    maintenance_window: WeeklyTime | None = None
    """Start of the hour of the week in which AWS may patch the file system, in quotes. Without it, FSx chooses one."""

    @rule
    def _backups_are_possible(self) -> Iterator[Problem]:
        if self.lustre:
            temporary, linked = self.lustre.deployment == "scratch_2", bool(self.lustre.links)
            yield from backup_problems(self.backups, temporary=temporary, linked=linked)
        else:
            yield from window_problems(self.backups, self.maintenance_window)

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
