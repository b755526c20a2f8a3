"""docs/embedded-aws.md lists the resource types of the embedded AWS."""

import re
from pathlib import Path

import localaws.handlers  # noqa: F401 - registers them
from localaws.resources import HANDLERS

PAGE = Path(__file__).parents[2] / "docs" / "embedded-aws.md"


def test_the_page_lists_every_resource_type() -> None:
    section = PAGE.read_text().split("## Resource types")[1].split("\n## ")[0]
    listed = {
        f"{service}::{kind}"
        for service, kinds in re.findall(r"^\| `(AWS::\w+)` \| (.+) \|$", section, re.MULTILINE)
        for kind in re.findall(r"\b[A-Z]\w+\b", re.sub(r"\([^)]*\)|`[^`]*`", "", kinds))
    }
    assert listed == {name for name in HANDLERS if not name.startswith("Custom::")}
