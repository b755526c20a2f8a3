"""Findings of a file as a text report and as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ultracluster.config.findings import Finding, Reading
from ultracluster.config.layout import WIDTH, entry, printable

_WITHOUT_PLACE = ("file-unreadable", "empty-file")
"""Codes of problems with the file as a whole."""


def report(reading: Reading, *, width: int = WIDTH) -> str:
    """The file name, then each finding in at most `width` columns: path, message, hint, and the code on the right."""
    entries = [_entry(finding, width) for finding in reading.findings] or ["  fine"]
    return "\n".join([printable(reading.file), *entries])


def report_json(readings: Sequence[Reading]) -> str:
    """Findings of several files as a JSON list: code, path, message, hint, severity, file, line, column."""
    placed = [(finding, finding.file or reading.file) for reading in readings for finding in reading.findings]
    found: list[dict[str, Any]] = [{**asdict(finding), "file": file} for finding, file in placed]
    return json.dumps(found, indent=2)


def _entry(finding: Finding, width: int) -> str:
    place = finding.path or f"line {finding.line}, column {finding.column}"
    place = "" if finding.code in _WITHOUT_PLACE else place
    if finding.file:
        place = f"{finding.file}: {place}" if place else finding.file
    return entry(finding.code, place, finding.message, finding.hint, finding.severity, width=width)
