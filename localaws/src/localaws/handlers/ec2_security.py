"""AWS::EC2 security groups and their rules."""

from typing import Any, ClassVar, Literal

from localaws.handlers.common import ec2_tags, undo_on_failure
from localaws.handlers.ec2_network import Ec2Handler, require_vpc
from localaws.resources import (
    Context,
    Handler,
    HandlerError,
    Properties,
    Resource,
    changed,
    handler,
    pick,
    require,
    require_security_groups,
)

Direction = Literal["ingress", "egress"]

_RULE = frozenset({"IpProtocol", "FromPort", "ToPort", "CidrIp", "CidrIpv6", "Description"})
_INGRESS = _RULE | {"SourceSecurityGroupId", "SourceSecurityGroupOwnerId", "SourcePrefixListId"}
_EGRESS = _RULE | {"DestinationSecurityGroupId", "DestinationPrefixListId"}


def permission(rule: Properties) -> dict[str, Any]:
    """A rule of a template as EC2's IpPermission. Raises HandlerError for what EC2 would refuse."""
    if dropped := rule.keys() - _INGRESS - _EGRESS:
        raise HandlerError(f"the embedded AWS does not support {', '.join(sorted(dropped))} of a security group rule")
    protocol = str(rule["IpProtocol"])
    ports = pick(rule, "FromPort", "ToPort")
    if protocol in ("tcp", "udp", "6", "17") and len(ports) != 2:
        raise HandlerError(f"a rule for protocol {protocol} needs FromPort and ToPort")
    described = pick(rule, "Description")
    group = rule.get("SourceSecurityGroupId") or rule.get("DestinationSecurityGroupId")
    prefix_list = rule.get("SourcePrefixListId") or rule.get("DestinationPrefixListId")
    owner = {"UserId": rule["SourceSecurityGroupOwnerId"]} if "SourceSecurityGroupOwnerId" in rule else {}
    peers: dict[str, list[dict[str, Any]]] = {
        "IpRanges": [{**pick(rule, "CidrIp"), **described}] if "CidrIp" in rule else [],
        "Ipv6Ranges": [{**pick(rule, "CidrIpv6"), **described}] if "CidrIpv6" in rule else [],
        "UserIdGroupPairs": [{"GroupId": group, **owner, **described}] if group else [],
        "PrefixListIds": [{"PrefixListId": prefix_list, **described}] if prefix_list else [],
    }
    named = {name: peer for name, peer in peers.items() if peer}
    if len(named) != 1:
        raise HandlerError("a security group rule needs exactly one of a CIDR, a security group and a prefix list")
    # EC2 ignores ports in rules for all protocols.
    return {"IpProtocol": protocol, **({} if protocol == "-1" else ports), **named}


def authorize(context: Context, direction: Direction, group_id: str, rule: Properties) -> str:
    """Add a rule to a group. Returns the rule's id."""
    allowed = permission(rule)
    for peer in allowed.get("UserIdGroupPairs", ()):
        require_security_groups(context, [peer["GroupId"]])
    for peer in allowed.get("PrefixListIds", ()):
        _require_prefix_list(context, peer["PrefixListId"])
    call = getattr(context.client("ec2"), f"authorize_security_group_{direction}")
    return str(call(GroupId=group_id, IpPermissions=[allowed])["SecurityGroupRules"][0]["SecurityGroupRuleId"])


def _require_prefix_list(context: Context, prefix_list: str) -> None:
    ec2 = context.client("ec2")
    require(
        lambda: ec2.describe_managed_prefix_lists(PrefixListIds=[prefix_list])["PrefixLists"],
        f"prefix list {prefix_list} does not exist",
    )


def revoke(context: Context, direction: Direction, group_id: str, allowed: dict[str, Any]) -> None:
    """Remove a permission from a group."""
    call = getattr(context.client("ec2"), f"revoke_security_group_{direction}")
    call(GroupId=group_id, IpPermissions=[allowed])


def describe_rule(context: Context, direction: Direction, group_id: str, rule: Properties) -> None:
    """Change the description of an existing rule."""
    call = getattr(context.client("ec2"), f"update_security_group_rule_descriptions_{direction}")
    call(GroupId=group_id, IpPermissions=[permission({"Description": "", **rule})])


