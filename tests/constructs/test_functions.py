"""Custom resources: how their functions are deployed, and what their code does."""

import sys
from types import ModuleType
from unittest.mock import Mock, patch

import pytest
from botocore.exceptions import ClientError

from ultracluster.constructs import functions
from ultracluster.constructs.functions import INLINE_LIMIT, InlineResource, inline_code
from ultracluster.constructs.keys import DataKey

HANDLERS = ("default_security_group", "root_squash")


@pytest.fixture(scope="module")
def template(synth):
    def fill(stack):
        InlineResource(
            stack,
            "Squash",
            handler="root_squash",
            resource_type="Custom::LustreRootSquash",
            properties={"FileSystemId": "fs-1", "RootSquash": "65534:65534"},
            statements=[{"Action": "fsx:UpdateFileSystem", "Resource": "arn"}],
            key=DataKey(stack, "Key", description="Logs"),
            timeout_seconds=600,
        )

    return synth(fill)


# deployment


def test_the_code_travels_in_the_template_without_assets(template):
    (function,) = template.find_resources("AWS::Lambda::Function").values()
    assert function["Properties"]["Code"] == {"ZipFile": inline_code("root_squash")}
    assert function["Properties"]["Runtime"] == "python3.14"


def test_the_function_has_its_rights_before_it_is_called(template):
    (function,) = template.find_resources("AWS::Lambda::Function").values()
    assert function["DependsOn"] == list(template.find_resources("AWS::IAM::ManagedPolicy"))


def test_cloudformation_waits_a_minute_longer_than_the_function_may_run(template):
    (resource,) = template.find_resources("Custom::LustreRootSquash").values()
    (function,) = template.find_resources("AWS::Lambda::Function").values()
    assert int(resource["Properties"]["ServiceTimeout"]) == function["Properties"]["Timeout"] + 60


def test_code_that_is_too_long_for_a_template_is_refused(monkeypatch):
    monkeypatch.setattr(functions, "INLINE_LIMIT", 100)
    with pytest.raises(ValueError, match=r"root_squash has \d+ characters of code; a template carries at most 100"):
        inline_code("root_squash")


@pytest.mark.parametrize("handler", HANDLERS)
def test_every_handler_fits_and_stands_alone(handler):
    code = inline_code(handler)
    assert len(code) <= INLINE_LIMIT
    assert "ultracluster" not in code


# what the code does


class Answers(ModuleType):
    """Stands for the module that AWS puts beside inline code."""

    SUCCESS, FAILED = "SUCCESS", "FAILED"

    def __init__(self):
        super().__init__("cfnresponse")
        self.sent = []

    def send(self, event, context, status, data, physical_id, reason=None):
        self.sent.append((status, physical_id, reason))


def run(handler, request, properties, client):
    """Runs inline code as Lambda does; what it answered to CloudFormation."""
    answers, module = Answers(), ModuleType("index")
    with patch.dict(sys.modules, cfnresponse=answers), patch("boto3.client", return_value=client), patch("time.sleep"):
        exec(inline_code(handler), module.__dict__)  # noqa: S102 - as Lambda does
        module.handler({"RequestType": request, "ResourceProperties": properties}, None)
    (answer,) = answers.sent
    return answer


SQUASH = {"FileSystemId": "fs-1", "RootSquash": "65534:65534"}


def fsx(*seen):
    """A client whose file system shows these root squashes, one after the other."""
    lustre = [{"RootSquashConfiguration": {"RootSquash": each}} if each else {} for each in seen]
    client = Mock()
    client.describe_file_systems.side_effect = [{"FileSystems": [{"LustreConfiguration": each}]} for each in lustre]
    return client


@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_root_squash_is_answered_when_it_is_in_force(request_type):
    client = fsx(None, None, "0:0", "65534:65534")
    assert run("root_squash", request_type, SQUASH, client) == ("SUCCESS", "fs-1", None)
    client.update_file_system.assert_called_once_with(
        FileSystemId="fs-1", LustreConfiguration={"RootSquashConfiguration": {"RootSquash": "65534:65534"}}
    )


def test_root_squash_that_is_in_force_already_is_left_alone():
    client = fsx("65534:65534")
    assert run("root_squash", "Create", SQUASH, client) == ("SUCCESS", "fs-1", None)
    client.update_file_system.assert_not_called()


def test_root_squash_that_does_not_come_fails_the_deployment():
    status, _, reason = run("root_squash", "Create", SQUASH, fsx(*[None] * 51))
    assert (status, reason) == ("FAILED", "fs-1 still has no root squash 65534:65534 after 500 s")


def test_what_fsx_refuses_fails_the_deployment_with_its_words():
    client = fsx(None)
    client.update_file_system.side_effect = ClientError({"Error": {"Code": "BadRequest", "Message": "no"}}, "Update")
    status, _, reason = run("root_squash", "Update", SQUASH, client)
    assert status == "FAILED"
    assert "BadRequest" in reason


def test_deleting_root_squash_leaves_the_file_system_as_it_is():
    client = Mock()
    assert run("root_squash", "Delete", SQUASH, client) == ("SUCCESS", "fs-1", None)
    assert client.method_calls == []


def test_the_default_group_loses_both_of_its_rules():
    client = Mock()
    assert run("default_security_group", "Create", {"GroupId": "sg-1"}, client) == ("SUCCESS", "sg-1", None)
    members = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": "sg-1"}]}
    anywhere = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    client.revoke_security_group_ingress.assert_called_once_with(GroupId="sg-1", IpPermissions=[members])
    client.revoke_security_group_egress.assert_called_once_with(GroupId="sg-1", IpPermissions=[anywhere])


def refusing(code):
    client = Mock()
    refusal = ClientError({"Error": {"Code": code, "Message": "no"}}, "RevokeSecurityGroupIngress")
    client.revoke_security_group_ingress.side_effect = client.revoke_security_group_egress.side_effect = refusal
    return client


def test_rules_that_are_gone_already_are_no_error():
    client = refusing("InvalidPermission.NotFound")
    assert run("default_security_group", "Update", {"GroupId": "sg-1"}, client) == ("SUCCESS", "sg-1", None)


def test_any_other_refusal_is():
    status, _, reason = run("default_security_group", "Create", {"GroupId": "sg-1"}, refusing("UnauthorizedOperation"))
    assert status == "FAILED"
    assert "UnauthorizedOperation" in reason


def test_deleting_leaves_the_default_group_as_it_is():
    client = Mock()
    assert run("default_security_group", "Delete", {"GroupId": "sg-1"}, client) == ("SUCCESS", "sg-1", None)
    assert client.method_calls == []
