"""The embedded AWS behind a server, and the real CDK CLI."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml

from localaws import server
from localaws.templates import declarations
from tests.deployment.leftovers import Found, found, owned
from tests.synthesis import FILES, ROOT, flags, templates
from ultracluster.config.loader import check
from ultracluster.config.source import parse

DEPLOY = ("deploy", "--all", "--require-approval", "never")
CDK = [str(ROOT / "node_modules/.bin/cdk"), "--no-notices"]


def changed(name: str, change) -> Any:
    """A shipped environment with an edited file."""
    data = yaml.safe_load(FILES[name].read_text())
    change(data)
    reading = check(parse(json.dumps(data)))
    assert reading.environment, reading.errors
    return reading.environment


@dataclass
class Cli:
    """The real CDK CLI with the variables of an embedded AWS."""

    running: server.Server
    region: str
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
        own = self.running.environment(self.region)
        self.variables = {**kept, **own, "CDK_VALIDATION": "false", "CI": "true"}

    def __call__(self, *arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
        command = [*CDK, *arguments]
        return subprocess.run(command, env=self.variables, cwd=folder, capture_output=True, text=True, timeout=900)

    def client(self, service: str) -> Any:
        return boto3.client(service, region_name=self.region, **self.running.connection("123456789012"))


def assembly(environment: Any, folder: Path) -> str:
    """Synthesise an environment into a folder, for `cdk --app`."""
    import aws_cdk as cdk

    from ultracluster.stacks import build_app

    app = cdk.App(outdir=str(folder), context=flags(), analytics_reporting=False)
    build_app(environment, app=app).synth()
    return str(folder)


def statuses(cli: Cli, environment: str) -> dict[str, str]:
    """The statuses of the stacks of an environment, by the part that each is named for."""
    start = f"{environment}-"
    return {
        stack["StackName"].removeprefix(start): stack["StackStatus"]
        for stack in cli.client("cloudformation").describe_stacks()["Stacks"]
        if stack["StackName"].startswith(start)
    }


def last_resources(name: str) -> dict[str, str]:
    """The resource of each stack of a shipped environment that is created last, by the part that the stack is for."""
    last = {part: list(declarations(template, {}))[-1] for part, template in templates(name).items()}
    assert len(set(last.values())) == len(last)  # a fault on one strikes no other stack
    return last


def guarded(name: str) -> Any:
    """A shipped environment with the name `guarded` and `protect: true`."""

    def change(data: dict[str, Any]) -> None:
        data["name"], data["protect"] = "guarded", True

    return changed(name, change)


def deploy_after_a_failure_of_each_stack(cli: Cli, app: str, name: str) -> Found:
    """Let the first deployment of each stack fail, then deploy all. Returns what the failures left, beside the stacks.

    Stacks that need nothing of each other are deployed side by side, so that a run fails more than one of them.
    Asserts that each run fails further stacks, and that the last run needs no manual steps.
    """
    failed, failing, deploy = set[str](), last_resources(name), ("--app", app, *DEPLOY, "--concurrency", "10")
    for logical_id in failing.values():
        cli.running.inject("quota-exceeded", logical_id)
    while failed != set(failing):
        assert cli(*deploy).returncode != 0
        now = {part for part, status in statuses(cli, name).items() if status == "ROLLBACK_COMPLETE"}
        assert now - failed
        failed |= now
    assert cli.running.faults() == []
    deployed = cli(*deploy)
    assert deployed.returncode == 0, deployed.stderr
    assert statuses(cli, name) == dict.fromkeys(failing, "CREATE_COMPLETE")
    held = owned(cli.client)
    return {row for row in found(cli.client) if row[1] not in held}


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A bootstrapped server for one file of tests, and the CLI with the variables that point to it."""
    folder = tmp_path_factory.mktemp("localaws")
    region = "us-east-2"
    running = server.serve(region, folder=folder)
    cli = Cli(running, region)
    try:
        # in the root folder, the CLI would synthesise the app of cdk.json first
        bootstrapped = cli("bootstrap", f"aws://123456789012/{region}", folder=folder)
        assert bootstrapped.returncode == 0, bootstrapped.stderr
        yield cli
    finally:
        server.stop(folder)
