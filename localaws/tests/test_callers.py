"""Who is served: programs of the owner, by their signature; no web page, no other user of the machine."""

import hashlib
import http.client
import json
import os
import socket
import stat
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError

from localaws import accounts, callers, server

REGION = "us-east-2"
ADVICE = r"Run `\. \.localaws/env` in this shell"
PAGE = "https://attacker.example"
CREATE_STACK = "Action=CreateStack&Version=2010-05-15&StackName=page&TemplateBody={}"
FAULT = json.dumps({"name": "throttling", "on": "AWS::SSM::Parameter"})
SERVICES = [
    "cloudformation",
    "ec2",
    "ecr",
    "eks",
    "fsx",
    "grafana",
    "iam",
    "lambda",
    "logs",
    "pcs",
    "s3",
    "sqs",
    "ssm",
    "sts",
]
READS = {
    "cloudformation": "list_stacks",
    "ec2": "describe_vpcs",
    "ecr": "describe_repositories",
    "eks": "list_clusters",
    "fsx": "describe_file_systems",
    "grafana": "list_workspaces",
    "iam": "list_roles",
    "lambda": "list_functions",
    "logs": "describe_log_groups",
    "pcs": "list_clusters",
    "s3": "list_buckets",
    "sqs": "list_queues",
    "ssm": "describe_parameters",
    "sts": "get_caller_identity",
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[server.Server]:
    folder = tmp_path_factory.mktemp("localaws")
    yield server.serve(REGION, folder=folder)
    server.stop(folder)


def client(running: server.Server, service: str, **options: Any) -> Any:
    return boto3.client(service, **{"region_name": REGION, **running.connection(accounts.DEFAULT), **options})


def send(
    running: server.Server, method: str, path: str, headers: dict[str, str], body: str = ""
) -> tuple[int, dict[str, str], str]:
    """One request with these headers, and Host only if it is among them."""
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    if body:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body.encode())
    answer = connection.getresponse()
    told = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()
    connection.close()
    return told


def host(running: server.Server) -> dict[str, str]:
    return {"Host": f"localhost:{running.port}"}


def from_page(
    running: server.Server, site: str = "cross-site", origin: str = PAGE, mode: str = "cors"
) -> dict[str, str]:
    """The headers that Chromium adds to what a page asks for."""
    return {
        **host(running),
        "Origin": origin,
        "Referer": f"{origin}/",
        "Sec-Fetch-Site": site,
        "Sec-Fetch-Mode": mode,
        "Sec-Fetch-Dest": "empty",
        "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/142.0.0.0 Safari/537.36",
    }


def known(running: server.Server) -> dict[str, str]:
    return {server.SECRET_HEADER: running.secret}


def refused(answer: tuple[int, dict[str, str], str]) -> bool:
    status, headers, _ = answer
    return status == 403 and not [name for name in headers if name.startswith("access-control-")]


def test_preflight_for_the_authorization_header_is_refused(running: server.Server) -> None:
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}
    for path in ("/", "/_localaws/faults", "/bucket/key"):
        assert refused(send(running, "OPTIONS", path, {**from_page(running), **asked}))


def test_preflight_from_a_private_network_is_refused(running: server.Server) -> None:
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Private-Network": "true"}
    assert refused(send(running, "OPTIONS", "/", {**from_page(running), **asked}))


def test_page_cannot_inject_faults_without_a_preflight(running: server.Server) -> None:
    headers = {**from_page(running, mode="no-cors"), "Content-Type": "text/plain;charset=UTF-8"}
    assert refused(send(running, "POST", "/_localaws/faults", headers, FAULT))
    assert running.faults() == []


def test_page_that_knows_the_secret_is_refused(running: server.Server) -> None:
    headers = {**from_page(running), **known(running)}
    assert refused(send(running, "POST", "/_localaws/faults", headers, FAULT))
    assert running.faults() == []


