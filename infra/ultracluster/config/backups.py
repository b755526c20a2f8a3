"""Backups of file systems, and the hour of the week for AWS's maintenance. Times are UTC."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from ultracluster.config.fields import text
from ultracluster.config.problems import Problem
from ultracluster.config.settings import Settings

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TIME = r"([01]\d|2[0-3]):[0-5]\d"

Time = Annotated[str, text(rf"^{_TIME}$", 'a time such as "05:00" in quotes, in UTC')]
WeeklyTime = Annotated[
    str, text(rf"^({'|'.join(WEEKDAYS)}):{_TIME}$", 'a day and time such as "sun:06:00" in quotes, in UTC')
]


class Backups(Settings):
    """Automatic daily backups of the file system, which FSx deletes with it.

    Source: FSx for Lustre User Guide, "Working with backups" (2026); FSx API, CreateFileSystemLustreConfiguration.
    """

    retention_days: Annotated[int, Field(ge=1, le=90)]
    """Days for which FSx keeps a backup."""
    window: Time | None = None
    """Time of the day at which a backup starts, in quotes. Without it, FSx chooses one."""


def backup_problems(backups: Backups | None, *, temporary: bool, linked: bool) -> Iterator[Problem]:
    """Backups of a file system that FSx does not back up: a temporary one, or one that is linked to a bucket."""
    if backups and temporary:
        message, hint = "FSx makes no backups of scratch_2", "remove backups, or set deployment: persistent_2"
        yield Problem("backups-not-supported", "backups", message, hint)
    elif backups and linked:
        message = "FSx makes no backups of a file system that is linked to a bucket"
        hint = "remove backups, and export what must last by export_events of a link"
        yield Problem("backups-not-supported", "backups", message, hint)


def window_problems(backups: Backups | None, maintenance_window: str | None) -> Iterator[Problem]:
    """Settings of a file system that does not exist."""
    for key, value in (("backups", backups), ("maintenance_window", maintenance_window)):
        if value:
            message = f"there is no file system that {key} would apply to"
            yield Problem("file-system-missing", key, message, f"remove {key}, or add lustre")


def weekly_time(window: str) -> str:
    """A time of the week such as sun:06:00 as FSx takes it, 7:06:00: Monday is 1."""
    day, _, time = window.partition(":")
    return f"{WEEKDAYS.index(day) + 1}:{time}"
