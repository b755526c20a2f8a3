"""`python -m localaws` and the real CDK CLI: an app that uses the CDK's own constructs only is deployed and destroyed.

Each step starts from what the steps before it left running, so all of them are one test.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from localaws import server

APP = Path(__file__).parent / "app" / "app.py"
TOOLS = Path(__file__).parents[2] / "node_modules" / ".bin"
REGION = "eu-west-1"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    server.stop(tmp_path / "aws")


def localaws(folder: Path, *arguments: str, status: int = 0) -> str:
    command = [sys.executable, "-m", "localaws", *arguments, "--folder", "aws"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def cdk(folder: Path, *arguments: str) -> str:
    """The CDK CLI in a shell that has read the server's `env`, as a user would run it."""
    program = shutil.which("cdk", path=f"{TOOLS}{os.pathsep}{os.environ['PATH']}")
    assert program, "the CDK CLI is not installed: npm ci"
    words = " ".join([program, *arguments, "--no-notices", "--app", f"'{sys.executable} {APP}'"])
    variables = {**os.environ, "CI": "true", "CDK_VALIDATION": "false"}
    done = subprocess.run(
        ["bash", "-c", f". aws/env; {words}"],
        cwd=folder, env=variables, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def client(folder: Path, service: str) -> Any:
    running = server.status(folder / "aws")
    assert running
    return boto3.client(service, region_name=REGION, **running.connection("123456789012"))


def test_a_cdk_app_without_an_ultracluster_is_deployed_and_destroyed(folder: Path) -> None:
    assert "python -m localaws up" in localaws(folder, "status", status=1)
    assert "12 digits" in localaws(folder, "up", "--account", "12", status=1)
    assert server.status(folder / "aws") is None
    assert "run: . aws/env" in localaws(folder, "up", "--region", REGION)
    cdk(folder, "bootstrap")
    cdk(folder, "deploy", "--all", "--require-approval", "never")
    what_is_deployed_is_read_back(folder)
    assert "no differences" in cdk(folder, "diff", "--all", "--fail")
    status_and_down_name_the_stack(folder)
    cdk(folder, "destroy", "--all", "--force")
    assert client(folder, "sqs").list_queues().get("QueueUrls", []) == []
    assert "has stopped" in localaws(folder, "down")
    assert "does not run" in localaws(folder, "down")


def what_is_deployed_is_read_back(folder: Path) -> None:
    (found,) = client(folder, "cloudformation").describe_stacks(StackName="plain")["Stacks"]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in found["Outputs"]}
    sqs = client(folder, "sqs")
    attributes = sqs.get_queue_attributes(QueueUrl=outputs["QueueUrl"], AttributeNames=["All"])["Attributes"]
    assert attributes["VisibilityTimeout"] == "90"
    here = [{"Name": "vpc-id", "Values": [outputs["VpcId"]]}]
    assert len(client(folder, "ec2").describe_subnets(Filters=here)["Subnets"]) == 4
    (gateway,) = client(folder, "ec2").describe_nat_gateways(Filters=here)["NatGateways"]
    assert gateway["State"] == "available"
    (worker,) = client(folder, "lambda").list_functions()["Functions"]
    assert worker["Environment"]["Variables"]["QUEUE"] == outputs["QueueUrl"]
    bucket = worker["Environment"]["Variables"]["BUCKET"]
    (statement,) = json.loads(client(folder, "s3").get_bucket_policy(Bucket=bucket)["Policy"])["Statement"]
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def status_and_down_name_the_stack(folder: Path) -> None:
    listed = json.loads(localaws(folder, "status", "--json"))
    (queue,) = [each for each in listed if each["type"] == "AWS::SQS::Queue"]
    assert (queue["stack"], queue["region"], queue["status"]) == ("plain", REGION, "CREATE_COMPLETE")
    assert queue["physical_id"] in localaws(folder, "status")
    assert "these stacks are deployed: plain" in localaws(folder, "down", status=1)