def test_page_cannot_reset_or_record(running: server.Server, tmp_path: Path) -> None:
    client(running, "ssm").put_parameter(Name="/kept", Value="v", Type="String", Overwrite=True)
    assert refused(send(running, "POST", "/moto-api/reset", from_page(running, mode="no-cors")))
    recording = {
        **host(running),
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "no-cors",
        "Sec-Fetch-Dest": "image",
    }
    assert refused(send(running, "GET", "/moto-api/recorder/start-recording", recording))
    assert client(running, "ssm").get_parameter(Name="/kept")["Parameter"]["Value"] == "v"


def test_form_of_another_site_is_refused(running: server.Server) -> None:
    headers = {**from_page(running, mode="navigate"), "Content-Type": "application/x-www-form-urlencoded"}
    assert refused(send(running, "POST", "/", headers, CREATE_STACK))
    assert client(running, "cloudformation").list_stacks()["StackSummaries"] == []


@pytest.mark.parametrize("origin", ["http://localhost:8888", "http://127.0.0.1:3000", "http://bucket.localhost:8888"])
def test_page_on_another_port_of_this_machine_is_refused(running: server.Server, origin: str) -> None:
    headers = {**from_page(running, "same-site", origin), **known(running)}
    assert refused(send(running, "GET", "/_localaws/health", headers))


@pytest.mark.parametrize("origin", ["null", "", PAGE, "https://localhost:{port}", "http://localhost:{port}.example"])
def test_browser_without_fetch_metadata_is_refused_by_its_origin(running: server.Server, origin: str) -> None:
    headers = {**host(running), **known(running), "Origin": origin.format(port=running.port)}
    assert refused(send(running, "GET", "/_localaws/health", headers))


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "Same-Origin"])
def test_request_of_a_page_without_an_origin_is_refused(running: server.Server, site: str) -> None:
    headers = {**host(running), **known(running), "Sec-Fetch-Site": site}
    assert refused(send(running, "GET", "/_localaws/health", headers))


def test_same_origin_and_typed_requests_need_the_secret(running: server.Server) -> None:
    own = from_page(running, "same-origin", running.url)
    for headers in (own, {**host(running), "Sec-Fetch-Site": "none"}):
        assert refused(send(running, "GET", "/_localaws/health", headers))
        answered = send(running, "GET", "/_localaws/health", {**headers, **known(running)})
        assert answered[0] == 200
        assert not [name for name in answered[1] if name.startswith("access-control-")]


def test_answers_carry_no_cors_headers(running: server.Server) -> None:
    headers: dict[str, str] = {}
    s3 = client(running, "s3")
    s3.meta.events.register("before-sign.*", lambda request, **_: request.headers.add_header("Origin", running.url))
    s3.meta.events.register("after-call.*", lambda http_response, **_: headers.update(http_response.headers))
    s3.list_buckets()
    assert headers
    assert not [name for name in headers if name.lower().startswith("access-control-")]


@pytest.mark.parametrize("name", [None, "", "attacker.example", "localhost.attacker.example", "192.168.1.5:5000"])
def test_only_the_names_of_this_machine_are_answered(running: server.Server, name: str | None) -> None:
    headers = {} if name is None else {"Host": name}
    assert refused(send(running, "GET", "/_localaws/health", {**headers, **known(running)}))


@pytest.mark.parametrize("name", ["localhost:1", "127.0.0.1:1", "bucket.localhost:1"])
def test_names_of_this_machine(name: str) -> None:
    assert callers.is_local(name)


