"""A synth of shipped environments in a process of its own, with the validation of the CDK.

All other tests run without that validation, since it takes seconds. The templates are the same as theirs.
"""

import json
import os
import subprocess
import sys

import pytest

from tests.constructs.test_gates import WARNED
from tests.synthesis import FILES, ROOT, templates
from ultracluster.config.loader import load

SCRIPT = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import aws_cdk as cdk
from ultracluster.config.loader import load
from ultracluster.stacks import build_app
from tests.synthesis import FILES, flags
for name in sys.argv[2:]:
    context = {{**flags(), "@aws-cdk/core:validateAgainstDefaultRules": True}}
    app = cdk.App(outdir=sys.argv[1] + "/" + name, context=context, analytics_reporting=False)
    build_app(load(FILES[name]), app=app).synth()
"""


@pytest.fixture(scope="module")
def synthesised(request, tmp_path_factory):
    """A folder with the assembly of each environment of this run."""
    here = [item for item in request.session.items if item.path == request.path]
    names = sorted({item.callspec.params["name"] for item in here})
    folder = tmp_path_factory.mktemp("assemblies")
    command, variables = [sys.executable, "-c", SCRIPT, str(folder), *names], {**os.environ, "CDK_VALIDATION": "true"}
    ran = subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return folder


@pytest.mark.parametrize("name", FILES)
def test_cdk_validation_finds_nothing(name, synthesised):
    report = json.loads((synthesised / name / "validation-report.json").read_text())
    violations = [found for plugin in report["pluginReports"] for found in plugin["violations"]]
    assert {found["ruleName"] for found in violations} == WARNED.get(name, set()), violations


@pytest.mark.parametrize("name", FILES)
def test_the_same_file_gives_the_same_templates_in_another_process(name, synthesised):
    prefix = load(FILES[name]).name
    found = {file.name: json.loads(file.read_text()) for file in (synthesised / name).glob("*.template.json")}
    expected = {f"{prefix}-{part}.template.json": template for part, template in templates(name).items()}
    assert found.keys() == expected.keys()
    assert [file for file in expected if json.dumps(found[file]) != json.dumps(expected[file])] == []


@pytest.mark.parametrize("name", FILES)
def test_our_own_stacks_create_no_views(name, synthesised):
    paths, left = [], [json.loads((synthesised / name / "tree.json").read_text())["tree"]]
    while left:
        node = left.pop()
        paths.append(node.get("path", ""))
        left += node.get("children", {}).values()
    assert len(paths) > 100
    assert [path for path in paths if "View" in path.rpartition("/")[2]] == []
