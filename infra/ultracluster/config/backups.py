"""Backups of file systems, and the hour of the week for AWS's maintenance. Times are UTC."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field

from ultracluster.catalog.nfs import EFS_BACKUP_DAYS
from ultracluster.config.effects import IN_PLACE
from ultracluster.config.fields import text
from ultracluster.config.problems import Path, Problem, dotted
from ultracluster.config.settings import Settings

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TIME = r"([01]\d|2[0-3]):[0-5]\d"

Time = Annotated[str, text(rf"^{_TIME}$", 'a time such as "05:00" in quotes, in UTC')]
WeeklyTime = Annotated[
    str, text(rf"^({'|'.join(WEEKDAYS)}):{_TIME}$", 'a day and time such as "sun:06:00" in quotes, in UTC')
]


class Backups(Settings):
    """Automatic daily backups of each new file system, which FSx deletes with it.

    FSx makes none of scratch_2 and of linked file systems. Those of EFS are AWS Backup's, which keeps them 35 days.

    Source: FSx for Lustre and for OpenZFS User Guides, "Working with backups"; EFS User Guide, "Backing up EFS file
    systems" (2026).
    """

    retention_days: Annotated[int, Field(ge=1, le=90), IN_PLACE]
    """Days for which FSx keeps a backup."""
    window: Annotated[Time | None, IN_PLACE] = None
    """Time of the day at which a backup starts, in quotes. Without it, FSx chooses one."""


def unsupported(*, temporary: bool, linked: bool) -> tuple[str, str] | None:
    """Why FSx makes no backups of a Lustre file system, and what to do; None if it makes them."""
    if temporary:
        return "of scratch_2", "set deployment: persistent_2"
    if linked:
        return "of a file system that is linked to a bucket", "export what must last by export_events of a link"
    return None


def backup_problems(
    backups: Backups | None, lustre: Sequence[tuple[Path, tuple[str, str] | None]], others: Sequence[str]
) -> Iterator[Problem]:
    """Problems of backups with the new file systems: `lustre` with their paths and `unsupported`, `others` by type.

    Backups that none of them can have are refused. If some have them, a warning names the others.
    """
    if backups is None:
        return
    some = bool(others) or any(reason is None for _, reason in lustre)
    for path, reason in lustre:
        if reason and some:
            message = f"FSx makes no backups {reason[0]}, so they do not apply to {dotted(path)}"
            yield Problem("backups-not-supported", "backups", message, reason[1], "warning")
        elif reason:
            joined = "and" if reason[0].startswith("of a file") else "or"
            yield Problem(
                "backups-not-supported",
                "backups",
                f"FSx makes no backups {reason[0]}",
                f"remove backups, {joined} {reason[1]}",
            )
            return
    if "efs" in others and (backups.retention_days != EFS_BACKUP_DAYS or backups.window):
        message = (
            f"AWS Backup backs EFS up daily and retains backups for {EFS_BACKUP_DAYS} days, regardless of these keys"
        )
        hint = "change the plan aws/efs/automatic-backup-plan in AWS Backup if you need other times"
        yield Problem("backups-of-efs", "backups", message, hint, "warning")


def window_problems(*, backups: bool, window: bool) -> Iterator[Problem]:
    """Settings that have no file system to apply to; `backups` and `window` are those that have none."""
    for key, wrong in (("backups", backups), ("maintenance_window", window)):
        if wrong:
            message = f"there is no file system that {key} would apply to"
            yield Problem("file-system-missing", key, message, f"remove {key}, or add lustre")


def weekly_time(window: str) -> str:
    """A time of the week such as sun:06:00 as FSx takes it, 7:06:00: Monday is 1."""
    day, _, time = window.partition(":")
    return f"{WEEKDAYS.index(day) + 1}:{time}"
