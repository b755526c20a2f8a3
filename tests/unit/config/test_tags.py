"""Tags against the patterns of the APIs that are stricter than EC2's."""

import re

import pytest
from botocore.session import get_session

from ultracluster.config.tags import MAXIMUM_TAGS, OWN_TAGS, tag_problems

SESSION = get_session()
ASCII = [chr(code) for code in range(32, 127)]
STRICT = [("iam", "tagKeyType"), ("fsx", "TagKey"), ("amp", "TagKey"), ("iam", "tagValueType"), ("fsx", "TagValue")]


def codes(tags):
    return [problem.code for problem in tag_problems(tags, "tags")]


@pytest.mark.parametrize(("service", "shape"), STRICT)
def test_characters_are_those_that_the_api_accepts(service, shape):
    pattern = SESSION.get_service_model(service).shape_for(shape).metadata["pattern"]
    # Python's re has no \p classes; these are their ASCII members
    ascii_only = re.compile(pattern.replace(r"\p{L}", "a-zA-Z").replace(r"\p{Z}", " ").replace(r"\p{N}", "0-9"))
    accepted = {character for character in ASCII if ascii_only.fullmatch(character)}
    assert {character for character in ASCII if not codes({f"a{character}": "x"})} == accepted
    assert {character for character in ASCII if not codes({"a": f"x{character}"})} == accepted


@pytest.mark.parametrize("word", ["équipe", "команда", "チーム", "Größe 3", "a b/c", "owner@example.com"])
def test_letters_of_any_language_are_accepted(word):
    assert codes({word: word}) == []


@pytest.mark.parametrize("word", ["R&D", "a,b", "100%", "tab\there", "smile \N{GRINNING FACE}", "a*"])
def test_other_characters_are_refused(word):
    assert codes({"key": word}) == ["tag-characters"]
    assert codes({word: "value"}) == ["tag-characters"]


@pytest.mark.parametrize("prefix", ["aws:", "AWS:", "Aws:"])
def test_aws_reserves_its_prefix_in_any_case(prefix):
    assert codes({f"{prefix}team": "x"}) == ["tag-reserved"]
    assert codes({"team": f"{prefix}x"}) == ["tag-reserved"]
    assert codes({"awsteam": "aws"}) == []


def test_as_many_tags_as_a_node_has_room_for():
    room = MAXIMUM_TAGS - OWN_TAGS
    assert codes({f"t{i}": "x" for i in range(room)}) == []
    assert codes({f"t{i}": "x" for i in range(room + 1)}) == ["tags-too-many"]
