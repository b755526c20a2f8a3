"""The console for tables, and how wide the terminal is."""

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

NARROW, WIDE = 80, 120


def terminal_width() -> int:
    """Columns of the terminal, or of COLUMNS, at least NARROW; WIDE for pipes, which report no width."""
    return max(NARROW, shutil.get_terminal_size((WIDE, 24)).columns)


def console() -> "Console":
    """A console as wide as the terminal."""
    from rich.console import Console

    return Console(highlight=False, emoji=False, markup=False, width=terminal_width())
