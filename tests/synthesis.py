"""Synthesises each shipped environment once a run, for every test that reads templates."""

import fcntl
import json
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
FILES = {file.stem: file for folder in ("environments", "examples") for file in sorted((ROOT / folder).glob("*.yaml"))}
SHARED = "ULTRACLUSTER_TEST_TEMPLATES"
"""Environment variable: the folder in which the workers of a test run share templates."""

TEMPLATES_ONLY = {"aws:cdk:disable-asset-staging": True, "aws:cdk:disable-creation-stack-traces": True}
"""Context of a synth of which only the templates are read: no copies of assets, no traces in metadata."""

STATEFUL = {
    "AWS::EFS::FileSystem",
    "AWS::FSx::FileSystem",
    "AWS::S3::Bucket",
    "AWS::KMS::Key",
    "AWS::APS::Workspace",
    "AWS::Logs::LogGroup",
}


def flags() -> dict[str, Any]:
    """The feature flags of cdk.json, which the CDK CLI would pass."""
    context: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]
    return context


def synthesise(environment: Any) -> dict[str, dict[str, Any]]:
    """Templates of an environment by the part that their stack is named for: network, storage ..."""
    import aws_cdk as cdk

    from ultracluster.stacks import build_app

    with tempfile.TemporaryDirectory() as folder:
        app = cdk.App(outdir=folder, context=flags() | TEMPLATES_ONLY, analytics_reporting=False)
        assembly = build_app(environment, app=app).synth()
        prefix = f"{environment.name}-"
        # a template is read from its file: stack.template would send it through Node
        return {
            stack.stack_name.removeprefix(prefix): json.loads(Path(folder, stack.template_file).read_text())
            for stack in assembly.stacks
        }


def templates(name: str) -> dict[str, dict[str, Any]]:
    """Templates of the shipped environment or example called `name`, by part; a copy that a test may change."""
    copy: dict[str, dict[str, Any]] = json.loads(_templates_text(name))
    return copy


@cache
def _templates_text(name: str) -> str:
    """The templates as JSON. In a test run, the first worker that needs them writes them for the others."""
    if SHARED not in os.environ:
        return json.dumps(_synthesised(name))
    with Path(os.environ[SHARED], f"{name}.json").open("a+") as shared:
        fcntl.flock(shared, fcntl.LOCK_EX)
        shared.seek(0)
        text = shared.read()
        if not text:
            text = json.dumps(_synthesised(name))
            shared.write(text)
    return text


def _synthesised(name: str) -> dict[str, dict[str, Any]]:
    from ultracluster.config.loader import load

    return synthesise(load(FILES[name]))


def resources(name: str, kind: str) -> dict[str, dict[str, Any]]:
    """Resources of one type in all stacks of an environment, by `stack/LogicalId`."""
    return {
        f"{part}/{logical_id}": resource
        for part, template in templates(name).items()
        for logical_id, resource in template["Resources"].items()
        if resource["Type"] == kind
    }
