"""Values that were probably meant: a hint can be pasted, and none is given where nothing fits."""

import re

import pytest

from ultracluster.config.fields import FORMATS
from ultracluster.config.repairs import meant_choice, meant_number, meant_text


@pytest.mark.parametrize(
    ("written", "meant"),
    [("kubernetes", "eks"), ("Slurm", "pcs"), ("pcss", "pcs"), ("EKS", "eks"), ("nomad", None), (True, None)],
)
def test_another_word_for_a_choice(written, meant):
    assert meant_choice(written, ["pcs", "eks"]) == meant


def test_a_synonym_is_only_meant_where_it_is_a_choice():
    assert meant_choice("cluster", ["pcs", "eks"]) is None
    assert meant_choice("cluster", ["auto", "none"]) == "auto"
    assert meant_choice(False, ["none", "fast", "full"]) == "none"
    assert meant_choice(False, ["drain", "replace"]) is None


@pytest.mark.parametrize(
    ("written", "meant"),
    [("16", "16"), ("300GB", "300"), ("300 GiB", "300"), ("30d", "30"), ("1.2TiB", None), ("2 TiB", None), ("x", None)],
)
def test_a_number_with_its_unit(written, meant):
    assert meant_number(written) == meant


REGION = next(pattern for pattern, form in FORMATS.items() if form.startswith("a Region"))


@pytest.mark.parametrize(
    ("written", "meant"),
    [("US-East-2", "us-east-2"), (" us-east-2", "us-east-2"), ("us-east-2b", "us-east-2"), ("${REGION}", None)],
)
def test_a_region_in_another_form(written, meant):
    assert meant_text(written, REGION) == meant


@pytest.mark.parametrize("pattern", FORMATS)
def test_a_text_that_fits_needs_no_change_and_what_is_meant_fits(pattern):
    for written in ("My_Name-", "s3://my-bucket/x", "1111-2222-3333", "Ärger", "", "a" * 500):
        meant = meant_text(written, pattern)
        assert meant is None or (meant != written and re.fullmatch(pattern, meant))
