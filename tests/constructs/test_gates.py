"""cdk-nag, cfn-lint and CDK's own validation find nothing in any shipped environment."""

import json
import os
import subprocess
import sys

import pytest
from aws_cdk import aws_s3 as s3

from tests.constructs.nag import Finding, open_findings
from tests.linting import findings
from tests.synthesis import FILES, ROOT, templates
from ultracluster.config.loader import load
from ultracluster.stacks import build_app

WARNED = {
    "u-p6e-gb200x36": {"Annotation::ultracluster:pcs-agent"},
    "u-p6e-gb200x72": {"Annotation::ultracluster:pcs-agent"},
}
"""Warnings that synth leaves to the user, by file: nobody lists the PCS agent in AWS's image for Grace."""


@pytest.mark.parametrize("name", FILES)
def test_cdk_nag_finds_nothing_open(name):
    found = open_findings(lambda app: build_app(load(FILES[name]), app=app))
    assert {finding.rule for finding in found} == WARNED.get(name, set())


def test_cdk_nag_reports_an_unacknowledged_finding():
    def with_a_bare_bucket(app):
        build_app(load(FILES["dev"]), app=app)
        s3.CfnBucket(app.node.find_child("dev-storage"), "Bare")

    found = open_findings(with_a_bare_bucket)
    assert Finding("AwsSolutions-S1", "dev-storage/Bare") in found
    assert {finding.construct for finding in found} == {"dev-storage/Bare"}


@pytest.mark.parametrize("name", FILES)
def test_cfn_lint_finds_nothing(name):
    assert findings(templates(name), load(FILES[name]).region) == []


def test_cfn_lint_finds_what_is_wrong():
    cluster = {"Type": "AWS::PCS::Cluster", "Properties": {"Size": "TINY"}}
    found = findings({"control-plane": {"Resources": {"Cluster": cluster}}}, "us-east-2")
    assert any(finding.startswith("E3003 'Networking' is a required property") for finding in found)
    assert any(finding.startswith("E3030 'TINY' is not one of") for finding in found)


def test_cdk_validation_finds_nothing_in_any_environment(tmp_path):
    """Runs in its own process: the validation engine is off in all other tests, since it takes seconds."""
    script = f"""
import json, sys
sys.path.insert(0, {str(ROOT)!r})
import aws_cdk as cdk
from ultracluster.config.loader import load
from ultracluster.stacks import build_app
from tests.synthesis import FILES, flags
for name, file in FILES.items():
    context = {{**flags(), "@aws-cdk/core:validateAgainstDefaultRules": True}}
    app = cdk.App(outdir={str(tmp_path)!r} + "/" + name, context=context, analytics_reporting=False)
    build_app(load(file), app=app).synth()
"""
    environment = {**os.environ, "CDK_VALIDATION": "true"}
    run = subprocess.run([sys.executable, "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    for name in FILES:
        report = json.loads((tmp_path / name / "validation-report.json").read_text())
        violations = [found for plugin in report["pluginReports"] for found in plugin["violations"]]
        assert {found["ruleName"] for found in violations} == WARNED.get(name, set()), violations
