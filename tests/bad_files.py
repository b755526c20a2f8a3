"""The refused files of tests/unit/config/bad: one fault each, named after its code, its report beside it."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import get_args
from unittest.mock import patch

from infra.config.codes import Code
from infra.config.loader import Reading, read
from infra.config.report import report

FOLDER = Path(__file__).parent / "unit" / "config"
CODES = get_args(Code)
NAMES = sorted(file.stem for file in (FOLDER / "bad").glob("*.yaml"))


class ReadingDay(date):
    """The day on which the files were written: Slurm versions end as time goes by."""

    @classmethod
    def today(cls):
        return cls(2026, 11, 20)


def reading_of(name: str) -> Reading:
    with patch("infra.config.pcs.date", ReadingDay):
        return replace(read(FOLDER / "bad" / f"{name}.yaml"), file=f"bad/{name}.yaml")


def report_of(name: str) -> str:
    """What `ultracluster validate` prints."""
    return report(reading_of(name)) + "\n"


def code_of(name: str) -> str:
    """The code that the file is named after."""
    return max((code for code in CODES if name == code or name.startswith(f"{code}-")), key=len)


def changed_lines(name: str) -> str:
    """The lines in which the file differs from minimal.yaml, which has no fault."""
    sound = (FOLDER / "minimal.yaml").read_text("utf-8").splitlines()
    lines = (FOLDER / "bad" / f"{name}.yaml").read_text("utf-8", errors="backslashreplace").splitlines()
    return "\n".join(line for line in lines if line not in sound)
