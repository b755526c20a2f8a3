"""Synthesises each shipped environment once for given sources, for every test that reads templates."""

import fcntl
import hashlib
import json
import shutil
import tempfile
import time
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
FILES = {file.stem: file for folder in ("environments", "examples") for file in sorted((ROOT / folder).glob("*.yaml"))}
KEPT = ROOT / ".pytest_cache" / "ultracluster"
"""What tests keep for later ones: templates by the sources that they are made of, and what cfn-lint says of them."""

WEEK = 7 * 24 * 3600
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
    """The templates as JSON. The first test that needs them writes them for other workers and later runs."""
    folder = KEPT / "templates" / sources()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.json").open("a+") as shared:
        fcntl.flock(shared, fcntl.LOCK_EX)
        shared.seek(0)
        text = shared.read()
        if not text:
            text = json.dumps(_synthesised(name))
            shared.write(text)
    return text


@cache
def sources() -> str:
    """A hash of all that templates are made of; the date is in it, since versions end and capacity blocks start."""
    from ultracluster.config import clock

    files = [file for folder in ("infra", "environments", "examples") for file in (ROOT / folder).rglob("*")]
    found = hashlib.sha256(f"{clock.today()} {version('aws-cdk-lib')} {version('pydantic')}".encode())
    for file in sorted([*files, ROOT / "cdk.json", Path(__file__)]):
        if file.is_file() and file.suffix != ".pyc":
            found.update(f"{file} {file.stat().st_mode}".encode() + file.read_bytes())
    return found.hexdigest()[:16]


def forget_others() -> None:
    """Removes what is kept of other sources, and what cfn-lint said long ago."""
    for folder in (KEPT / "templates").glob("*"):
        if folder.name != sources():
            shutil.rmtree(folder, ignore_errors=True)
    for file in (KEPT / "cfn-lint").glob("*"):
        if time.time() - file.stat().st_mtime > WEEK:
            file.unlink(missing_ok=True)


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
