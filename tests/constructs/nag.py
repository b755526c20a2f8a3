"""Runs cdk-nag over an app and returns the open findings."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks, NIST80053R5Checks

from tests.synthesis import flags

PACKS = (AwsSolutionsChecks, NIST80053R5Checks)


class Finding(NamedTuple):
    """A rule that a construct breaks without an acknowledgment."""

    rule: str
    construct: str


def open_findings(build: Callable[[cdk.App], object]) -> list[Finding]:
    """Errors and warnings of the packs in the app that `build` fills. RuntimeError when a pack did not finish."""
    with tempfile.TemporaryDirectory() as folder:
        app = cdk.App(outdir=folder, context=flags(), analytics_reporting=False)
        build(app)
        for pack in PACKS:
            cdk.Validations.of(app).add_plugins(pack(app))
        try:
            app.synth()
        except RuntimeError as error:
            if "ValidationFailed" not in str(error):
                raise
        report = Path(folder, "validation-report.json")
        if not report.exists():
            raise RuntimeError("cdk-nag wrote no report")
        return sorted(set(_findings(json.loads(report.read_text()))))


def _findings(report: dict) -> list[Finding]:
    return [
        Finding(violation["ruleName"], construct["constructPath"])
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
        for construct in violation["violatingConstructs"]
    ]
