"""Where the commands print their tables."""

from rich.console import Console

WIDTH = 120


def console() -> Console:
    """A console of at least WIDTH columns: a pipe has no width, and a table squeezed below its own cannot be read."""
    return Console(highlight=False, emoji=False, markup=False, width=max(WIDTH, Console().width))
