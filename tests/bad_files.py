"""The refused files of tests/unit/config/bad: one fault each, named after its code, its report beside it."""

from dataclasses import replace
from datetime import UTC, datetime
from difflib import ndiff
from pathlib import Path
from typing import get_args
from unittest.mock import patch

from ultracluster.config.codes import Code
from ultracluster.config.findings import Reading
from ultracluster.config.loader import validate
from ultracluster.config.report import report

FOLDER = Path(__file__).parent / "unit" / "config"
CODES = get_args(Code)
NAMES = sorted(file.stem for file in (FOLDER / "bad").glob("*.yaml"))


SOUND = ("minimal.yaml", "minimal-eks.yaml")
"""Files without a fault, one for each control plane; every refused file differs from one of them in a few lines."""


def reading_time():
    """Sets the clock to when the files were written: versions end and capacity blocks begin as time goes by."""
    return patch("ultracluster.config.clock.now", lambda: datetime(2026, 11, 20, tzinfo=UTC))


def reading_of(name: str) -> Reading:
    with reading_time():
        return replace(validate(FOLDER / "bad" / f"{name}.yaml"), file=f"bad/{name}.yaml")


def report_of(name: str) -> str:
    """What `ultracluster validate` prints."""
    return report(reading_of(name)) + "\n"


def code_of(name: str) -> str:
    """The code that the file is named after."""
    return max((code for code in CODES if name == code or name.startswith(f"{code}-")), key=len)


def changed_lines(name: str) -> str:
    """The lines in which the file differs from the one without a fault that it is nearest to."""
    lines = (FOLDER / "bad" / f"{name}.yaml").read_text("utf-8", errors="backslashreplace").splitlines()
    changes = [_added((FOLDER / file).read_text("utf-8").splitlines(), lines) for file in SOUND]
    return "\n".join(min(changes, key=len))


def _added(sound: list[str], lines: list[str]) -> list[str]:
    return [line[2:] for line in ndiff(sound, lines) if line.startswith("+ ")]
