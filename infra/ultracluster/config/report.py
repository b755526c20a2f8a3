"""Findings of a file as a text report and as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ultracluster.config.findings import Finding, Reading
from ultracluster.config.layout import WIDTH, entry, printable

_WITHOUT_PLACE = ("file-unreadable", "empty-file")
"""Codes of problems with the file as a whole."""


_PLACES = 4
"""Places that a repeated finding names; the number of the others follows."""


def report(reading: Reading, *, width: int = WIDTH, lines: bool = True) -> str:
    """The file name, then each finding in at most `width` columns.

    Severity, line and column (unless `lines` is False), path, message, hint, and the code on the right. Findings that
    differ in their place alone are one entry.
    """
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for each in reading.findings:
        alike.setdefault((each.code, each.message, each.hint, each.severity), []).append(each)
    entries = [_entry(found, width, lines=lines) for found in alike.values()] or ["  fine"]
    return "\n".join([printable(reading.file), *entries])


def count(readings: Sequence[Reading]) -> str:
    """How many errors and warnings the files have, as `2 errors, 1 warning in 3 files`."""
    errors, warnings = sum(len(each.errors) for each in readings), sum(len(each.warnings) for each in readings)
    return f"{_number(errors, 'error')}, {_number(warnings, 'warning')} in {_number(len(readings), 'file')}"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def report_json(readings: Sequence[Reading]) -> str:
    """Findings of several files as a JSON list: code, path, message, hint, severity, file, line, column."""
    placed = [(finding, finding.file or reading.file) for reading in readings for finding in reading.findings]
    found: list[dict[str, Any]] = [{**asdict(finding), "file": file} for finding, file in placed]
    return json.dumps(found, indent=2)


def _entry(alike: Sequence[Finding], width: int, *, lines: bool) -> str:
    finding, others = alike[0], len(alike) - _PLACES
    place = ", ".join(_place(each, lines=lines) for each in alike[:_PLACES])
    place += f" and {others} more" if others > 0 else ""
    return entry(finding.code, place, finding.message, finding.hint, finding.severity, width=width)


def _place(finding: Finding, *, lines: bool) -> str:
    """Where a finding is: in this file `10:47 node_groups[0].count`, in its base `base.yaml:10:47 ...`."""
    if finding.code in _WITHOUT_PLACE:
        return finding.file
    if not lines:
        path = finding.path or f"line {finding.line}, column {finding.column}"
        return f"{finding.file}: {path}" if finding.file else path
    numbers = f"{finding.line}:{finding.column}"
    return f"{finding.file}:{numbers} {finding.path}".strip() if finding.file else f"{numbers} {finding.path}".strip()
