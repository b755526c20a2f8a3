"""Security groups and the rules between them, as EFA requires."""

import pytest

from ultracluster.constructs.security_groups import Ports, allow, member_group


@pytest.fixture(scope="module")
def template(synth):
    def fill(stack):
        group = member_group(stack, "Group", vpc_id="vpc-1", description="Members")
        allow(stack, "Rule", source=group, target="sg-other", ports=Ports("tcp", 988, 988), description="One port")

    return synth(fill)


@pytest.fixture(scope="module")
def group(template):
    (logical_id,) = template.find_resources("AWS::EC2::SecurityGroup")
    return {"Fn::GetAtt": [logical_id, "GroupId"]}


def test_members_send_each_other_everything_by_group_id(template, group):
    rule = {"GroupId": group, "DestinationSecurityGroupId": group, "IpProtocol": "-1"}
    template.has_resource_properties("AWS::EC2::SecurityGroupEgress", rule)


def test_members_take_everything_from_each_other_by_group_id(template, group):
    rule = {"GroupId": group, "SourceSecurityGroupId": group, "IpProtocol": "-1"}
    template.has_resource_properties("AWS::EC2::SecurityGroupIngress", rule)


def test_members_reach_any_address_beside_that(template, group):
    rule = {"GroupId": group, "CidrIp": "0.0.0.0/0", "IpProtocol": "-1"}
    template.has_resource_properties("AWS::EC2::SecurityGroupEgress", rule)


def test_no_address_reaches_the_members(template):
    for rule in template.find_resources("AWS::EC2::SecurityGroupIngress").values():
        assert "SourceSecurityGroupId" in rule["Properties"]
    (members,) = template.find_resources("AWS::EC2::SecurityGroup").values()
    assert "SecurityGroupIngress" not in members["Properties"]


def test_a_permission_stands_on_both_sides(template, group):
    egress = {"GroupId": group, "DestinationSecurityGroupId": "sg-other", "FromPort": 988, "ToPort": 988}
    ingress = {"GroupId": "sg-other", "SourceSecurityGroupId": group, "FromPort": 988, "ToPort": 988}
    template.has_resource_properties("AWS::EC2::SecurityGroupEgress", egress)
    template.has_resource_properties("AWS::EC2::SecurityGroupIngress", ingress)
