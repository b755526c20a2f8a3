"""The current time, for ends of versions and starts of capacity blocks. Tests patch it here."""

from datetime import UTC, date, datetime


def now() -> datetime:
    """Current time in UTC."""
    return datetime.now(UTC)


def today() -> date:
    """Current date in UTC, the time zone of AWS's calendars."""
    return now().date()