@pytest.mark.parametrize(
    "path",
    [
        "/moto-api",
        "/moto-api/",
        "/moto-api/reset",
        "//moto-api/reset",
        "///moto-api//reset",
        "/Moto-API/reset",
        "/%6doto-api/reset",
        "/moto%2Dapi/reset",
        "/moto-api%2Freset",
        "/moto-api/recorder/start-recording",
        "/favicon.ico",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_interface_of_moto_is_not_found(running: server.Server, method: str, path: str) -> None:
    scope = f"{accounts.access_key(accounts.DEFAULT)}/20261121/amazonaws.com/motoapi/aws4_request"
    signed = f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature={'0' * 64}"
    for headers in (host(running), {**host(running), **known(running)}, {**host(running), "Authorization": signed}):
        assert send(running, method, path, headers)[0] == 404


@pytest.mark.parametrize("service", SERVICES)
def test_stale_secret_is_refused_with_advice_in_every_protocol(running: server.Server, service: str) -> None:
    stale = client(running, service, aws_secret_access_key="0" * 40)
    with pytest.raises(ClientError, match=ADVICE) as raised:
        getattr(stale, READS[service])()
    assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    assert raised.value.response["Error"]["Code"] in ("InvalidClientTokenId", "UnrecognizedClientException")
    assert raised.value.response["ResponseMetadata"]["RetryAttempts"] == 0


@pytest.mark.parametrize("service", SERVICES)
def test_every_service_is_reached_with_the_right_key(running: server.Server, service: str) -> None:
    assert getattr(client(running, service), READS[service])()["ResponseMetadata"]["HTTPStatusCode"] == 200


@pytest.mark.parametrize("key", ["AKIAIOSFODNN7EXAMPLE", "LOCALAWS12345678901x", "ASIAQAAAAAAAGBQ2ABCD", "x"])
def test_guessed_key_is_refused(running: server.Server, key: str) -> None:
    with pytest.raises(ClientError, match=ADVICE):
        client(running, "sts", aws_access_key_id=key).get_caller_identity()


@pytest.mark.parametrize("secret", ["", "local", "LOCALAWS123456789012"])
def test_guessed_secret_is_refused(running: server.Server, secret: str) -> None:
    with pytest.raises(ClientError, match=ADVICE):
        client(running, "sts", aws_secret_access_key=secret or " ").get_caller_identity()


def test_request_without_credentials_is_refused(running: server.Server) -> None:
    for service in ("s3", "sts"):
        with pytest.raises(ClientError, match=f"The request is not signed. {ADVICE}"):
            getattr(client(running, service, config=Config(signature_version=UNSIGNED)), READS[service])()
    form = {**host(running), "Content-Type": "application/x-www-form-urlencoded"}
    assert send(running, "POST", "/", form, CREATE_STACK)[0] == 403
    assert send(running, "GET", "/latest/meta-data/iam/security-credentials/", host(running))[0] == 403


@pytest.mark.parametrize(
    "authorization", ["", "AWS LOCALAWS123456789012:abc=", "Bearer x", "AWS4-HMAC-SHA256 Credential=x"]
)
def test_other_ways_to_sign_are_refused(running: server.Server, authorization: str) -> None:
    assert send(running, "GET", "/", {**host(running), "Authorization": authorization})[0] == 403


def test_changed_request_is_refused(running: server.Server) -> None:
    sqs = client(running, "sqs")

    def change(request: Any, **_: Any) -> None:
        request.body = request.body.replace(b"one", b"two")

    sqs.meta.events.register("before-send.sqs.CreateQueue", change)
    with pytest.raises(ClientError, match=ADVICE):
        sqs.create_queue(QueueName="one")


def test_body_other_than_the_signed_one_is_refused(running: server.Server) -> None:
    cloudformation = client(running, "cloudformation")

    def exchange(request: Any, **_: Any) -> None:
        request.headers["X-Amz-Content-Sha256"] = hashlib.sha256(request.body.encode()).hexdigest()
        request.body = request.body.replace("good", "evil")

    cloudformation.meta.events.register("before-send.*", exchange)
    with pytest.raises(ClientError, match="not signed with the secret"):
        cloudformation.create_stack(StackName="good", TemplateBody="{}")


@pytest.mark.parametrize("target", ["[x?AWSAccessKeyId=LOCALAWS123456789012&Signature=x", "/"])
def test_malformed_request_is_refused(running: server.Server, target: str) -> None:
    scope = f"{accounts.access_key(accounts.DEFAULT)}/20261121/{REGION}/sts/aws4_request"
    signed = f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature={'0' * 64}"
    headers = {**host(running), "Transfer-Encoding": "chunked"}
    if target == "/":
        headers["Authorization"] = signed
    assert refused(send(running, "POST", target, headers, "not a chunk\n"))


@pytest.mark.parametrize("service", ["ec2", "s3"])
def test_truncated_chunk_leaves_the_server_running(running: server.Server, service: str) -> None:
    credential = f"AKIA/20260101/{REGION}/{service}/aws4_request"
    head = (
        f"POST / HTTP/1.1\r\nHost: {host(running)['Host']}\r\nTransfer-Encoding: chunked\r\n"
        f"X-Amz-Decoded-Content-Length: 100000\r\n"
        f"Authorization: AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host, Signature={64 * '0'}\r\n\r\n"
    )
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", running.port), timeout=30) as connection:
            connection.sendall(f"{head}fffffff\r\n".encode() + b"x" * 100)
            connection.shutdown(socket.SHUT_WR)
            assert b" 403 " in connection.makefile("rb").readline()
    assert client(running, "sts").get_caller_identity()["Account"] == accounts.DEFAULT


def test_key_of_an_assumed_role_is_served_and_its_account_is_the_roles(running: server.Server) -> None:
    role = client(running, "sts").assume_role(RoleArn="arn:aws:iam::111122223333:role/r", RoleSessionName="session")
    session = {
        "aws_access_key_id": role["Credentials"]["AccessKeyId"],
        "aws_session_token": role["Credentials"]["SessionToken"],
    }
    own = client(running, "sts", aws_secret_access_key=role["Credentials"]["SecretAccessKey"], **session)
    assert own.get_caller_identity()["Account"] == "111122223333"
    with pytest.raises(ClientError, match=ADVICE):
        client(running, "sts", aws_secret_access_key="0" * 40, **session).get_caller_identity()


def test_key_of_a_user_is_served(running: server.Server) -> None:
    iam = client(running, "iam")
    iam.create_user(UserName="someone")
    key = iam.create_access_key(UserName="someone")["AccessKey"]
    keys = {"aws_access_key_id": key["AccessKeyId"], "aws_secret_access_key": key["SecretAccessKey"]}
    assert client(running, "sts", **keys).get_caller_identity()["Arn"].endswith("user/someone")


@pytest.mark.parametrize("version", ["s3v4", "s3"])
def test_presigned_urls_are_served_as_they_were_signed(running: server.Server, version: str) -> None:
    client(running, "s3", region_name="us-east-1").create_bucket(Bucket=f"bucket-{version}")
    s3 = client(running, "s3", region_name="us-east-1", config=Config(signature_version=version))
    what = {"Bucket": f"bucket-{version}", "Key": "a folder/ü+(1).txt"}
    put = s3.generate_presigned_url("put_object", {**what, "ContentType": "text/plain", "Metadata": {"a": "b c"}})
    sent = {"Content-Type": "text/plain", **({"x-amz-meta-a": "b c"} if version == "s3v4" else {})}
    assert open_url(put, "PUT", b"body", sent)[0] == 200
    get = s3.generate_presigned_url("get_object", {**what, "ResponseContentType": "text/html"})
    assert open_url(get) == (200, b"body")
    assert open_url(get.replace("folder", "binder"))[0] == 403
    assert open_url(get, "DELETE")[0] == 403


def test_presigned_request_of_another_service_is_checked(running: server.Server) -> None:
    url = client(running, "sts").generate_presigned_url("get_caller_identity", HttpMethod="GET")
    assert open_url(url)[0] == 200
    assert open_url(url.replace("GetCallerIdentity", "GetSessionToken"))[0] == 403
    assert open_url(url[:-1] + ("0" if url[-1] != "0" else "1"))[0] == 403


def open_url(url: str, method: str = "GET", body: bytes | None = None, headers: dict[str, str] | None = None) -> Any:
    try:
        request = urllib.request.Request(url, body, headers or {}, method=method)  # noqa: S310
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_objects_of_any_name_and_size_are_stored_and_read(running: server.Server) -> None:
    s3 = client(running, "s3")
    s3.create_bucket(Bucket="names", CreateBucketConfiguration={"LocationConstraint": REGION})
    for key in ("plain", "a b+c", "ü/ß", "(x)!*'~", "a//b", "../up", "%2F"):
        s3.put_object(Bucket="names", Key=key, Body=b"x" * 100_000, Metadata={"two": "a  b"})
        assert s3.get_object(Bucket="names", Key=key)["ContentLength"] == 100_000
    assert len(s3.list_objects_v2(Bucket="names", Prefix="a")["Contents"]) == 2


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PUT"])
@pytest.mark.parametrize("path", ["health", "places", "faults", "reservations", "kubernetes/arn:aws:eks:x", "nothing"])
def test_own_interface_needs_the_secret(running: server.Server, method: str, path: str) -> None:
    for secret in ({}, {server.SECRET_HEADER: ""}, {server.SECRET_HEADER: "0" * 40}, {server.SECRET_HEADER: "ü"}):
        assert refused(send(running, method, f"/_localaws/{path}", {**host(running), **secret}))
    assert send(running, "GET", "/_localaws/health", {**host(running), **known(running)})[0] == 200


@pytest.mark.parametrize("body", ["[]", "1", "null", "{", '{"name": []}'])
def test_malformed_fault_is_refused(running: server.Server, body: str) -> None:
    assert send(running, "POST", "/_localaws/faults", {**host(running), **known(running)}, body)[0] == 400


def test_only_the_owner_can_read_folder_and_files(tmp_path: Path) -> None:
    folder = tmp_path / "localaws"
    folder.mkdir(mode=0o755)
    folder.chmod(0o777)
    for name, text in {"env": "old", "secret": "s" * 40, "log": "old", "lock": "", "pid": "1", "port": "1"}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o666)
    first = server.serve(REGION, folder=folder)
    try:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
        assert modes == dict.fromkeys(["env", "secret", "log", "pid", "port", "lock"], 0o600)
        assert first.secret not in Path(f"/proc/{first.pid}/cmdline").read_text()
        assert first.secret not in Path(f"/proc/{first.pid}/environ").read_text()
        assert first.secret not in repr(first)
    finally:
        server.stop(folder)
    assert not (folder / "secret").exists()


def test_each_start_makes_a_new_secret(tmp_path: Path, running: server.Server) -> None:
    secrets = {running.secret}
    for _ in range(2):
        secrets.add(server.serve(REGION, folder=tmp_path).secret)
        server.stop(tmp_path)
    assert len(secrets) == 3
    assert {len(secret) for secret in secrets} == {server.SECRET_LENGTH}


def test_files_in_a_folder_that_others_can_write_to_are_not_trusted(tmp_path: Path) -> None:
    started = server.serve(REGION, folder=tmp_path)
    try:
        for mode in (0o770, 0o777, 0o701):
            tmp_path.chmod(mode)
            assert server.status(tmp_path) is None
        tmp_path.chmod(0o700)
        assert server.status(tmp_path) == started
    finally:
        server.stop(tmp_path)


def test_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(server.ServerError, match="belongs to another user"):
        server.serve(REGION, folder=tmp_path)
    assert server.status(tmp_path) is None


def test_symbolic_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir(mode=0o755)
    (target / "pid").write_text("1")
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(server.ServerError, match="is a symbolic link"):
        server.serve(REGION, folder=tmp_path / "link")
    assert stat.S_IMODE(target.stat().st_mode) == 0o755
    assert (target / "pid").exists()


def test_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(server.ServerError, match="cannot use its folder"):
        server.serve(REGION, folder=tmp_path / "file")
