"""Every refused case gives exactly its report; `make docs` rewrites the reports."""

import re

import yaml

from tests.bad_files import CASES, CODES, FAULTS, FOLDER, NAMES, VALID, code_of, reading_of, said_of
from ultracluster.config.loader import validate
from ultracluster.config.report import report


def test_the_report_is_that_of_the_case():
    wrong = {name: said_of(name) for name in NAMES if name not in CODES and said_of(name) != CASES[name].get("report")}
    assert not wrong


def test_the_reports_name_the_code_of_the_case():
    assert not [name for name in NAMES if f"[{code_of(name)}]" not in said_of(name)]


def test_a_case_named_like_its_code_has_no_other_error():
    errors = {name: [error.code for error in reading_of(name).errors] for name in NAMES if name in CODES}
    assert not {name: codes for name, codes in errors.items() if codes not in ([], [name])}


def test_no_environment_comes_with_an_error():
    assert not [name for name in NAMES if (reading_of(name).environment is None) != bool(reading_of(name).errors)]


def test_a_refused_case_has_an_error_of_its_code():
    """Errors beside it are named by its report."""
    refused = [name for name in NAMES if reading_of(name).errors]
    assert not [name for name in refused if code_of(name) not in {error.code for error in reading_of(name).errors}]


def test_no_case_is_written_twice():
    written = [name for file in FAULTS.glob("*.yaml") for name in re.findall(r"(?m)^(\S+):$", file.read_text("utf-8"))]
    assert sorted(written) == NAMES
    contents = [yaml.dump({key: case[key] for key in case if key != "report"}) for case in CASES.values()]
    assert len(set(contents)) == len(contents) >= 850


def test_the_valid_files_have_no_findings():
    assert all(report(validate(FOLDER / file)).splitlines()[1:] == ["  fine"] for file in VALID)
