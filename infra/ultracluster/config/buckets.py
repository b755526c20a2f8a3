"""Buckets of an environment: new ones, existing ones, and those that jobs only read."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from ultracluster.config import effect_rules as rules
from ultracluster.config.bucket_names import bucket_name_problems
from ultracluster.config.effects import IN_PLACE
from ultracluster.config.fields import BucketName, KeyArn, text
from ultracluster.config.problems import Problem, rule
from ultracluster.config.settings import Settings

READ_ONLY_LIMIT = 30
"""Buckets whose ARNs, twice each and at most 76 characters long, fit into a managed policy of 6,144 (IAM quotas)."""

MAXIMUM_BUCKETS = 20
"""Buckets of an environment. With the longest names each takes about 280 characters of a policy."""

KEYS_LIKE_A_BUCKET = 3
"""Keys of existing buckets that take as many characters of a policy as a bucket."""

BucketKey = Annotated[
    str,
    text(
        r"^[a-z][a-z0-9-]{0,19}$",
        "a name of up to 20 lower-case letters, digits and hyphens that starts with a letter",
    ),
]
"""Key of a bucket under storage.buckets."""

Access = Literal["read", "write", "write_and_delete"]


class Lifecycle(Settings):
    """Lifecycle rule for old object versions. Current versions never expire: a link may need them."""

    noncurrent_days: Annotated[int, Field(ge=1, le=2**31 - 1), IN_PLACE]
    """Days after which noncurrent versions (overwritten or deleted objects) expire."""


class Bucket(Settings):
    """A new bucket, encrypted, versioned and retained; or, with `existing`, a bucket that is used unchanged."""

    existing: Annotated[BucketName | None, rules.BUCKET_EXISTING] = None
    """Name of an existing bucket. Without it, a bucket is created."""
    key_arn: Annotated[KeyArn | None, IN_PLACE] = None
    """KMS key of an existing bucket with SSE-KMS, if it is not the AWS managed key aws/s3."""
    access: Annotated[Access, IN_PLACE] = "write"
    """What jobs may do: read lists and reads objects; write also adds and replaces them; write_and_delete also deletes
    them, of which a versioned bucket keeps the earlier versions. On EKS a team changes objects of its own prefix only.
    Nodes reach a bucket of another account, such as a public data set, through the endpoint of their VPC if it is in
    the same Region."""
    lifecycle: Annotated[Lifecycle | None, IN_PLACE] = None
    """When noncurrent versions expire."""

    @rule
    def _name_of_a_bucket(self) -> Iterator[Problem]:
        """S3 User Guide, "General purpose bucket naming rules" (2026)."""
        yield from bucket_name_problems(self.existing or "")

    @rule
    def _existing_is_unchanged(self) -> Iterator[Problem]:
        if self.existing and self.lifecycle:
            message = f"{self.existing} is an existing bucket, which is used unchanged, so lifecycle would be ignored"
            yield Problem("bucket-settings-ignored", "lifecycle", message, "remove lifecycle, or remove existing")

    @rule
    def _key_of_an_existing_bucket(self) -> Iterator[Problem]:
        if self.key_arn and not self.existing:
            message = "a new bucket is encrypted with the key of the storage stack, so key_arn would be ignored"
            yield Problem("bucket-settings-ignored", "key_arn", message, "remove key_arn, or set existing")


def bucket_problems(buckets: Mapping[str, Bucket], read_only: Sequence[str]) -> Iterator[Problem]:
    """Problems of all buckets together, relative to the section storage."""
    yield from _duplicates(buckets)
    yield from _read_only_problems(buckets, read_only)
    yield from _permissions_that_do_not_fit(buckets, read_only)


def _duplicates(buckets: Mapping[str, Bucket]) -> Iterator[Problem]:
    """A bucket under two keys would get two sets of permissions, and its links could overlap."""
    first: dict[str, str] = {}
    for key, bucket in buckets.items():
        if bucket.existing and first.setdefault(bucket.existing, key) != key:
            message = f"{bucket.existing} is already storage.buckets.{first[bucket.existing]}"
            hint = f"remove {key}, and use {first[bucket.existing]} in its links"
            yield Problem("duplicate-name", ("buckets", key, "existing"), message, hint)


def _read_only_problems(buckets: Mapping[str, Bucket], read_only: Sequence[str]) -> Iterator[Problem]:
    """A bucket has its rights from one place. The list is the older form of a bucket with `access: read`."""
    existing = {bucket.existing: name for name, bucket in buckets.items() if bucket.existing}
    distinct = True
    for i, name in enumerate(read_only):
        at, first = ("read_only_buckets", i), read_only.index(name)
        if first < i:
            message = f"{name} is already read_only_buckets[{first}]"
            yield Problem("duplicate-name", at, message, "remove the duplicate")
        elif name in existing:
            rights = "read" if buckets[existing[name]].access == "read" else "write"
            message = f"{name} is also buckets.{existing[name]}, which jobs may {rights}"
            yield Problem("duplicate-name", at, message, f"remove it here, or remove buckets.{existing[name]}")
        distinct = distinct and first == i and name not in existing
    if read_only and distinct:
        message = "read_only_buckets is the older form of buckets with access: read"
        hint = f"write buckets: {{NAME: {{existing: {read_only[0]}, access: read}}}}"
        yield Problem("read-only-buckets-renamed", "read_only_buckets", message, hint, "warning")


def _permissions_that_do_not_fit(buckets: Mapping[str, Bucket], read_only: Sequence[str]) -> Iterator[Problem]:
    """A managed policy has 6,144 characters (IAM User Guide, "IAM and AWS STS quotas", 2026)."""
    count = len(buckets) + len(read_only)
    keys = len({bucket.key_arn for bucket in buckets.values() if bucket.key_arn})
    if count + -(-keys // KEYS_LIKE_A_BUCKET) > MAXIMUM_BUCKETS:
        beside = f" and {keys} keys of which {KEYS_LIKE_A_BUCKET} count as a bucket" if keys else ""
        message = f"{count} buckets{beside}; the maximum is {MAXIMUM_BUCKETS}, because one IAM policy names them all"
        yield Problem("wrong-length", "buckets", message, "merge buckets, with a prefix for each kind of data")
