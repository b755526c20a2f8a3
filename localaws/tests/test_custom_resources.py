"""Functions, and the custom resources that they make."""

import io
import re
import threading
import zipfile
from typing import Any

import pytest

from localaws import local_aws
from localaws.handlers import custom
from localaws.resources import client
from stack_parts import REGION, Stacks

TRUST = {
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}]
}
POLICY = {
    "PolicyName": "parameters",
    "PolicyDocument": {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "ssm:*Parameter", "Resource": "*"}],
    },
}
IAM = {"Capabilities": ["CAPABILITY_IAM"]}
CODE = """
import boto3, cfnresponse, os
def handler(event, context):
    properties = event["ResourceProperties"]
    ssm = boto3.client("ssm")
    name = "/made/" + properties["Name"]
    if event["RequestType"] == "Delete":
        ssm.delete_parameter(Name=name)
    else:
        value = event["RequestType"] + " " + properties["Count"] + " " + os.environ["WHO"]
        ssm.put_parameter(Name=name, Value=value, Type="String", Overwrite=True)
    cfnresponse.send(event, context, cfnresponse.SUCCESS, {"Path": name}, physicalResourceId=name)
"""


@pytest.fixture
def stacks() -> Any:
    with local_aws():
        yield Stacks()


def resources(code: str = CODE, runtime: str = "python3.13", **properties: Any) -> dict[str, Any]:
    function = {
        "Code": {"ZipFile": code},
        "Handler": "index.handler",
        "Runtime": runtime,
        "Role": {"Fn::GetAtt": ["Role", "Arn"]},
        "Environment": {"Variables": {"WHO": "me"}},
    }
    return {
        "Role": {
            "Type": "AWS::IAM::Role",
            "Properties": {"AssumeRolePolicyDocument": TRUST, "Policies": [POLICY]},
        },
        "Function": {"Type": "AWS::Lambda::Function", "Properties": function},
        "Thing": {
            "Type": "Custom::Thing",
            "Properties": {"ServiceToken": {"Fn::GetAtt": ["Function", "Arn"]}, **properties},
        },
    }


def parameters() -> dict[str, str]:
    ssm = client("ssm", REGION)
    found = ssm.describe_parameters()["Parameters"]
    return {row["Name"]: ssm.get_parameter(Name=row["Name"])["Parameter"]["Value"] for row in found}


def test_function_runs_for_each_request_and_its_data_are_attributes(stacks: Stacks) -> None:
    outputs = {"Path": {"Value": {"Fn::GetAtt": ["Thing", "Path"]}}, "Id": {"Value": {"Ref": "Thing"}}}
    assert stacks.create(resources(Name="a", Count=3), Outputs=outputs, **IAM) == "CREATE_COMPLETE"
    assert stacks.outputs() == {"Path": "/made/a", "Id": "/made/a"}
    assert parameters() == {"/made/a": "Create 3 me"}
    assert stacks.update(resources(Name="a", Count=4), Outputs=outputs, **IAM) == "UPDATE_COMPLETE"
    assert parameters() == {"/made/a": "Update 4 me"}
    assert stacks.delete() == "DELETE_COMPLETE"
    assert parameters() == {}


def test_new_physical_id_in_an_update_deletes_the_old_one(stacks: Stacks) -> None:
    code = CODE.replace('"/made/" + properties["Name"]', '"/made/" + event["ResourceProperties"]["Name"]').replace(
        "ssm.delete_parameter(Name=name)", 'ssm.delete_parameter(Name=event["PhysicalResourceId"])'
    )
    stacks.create(resources(code, Name="a", Count=1), **IAM)
    assert stacks.update(resources(code, Name="b", Count=1), **IAM) == "UPDATE_COMPLETE"
    assert parameters() == {"/made/b": "Update 1 me"}
    assert stacks.ids()["Thing"] == "/made/b"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "import cfnresponse\ndef handler(e, c):\n    cfnresponse.send(e, c, 'FAILED', {}, reason='no luck')",
            "Message returned: no luck",
        ),
        ("def handler(e, c):\n    raise KeyError('x')", "raised KeyError('x')"),
        ("import sys\ndef handler(e, c):\n    sys.exit(3)", "SystemExit(3)"),
        ("def handler(e, c):\n    pass", "ended without a response"),
        ("def other(e, c):\n    pass", "has no attribute 'handler'"),
        ("def handler(e, c) pass", "SyntaxError"),
    ],
    ids=["failed", "raised", "exits", "silent", "missing", "syntax"],
)
def test_function_that_fails_or_does_not_respond_fails_the_resource(stacks: Stacks, code: str, words: str) -> None:
    assert stacks.create(resources(code), **IAM) == "ROLLBACK_FAILED"
    assert words in stacks.event_reason("Thing", "CREATE_FAILED")
    assert words in stacks.event_reason("Thing", "DELETE_FAILED")


