"""User data as a MIME multipart document, the format that PCS requires and that nodeadm reads on EKS."""

from collections.abc import Iterable
from typing import NamedTuple

BOUNDARY = "==NODE=="


class Part(NamedTuple):
    """One part of a document: the value of its `Content-Type` header, and its text."""

    content_type: str
    text: str


def boot_hook(text: str) -> Part:
    """A part that cloud-init runs as a script at every boot, before anything else of user data."""
    return Part('text/cloud-boothook; charset="us-ascii"', text)


def shell_script(text: str) -> Part:
    """A part that cloud-init runs as a script."""
    return Part('text/x-shellscript; charset="us-ascii"', text)


def multipart(parts: Iterable[Part]) -> str:
    """`parts` as one MIME multipart document."""
    lines = ["MIME-Version: 1.0", f'Content-Type: multipart/mixed; boundary="{BOUNDARY}"', ""]
    for part in parts:
        lines += [f"--{BOUNDARY}", f"Content-Type: {part.content_type}", "", part.text.strip(), ""]
    return "\n".join([*lines, f"--{BOUNDARY}--", ""])
