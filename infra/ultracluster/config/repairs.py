"""Values that were probably meant: what somebody wrote, changed so that it fits."""

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

_SYNONYMS = {
    "slurm": "pcs",
    "parallelcluster": "pcs",
    "kubernetes": "eks",
    "k8s": "eks",
    "cluster": "auto",
    "sso": "identity_center",
    "odcr": "reservation",
    "reserved": "reservation",
    "capacity-reservation": "reservation",
    "false": "none",
}
"""Other words for values that a file may have."""

_UNITS = re.compile(r"(\d+) *(gib|gb|g|s|sec|seconds|d|days|nodes|mb/s)", re.IGNORECASE)
"""Numbers with the unit that the key has. TiB are another number of GiB, so they are left out."""


def meant_choice(value: object, choices: Sequence[str]) -> str | None:
    """The choice that `value` is another word for, or is similar to."""
    text = str(value)
    synonym = _SYNONYMS.get(text.lower())
    if synonym in choices:
        return synonym
    near = get_close_matches(text, choices, n=1) or get_close_matches(text.lower().replace("-", "_"), choices, n=1)
    return near[0] if near else None


def meant_number(text: str) -> str | None:
    """The digits of a number in quotes, or before its unit."""
    if text.isdecimal():
        return text
    found = _UNITS.fullmatch(text.strip())
    return found[1] if found else None


def meant_text(text: str, pattern: str) -> str | None:
    """`text` with the least change after which it matches `pattern`; None if no usual change does."""
    return next((each for each in _changes(text) if each != text and re.fullmatch(pattern, each)), None)


def _changes(text: str) -> Iterator[str]:
    yield text.strip()
    yield text.lower()
    if re.fullmatch(r"[\w.-]+", text):
        yield re.sub(r"[_.]", "-", text.lower())
    # a bucket by its URI or ARN
    yield re.sub(r"^(s3://|arn:aws[a-z-]*:s3:::)", "", text).partition("/")[0]
    # a Region by one of its zones, an account with separators
    yield re.sub(r"(?<=\d)[a-z]$", "", text.lower())
    if (digits := re.sub(r"[ -]", "", text)).isdecimal():
        yield digits
    yield re.sub(r"[-/]+$", "", text)
    # a day in full, an hour of one digit
    time = re.sub(r"^([a-z]{3})[a-z]*:", r"\1:", text.lower())
    yield re.sub(r"(^|:)(\d):(?=\d\d$)", r"\g<1>0\2:", time)
    # a role by its session
    yield re.sub(r"^arn:(aws[a-z-]*):sts::(\d+):assumed-role/([^/]+)/.*$", r"arn:\1:iam::\2:role/\3", text)
