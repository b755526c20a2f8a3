"""Today's date, on which versions of Slurm and Kubernetes end."""

from datetime import UTC, date, datetime


def today() -> date:
    """The current date."""
    return datetime.now(UTC).date()
