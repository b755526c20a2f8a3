"""Buckets of AWS and of registries that private nodes read software from. Source: `data/s3_endpoint.json`."""

from ultracluster.catalog.records import records


def aws_owned_buckets(region: str) -> tuple[str, ...]:
    """Bucket names for `region`, which may be a CDK token or an intrinsic function as text."""
    return tuple(name.format(region=region) for name in records("s3_endpoint")["read_only_buckets"])
