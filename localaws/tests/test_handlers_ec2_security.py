"""Security groups and their rules, inline and as resources of their own."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from handler_parts import Stack, own_tags, tags
from localaws.handlers.ec2_security import permission
from localaws.resources import HANDLERS, HandlerError, NotUpdatable

GROUP = "AWS::EC2::SecurityGroup"
ALL = {"IpProtocol": "-1"}
SSH = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "10.0.0.0/8", "Description": "ssh"}


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


OPEN = ("egress", "-1", -1, -1, "0.0.0.0/0")


def test_group_is_read_back(stack, vpc):
    asked = {"GroupDescription": "nodes", "GroupName": "nodes", "VpcId": vpc, "Tags": tags(Name="n")}
    made = stack.create(GROUP, **asked)
    found = group(stack, made.physical_id)
    assert (found["GroupName"], found["Description"], found["VpcId"]) == ("nodes", "nodes", vpc)
    assert own_tags(found["Tags"]) == {"Name": "n"}
    assert made.attributes == {"Id": made.physical_id, "GroupId": made.physical_id, "VpcId": vpc}
    assert rules(stack, made.physical_id) == {OPEN: None}
    stack.update(GROUP, made.physical_id, asked, {**asked, "Tags": tags(Name="m")})
    assert own_tags(group(stack, made.physical_id)["Tags"]) == {"Name": "m"}
    stack.delete(GROUP, made.physical_id)
    with pytest.raises(ClientError, match=r"InvalidGroup\.NotFound"):
        group(stack, made.physical_id)


def test_named_by_cloudformation_without_a_name(stack, vpc):
    made = stack.make(GROUP, GroupDescription="nodes", VpcId=vpc)
    assert group(stack, made)["GroupName"].startswith("Train-Thing-")


def test_inline_rules_replace_the_default_egress_rule(stack, vpc):
    peer = stack.make(GROUP, GroupDescription="peer", VpcId=vpc)
    lists = stack.client("ec2").describe_managed_prefix_lists()["PrefixLists"]
    s3 = next(found["PrefixListId"] for found in lists if found["PrefixListName"].endswith(".s3"))
    https = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}
    made = stack.make(
        GROUP,
        GroupDescription="nodes",
        VpcId=vpc,
        SecurityGroupIngress=[SSH, {**ALL, "SourceSecurityGroupId": peer, "Description": "from peer"}],
        SecurityGroupEgress=[
            {**https, "CidrIpv6": "::/0", "Description": "six"},
            {**https, "DestinationPrefixListId": s3, "Description": "to S3"},
            {**https, "DestinationSecurityGroupId": peer, "Description": "to peer"},
        ],
    )
    assert rules(stack, made) == {
        ("ingress", "tcp", 22, 22, "10.0.0.0/8"): "ssh",
        ("ingress", "-1", -1, -1, peer): "from peer",
        ("egress", "tcp", 443, 443, "::/0"): "six",
        ("egress", "tcp", 443, 443, s3): "to S3",
        ("egress", "tcp", 443, 443, peer): "to peer",
    }
    permissions = group(stack, made)["IpPermissionsEgress"]
    assert permissions[0]["PrefixListIds"] == [{"PrefixListId": s3, "Description": "to S3"}]


def test_inline_rules_change_in_place(stack, vpc):
    base = {"GroupDescription": "nodes", "VpcId": vpc}
    https = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "CidrIp": "0.0.0.0/0"}
    old = {**base, "SecurityGroupIngress": [SSH]}
    new = {**base, "SecurityGroupIngress": [{**SSH, "Description": "shell"}, https], "SecurityGroupEgress": [https]}
    made = stack.make(GROUP, **old)
    stack.update(GROUP, made, old, new)
    assert rules(stack, made) == {
        ("ingress", "tcp", 22, 22, "10.0.0.0/8"): "shell",
        ("ingress", "tcp", 443, 443, "0.0.0.0/0"): None,
        ("egress", "tcp", 443, 443, "0.0.0.0/0"): None,
    }
    stack.update(GROUP, made, new, base)
    assert rules(stack, made) == {OPEN: None}


def test_group_with_a_rule_that_ec2_refuses_leaves_nothing(stack, vpc):
    bad = {**ALL, "SourceSecurityGroupId": "sg-0123456789abcdef0"}
    with pytest.raises(HandlerError, match="sg-0123456789abcdef0"):
        stack.create(GROUP, GroupDescription="nodes", GroupName="half", VpcId=vpc, SecurityGroupIngress=[bad])
    named = [{"Name": "group-name", "Values": ["half"]}]
    assert stack.client("ec2").describe_security_groups(Filters=named)["SecurityGroups"] == []


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ({"IpProtocol": "tcp", "CidrIp": "10.0.0.0/8"}, "needs FromPort and ToPort"),
        (ALL, "exactly one of a CIDR"),
        ({**ALL, "CidrIp": "10.0.0.0/8", "CidrIpv6": "::/0"}, "exactly one of a CIDR"),
        ({**ALL, "SourceSecurityGroupName": "old"}, "SourceSecurityGroupName"),
    ],
)
def test_incomplete_and_ambiguous_rules_are_refused(rule, reason):
    with pytest.raises(HandlerError, match=reason):
        permission(rule)


@pytest.mark.parametrize(("kind", "peer"), [("Ingress", "Source"), ("Egress", "Destination")])
def test_rule_for_the_group_itself_is_a_resource_of_its_own(stack, vpc, kind, peer):
    type_name = f"AWS::EC2::SecurityGroup{kind}"
    nodes = stack.make(GROUP, GroupDescription="nodes", VpcId=vpc)
    asked = {**ALL, "GroupId": nodes, f"{peer}SecurityGroupId": nodes, "Description": "EFA"}
    rule = stack.create(type_name, **asked)
    assert rule.physical_id.startswith("sgr-")
    assert rule.attributes == {"Id": rule.physical_id}
    assert rules(stack, nodes)[kind.lower(), "-1", -1, -1, nodes] == "EFA"
    with pytest.raises(ClientError, match=r"InvalidPermission\.Duplicate"):
        stack.create(type_name, **{**asked, "Description": "again"})

    stack.update(type_name, rule.physical_id, asked, {**asked, "Description": "all EFA"})
    assert rules(stack, nodes)[kind.lower(), "-1", -1, -1, nodes] == "all EFA"
    with pytest.raises(NotUpdatable, match="FromPort"):
        HANDLERS[type_name].update(stack.context(type_name), rule.physical_id, asked, {**asked, "FromPort": 1})
    stack.delete(type_name, rule.physical_id, **asked)
    assert rules(stack, nodes) == {OPEN: None}


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
