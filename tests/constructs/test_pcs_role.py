"""The role and the instance profile of PCS nodes."""

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template

from ultracluster.constructs.pcs_role import PcsNodeRole


@pytest.fixture(scope="module")
def template():
    stack = cdk.Stack(cdk.App(), "stack")
    s3.Bucket(stack, "Bucket").grant_read(PcsNodeRole(stack, "Nodes"))
    return Template.from_stack(stack)


def one(template, kind):
    (resource,) = template.find_resources(kind).values()
    return resource["Properties"]


def test_role_and_profile_have_the_path_that_pcs_requires(template):
    assert one(template, "AWS::IAM::Role")["Path"] == one(template, "AWS::IAM::InstanceProfile")["Path"] == "/aws-pcs/"


def test_nodes_may_register_allow_session_manager_pull_images_and_nothing_else(template):
    register, statement, pull = one(template, "AWS::IAM::ManagedPolicy")["PolicyDocument"]["Statement"]
    assert register["Action"] == "pcs:RegisterComputeNodeGroupInstance"
    assert {action.partition(":")[0] for action in statement["Action"]} == {"ec2", "ssm", "ssmmessages", "ecr"}
    assert not any("*" in action for action in [*statement["Action"], *pull["Action"]])
    assert "repository/*" in str(pull["Resource"])


def test_an_l2_can_grant_the_role_permissions(template):
    (role,) = template.find_resources("AWS::IAM::Role")
    policy = one(template, "AWS::IAM::Policy")
    assert policy["Roles"] == [{"Ref": role}]
    assert "s3:GetObject*" in policy["PolicyDocument"]["Statement"][0]["Action"]
