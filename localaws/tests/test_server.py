"""The embedded AWS as a background process."""

import errno
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from werkzeug.serving import make_server

from localaws import accounts, callers, process, server
from localaws.faults import Fault
from stack_parts import settled

REGION = "us-east-2"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[server.Server]:
    folder = tmp_path_factory.mktemp("localaws")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_PROFILE", "real")
        patch.setenv("AWS_SESSION_TOKEN", "real-and-secret")
        started = server.serve(REGION, folder=folder)
    yield started
    server.stop(folder)


def client(running: server.Server, service: str, region: str = REGION, account: str = accounts.DEFAULT) -> Any:
    return boto3.client(service, region_name=region, **running.connection(account))


def deploy(running: server.Server, name: str, **properties: Any) -> str:
    cloudformation = client(running, "cloudformation")
    resource = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "v", **properties}}
    cloudformation.create_stack(StackName=name, TemplateBody=json.dumps({"Resources": {"P": resource}}))
    return settled(cloudformation, name)


def test_resources_of_a_stack_are_read_back_at_the_same_endpoint(running: server.Server) -> None:
    assert deploy(running, "made", Name="/made") == "CREATE_COMPLETE"
    assert client(running, "ssm").get_parameter(Name="/made")["Parameter"]["Value"] == "v"


def test_access_key_determines_the_account(running: server.Server) -> None:
    identity = client(running, "sts", account="111122223333").get_caller_identity()
    assert identity["Account"] == "111122223333"
    assert client(running, "cloudformation", account="111122223333").describe_stacks()["Stacks"] == []


def test_role_is_assumed_in_its_own_account(running: server.Server) -> None:
    trust = json.dumps({"Version": "2012-10-17", "Statement": []})
    arn = client(running, "iam", account="111122223333").create_role(RoleName="r", AssumeRolePolicyDocument=trust)
    role = client(running, "sts").assume_role(RoleArn=arn["Role"]["Arn"], RoleSessionName="session")["Credentials"]
    sts = boto3.client(
        "sts",
        region_name=REGION,
        endpoint_url=running.url,
        aws_access_key_id=role["AccessKeyId"],
        aws_secret_access_key=role["SecretAccessKey"],
        aws_session_token=role["SessionToken"],
    )
    assert sts.get_caller_identity()["Account"] == "111122223333"


def test_second_start_keeps_the_server_and_rewrites_the_exports(running: server.Server) -> None:
    again = server.serve("eu-west-1", "111122223333", running.folder)
    assert again == running
    shown = subprocess.run(
        ["sh", "-c", '. "$0"; env', running.folder / "env"], capture_output=True, text=True, check=True, env={}
    ).stdout.splitlines()
    assert f"AWS_ENDPOINT_URL=http://localhost:{running.port}" in shown
    assert "AWS_REGION=eu-west-1" in shown
    assert "AWS_ACCESS_KEY_ID=LOCALAWS111122223333" in shown
    assert f"AWS_CONFIG_FILE={os.devnull}" in shown


def test_it_listens_on_loopback_only(running: server.Server) -> None:
    port = f":{running.port:04X}"
    tables = [Path("/proc/net/tcp"), Path("/proc/net/tcp6")]
    lines = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()]
    listening = {line[1] for line in lines if line[3] == "0A" and line[1].endswith(port)}
    assert f"0100007F{port}" in listening
    assert listening <= {f"0100007F{port}", f"{'0' * 24}01000000{port}"}


def test_no_other_process_can_take_its_port_on_ipv6(running: server.Server) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with pytest.raises(OSError, match="in use"):
        socket.create_server(("::1", running.port), family=socket.AF_INET6)
    connection = http.client.HTTPConnection("::1", running.port, timeout=60)
    connection.request("GET", "/", headers={"Host": f"localhost:{running.port}"})
    assert connection.getresponse().status == 403
    connection.close()


def test_port_that_is_taken_on_ipv6_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    create, taken = socket.create_server, []

    def create_server(address: tuple[str, int], **options: Any) -> socket.socket:
        if address[0] == "::1" and not taken:
            taken.append(address[1])
            raise OSError(errno.EADDRINUSE, "in use")
        return create(address if address[0] != "::1" else ("127.0.0.1", 0))

    monkeypatch.setattr(socket, "create_server", create_server)
    sockets = process.sockets()
    assert len(sockets) == 2
    for opened in sockets:
        opened.close()


