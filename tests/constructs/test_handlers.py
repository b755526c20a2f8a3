"""What the code of inline Lambda functions does, run as Lambda runs it."""

import sys
from types import ModuleType
from unittest.mock import Mock, patch

import pytest
from botocore.exceptions import ClientError

from ultracluster.constructs.functions import inline_code

NIDS = ["10.0.0.5@tcp", "10.0.[2-3].[0-255]@tcp"]
SQUASH = {"FileSystemId": "fs-1", "RootSquash": "65534:65534", "NoSquashNids": NIDS}


class Answers(ModuleType):
    """Replaces the module cfnresponse, which AWS puts beside inline code."""

    SUCCESS, FAILED = "SUCCESS", "FAILED"

    def __init__(self):
        super().__init__("cfnresponse")
        self.sent = []

    def send(self, event, context, status, data, physical_id, reason=None):
        self.sent.append((status, physical_id, reason))


def run(handler, request, properties, client, context=None):
    """Runs inline code as Lambda does, and returns its response to CloudFormation."""
    answers, module = Answers(), ModuleType("index")
    with patch.dict(sys.modules, cfnresponse=answers), patch("boto3.client", return_value=client), patch("time.sleep"):
        exec(inline_code(handler), module.__dict__)  # noqa: S102 - as Lambda does
        module.handler({"RequestType": request, "ResourceProperties": properties}, context)
    (answer,) = answers.sent
    return answer


def fsx(*seen):
    """A client whose file system has these root squash settings, one after the other."""
    found = [{"RootSquash": each, "NoSquashNids": NIDS[::-1]} if isinstance(each, str) else each for each in seen]
    lustre = [{"RootSquashConfiguration": each} if each else {} for each in found]
    client = Mock()
    client.describe_file_systems.side_effect = [{"FileSystems": [{"LustreConfiguration": each}]} for each in lustre]
    return client


@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_root_squash_succeeds_once_it_is_in_force(request_type):
    client = fsx(None, None, "0:0", "65534:65534")
    assert run("root_squash", request_type, SQUASH, client) == ("SUCCESS", "fs-1", None)
    client.update_file_system.assert_called_once_with(
        FileSystemId="fs-1",
        LustreConfiguration={"RootSquashConfiguration": {"RootSquash": "65534:65534", "NoSquashNids": NIDS}},
    )


def test_root_squash_already_in_force_is_not_set_again():
    client = fsx("65534:65534")
    assert run("root_squash", "Create", SQUASH, client) == ("SUCCESS", "fs-1", None)
    client.update_file_system.assert_not_called()


def test_other_exempt_clients_are_set_again():
    client = fsx({"RootSquash": "65534:65534"}, "65534:65534")
    assert run("root_squash", "Update", SQUASH, client) == ("SUCCESS", "fs-1", None)
    client.update_file_system.assert_called_once()


def test_a_resource_from_before_has_no_exempt_clients():
    client = fsx({"RootSquash": "65534:65534"})
    properties = {name: value for name, value in SQUASH.items() if name != "NoSquashNids"}
    assert run("root_squash", "Update", properties, client) == ("SUCCESS", "fs-1", None)
    client.update_file_system.assert_not_called()


def test_root_squash_that_never_takes_effect_fails_the_deployment():
    status, _, reason = run("root_squash", "Create", SQUASH, fsx(*[None] * 51))
    assert status == "FAILED"
    assert reason.startswith("fs-1 does not have {'RootSquash': '65534:65534'")


def test_an_error_of_fsx_fails_the_deployment_with_its_message():
    client = fsx(None)
    client.update_file_system.side_effect = ClientError({"Error": {"Code": "BadRequest", "Message": "no"}}, "Update")
    status, _, reason = run("root_squash", "Update", SQUASH, client)
    assert status == "FAILED"
    assert "BadRequest" in reason


def test_deleting_root_squash_does_not_change_the_file_system():
    client = Mock()
    assert run("root_squash", "Delete", SQUASH, client) == ("SUCCESS", "fs-1", None)
    assert client.method_calls == []


def test_both_rules_of_the_default_security_group_are_revoked():
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


def test_rules_that_were_revoked_before_are_no_error():
    client = refusing("InvalidPermission.NotFound")
    assert run("default_security_group", "Update", {"GroupId": "sg-1"}, client) == ("SUCCESS", "sg-1", None)


def test_any_other_error_of_ec2_fails_the_deployment():
    status, _, reason = run("default_security_group", "Create", {"GroupId": "sg-1"}, refusing("UnauthorizedOperation"))
    assert status == "FAILED"
    assert "UnauthorizedOperation" in reason


def test_deleting_does_not_change_the_default_security_group():
    client = Mock()
    assert run("default_security_group", "Delete", {"GroupId": "sg-1"}, client) == ("SUCCESS", "sg-1", None)
    assert client.method_calls == []


def logging_cluster(*states):
    """A client whose cluster has logs, and whose update has these states, one after the other."""
    client = Mock()
    setups = [{"types": ["api", "audit"], "enabled": True}, {"types": ["scheduler"], "enabled": False}]
    cluster = {"tags": {"ultracluster:retain": "false"}, "logging": {"clusterLogging": setups}}
    client.describe_cluster.return_value = {"cluster": cluster}
    first, *later = ({"update": {"id": "u-1", "status": state}} for state in states)
    client.update_cluster_config.return_value = first
    client.describe_update.side_effect = later
    return client


def left(*milliseconds):
    return Mock(get_remaining_time_in_millis=Mock(side_effect=milliseconds))


def test_the_logs_of_a_cluster_are_disabled_before_its_deletion():
    client = logging_cluster("InProgress", "InProgress", "Successful")
    answer = run("quiet_cluster", "Delete", {"ClusterName": "c"}, client, left(900_000, 895_000))
    assert answer == ("SUCCESS", "c", None)
    wanted = {"clusterLogging": [{"types": ["api", "audit"], "enabled": False}]}
    client.update_cluster_config.assert_called_once_with(name="c", logging=wanted)


def test_an_update_of_a_cluster_that_does_not_end_is_an_answer_before_the_time_ends():
    client = logging_cluster("InProgress", "InProgress", "InProgress")
    status, _, reason = run("quiet_cluster", "Delete", {"ClusterName": "c"}, client, left(70_000, 59_000))
    assert (status, reason) == ("FAILED", "EKS still updates c: delete the stack again")
