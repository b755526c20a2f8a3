"""Valid environments are accepted. Broken ones are refused with codes, never with an exception."""

import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.bad_files import CODES, FOLDER, VALID, reading_time
from tests.properties.strategies import as_yaml, environments, mutations
from ultracluster.config.environment import Environment
from ultracluster.config.findings import Reading
from ultracluster.config.loader import check, validate
from ultracluster.config.report import report, report_json
from ultracluster.config.source import parse

quick = settings(
    max_examples=60, derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
SOUND_TEXTS = [(FOLDER / file).read_text("utf-8") for file in VALID]


@pytest.fixture(scope="module", autouse=True)
def _reading_time():
    with reading_time():
        yield


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("read") / "environment.yaml"


def assert_complete(reading: Reading, text: str) -> None:
    """Errors refuse the file. Each finding has a known code, a line, a message and a hint."""
    assert (reading.environment is None) == bool(reading.errors)
    lines = text.splitlines() or [""]
    for finding in reading.findings:
        assert finding.code in CODES
        assert 1 <= finding.line <= len(lines) + 1
        assert finding.message
        assert finding.hint
    assert [(f.line, f.column) for f in reading.findings] == sorted((f.line, f.column) for f in reading.findings)
    assert all(len(line) <= 108 or " " not in line.strip() for line in report(reading).splitlines()[1:])
    assert len(json.loads(report_json([reading]))) == len(reading.findings)


@quick
@given(environments())
def test_a_valid_environment_is_accepted(data):
    reading = check(parse(as_yaml(data)))
    assert reading.errors == ()
    assert reading.environment is not None


@quick
@given(environments())
def test_a_written_environment_reads_back_equal(data):
    environment = check(parse(as_yaml(data))).environment
    assert environment is not None
    again = check(parse(as_yaml(environment.model_dump(mode="json", exclude_none=True)))).environment
    assert again == environment


@quick
@given(environments())
def test_the_api_accepts_what_the_file_accepts(data):
    assert Environment.model_validate(data) == check(parse(as_yaml(data))).environment


@settings(quick, max_examples=150)
@given(mutations())
def test_a_broken_environment_is_valid_or_refused_with_codes(scratch, data):
    scratch.write_text(as_yaml(data), "utf-8")
    assert_complete(validate(scratch), as_yaml(data))


@quick
@given(
    st.sampled_from(SOUND_TEXTS), st.integers(0, max(map(len, SOUND_TEXTS))), st.integers(0, 12), st.text(max_size=6)
)
@example(SOUND_TEXTS[0], 0, len(SOUND_TEXTS[0]), "")
@example(SOUND_TEXTS[0], 3, 0, "\ufeff")
@example(SOUND_TEXTS[0], 3, 0, "\x85")
def test_a_typing_error_is_valid_or_refused_with_codes(scratch, sound, at, cut, typed):
    text = sound[:at] + typed + sound[at + cut :]
    scratch.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert_complete(validate(scratch), text)


@quick
@given(st.binary(max_size=200))
def test_any_bytes_are_refused_with_codes(scratch, content):
    scratch.write_bytes(content)
    reading = validate(scratch)
    assert reading.environment is None
    assert_complete(reading, content.decode("utf-8", "replace"))