def test_machine_without_ipv6_is_served_on_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    create = socket.create_server

    def create_server(address: tuple[str, int], **options: Any) -> socket.socket:
        if address[0] == "::1":
            raise OSError(errno.EADDRNOTAVAIL, "not available")
        return create(address, **options)

    monkeypatch.setattr(socket, "create_server", create_server)
    (opened,) = process.sockets()
    assert opened.getsockname()[0] == "127.0.0.1"
    opened.close()


def test_modules_of_the_current_folder_are_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('imported from the current folder')")
    monkeypatch.chdir(tmp_path)
    server.serve(REGION)
    assert server.stop()


def test_settings_of_the_users_account_are_set_aside(running: server.Server) -> None:
    code = "import boto3; print(boto3.client('sts').get_caller_identity()['Account'])"
    command = ["sh", "-euc", '. "$0"; "$1" -c "$2"', running.folder / "env", sys.executable, code]
    theirs = {"AWS_PROFILE": "missing", "AWS_DEFAULT_PROFILE": "missing", "AWS_SESSION_TOKEN": "of another account"}
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=theirs).stdout
    assert shown.strip() in (accounts.DEFAULT, "111122223333")


def test_requests_bypass_the_users_proxy(running: server.Server) -> None:
    code = "import boto3; print(boto3.client('sts').get_caller_identity()['Account'])"
    command = ["sh", "-euc", '. "$0"; "$1" -c "$2"; echo "$no_proxy"', running.folder / "env", sys.executable, code]
    proxy = {"HTTP_PROXY": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9", "NO_PROXY": "example.com"}
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=proxy).stdout.split()
    assert len(shown[0]) == len(accounts.DEFAULT)
    assert shown[1].endswith(",example.com")


def test_it_knows_no_real_credentials(running: server.Server) -> None:
    environment = Path(f"/proc/{running.pid}/environ").read_text().split("\0")
    aws = {line for line in environment if line.startswith("AWS_")}
    assert aws == {
        f"AWS_CONFIG_FILE={os.devnull}",
        f"AWS_SHARED_CREDENTIALS_FILE={os.devnull}",
        "AWS_EC2_METADATA_DISABLED=true",
    }


@pytest.mark.parametrize("host", ["attacker.example", "localhost.attacker.example", "192.168.1.5:5000"])
def test_it_answers_no_other_name(running: server.Server, host: str) -> None:
    request = urllib.request.Request(f"http://127.0.0.1:{running.port}/_localaws/health", headers={"Host": host})
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(request, timeout=60)  # noqa: S310
    raised.value.close()
    assert raised.value.code == 403


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1:1", "bucket.localhost:1"])
def test_names_of_this_machine(host: str) -> None:
    assert callers.is_local(host)


def test_fault_is_injected_listed_and_cleared_over_http(running: server.Server) -> None:
    running.inject("throttling", "AWS::SSM::Parameter", times=2)
    assert deploy(running, "struck") == "ROLLBACK_COMPLETE"
    waiting = [Fault(**{**fault, "operations": tuple(fault["operations"])}) for fault in running.faults()]
    assert waiting == [Fault("throttling", "AWS::SSM::Parameter", 1)]
    running.clear_faults()
    assert deploy(running, "spared") == "CREATE_COMPLETE"


def test_estimate_of_the_operations_since_they_were_forgotten(running: server.Server) -> None:
    running.forget_operations()
    assert not running.estimate().stacks
    deploy(running, "timed")
    estimate = running.estimate(concurrency=2)
    assert [time.stack for time in estimate.stacks] == ["timed"]
    assert estimate.concurrency == 2
    assert [cause.type for cause in estimate.held_up_by] == ["AWS::SSM::Parameter"]
    assert running.estimate(concurrency=10**20).likely == estimate.likely
    with pytest.raises(server.ServerError, match="concurrency must be at least 1"):
        running.estimate(concurrency=0)


