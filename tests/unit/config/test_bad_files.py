"""Every refused file gives exactly the report that is stored with it; `make docs` rewrites the reports."""

import pytest

from tests.bad_files import FOLDER, NAMES, VALID, code_of, reading_of, report_of
from ultracluster.config.loader import validate
from ultracluster.config.report import report

# Kubernetes versions that are too old for GB200 are also unsupported
BESIDE = {"kubernetes-too-old-ultraserver": ["kubernetes-version-unsupported"]}


@pytest.mark.parametrize("name", NAMES)
def test_the_report_is_the_stored_one(name):
    assert report_of(name) == (FOLDER / "bad" / f"{name}.txt").read_text("utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_a_file_has_the_one_fault_it_is_named_after(name):
    reading, code = reading_of(name), code_of(name)
    severity = {finding.code: finding.severity for finding in reading.findings}
    expected = [*BESIDE.get(name, []), code]
    assert [error.code for error in reading.errors] == (expected if severity[code] == "error" else [])
    assert (reading.environment is None) == bool(reading.errors)


def test_there_are_enough_of_them():
    assert len(NAMES) >= 500
    assert len(NAMES) == len(list((FOLDER / "bad").glob("*.txt")))


@pytest.mark.parametrize("file", VALID)
def test_the_valid_files_have_no_findings(file):
    assert report(validate(FOLDER / file)).splitlines()[1:] == ["  fine"]
