"""Every refused file gives exactly the report that stands beside it; `make docs` writes the reports anew."""

import pytest

from infra.config.loader import read
from infra.config.report import report
from tests.bad_files import FOLDER, NAMES, code_of, reading_of, report_of


@pytest.mark.parametrize("name", NAMES)
def test_report_is_the_one_beside_the_file(name):
    assert report_of(name) == (FOLDER / "bad" / f"{name}.txt").read_text("utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_a_file_has_the_one_fault_it_is_named_after(name):
    reading, code = reading_of(name), code_of(name)
    severity = {finding.code: finding.severity for finding in reading.findings}
    assert [error.code for error in reading.errors] == ([code] if severity[code] == "error" else [])
    assert (reading.environment is None) == bool(reading.errors)


def test_there_are_enough_of_them():
    assert len(NAMES) >= 60
    assert len(NAMES) == len(list((FOLDER / "bad").glob("*.txt")))


def test_the_file_they_differ_from_is_fine():
    assert report(read(FOLDER / "minimal.yaml")).splitlines()[1:] == ["  fine"]
