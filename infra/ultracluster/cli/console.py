"""The console for tables, and how wide the terminal is."""

import os
import re
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


_PARTS = {
    re.compile(r"(?m)^(?=\S)(.+)$"): "1",  # names of files
    re.compile(r"(?m)^  (?:error|warning): ((?:\S+:)?\d+:\d+)(?=:? )"): "36",  # line and column
    re.compile(r"(?m)^  (error:)"): "31",
    re.compile(r"(?m)^  (warning:)"): "33",
    re.compile(r"(?m) (\[[a-z0-9-]+\])$"): "2",  # codes
}
"""Parts of a report, each with its colour (ECMA-48, Select Graphic Rendition)."""


def coloured(text: str) -> str:
    """The report with colours on a terminal; unchanged in a pipe, and with NO_COLOR (https://no-color.org)."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    for part, colour in _PARTS.items():
        text = part.sub(lambda found: found[0].replace(found[1], f"\033[{colour}m{found[1]}\033[0m", 1), text)  # noqa: B023
    return text


def console(*, whole_lines: bool = False) -> "Console":
    """A console as wide as the terminal. With `whole_lines` no line is broken in a pipe, so that ids stay whole."""
    from rich.console import Console

    piped = whole_lines and not sys.stdout.isatty() and "COLUMNS" not in os.environ
    width = UNBROKEN if piped else terminal_width()
    return Console(highlight=False, emoji=False, markup=False, width=width)
