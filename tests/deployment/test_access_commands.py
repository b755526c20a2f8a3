"""`ultracluster kubeconfig` and `connect` print the command for what is deployed, or say why there is none."""

import json
from pathlib import Path

import boto3
import pytest
from typer.testing import CliRunner

from localaws import local_aws
from tests.bad_files import FOLDER, file_of
from ultracluster.cli import access, app

SLURM, KUBERNETES = FOLDER / "minimal.yaml", FOLDER / "minimal-eks.yaml"
REGION = "us-east-2"
OUTPUT = "aws eks update-kubeconfig --region us-east-2 --name test-1a2b3c4d"


@pytest.fixture(autouse=True)
def account():
    with local_aws():
        yield


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def launch(name, state="running"):
    ec2 = boto3.client("ec2", region_name=REGION)
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": name}]}]
    (node,) = ec2.run_instances(ImageId="ami-0123456789abcdef0", MinCount=1, MaxCount=1, TagSpecifications=tags)[
        "Instances"
    ]
    if state == "stopped":
        ec2.stop_instances(InstanceIds=[node["InstanceId"]])
    return node["InstanceId"]


def deploy_control_plane(command):
    template = {"Resources": {"Q": {"Type": "AWS::SQS::Queue"}}, "Outputs": {"Kubeconfig": {"Value": command}}}
    cloudformation = boto3.client("cloudformation", region_name=REGION)
    cloudformation.create_stack(StackName="test-control-plane", TemplateBody=json.dumps(template))


def test_connect_prints_the_session_on_a_running_login_node():
    launch("test-train")
    launch("test-login", state="stopped")
    login = launch("test-login")
    done = run("connect", SLURM)
    assert (done.exit_code, done.stdout) == (0, f"aws ssm start-session --region {REGION} --target {login}\n")


def test_connect_says_that_no_login_node_runs():
    done = run("connect", SLURM)
    assert (done.exit_code, done.stderr) == (
        1, f"no instance with the name test-login runs in {REGION}: is it deployed?\n"
    )  # fmt: skip


@pytest.mark.parametrize("command", [OUTPUT, "aws eks update-kubeconfig --name test-1a2b3c4d"])
def test_kubeconfig_prints_the_command_of_the_deployed_cluster(command):
    deploy_control_plane(command)
    done = run("kubeconfig", KUBERNETES)
    assert done.exit_code == 0
    assert sorted(done.stdout.split()) == sorted(f"{OUTPUT} --alias test".split())


def test_kubeconfig_says_that_nothing_is_deployed():
    done = run("kubeconfig", KUBERNETES)
    reason = "the stack test-control-plane does not exist; deploy it: npx cdk deploy test-control-plane\n"
    assert (done.exit_code, done.stderr) == (1, reason)


@pytest.mark.parametrize(
    ("command", "file", "other"), [("connect", KUBERNETES, "kubeconfig"), ("kubeconfig", SLURM, "connect")]
)
def test_the_command_of_the_other_control_plane_is_named(command, file, other):
    done = run(command, file)
    assert done.exit_code == 1
    assert f"Run: ultracluster {other} {file}" in done.stderr


def test_credentials_of_another_account_are_refused(tmp_path):
    file = Path(tmp_path, "test.yaml")
    file.write_text(SLURM.read_text("utf-8").replace("name: test", 'name: test\naccount: "210987654321"'))
    done = run("connect", file)
    assert done.exit_code == 1
    assert done.stderr == "your credentials are for account 123456789012; test is in 210987654321\n"


def test_a_refused_file_is_reported():
    done = run("connect", file_of("cidr-size"))
    assert done.exit_code == 1
    assert "[cidr-size]" in done.stderr


def test_run_becomes_the_command(monkeypatch):
    started = []
    monkeypatch.setattr(access.os, "execvp", lambda file, words: started.append([file, *words]))
    login = launch("test-login")
    assert run("connect", "--run", SLURM).exit_code == 0
    assert started == [["aws", "aws", "ssm", "start-session", "--region", REGION, "--target", login]]


def test_run_without_the_aws_cli_says_so(monkeypatch):
    monkeypatch.setenv("PATH", "")
    launch("test-login")
    done = run("connect", "--run", SLURM)
    assert (done.exit_code, done.stderr) == (1, "aws is not installed: install the AWS CLI, version 2\n")


@pytest.mark.parametrize("words", [("--host", "--api"), ("--api", "--ssh-config"), ("--ssh-config", "--run")])
def test_contradictory_options_are_wrong_usage(words):
    assert run("connect", SLURM, *words).exit_code == 2


@pytest.mark.parametrize(
    ("words", "file", "reason"),
    [
        (("--host",), SLURM, "test has no access host (access.host: true). Run: ultracluster connect {file}"),
        (("--api",), SLURM, "test has no Kubernetes. Run: ultracluster connect {file}"),
        (("--api",), KUBERNETES, "test has no access host: set access.host: true, and deploy it"),
        (
            ("--ssh-config",),
            KUBERNETES,
            "test has no login nodes and no access host: set access.host: true, and deploy it",
        ),
    ],
)
def test_what_is_missing_is_named(words, file, reason):
    done = run("connect", file, *words)
    assert (done.exit_code, done.stderr) == (1, f"{reason.format(file=file)}\n")


def test_two_login_nodes_have_an_alias_each_and_no_address_without_private_ranges():
    nodes = {launch("test-login"), launch("test-login")}
    lines = run("connect", SLURM, "--ssh-config").stdout.splitlines()
    assert [line for line in lines if line.startswith("Host ")] == ["Host test-login", "Host test-login-2"]
    assert {line.split()[1] for line in lines if "HostName" in line} == nodes
    assert not [line for line in lines if line.startswith("#")]


def test_several_commands_run_one_after_the_other(monkeypatch):
    ran = []
    monkeypatch.setattr(access, "_update_kubeconfig", lambda *_: [["aws", "first"], ["kubectl", "second"]])
    monkeypatch.setattr(access.os, "execvp", lambda file, words: ran.append(words))
    done = type("Done", (), {"returncode": 0})
    monkeypatch.setattr(access.subprocess, "run", lambda words: ran.append(words) or done)
    assert run("kubeconfig", "--run", "--port", "8443", KUBERNETES).exit_code == 0
    assert ran == [["aws", "first"], ["kubectl", "second"]]
    done.returncode, ran[:] = 1, []
    assert run("kubeconfig", "--run", "--port", "8443", KUBERNETES).exit_code == 1
    assert ran == [["aws", "first"]]
