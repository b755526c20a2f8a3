"""Security groups and their rules, inline and as resources of their own."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from handler_parts import Stack

GROUP = "AWS::EC2::SecurityGroup"
ALL = {"IpProtocol": "-1"}


@pytest.fixture
def vpc(stack: Stack) -> str:
    return stack.make("AWS::EC2::VPC", CidrBlock="10.0.0.0/16")


def group(stack: Stack, group_id: str) -> dict[str, Any]:
    return stack.client("ec2").describe_security_groups(GroupIds=[group_id])["SecurityGroups"][0]


def rules(stack: Stack, group_id: str) -> dict[tuple[Any, ...], str | None]:
    """Every rule of a group, by what it allows, with its description."""
    of_group = [{"Name": "group-id", "Values": [group_id]}]
    found = stack.client("ec2").describe_security_group_rules(Filters=of_group)["SecurityGroupRules"]
    return {
        (
            "egress" if rule["IsEgress"] else "ingress",
            rule["IpProtocol"],
            rule["FromPort"],
            rule["ToPort"],
            rule.get("CidrIpv4")
            or rule.get("CidrIpv6")
            or rule.get("PrefixListId")
            or rule["ReferencedGroupInfo"]["GroupId"],
        ): rule.get("Description")
        for rule in found
    }


def test_group_in_use_is_not_deleted(stack, vpc):
    first, second = (stack.make(GROUP, GroupDescription="g", VpcId=vpc) for _ in range(2))
    asked = {**ALL, "GroupId": first, "SourceSecurityGroupId": second}
    rule = stack.make("AWS::EC2::SecurityGroupIngress", **asked)
    with pytest.raises(ClientError, match="DependencyViolation"):
        stack.delete(GROUP, second)
    with pytest.raises(ClientError, match="DependencyViolation"):
        stack.delete("AWS::EC2::VPC", vpc)
    stack.delete("AWS::EC2::SecurityGroupIngress", rule, **asked)
    stack.delete(GROUP, second)
    stack.delete(GROUP, first)
    stack.delete("AWS::EC2::VPC", vpc)
