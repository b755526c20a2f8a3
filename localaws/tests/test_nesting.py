"""Deeply nested input is refused and never crashes the server."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from typing import Any

import boto3
import pytest
from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from botocore.httpsession import URLLib3Session

from localaws import accounts, server
from localaws.documents import MAX_DEPTH
from localaws.intrinsics import TemplateError
from localaws.templates import parse
from stack_parts import settled

REGION = "us-east-2"
DEEP = 40_000
HEAD = "Resources: {Topic: {Type: AWS::SNS::Topic}}\nMetadata:"
TEMPLATES = {
    "flow lists": f"{HEAD} {'[' * DEEP}{']' * DEEP}",
    "flow lists that stay open": "[" * DEEP,
    "flow mappings": f"{HEAD} {'{a: ' * DEEP}",
    "block lists": f"{HEAD}\n  {'- ' * DEEP}a",
    "block lists over lines": f"{HEAD}\n" + "".join(f"{' ' * depth}-\n" for depth in range(1, 4000)),
    "block mappings": f"{HEAD}\n" + "".join(f"{' ' * depth}a:\n" for depth in range(1, 4000)),
    "complex keys": f"{HEAD}\n  {'? ' * DEEP}a",
    "short forms": f"{HEAD} {'!Sub [' * DEEP}",
    "second document": f"{HEAD} {{}}\n---\n{'[' * DEEP}",
    "JSON objects": '{"Metadata": ' + '{"a":' * DEEP + "1" + "}" * (DEEP + 1),
    "JSON lists": '{"Metadata": ' + "[" * DEEP + "]" * DEEP + "}",
    "JSON lists that stay open": '{"Metadata": ' + "[" * DEEP,
    "JSON within the parser's own limit": '{"Metadata": ' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}",
}
ALIASES = "Resources: {Topic: {Type: AWS::SNS::Topic}}\nMetadata: &a [1, *a]"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[server.Server]:
    """A server with the stack `there` and the bucket `templates`."""
    folder = tmp_path_factory.mktemp("localaws")
    started = server.serve(REGION, folder=folder)
    parameter = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "v"}}
    small = json.dumps({"Resources": {"Parameter": parameter}})
    cloudformation = client(started, "cloudformation")
    cloudformation.create_stack(StackName="there", TemplateBody=small)
    assert settled(cloudformation, "there") == "CREATE_COMPLETE"
    place = {"LocationConstraint": REGION}
    client(started, "s3").create_bucket(Bucket="templates", CreateBucketConfiguration=place)
    yield started
    server.stop(folder)


@pytest.fixture(autouse=True)
def survives(running: server.Server) -> Iterator[None]:
    yield
    assert server.status(running.folder) == running


def client(running: server.Server, service: str) -> Any:
    return boto3.client(service, region_name=REGION, **running.connection(accounts.DEFAULT))


@pytest.mark.parametrize("name", TEMPLATES)
def test_too_deep_template_is_refused(name: str) -> None:
    with pytest.raises(
        TemplateError, match=rf"Nesting is deeper than {MAX_DEPTH} levels|did not find expected|may not exceed"
    ):
        parse(TEMPLATES[name])


def test_aliases_are_refused_as_in_cloudformation() -> None:
    with pytest.raises(TemplateError, match="YAML aliases are not allowed in CloudFormation templates"):
        parse(ALIASES)


def test_template_may_be_as_deep_as_the_limit() -> None:
    deep: Any = "end"
    for _ in range(MAX_DEPTH - 1):
        deep = [deep]
    body = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}, "Metadata": deep}
    assert parse(json.dumps(body)) == body
    assert parse("".join(f"{name}: {json.dumps(value)}\n" for name, value in body.items())) == body


ENTRIES: dict[str, Callable[[Any, dict[str, str]], Any]] = {
    "CreateStack": lambda aws, template: aws.create_stack(StackName="deep", **template),
    "UpdateStack": lambda aws, template: aws.update_stack(StackName="there", **template),
    "CreateChangeSet": lambda aws, template: aws.create_change_set(
        StackName="deep", ChangeSetName="deep", ChangeSetType="CREATE", **template
    ),
    "ValidateTemplate": lambda aws, template: aws.validate_template(**template),
    "GetTemplateSummary": lambda aws, template: aws.get_template_summary(**template),
}


@pytest.mark.parametrize("given", ["TemplateBody", "TemplateURL"])
@pytest.mark.parametrize("entry", ENTRIES)
def test_every_action_with_a_template_refuses_and_the_server_survives(
    running: server.Server, entry: str, given: str
) -> None:
    cloudformation, s3 = client(running, "cloudformation"), client(running, "s3")
    for name in ("flow lists", "block lists", "complex keys", "JSON lists"):
        template = {"TemplateBody": TEMPLATES[name]}
        if given == "TemplateURL":
            s3.put_object(Bucket="templates", Key="deep", Body=TEMPLATES[name].encode())
            template = {"TemplateURL": f"https://templates.s3.{REGION}.amazonaws.com/deep"}
        with pytest.raises(ClientError, match="deeper than") as raised:
            ENTRIES[entry](cloudformation, template)
        assert raised.value.response["Error"]["Code"] == "ValidationError"


def test_template_of_the_allowed_depth_deploys(running: server.Server) -> None:
    cloudformation = client(running, "cloudformation")
    value: Any = "v"
    for _ in range((MAX_DEPTH - 5) // 3):
        value = {"Fn::Join": ["", [value]]}
    resource = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": value}}
    cloudformation.create_stack(StackName="allowed", TemplateBody=json.dumps({"Resources": {"P": resource}}))
    assert settled(cloudformation, "allowed") == "CREATE_COMPLETE"


DOCUMENTS = {"lists": "[" * DEEP + "]" * DEEP, "objects": '{"a":' * DEEP + "1" + "}" * DEEP, "open lists": "[" * DEEP}


def requests_with(deep: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Requests with documents that the services parse."""
    yield "iam", "create_role", {"RoleName": "deep", "AssumeRolePolicyDocument": deep}
    yield "iam", "create_policy", {"PolicyName": "deep", "PolicyDocument": deep}
    yield "kms", "create_key", {"Policy": deep}
    yield "s3", "put_bucket_policy", {"Bucket": "documents", "Policy": deep}
    yield "sqs", "create_queue", {"QueueName": "deep", "Attributes": {"Policy": deep}}
    yield "sqs", "create_queue", {"QueueName": "redrive", "Attributes": {"RedrivePolicy": deep}}
    yield "logs", "put_resource_policy", {"policyName": "deep", "policyDocument": deep}
    yield "ecr", "set_repository_policy", {"repositoryName": "documents", "policyText": deep}
    yield "events", "put_rule", {"Name": "deep", "EventPattern": deep}
    yield "eks", "create_addon", {"clusterName": "none", "addonName": "coredns", "configurationValues": deep}