@pytest.mark.parametrize(
    ("sent", "deleted"),
    [("physicalResourceId='half-made'", "half-made"), ("", r"\d{4}/\d\d/\d\d/\[\$LATEST\]\w{32}"), (None, "Thing-.+")],
    ids=["named", "unnamed", "silent"],
)
def test_what_a_failed_creation_left_is_deleted(stacks: Stacks, sent: str | None, deleted: str) -> None:
    """A function without a physical id sends the name of its log stream; without a response there is no name."""
    respond = f"cfnresponse.send(e, c, 'FAILED', {{}}, {sent})" if sent is not None else "return"
    code = f"""
import boto3, cfnresponse
def handler(e, c):
    if e["RequestType"] == "Create":
        {respond}
    else:
        boto3.client("ssm").put_parameter(Name="/deleted", Value=e["PhysicalResourceId"], Type="String")
        cfnresponse.send(e, c, "SUCCESS", {{}}, e["PhysicalResourceId"])
"""
    assert stacks.create(resources(code), **IAM) == "ROLLBACK_COMPLETE"
    assert re.fullmatch(deleted, parameters()["/deleted"])
    assert stacks.delete() == "DELETE_COMPLETE"


def test_a_function_that_names_no_physical_id_replaces_its_resource(stacks: Stacks) -> None:
    code = "import cfnresponse\ndef handler(e, c):\n    cfnresponse.send(e, c, 'SUCCESS', {})"
    stacks.create(resources(code, Count=1), **IAM)
    before = stacks.ids()["Thing"]
    assert stacks.update(resources(code, Count=2), **IAM) == "UPDATE_COMPLETE"
    assert stacks.ids()["Thing"] != before
    assert ("Thing", "DELETE_COMPLETE") in stacks.events()


