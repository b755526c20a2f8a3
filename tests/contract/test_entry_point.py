"""app.py, as the CDK CLI runs it: which environment it takes, and what it says."""

import json
import os
import subprocess
import sys

from tests.synthesis import ROOT


def synth(folder, **context):
    variables = {"CDK_OUTDIR": str(folder), "CDK_CONTEXT_JSON": json.dumps(context), "CDK_VALIDATION": "false"}
    command = [sys.executable, str(ROOT / "app.py")]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True)
    return done, {file.stem.removesuffix(".template") for file in folder.glob("*.template.json")}


def test_without_a_name_it_is_dev_and_says_so(tmp_path):
    done, stacks = synth(tmp_path)
    assert "No -c env=NAME is given: this is environments/dev.yaml\n" in done.stderr
    assert "dev-network" in stacks


def test_with_a_name_it_says_nothing_of_it(tmp_path):
    done, stacks = synth(tmp_path, env="dev")
    assert "-c env" not in done.stderr
    assert "dev-network" in stacks


def test_an_unknown_name_lists_the_environments(tmp_path):
    done, stacks = synth(tmp_path, env="pord")
    assert done.returncode == 1
    assert "Did you mean prod? Environments: b300, dev, prod, staging" in done.stderr
    assert stacks == set()
