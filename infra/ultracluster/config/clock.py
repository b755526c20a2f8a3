"""What time it is: versions end and capacity blocks begin as time goes by. The one place that tests set."""

from datetime import UTC, date, datetime


def now() -> datetime:
    """The present moment, in UTC."""
    return datetime.now(UTC)


def today() -> date:
    """The present day, in UTC, as AWS's calendars are."""
    return now().date()
