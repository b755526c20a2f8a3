"""The console for tables, and how wide the terminal is."""

import os
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

NARROW, WIDE = 80, 120
UNBROKEN = 2_000
"""Width at which no line of a table is broken."""


def terminal_width() -> int:
    """Columns of the terminal, or of COLUMNS, at least NARROW; WIDE for pipes, which report no width."""
    return max(NARROW, shutil.get_terminal_size((WIDE, 24)).columns)


def console(*, whole_lines: bool = False) -> "Console":
    """A console as wide as the terminal. With `whole_lines` no line is broken in a pipe, so that ids stay whole."""
    from rich.console import Console

    piped = whole_lines and not sys.stdout.isatty() and "COLUMNS" not in os.environ
    width = UNBROKEN if piped else terminal_width()
    return Console(highlight=False, emoji=False, markup=False, width=width)
