"""IAM roles, policies and instance profiles."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from handler_parts import Stack

ROLE = "AWS::IAM::Role"
AWS_POLICIES = "arn:aws:iam::aws:policy"
SSM, READ = f"{AWS_POLICIES}/AmazonSSMManagedInstanceCore", f"{AWS_POLICIES}/AmazonS3ReadOnlyAccess"


def trust(service: str) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return {"Version": "2012-10-17", "Statement": [statement]}


def allow(action: str) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": action, "Resource": "*"}]}


def role_of(stack: Stack, name: str = "node") -> str:
    return stack.make(ROLE, RoleName=name, AssumeRolePolicyDocument=trust("ec2.amazonaws.com"))


def policies(stack: Stack, role: str) -> tuple[set[str], dict[str, Any]]:
    """ARNs of a role's attached policies, and its inline ones by name."""
    iam = stack.client("iam")
    attached = iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
    names = iam.list_role_policies(RoleName=role)["PolicyNames"]
    inline = {name: iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"] for name in names}
    return {policy["PolicyArn"] for policy in attached}, inline


@pytest.mark.parametrize(
    "name",
    [
        "CloudWatchAgentServerPolicy",
        "AmazonPrometheusQueryAccess",
        "AmazonPrometheusRemoteWriteAccess",
        "service-role/AWSLambdaBasicExecutionRole",
        "AdministratorAccess",
    ],
)
def test_managed_policies_of_aws_exist(stack, name):
    arn = f"{AWS_POLICIES}/{name}"
    made = stack.make(ROLE, AssumeRolePolicyDocument=trust("ec2.amazonaws.com"), ManagedPolicyArns=[arn])
    assert policies(stack, made) == ({arn}, {})


def test_role_in_use_is_not_deleted(stack):
    role = role_of(stack)
    profile = stack.make("AWS::IAM::InstanceProfile", Roles=[role])
    with pytest.raises(ClientError, match="DeleteConflict"):
        stack.delete(ROLE, role)
    stack.delete("AWS::IAM::InstanceProfile", profile)
    asked = {"PolicyName": "p", "PolicyDocument": allow("s3:*"), "Roles": [role]}
    policy = stack.make("AWS::IAM::Policy", **asked)
    with pytest.raises(ClientError, match="DeleteConflict"):
        stack.delete(ROLE, role)
    stack.delete("AWS::IAM::Policy", policy, **asked)
    stack.client("iam").attach_role_policy(RoleName=role, PolicyArn=SSM)
    with pytest.raises(ClientError, match="DeleteConflict"):
        stack.delete(ROLE, role)
    stack.client("iam").detach_role_policy(RoleName=role, PolicyArn=SSM)
    stack.delete(ROLE, role)


def test_managed_policy_is_read_back_and_versioned(stack):
    iam = stack.client("iam")
    first, second = role_of(stack, "first"), role_of(stack, "second")
    fixed = {"ManagedPolicyName": "mine", "Path": "/train/", "Description": "d"}
    old = {**fixed, "PolicyDocument": allow("s3:Get0"), "Roles": [first]}
    made = stack.create("AWS::IAM::ManagedPolicy", **old)
    arn = made.physical_id
    assert arn == "arn:aws:iam::123456789012:policy/train/mine"
    assert (made.attributes["PolicyArn"], made.attributes["AttachmentCount"]) == (arn, 1)
    assert policies(stack, first) == ({arn}, {})
    assert iam.get_policy(PolicyArn=arn)["Policy"]["Description"] == "d"

    for number in range(1, 8):
        new = {**fixed, "PolicyDocument": allow(f"s3:Get{number}"), "Roles": [second]}
        changed = stack.update("AWS::IAM::ManagedPolicy", arn, old, new)
        version = changed.attributes["DefaultVersionId"]
        assert version == f"v{number + 1}"
        document = iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
        assert document == allow(f"s3:Get{number}")
        old = new
    assert len(iam.list_policy_versions(PolicyArn=arn)["Versions"]) == 5
    assert (policies(stack, first)[0], policies(stack, second)[0]) == (set(), {arn})

    with pytest.raises(ClientError, match="DeleteConflict"):
        iam.delete_policy(PolicyArn=arn)
    stack.delete("AWS::IAM::ManagedPolicy", arn, **old)
    with pytest.raises(ClientError, match="NoSuchEntity"):
        iam.get_policy(PolicyArn=arn)


def test_managed_policy_in_use_is_not_deleted(stack):
    role = role_of(stack)
    arn = stack.make("AWS::IAM::ManagedPolicy", PolicyDocument=allow("s3:*"))
    stack.client("iam").attach_role_policy(RoleName=role, PolicyArn=arn)
    with pytest.raises(ClientError, match="DeleteConflict"):
        stack.delete("AWS::IAM::ManagedPolicy", arn)
