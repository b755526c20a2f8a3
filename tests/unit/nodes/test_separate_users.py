"""Credentials of the role of jobs, as SDKs ask for them on a node."""

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from io import BytesIO

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.session import Session

from tests.telemetry.engines import ask, free_port
from tests.unit.nodes.machine import Machine
from tests.unit.nodes.test_eks import group
from ultracluster.nodes.pcs import CREDENTIALS, JobRole, compute_node_steps, login_node_steps

ROLE = JobRole("arn:aws:iam::111122223333:role/jobs", "us-east-2")
STEPS = {"compute": compute_node_steps(group(), job_role=ROLE), "login": login_node_steps(job_role=ROLE)}
AWS = """#!/bin/bash
echo "$*" >> {folder}/calls
[ ! -e {folder}/fails ] || exit 254
number=$(wc -l < {folder}/calls)
keys='"AccessKeyId": "AKIA%s", "SecretAccessKey": "s", "SessionToken": "t%s", "Expiration": "%s"'
printf "{{\\"Credentials\\": {{$keys}}}}\\n" "$number" "$number" "$(cat {folder}/expires)"
"""


class Sts:
    """Plays AWS STS: each call gives a new key that lives an hour. The test moves its clock and the program's."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "aws").write_text(AWS.format(folder=folder))
        (folder / "aws").chmod(0o755)
        self.now = datetime.now(UTC)
        self.later(0)

    def later(self, minutes):
        self.now += timedelta(minutes=minutes)
        (self.folder / "expires").write_text((self.now + timedelta(hours=1)).isoformat())
        (self.folder / "clock").write_text(str(self.now.timestamp()))

    @property
    def calls(self):
        return (self.folder / "calls").read_text().splitlines()


class RawResponse(BytesIO):
    """What botocore reads of a connection."""

    def stream(self):
        yield self.read()


@pytest.fixture
def sts(tmp_path):
    return Sts(tmp_path)


@contextmanager
def served(sts):
    """Port of the program that a step writes, once it listens."""
    machine = Machine(sts.folder / "machine")
    ran = machine.run(STEPS["login"][0])
    assert ran.returncode == 0, ran.stderr
    text = machine.read("opt/ultracluster/serve-credentials")
    assert text.count("time.time()") == 4
    machine.write("program", text.replace("time.time()", f"float(open('{sts.folder}/clock').read())"))
    port = free_port()
    command = [sys.executable, "-IS", machine.root / "program", ROLE.arn, ROLE.region, "train-1", str(port)]
    with subprocess.Popen(command, env={"PATH": f"{sts.folder}:/usr/bin:/bin"}) as process:
        try:
            while not listens(port):
                assert process.poll() is None
                time.sleep(0.1)
            yield port
        finally:
            process.terminate()


def listens(port):
    try:
        return ask(port, "/")
    except ConnectionError:
        return None


def test_a_client_of_boto3_goes_on_past_two_expiries(sts, monkeypatch):
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with served(sts) as port:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", CREDENTIALS.replace(":470", f":{port}"))
        session = Session()
        keys = session.get_credentials()
        client = boto3.session.Session(botocore_session=session, region_name="us-east-2").client("s3")
        signed = []

        def answer(request, **_):
            signed.append(request.headers["Authorization"].decode().partition("Credential=")[2].partition("/")[0])
            return AWSResponse(request.url, 200, {}, RawResponse(b""))

        client.meta.events.register("before-send.s3", answer)
        for minutes in (0, 5, 70, 5, 70):
            sts.later(minutes)
            monkeypatch.setattr(keys, "_time_fetcher", lambda: sts.now)
            client.head_bucket(Bucket="bucket")
    assert signed == ["AKIA1", "AKIA1", "AKIA2", "AKIA2", "AKIA3"]


def test_keys_are_renewed_at_half_of_their_life_and_old_ones_serve_while_sts_fails(sts):
    with served(sts) as port:
        for _ in range(3):
            status, body = ask(port, "/credentials")
        found = json.loads(body)
        assert (status, found["AccessKeyId"], found["Token"], found["RoleArn"]) == (200, "AKIA1", "t1", ROLE.arn)
        assert len(sts.calls) == 1
        assert f"--role-arn {ROLE.arn} --role-session-name train-1 --region us-east-2" in sts.calls[0]
        sts.later(31)
        assert json.loads(ask(port, "/credentials")[1])["AccessKeyId"] == "AKIA2"
        (sts.folder / "fails").touch()
        sts.later(31)
        assert json.loads(ask(port, "/credentials")[1])["AccessKeyId"] == "AKIA2"
        sts.later(31)
        assert ask(port, "/credentials")[0] == 503


def test_without_credentials_the_answer_says_where_to_look(sts):
    (sts.folder / "fails").touch()
    with served(sts) as port:
        status, body = ask(port, "/credentials")
    assert (status, "journalctl -u serve-credentials" in body) == (503, True)


@pytest.mark.parametrize("kind", STEPS)
def test_users_learn_the_region_and_the_address_of_credentials_from_the_environment(kind, tmp_path):
    machine = Machine(tmp_path / "machine")
    [step] = (step for step in STEPS[kind] if step.name == "set-job-environment")
    assert machine.run(step).returncode == 0
    files = ["etc/profile.d/ultracluster.sh"] + ["opt/ultracluster/task-prolog"] * (kind == "compute")
    for file in files:
        text = machine.read(file)
        assert "export AWS_REGION=us-east-2" in text
        assert f"export AWS_CONTAINER_CREDENTIALS_FULL_URI={CREDENTIALS}" in text


def test_no_other_program_can_take_the_port_of_credentials_because_only_root_binds_it():
    assert int(CREDENTIALS.rpartition(":")[2].partition("/")[0]) < 512
    assert STEPS["login"][0].name == STEPS["compute"][0].name == "separate-users"


def test_a_node_whose_rules_cannot_be_loaded_lets_nobody_in_but_root(tmp_path):
    machine = Machine(tmp_path / "machine")
    assert machine.run(STEPS["login"][0], useradd="exit 1", id="exit 1").returncode == 1
    assert "instance metadata" in machine.read("etc/nologin")


def test_with_metadata_open_only_ssh_to_compute_nodes_is_limited():
    assert compute_node_steps(group())[0].arguments == ("compute",)
    assert "separate-users" not in [step.name for step in login_node_steps()]
