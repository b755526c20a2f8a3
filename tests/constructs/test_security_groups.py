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


def test_all_egress_among_members_is_allowed_by_group_id(template, group):
    rule = {"GroupId": group, "DestinationSecurityGroupId": group, "IpProtocol": "-1"}
    template.has_resource_properties("AWS::EC2::SecurityGroupEgress", rule)


def test_all_ingress_among_members_is_allowed_by_group_id(template, group):
    rule = {"GroupId": group, "SourceSecurityGroupId": group, "IpProtocol": "-1"}
    template.has_resource_properties("AWS::EC2::SecurityGroupIngress", rule)


def test_egress_of_members_to_any_address_is_allowed(template, group):
    rule = {"GroupId": group, "CidrIp": "0.0.0.0/0", "IpProtocol": "-1"}
    template.has_resource_properties("AWS::EC2::SecurityGroupEgress", rule)


def test_no_ingress_from_addresses_is_allowed(template):
    for rule in template.find_resources("AWS::EC2::SecurityGroupIngress").values():
        assert "SourceSecurityGroupId" in rule["Properties"]
    (members,) = template.find_resources("AWS::EC2::SecurityGroup").values()
    assert "SecurityGroupIngress" not in members["Properties"]


def test_allow_creates_an_egress_and_an_ingress_rule(template, group):
    egress = {"GroupId": group, "DestinationSecurityGroupId": "sg-other", "FromPort": 988, "ToPort": 988}
    ingress = {"GroupId": "sg-other", "SourceSecurityGroupId": group, "FromPort": 988, "ToPort": 988}
    template.has_resource_properties("AWS::EC2::SecurityGroupEgress", egress)
    template.has_resource_properties("AWS::EC2::SecurityGroupIngress", ingress)
