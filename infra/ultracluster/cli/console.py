"""The console for tables."""

from rich.console import Console

WIDTH = 120


def console() -> Console:
    """A console of at least WIDTH columns: pipes report no width, and narrower tables are unreadable."""
    return Console(highlight=False, emoji=False, markup=False, width=max(WIDTH, Console().width))
