"""The refused files of tests/unit/config/bad: one fault each, named after its code, with the expected report."""

from dataclasses import replace
from datetime import UTC, datetime
from difflib import ndiff
from pathlib import Path
from typing import get_args
from unittest.mock import patch

from ultracluster.config.codes import Code
from ultracluster.config.findings import Reading
from ultracluster.config.loader import survey
from ultracluster.config.report import report

FOLDER = Path(__file__).parent / "unit" / "config"
CODES = get_args(Code)
FILES = {file.stem: file for place in (".", "environments") for file in sorted((FOLDER / "bad" / place).glob("*.yaml"))}
NAMES = sorted(FILES)


VALID = ("minimal.yaml", "minimal-eks.yaml")
"""A valid file for each control plane. Every refused file differs from one of them in a few lines."""


def reading_time():
    """Sets the clock to the date of the files: versions end and capacity blocks start over time."""
    return patch("ultracluster.config.clock.now", lambda: datetime(2026, 11, 20, tzinfo=UTC))


def reading_of(name: str) -> Reading:
    with reading_time():
        reading = survey(FILES[name])
    findings = (replace(found, file=found.file.removeprefix(f"{FOLDER}/")) for found in reading.findings)
    return replace(reading, file=f"bad/{name}.yaml", findings=tuple(findings))


def report_of(name: str) -> str:
    """The report of `ultracluster validate`, without line numbers, which say little in docs/errors.md."""
    return report(reading_of(name), lines=False) + "\n"


def printed(name: str) -> str:
    """The report of `ultracluster validate`, with line numbers."""
    return report(reading_of(name)) + "\n"


def code_of(name: str) -> str:
    """The code that the file is named after."""
    return max((code for code in CODES if name == code or name.startswith(f"{code}-")), key=len)


def changed_lines(name: str) -> str:
    """The lines in which the file differs from the most similar valid file; then its file of users."""
    lines = FILES[name].read_text("utf-8", errors="backslashreplace").splitlines()
    changes = min((_added((FOLDER / file).read_text("utf-8").splitlines(), lines) for file in VALID), key=len)
    people = FOLDER / "bad" / "people" / f"{name}.yaml"
    listed = [f"# people/{name}.yaml", *people.read_text("utf-8").splitlines()] if people.exists() else []
    return "\n".join([*changes, *listed])


def _added(valid: list[str], lines: list[str]) -> list[str]:
    return [line[2:] for line in ndiff(valid, lines) if line.startswith("+ ")]
