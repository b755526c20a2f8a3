"""Names of S3 buckets: what the name of an environment or of an existing bucket must not be.

Source: S3 User Guide, "General purpose bucket naming rules" (2026).
"""

import re
from collections.abc import Iterator

from ultracluster.config.problems import Problem

RESERVED_PREFIXES = ("xn--", "sthree-", "amzn-s3-demo-")
OTHER_KINDS = {
    "-s3alias": "an access point alias",
    "--ol-s3": "an Object Lambda access point",
    ".mrap": "a Multi-Region Access Point",
    "--x-s3": "a directory bucket",
    "--table-s3": "a table bucket",
}
"""What a name with a reserved suffix belongs to, instead of a general purpose bucket."""

_ADDRESS = re.compile(r"\d{1,3}(\.\d{1,3}){3}", re.ASCII)


def bucket_name_problems(name: str) -> Iterator[Problem]:
    """Problems of the name of an existing bucket, at `existing`."""
    hint = "set the name of a general purpose bucket"
    if kind := next((kind for suffix, kind in OTHER_KINDS.items() if name.endswith(suffix)), None):
        yield Problem("invalid-format", "existing", f"{name} is the name of {kind}, not of a bucket", hint)
    elif prefix := next((prefix for prefix in RESERVED_PREFIXES if name.startswith(prefix)), None):
        yield Problem("invalid-format", "existing", f"{name} begins with {prefix}, which S3 reserves", hint)
    elif _ADDRESS.fullmatch(name):
        yield Problem("invalid-format", "existing", f"{name} is an IP address, which S3 refuses as a name", hint)
    elif ".." in name:
        yield Problem("invalid-format", "existing", f"{name} has two dots in a row, which S3 refuses", hint)


def environment_name_problems(name: str) -> Iterator[Problem]:
    """Problem of an environment whose new buckets would get a name that S3 reserves."""
    if prefix := next((prefix for prefix in RESERVED_PREFIXES if f"{name}-".startswith(prefix)), None):
        message = f"names of new buckets begin with {name}-, and S3 reserves names that begin with {prefix}"
        yield Problem("invalid-format", "name", message, "choose another name")