def test_function_that_never_ends_is_stopped_and_its_region_goes_on(
    stacks: Stacks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(custom, "LEAST_SECONDS", 0.2)
    parts = resources("import time\ndef handler(e, c):\n    while True: time.sleep(0.01)")
    parts["Function"]["Properties"]["Timeout"] = 1
    assert stacks.create(parts, **IAM) == "ROLLBACK_FAILED"
    assert "Task timed out after 1.00 seconds" in stacks.event_reason("Thing", "CREATE_FAILED")
    functions = [thread for thread in threading.enumerate() if thread.name == "function"]
    for thread in functions:
        thread.join(120)
    assert not any(thread.is_alive() for thread in functions)
    assert stacks.delete() == "DELETE_FAILED"
    assert stacks.delete(RetainResources=["Thing"]) == "DELETE_COMPLETE"


def test_a_function_sees_how_much_time_is_left(stacks: Stacks) -> None:
    code = (
        "import cfnresponse\ndef handler(e, c):\n"
        "    cfnresponse.send(e, c, 'SUCCESS', {'Left': str(c.get_remaining_time_in_millis())})"
    )
    parts = resources(code, ServiceTimeout=20)
    parts["Function"]["Properties"]["Timeout"] = 300
    outputs = {"Left": {"Value": {"Fn::GetAtt": ["Thing", "Left"]}}}
    assert stacks.create(parts, Outputs=outputs, **IAM) == "CREATE_COMPLETE"
    assert 0 < int(stacks.outputs()["Left"]) < 20_000


def test_other_languages_fail_by_name(stacks: Stacks) -> None:
    stacks.create(resources("exports.handler = () => {}", "nodejs24.x"), **IAM)
    assert "runs only Python for custom resources" in stacks.event_reason("Thing", "CREATE_FAILED")


UPLOADED = """
import json, urllib.request
from pathlib import Path
def handler(event, context):
    answer = {"Status": event["ResourceProperties"]["Status"], "Reason": "as asked", "PhysicalResourceId": "one"}
    answer["Data"] = {"Text": (Path(__file__).parent / "data" / "text.txt").read_text()}
    to = event["ResourceProperties"].get("To", event["ResponseURL"])
    with urllib.request.urlopen(urllib.request.Request(to, json.dumps(answer).encode(), method="PUT")) as answered:
        assert answered.reason == "OK"
"""


def uploaded(**properties: str) -> dict[str, Any]:
    """A function with code in S3 that responds by itself."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("index.py", UPLOADED)
        content.writestr("data/text.txt", "beside the code")
    s3 = client("s3", REGION)
    place = {} if REGION == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": REGION}}
    s3.create_bucket(Bucket="assets", **place)
    s3.put_object(Bucket="assets", Key="code.zip", Body=archive.getvalue())
    made = resources(**properties)
    made["Function"]["Properties"]["Code"] = {"S3Bucket": "assets", "S3Key": "code.zip"}
    return made


def test_code_in_s3_responds_by_itself_and_reads_its_files(stacks: Stacks) -> None:
    outputs = {"Text": {"Value": {"Fn::GetAtt": ["Thing", "Text"]}}, "Id": {"Value": {"Ref": "Thing"}}}
    assert stacks.create(uploaded(Status="SUCCESS"), Outputs=outputs, **IAM) == "CREATE_COMPLETE"
    assert stacks.outputs() == {"Text": "beside the code", "Id": "one"}


def test_code_in_s3_that_fails_or_calls_another_host_fails_the_resource(stacks: Stacks) -> None:
    parts = uploaded(Status="FAILED")
    assert stacks.create(parts, **IAM) == "ROLLBACK_FAILED"
    assert "Message returned: as asked" in stacks.event_reason("Thing", "CREATE_FAILED")
    parts["Thing"]["Properties"] |= {"Status": "SUCCESS", "To": "https://example.com/"}
    assert stacks.create(parts, "other", **IAM) == "ROLLBACK_FAILED"
    assert "the embedded AWS has no host example.com" in stacks.event_reason("Thing", "CREATE_FAILED", "other")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"S3Key": "gone.zip"}, "S3 Error Code: NoSuchKey. S3 Error Message: The specified key does not exist."),
        ({"S3Bucket": "gone"}, "S3 Error Code: NoSuchBucket. S3 Error Message: The specified bucket does not exist"),
    ],
)
def test_code_that_is_not_in_s3_fails_the_function(stacks: Stacks, change: dict[str, str], words: str) -> None:
    """The words are those of Lambda's CreateFunction (aws-cdk issue 11025)."""
    parts = uploaded(Status="SUCCESS")
    parts["Function"]["Properties"]["Code"] |= change
    assert stacks.create(parts, **IAM) == "ROLLBACK_COMPLETE"
    reason = stacks.event_reason("Function", "CREATE_FAILED")
    assert reason.startswith(f"Error occurred while GetObject. {words}")


def test_service_token_must_be_a_function_that_exists(stacks: Stacks) -> None:
    missing = f"arn:aws:lambda:{REGION}:123456789012:function:nobody"
    stacks.create({"Thing": {"Type": "Custom::Thing", "Properties": {"ServiceToken": missing}}})
    assert "nobody" in stacks.event_reason("Thing", "CREATE_FAILED")
    topic = f"arn:aws:sns:{REGION}:123456789012:topic"
    stacks.create({"Thing": {"Type": "Custom::Thing", "Properties": {"ServiceToken": topic}}}, "other")
    assert "only in Lambda functions" in stacks.event_reason("Thing", "CREATE_FAILED", "other")


def test_function_settings_are_read_back_and_updated(stacks: Stacks) -> None:
    settings = {
        "Architectures": ["arm64"],
        "Description": "one",
        "EphemeralStorage": {"Size": 1024},
        "LoggingConfig": {"LogFormat": "JSON", "LogGroup": "own"},
        "MemorySize": 256,
        "Timeout": 30,
        "TracingConfig": {"Mode": "Active"},
    }
    parts = resources()
    del parts["Thing"]
    function = parts["Function"]["Properties"]
    plain = {**parts, "Function": {**parts["Function"], "Properties": dict(function)}}
    function.update(settings, ReservedConcurrentExecutions=1, Tags=[{"Key": "a", "Value": "b"}])
    stacks.create(parts, **IAM)
    lambdas, name = client("lambda", REGION), stacks.ids()["Function"]
    found = lambdas.get_function(FunctionName=name)
    assert {key: found["Configuration"][key] for key in settings} == settings
    system = {"aws:cloudformation:stack-name": "stack", "aws:cloudformation:logical-id": "Function"}
    assert found["Tags"].items() >= {"a": "b", **system}.items()
    assert found["Concurrency"] == {"ReservedConcurrentExecutions": 1}
    stacks.update(plain, **IAM)
    found = lambdas.get_function(FunctionName=name)
    assert found["Configuration"]["TracingConfig"] == {"Mode": "PassThrough"}
    assert found["Configuration"]["LoggingConfig"] == {"LogFormat": "Text", "LogGroup": f"/aws/lambda/{name}"}
    assert found["Configuration"]["EphemeralStorage"] == {"Size": 512}
    assert found["Configuration"]["Architectures"] == ["x86_64"]
    assert (found["Configuration"]["MemorySize"], found["Configuration"]["Timeout"]) == (128, 3)
    assert "Concurrency" not in found
    assert "a" not in found["Tags"]


def test_permission_is_a_statement_of_the_function(stacks: Stacks) -> None:
    parts = resources()
    parts["Thing"] = {
        "Type": "AWS::Lambda::Permission",
        "Properties": {
            "Action": "lambda:InvokeFunction",
            "FunctionName": {"Ref": "Function"},
            "Principal": "events.amazonaws.com",
            "SourceArn": "arn:aws:events:us-east-2:123456789012:rule/x",
        },
    }
    assert stacks.create(parts, **IAM) == "CREATE_COMPLETE"
    policy = client("lambda", REGION).get_policy(FunctionName=stacks.ids()["Function"])["Policy"]
    assert "rule/x" in policy
    assert stacks.delete() == "DELETE_COMPLETE"
