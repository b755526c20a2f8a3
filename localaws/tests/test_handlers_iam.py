"""IAM roles, policies and instance profiles."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from handler_parts import Stack, own_tags, tags
from localaws.resources import HandlerError

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


def test_role_is_read_back_and_changed_in_place(stack):
    fixed = {"RoleName": "node", "Path": "/aws-pcs/"}
    old = {
        **fixed,
        "AssumeRolePolicyDocument": trust("ec2.amazonaws.com"),
        "Description": "nodes",
        "MaxSessionDuration": 7200,
        "PermissionsBoundary": f"{AWS_POLICIES}/PowerUserAccess",
        "ManagedPolicyArns": [SSM],
        "Policies": [
            {"PolicyName": "read", "PolicyDocument": allow("s3:GetObject")},
            {"PolicyName": "pcs", "PolicyDocument": allow("pcs:RegisterComputeNodeGroupInstance")},
        ],
        "Tags": tags(team="a", cost="1"),
    }
    made = stack.create(ROLE, **old)
    found = stack.client("iam").get_role(RoleName="node")["Role"]
    assert made == ("node", {"Arn": "arn:aws:iam::123456789012:role/aws-pcs/node", "RoleId": found["RoleId"]})
    assert found["AssumeRolePolicyDocument"] == trust("ec2.amazonaws.com")
    assert (found["Path"], found["Description"], found["MaxSessionDuration"]) == ("/aws-pcs/", "nodes", 7200)
    assert found["PermissionsBoundary"]["PermissionsBoundaryArn"] == f"{AWS_POLICIES}/PowerUserAccess"
    assert own_tags(found["Tags"]) == {"team": "a", "cost": "1"}
    inline = {"read": allow("s3:GetObject"), "pcs": allow("pcs:RegisterComputeNodeGroupInstance")}
    assert policies(stack, "node") == ({SSM}, inline)

    new = {
        **fixed,
        "AssumeRolePolicyDocument": trust("lambda.amazonaws.com"),
        "ManagedPolicyArns": [READ],
        "Policies": [{"PolicyName": "read", "PolicyDocument": allow("s3:ListBucket")}],
        "Tags": tags(team="b"),
    }
    stack.update(ROLE, "node", old, new)
    found = stack.client("iam").get_role(RoleName="node")["Role"]
    assert found["AssumeRolePolicyDocument"] == trust("lambda.amazonaws.com")
    assert (found.get("Description", ""), found["MaxSessionDuration"]) == ("", 3600)
    assert "PermissionsBoundary" not in found
    assert own_tags(found["Tags"]) == {"team": "b"}
    assert policies(stack, "node") == ({READ}, {"read": allow("s3:ListBucket")})

    stack.delete(ROLE, "node", **new)
    with pytest.raises(ClientError, match="NoSuchEntity"):
        stack.client("iam").get_role(RoleName="node")


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


@pytest.mark.parametrize("wrong", ["ManagedPolicyArns", "PermissionsBoundary"])
def test_role_with_an_unknown_policy_leaves_nothing(stack, wrong):
    nobody = f"{AWS_POLICIES}/Nobody"
    value = [nobody] if wrong == "ManagedPolicyArns" else nobody
    with pytest.raises((HandlerError, ClientError), match="Nobody does not exist"):
        stack.create(ROLE, RoleName="half", AssumeRolePolicyDocument=trust("ec2.amazonaws.com"), **{wrong: value})
    with pytest.raises(ClientError, match="NoSuchEntity"):
        stack.client("iam").get_role(RoleName="half")


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


def test_policy_moves_between_roles_and_names(stack):
    first, second = role_of(stack, "first"), role_of(stack, "second")
    old = {"PolicyName": "p", "PolicyDocument": allow("s3:GetObject"), "Roles": [first]}
    new = {"PolicyName": "q", "PolicyDocument": allow("s3:PutObject"), "Roles": [first, second]}
    made = stack.create("AWS::IAM::Policy", **old)
    assert made.attributes == {"Id": made.physical_id}
    assert policies(stack, first)[1] == {"p": allow("s3:GetObject")}
    stack.update("AWS::IAM::Policy", made.physical_id, old, new)
    assert policies(stack, first)[1] == policies(stack, second)[1] == {"q": allow("s3:PutObject")}
    stack.update("AWS::IAM::Policy", made.physical_id, new, {**new, "Roles": [second]})
    assert policies(stack, first)[1] == {}
    stack.delete("AWS::IAM::Policy", made.physical_id, **new)
    assert policies(stack, second)[1] == {}


@pytest.mark.parametrize(("roles", "reason"), [([], "must be non-empty"), (["nobody"], "role nobody does not exist")])
def test_policy_needs_a_role_that_exists(stack, roles, reason):
    with pytest.raises(HandlerError, match=reason):
        stack.create("AWS::IAM::Policy", PolicyName="p", PolicyDocument=allow("s3:*"), Roles=roles)


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


def test_malformed_policy_is_refused(stack):
    with pytest.raises(ClientError, match="MalformedPolicyDocument"):
        stack.create("AWS::IAM::ManagedPolicy", PolicyDocument={"Statement": [{"Effect": "Maybe"}]})


def test_instance_profile_is_read_back_and_replaces_its_role(stack):
    first, second = role_of(stack, "first"), role_of(stack, "second")
    old = {"InstanceProfileName": "node", "Path": "/aws-pcs/", "Roles": [first]}
    made = stack.create("AWS::IAM::InstanceProfile", **old)
    assert made == ("node", {"Arn": "arn:aws:iam::123456789012:instance-profile/aws-pcs/node"})
    stack.update("AWS::IAM::InstanceProfile", "node", old, {**old, "Roles": [second]})
    found = stack.client("iam").get_instance_profile(InstanceProfileName="node")["InstanceProfile"]
    assert (found["Path"], [role["RoleName"] for role in found["Roles"]]) == ("/aws-pcs/", [second])
    stack.delete("AWS::IAM::InstanceProfile", "node")
    with pytest.raises(ClientError, match="NoSuchEntity"):
        stack.client("iam").get_instance_profile(InstanceProfileName="node")


def test_instance_profile_needs_a_role_that_exists(stack):
    with pytest.raises(HandlerError, match="role nobody does not exist"):
        stack.create("AWS::IAM::InstanceProfile", Roles=["nobody"])
