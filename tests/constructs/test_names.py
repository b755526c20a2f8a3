"""Names that differ for each creation of a stack, and construct ids that are the same at each synth."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam

from ultracluster.constructs.names import bucket_prefix, stable_name, stack_suffix


def test_the_suffix_is_the_start_of_the_uuid_in_the_stack_id():
    uuid = {"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]}
    expected = {"Fn::Select": [0, {"Fn::Split": ["-", uuid]}]}
    assert cdk.Stack(cdk.App(), "stack").resolve(stack_suffix()) == expected


def test_the_prefix_of_buckets_leaves_room_for_their_names():
    assert bucket_prefix(cdk.Stack(cdk.App(), "Long-" + "x" * 60)) == "long-" + "x" * 25


def test_a_stable_name_is_the_same_for_tokens_literals_and_constructs_of_two_apps():
    def names():
        stack = cdk.Stack(cdk.App(), "stack")
        role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
        group = ec2.CfnSecurityGroup(stack, "Group", group_description="x")
        return [stable_name(stack, each) for each in (role, group, role.role_arn, group.attr_group_id, "sg-1")]

    first, second = names(), names()
    assert first == second
    assert len(set(first)) == 5