@handler
class SecurityGroup(Ec2Handler):
    """AWS::EC2::SecurityGroup with its inline rules."""

    type = "AWS::EC2::SecurityGroup"
    supported_properties = frozenset(
        {"GroupDescription", "GroupName", "VpcId", "SecurityGroupIngress", "SecurityGroupEgress", "Tags"}
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the group and its rules. Without egress rules EC2's default rule stays, which allows all."""
        ec2 = context.client("ec2")
        if vpc := properties.get("VpcId"):
            require_vpc(context, vpc)
        group_id = ec2.create_security_group(
            GroupName=properties.get("GroupName") or context.physical_name(255),
            Description=properties["GroupDescription"],
            TagSpecifications=ec2_tags(context, "security-group", properties),
            **pick(properties, "VpcId"),
        )["GroupId"]
        with undo_on_failure(lambda: ec2.delete_security_group(GroupId=group_id)):
            self.change(context, group_id, {}, properties)
        return self.describe(context, group_id)

    def change(self, context: Context, physical_id: str, old: Properties, new: Properties) -> None:
        """Remove, add and describe rules."""
        self._change_rules(context, "ingress", physical_id, _rules(old, "ingress"), _rules(new, "ingress"))
        self._change_rules(context, "egress", physical_id, _rules(old, "egress"), _rules(new, "egress"))

    def _change_rules(
        self, context: Context, direction: Direction, group_id: str, old: list[Properties], new: list[Properties]
    ) -> None:
        before, after = {_allows(rule): rule for rule in old}, {_allows(rule): rule for rule in new}
        for allows, rule in before.items():
            if allows not in after:
                revoke(context, direction, group_id, permission(rule))
        for allows, rule in after.items():
            if allows not in before:
                authorize(context, direction, group_id, rule)
            elif rule.get("Description", "") != before[allows].get("Description", ""):
                describe_rule(context, direction, group_id, rule)

    def describe(self, context: Context, physical_id: str) -> Resource:
        """Id and VPC."""
        group = require_security_groups(context, [physical_id])[0]
        return Resource(physical_id, {"Id": physical_id, "GroupId": physical_id, "VpcId": group["VpcId"]})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """EC2 refuses while an interface, an endpoint or another group's rule uses the group."""
        context.client("ec2").delete_security_group(GroupId=physical_id)


def _rules(properties: Properties, direction: Direction) -> list[Properties]:
    """The rules of a group. Without egress in the template that is EC2's default rule, which allows all."""
    if direction == "ingress":
        return list(properties.get("SecurityGroupIngress", ()))
    return list(properties.get("SecurityGroupEgress", [{"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}]))


def _allows(rule: Properties) -> str:
    """A rule without its description: two rules that are equal in this are the same rule."""
    return repr(sorted(permission({name: value for name, value in rule.items() if name != "Description"}).items()))


class _RuleHandler(Handler):
    """A rule as a resource of its own, so that two groups can refer to each other."""

    direction: ClassVar[Direction]

    def create(self, context: Context, properties: Properties) -> Resource:
        """Add the rule to its group."""
        if "GroupId" not in properties:
            raise HandlerError("GroupId is missing")
        require_security_groups(context, [properties["GroupId"]])
        rule_id = authorize(context, self.direction, properties["GroupId"], _without_group(properties))
        return Resource(rule_id, {"Id": rule_id})

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Change the description, the only property that can change in place."""
        if changed(old, new) == {"Description"}:
            describe_rule(context, self.direction, new["GroupId"], _without_group(new))
            return Resource(physical_id, {"Id": physical_id})
        return super().update(context, physical_id, old, new)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Remove the rule from its group."""
        call = getattr(context.client("ec2"), f"revoke_security_group_{self.direction}")
        call(GroupId=properties["GroupId"], SecurityGroupRuleIds=[physical_id])


@handler
class SecurityGroupIngress(_RuleHandler):
    """AWS::EC2::SecurityGroupIngress."""

    type = "AWS::EC2::SecurityGroupIngress"
    supported_properties = _INGRESS | {"GroupId"}
    direction = "ingress"


@handler
class SecurityGroupEgress(_RuleHandler):
    """AWS::EC2::SecurityGroupEgress."""

    type = "AWS::EC2::SecurityGroupEgress"
    supported_properties = _EGRESS | {"GroupId"}
    direction = "egress"


def _without_group(properties: Properties) -> Properties:
    return {name: value for name, value in properties.items() if name != "GroupId"}
