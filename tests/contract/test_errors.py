"""docs/errors.md, the codes and the refused test files agree."""

import re

import pytest

from scripts.errors_doc import DOC, example
from tests.bad_files import CODES, NAMES, code_of
from ultracluster.catalog import pcs

SECTIONS = dict(re.findall(r"(?ms)^## (\S+)\n(.*?)(?=^## |\Z)", DOC.read_text("utf-8")))


def test_codes_are_kebab_case_and_distinct():
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code) for code in CODES)
    assert len(set(CODES)) == len(CODES)


def test_every_code_is_documented_and_no_other():
    assert list(SECTIONS) == list(CODES)


def test_a_section_explains_before_its_example():
    assert not [code for code in CODES if len(SECTIONS[code].partition("```")[0].strip()) <= 60]


def test_the_example_is_the_case_named_after_the_code():
    assert not [code for code in CODES if code not in NAMES or example(code) not in SECTIONS[code]]


def test_the_index_links_every_section():
    index = DOC.read_text("utf-8").partition("\n## ")[0]
    assert not [code for code in CODES if f"[{code}](#{code})" not in index]


def test_every_refused_file_is_named_after_a_code():
    assert {code_of(name) for name in NAMES} == set(CODES)


@pytest.mark.parametrize("setting", sorted(pcs.CLUSTER_SETTINGS | pcs.QUEUE_SETTINGS))
def test_allowed_slurm_settings_are_listed(setting):
    assert f"`{setting}`" in SECTIONS["slurm-setting-not-allowed"]
