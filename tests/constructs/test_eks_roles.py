"""The role of EKS nodes."""

import json

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template

from ultracluster.constructs.eks_roles import EksNodeRole


@pytest.fixture(scope="module")
def template():
    stack = cdk.Stack(cdk.App(), "stack")
    s3.Bucket(stack, "Bucket").grant_read(EksNodeRole(stack, "Nodes"))
    return Template.from_stack(stack)


def test_nodes_may_join_and_pull_images(template):
    (role,) = template.find_resources("AWS::IAM::Role").values()
    names = {json.dumps(arn).rsplit("policy/", 1)[1].rstrip('"]}') for arn in role["Properties"]["ManagedPolicyArns"]}
    assert names == {"AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly"}


def test_nodes_allow_session_manager_and_nothing_else(template):
    (policy,) = template.find_resources("AWS::IAM::ManagedPolicy").values()
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
    assert {action.partition(":")[0] for action in statement["Action"]} == {"ssm", "ssmmessages"}


def test_an_l2_can_grant_the_role_permissions(template):
    (role,) = template.find_resources("AWS::IAM::Role")
    (policy,) = template.find_resources("AWS::IAM::Policy").values()
    assert policy["Properties"]["Roles"] == [{"Ref": role}]
