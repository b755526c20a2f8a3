"""Every refused file gives exactly the report that stands beside it; `make docs` writes the reports anew."""

import pytest

from tests.bad_files import FOLDER, NAMES, SOUND, code_of, reading_of, report_of
from ultracluster.config.loader import validate
from ultracluster.config.report import report

# a Kubernetes too old for GB200 is one that EKS has no images of here, whatever the fleet
BESIDE = {"kubernetes-too-old-ultraserver": ["kubernetes-version-unsupported"]}


@pytest.mark.parametrize("name", NAMES)
def test_report_is_the_one_beside_the_file(name):
    assert report_of(name) == (FOLDER / "bad" / f"{name}.txt").read_text("utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_a_file_has_the_one_fault_it_is_named_after(name):
    reading, code = reading_of(name), code_of(name)
    severity = {finding.code: finding.severity for finding in reading.findings}
    expected = [*BESIDE.get(name, []), code]
    assert [error.code for error in reading.errors] == (expected if severity[code] == "error" else [])
    assert (reading.environment is None) == bool(reading.errors)


def test_there_are_enough_of_them():
    assert len(NAMES) >= 200
    assert len(NAMES) == len(list((FOLDER / "bad").glob("*.txt")))


@pytest.mark.parametrize("file", SOUND)
def test_the_files_they_differ_from_are_fine(file):
    assert report(validate(FOLDER / file)).splitlines()[1:] == ["  fine"]