@pytest.mark.parametrize("deep", DOCUMENTS.values(), ids=DOCUMENTS)
def test_documents_only_fail_their_request(running: server.Server, deep: str) -> None:
    once = Config(retries={"total_max_attempts": 1}, parameter_validation=False)
    for service, action, arguments in requests_with(deep):
        aws = boto3.client(service, region_name=REGION, config=once, **running.connection(accounts.DEFAULT))
        with suppress(ClientError, RecursionError):  # the client parses some of the documents when it reads them
            getattr(aws, action)(**arguments)
        assert server.status(running.folder) == running, (service, action)


@pytest.mark.parametrize("deep", DOCUMENTS.values(), ids=DOCUMENTS)
@pytest.mark.parametrize(
    ("service", "method", "path", "content_type"),
    [
        ("ssm", "POST", "/", "application/x-amz-json-1.1"),
        ("eks", "POST", "/clusters", "application/json"),
        ("grafana", "POST", "/workspaces", "application/json"),
        ("lambda", "POST", "/2015-03-31/functions", "application/json"),
        ("pcs", "POST", "/", "application/x-amz-json-1.0"),
    ],
)
def test_bodies_only_fail_their_request(
    running: server.Server, service: str, method: str, path: str, content_type: str, deep: str
) -> None:
    headers = {
        "Content-Type": content_type,
        "X-Amz-Target": "AmazonSSM.GetParameter" if service == "ssm" else "X.CreateCluster",
    }
    assert send(running, service, method, path, deep, headers) >= 400


def test_xml_bodies_only_fail_their_request(running: server.Server) -> None:
    client(running, "s3").create_bucket(Bucket="xml", CreateBucketConfiguration={"LocationConstraint": REGION})
    for name in ("lifecycle", "tagging", "cors", "notification", "versioning"):
        send(running, "s3", "PUT", f"/xml?{name}", "<a>" * DEEP + "</a>" * DEEP, {})
        assert server.status(running.folder) == running, name


def test_faults_only_fail_their_request(running: server.Server) -> None:
    for deep in DOCUMENTS.values():
        request = urllib.request.Request(  # noqa: S310
            f"{running.url}/_localaws/faults", deep.encode(), {server.SECRET_HEADER: running.secret}, method="POST"
        )
        with pytest.raises(urllib.error.HTTPError, match="400") as raised:
            urllib.request.urlopen(request, timeout=30)  # noqa: S310
        raised.value.close()


def test_manifests_only_fail_their_stack(running: server.Server) -> None:
    cloudformation = client(running, "cloudformation")
    for name, deep in (("manifest", DOCUMENTS["lists"]), ("policy", DOCUMENTS["objects"])):
        kind = "Custom::AWSCDK-EKS-KubernetesResource" if name == "manifest" else "AWS::IAM::ManagedPolicy"
        properties = {"Manifest": deep, "ServiceToken": "arn:aws:lambda:us-east-2:123456789012:function:f"}
        resource = {"Type": kind, "Properties": properties if name == "manifest" else {"PolicyDocument": deep}}
        body = json.dumps({"Resources": {"Deep": resource}})
        cloudformation.create_stack(StackName=name, TemplateBody=body, Capabilities=["CAPABILITY_IAM"])
        assert settled(cloudformation, name) == "ROLLBACK_COMPLETE"


def send(running: server.Server, service: str, method: str, path: str, body: str, headers: dict[str, str]) -> int:
    """The status of a signed request with any body, which boto3 would not send."""
    keys = running.connection(accounts.DEFAULT)
    credentials = Credentials(keys["aws_access_key_id"], keys["aws_secret_access_key"])
    request = AWSRequest(
        method, running.url + path, {**headers, "X-Amz-Content-Sha256": sha256(body.encode()).hexdigest()}, body
    )
    (S3SigV4Auth if service == "s3" else SigV4Auth)(credentials, service, REGION).add_auth(request)
    return int(URLLib3Session().send(request.prepare()).status_code)
