"""What leaves the file leaves the storage stack last: stacks that import it are deployed before, as effects say."""

import json
import re

import pytest

from tests.synthesis import FILES, templates
from ultracluster import load
from ultracluster.config.comparison import compare

FIRST = re.compile(r"--exclusively ((?:NAME-[a-z]+ )+)-c")


def importers(name, parts, exported):
    """Stacks that import an export of the storage stack whose name has `exported` in it."""
    pattern = re.compile(rf'"Fn::ImportValue": "{name}-storage:ExportsOutput(?:Ref|FnGetAtt){exported}\w+"')
    return {part for part, template in parts.items() if pattern.search(json.dumps(template))}


@pytest.mark.parametrize(
    ("file", "key", "exported"),
    [
        ("prod", "home", "HomeFileSystem"),
        ("prod", "lustre", "FileSystem"),
        ("staging", "lustre", "FileSystem"),
        ("eks-karpenter", "lustre", "FileSystem"),
    ],
)
def test_effects_name_the_stacks_that_import_a_file_system(file, key, exported):
    before = load(FILES[file])
    gone = {"home": "none", "lustre": None}[key]
    after = before.model_copy(update={"storage": before.storage.model_copy(update={key: gone})})
    (effect,) = (each.effect for each in compare(before, after) if each.path == f"storage.{key}")
    named = {word.removeprefix("NAME-") for word in FIRST.search(effect.first)[1].split()}
    named |= {"links"} if "cdk destroy NAME-links" in effect.first else set()
    assert importers(before.name, templates(file), exported) == named
