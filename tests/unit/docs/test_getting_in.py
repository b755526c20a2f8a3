"""The sections of an environment file that docs/getting-in.md shows are accepted, and its IAM policy is one."""

import json

import pytest

from tests.bad_files import FOLDER
from tests.synthesis import ROOT
from tests.unit.docs.test_docs import blocks
from ultracluster.config.loader import check, validate
from ultracluster.config.source import parse

PAGE = ROOT / "docs" / "getting-in.md"
BLOCKS = blocks(PAGE, "text")
SECTIONS = [
    block for block in BLOCKS if block.startswith("access:") and "users:" not in block and "directory:" not in block
]


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("file", ["minimal.yaml", "minimal-eks.yaml"])
def test_a_section_is_accepted_for_both_control_planes(file, section):
    reading = check(parse((FOLDER / file).read_text("utf-8") + section))
    assert reading.findings == ()
    assert reading.environment.access.wanted


@pytest.mark.parametrize(
    ("file", "more", "warned"),
    [("minimal.yaml", "", ["homes-on-each-node"]), ("minimal-eks.yaml", "  host: true\n", [])],
)
def test_the_file_of_users_is_accepted(tmp_path, file, more, warned):
    (section,) = [block for block in BLOCKS if block.startswith("access:") and "users:" in block]
    (people,) = [block for block in BLOCKS if block.startswith("# people/users.yaml")]
    (tmp_path / "people").mkdir()
    (tmp_path / "people" / "users.yaml").write_text(people)
    (tmp_path / file).write_text((FOLDER / file).read_text("utf-8") + section + more)
    reading = validate(tmp_path / file)
    assert [finding.code for finding in reading.findings] == warned
    assert reading.environment.access.users.users[0].name == "ada"


@pytest.mark.parametrize(("file", "warned"), [("minimal.yaml", ["homes-on-each-node"]), ("minimal-eks.yaml", [])])
def test_the_directory_is_accepted(file, warned):
    (section,) = [block for block in BLOCKS if block.startswith("access:") and "directory:" in block]
    reading = check(parse((FOLDER / file).read_text("utf-8") + section))
    assert [finding.code for finding in reading.findings] == warned


def test_there_are_sections():
    assert len(SECTIONS) >= 2


def test_the_policy_of_people_allows_the_documents_that_the_commands_name():
    from ultracluster.cli import access

    policy = json.loads(blocks(PAGE, "json")[0])
    allowed = [each for statement in policy["Statement"] for each in statement["Resource"]]
    assert {f"arn:aws:ssm:REGION::document/{name}" for name in (access.SSH, access.REMOTE_PORTS)} <= set(allowed)
