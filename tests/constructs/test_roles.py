"""Roles that services and pods assume."""

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from ultracluster.constructs.roles import PODS, managed_policy, service_role, trust_policy


def test_pods_may_tag_the_sessions_of_their_roles():
    (statement,) = trust_policy(PODS)["Statement"]
    assert statement["Action"] == ["sts:AssumeRole", "sts:TagSession"]
    assert statement["Principal"] == {"Service": PODS}


def test_other_services_only_assume_their_roles_under_the_conditions():
    condition = {"StringEquals": {"aws:SourceAccount": "111122223333"}}
    (statement,) = trust_policy("fsx.amazonaws.com", condition)["Statement"]
    assert statement["Action"] == ["sts:AssumeRole"]
    assert statement["Condition"] == condition


@pytest.mark.parametrize("service", [PODS, "eks.amazonaws.com"])
def test_a_role_has_aws_policies_and_managed_policies(service):
    stack = cdk.Stack(cdk.App(), "stack")
    role = service_role(
        stack, "Role", service=service, description="x", aws_policies={"AmazonEKSClusterPolicy": "EKS needs it"}
    )
    managed_policy(stack, "Policy", roles=[role], statements=[{"Action": "s3:GetObject", "Resource": "arn"}])
    template = Template.from_stack(stack)
    (found,) = template.find_resources("AWS::IAM::Role").values()
    assert "AmazonEKSClusterPolicy" in str(found["Properties"]["ManagedPolicyArns"])
    (policy,) = template.find_resources("AWS::IAM::ManagedPolicy").values()
    assert policy["Properties"]["Roles"] == [{"Ref": "Role"}]
    statement = {"Action": "s3:GetObject", "Resource": "arn", "Effect": "Allow"}
    assert policy["Properties"]["PolicyDocument"]["Statement"] == [statement]