def test_unknown_fault_is_refused_over_http(running: server.Server) -> None:
    with pytest.raises(server.ServerError, match="unknown fault 'earthquake'"):
        running.inject("earthquake", "A")


def test_unknown_action_fails_at_once(running: server.Server) -> None:
    with pytest.raises(ClientError, match="NotImplemented"):
        client(running, "cloudformation").detect_stack_drift(StackName="x")


def test_stop_ends_the_server_and_removes_its_files(tmp_path: Path) -> None:
    started = server.serve(REGION, folder=tmp_path)
    assert server.status(tmp_path) == started
    assert server.stop(tmp_path)
    assert server.status(tmp_path) is None
    assert not server.stop(tmp_path)
    assert not (tmp_path / "env").exists()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", started.port)) != 0


def test_interrupted_start_leaves_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    spawn = os.posix_spawn

    def posix_spawn(*arguments: Any, **options: Any) -> int:
        started.append(spawn(*arguments, **options))
        return started[0]

    def interrupted(folder: Path) -> None:
        if started:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "posix_spawn", posix_spawn)
    monkeypatch.setattr(server, "status", interrupted)
    with pytest.raises(KeyboardInterrupt):
        server.serve(REGION, folder=tmp_path)
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)


def test_a_server_that_ignores_the_request_to_stop_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deaf = subprocess.Popen(["sh", "-c", "trap '' TERM; echo; while :; do sleep 1; done"], stdout=subprocess.PIPE)
    assert deaf.stdout is not None
    deaf.stdout.readline()
    monkeypatch.setattr(server, "STOP_SECONDS", 3)
    monkeypatch.setattr(server, "status", lambda folder: server.Server(folder, deaf.pid, 1, "s" * 40))
    assert server.stop(tmp_path)
    deaf.stdout.close()
    with pytest.raises(ProcessLookupError):
        os.kill(deaf.pid, 0)
    deaf.returncode = -9


def test_a_client_that_stops_sending_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process.RequestHandler, "timeout", 0.2)
    served = make_server("127.0.0.1", 0, lambda *_: [b""], threaded=True, request_handler=process.RequestHandler)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as stalled:
        stalled.sendall(b"POST / HTTP/1.1\r\nContent-Le")
        assert stalled.recv(1) == b""
    served.shutdown()
    served.server_close()


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (("Content-Length", str(process.LARGEST_BODY + 1)), 413),
        (("X-Amz-Decoded-Content-Length", str(process.LARGEST_BODY + 1)), 413),
        (("Transfer-Encoding", "chunked"), 411),
    ],
)
def test_object_that_would_fill_the_memory_is_refused_before_it_is_sent(
    running: server.Server, header: tuple[str, str], status: int
) -> None:
    connection = http.client.HTTPConnection("localhost", running.port, timeout=60)
    connection.putrequest("PUT", "/bucket/key")
    scope = f"{accounts.access_key(accounts.DEFAULT)}/20261121/{REGION}/s3/aws4_request"
    signed = f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature={'0' * 64}"
    connection.putheader("Authorization", signed)
    connection.putheader(*header)
    connection.endheaders()
    assert connection.getresponse().status == status
    connection.close()


def test_files_of_a_dead_server_are_no_server(tmp_path: Path) -> None:
    (tmp_path / "pid").write_text(str(os.getpid()))
    (tmp_path / "port").write_text("9")
    (tmp_path / "secret").write_text("s" * 40)
    assert server.status(tmp_path) is None


def test_port_of_another_server_is_no_server(running: server.Server, tmp_path: Path) -> None:
    (tmp_path / "pid").write_text(str(os.getpid()))
    (tmp_path / "port").write_text(str(running.port))
    (tmp_path / "secret").write_text(running.secret)
    assert server.status(tmp_path) is None


def test_failing_start_shows_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.sys, "executable", "/bin/false")
    with pytest.raises(server.ServerError, match="did not start"):
        server.serve(REGION, folder=tmp_path)


@pytest.mark.parametrize("account", ["", "12345", "1234567890123", "12345678901x"])
def test_account_must_have_twelve_digits(account: str) -> None:
    with pytest.raises(ValueError, match="12 digits"):
        accounts.access_key(account)
