"""Users and groups of the nodes' images and of software on them, which no person may be called.

Source: `data/system_users.json`.
"""

from ultracluster.catalog.records import records

NAMES: frozenset[str] = frozenset(records("system_users")["names"])
"""Names of users and groups of the images."""

PREFIXES: tuple[str, ...] = tuple(records("system_users")["prefixes"])
"""Beginnings of names of systemd, AWS and this package."""


def is_system_user(name: str) -> bool:
    """Whether an image or its software has a user or a group of this name."""
    return name in NAMES or name.startswith(PREFIXES)
