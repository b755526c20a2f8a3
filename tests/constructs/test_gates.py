"""cdk-nag and cfn-lint find nothing in any shipped environment."""

import pytest
from aws_cdk import aws_s3 as s3

from tests.constructs.nag import Finding, open_findings
from tests.linting import findings
from tests.synthesis import FILES, templates
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
