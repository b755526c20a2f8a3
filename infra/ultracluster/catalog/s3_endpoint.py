"""Buckets that a private node reads software from, of AWS and of registries. Source: `data/s3_endpoint.json`."""

from ultracluster.catalog.records import records


def aws_owned_buckets(region: str) -> tuple[str, ...]:
    """Names of the buckets for `region`, which may be anything that stands for a Region in a template."""
    return tuple(name.format(region=region) for name in records("s3_endpoint")["read_only_buckets"])
