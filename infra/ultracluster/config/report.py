"""What is printed about a file: the report for people, and the same as data."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from textwrap import wrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ultracluster.config.loader import Finding, Reading

WIDTH = 108
_OF_THE_FILE = ("file-unreadable", "empty-file")
"""Codes of problems that have no place in the file."""


def report(reading: "Reading") -> str:
    """The file, then each finding with its path, what is wrong, what to do, and its code at the right."""
    entries = [_entry(finding) for finding in reading.findings] or ["  fine"]
    return "\n".join([_printable(reading.file), *entries])


def report_json(readings: Sequence["Reading"]) -> str:
    """The findings of several files as a JSON list: code, path, message, hint, severity, and file, line, column."""
    found: list[dict[str, Any]] = [
        {**asdict(finding), "file": reading.file} for reading in readings for finding in reading.findings
    ]
    return json.dumps(found, indent=2)


def _entry(finding: "Finding") -> str:
    place = finding.path or f"line {finding.line}, column {finding.column}"
    place = "" if finding.code in _OF_THE_FILE else f"{place}: "
    warning = "warning: " if finding.severity == "warning" else ""
    hint = finding.hint[0].upper() + finding.hint[1:]
    stop = "" if hint.endswith(("?", "...")) else "."
    text = _printable(f"{warning}{place}{finding.message}.  {hint}{stop}")
    lines = wrap(
        text, WIDTH, initial_indent="  ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    code = f"[{finding.code}]"
    if len(lines[-1]) + 2 + len(code) <= WIDTH:
        lines[-1] += code.rjust(WIDTH - len(lines[-1]))
    else:
        lines.append(code.rjust(WIDTH))
    return "\n".join(lines)


def _printable(text: str) -> str:
    """`text` without characters that a terminal would obey."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
