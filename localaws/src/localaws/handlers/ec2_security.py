"""EC2: security groups and their rules."""

from typing import Any

from localaws.handlers.ec2_network import ec2
from localaws.resources import Context, HandlerError, Properties, pick
from localaws.rows.handler import register
from localaws.rows.row import Row

_RULE = "IpProtocol FromPort ToPort CidrIp CidrIpv6 Description"
_PEERS = {
    "Ingress": {"SourceSecurityGroupId": "security group", "SourcePrefixListId": "prefix list"},
    "Egress": {"DestinationSecurityGroupId": "security group", "DestinationPrefixListId": "prefix list"},
}
_KNOWN = {*_RULE.split(), "SourceSecurityGroupOwnerId", *_PEERS["Ingress"], *_PEERS["Egress"]}
_OPEN = {"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}  # EC2's rule for egress of a group without rules


def permission(rule: Properties) -> dict[str, Any]:
    """A rule of a template as EC2's IpPermission. Raises HandlerError for what EC2 would refuse."""
    if dropped := rule.keys() - _KNOWN:
        raise HandlerError(f"the embedded AWS does not support {', '.join(sorted(dropped))} of a security group rule")
    protocol = str(rule["IpProtocol"])
    ports = pick(rule, "FromPort", "ToPort")
    if protocol in ("tcp", "udp", "6", "17") and len(ports) != 2:
        raise HandlerError(f"a rule for protocol {protocol} needs FromPort and ToPort")
    group = rule.get("SourceSecurityGroupId") or rule.get("DestinationSecurityGroupId")
    prefix_list = rule.get("SourcePrefixListId") or rule.get("DestinationPrefixListId")
    owner = {"UserId": rule["SourceSecurityGroupOwnerId"]} if "SourceSecurityGroupOwnerId" in rule else {}
    peers = {
        "IpRanges": pick(rule, "CidrIp"),
        "Ipv6Ranges": pick(rule, "CidrIpv6"),
        "UserIdGroupPairs": {"GroupId": group, **owner} if group else {},
        "PrefixListIds": {"PrefixListId": prefix_list} if prefix_list else {},
    }
    named = {name: [{**peer, **pick(rule, "Description")}] for name, peer in peers.items() if peer}
    if len(named) != 1:
        raise HandlerError("a security group rule needs exactly one of a CIDR, a security group and a prefix list")
    # EC2 ignores ports in rules for all protocols.
    return {"IpProtocol": protocol, **({} if protocol == "-1" else ports), **named}


def _set_rules(context: Context, old: Properties, new: Properties) -> None:
    """Remove, add and describe the group's own rules."""
    ec2, group = context.client("ec2"), new["ref"]
    for direction in _PEERS:
        before, after = _rules(old, direction), _rules(new, direction)
        calls = [
            ("revoke_security_group", [before[rule] for rule in before if rule not in after]),
            ("authorize_security_group", [after[rule] for rule in after if rule not in before]),
            (
                "update_security_group_rule_descriptions",
                [after[rule] for rule in after if rule in before and after[rule] != before[rule]],
            ),
        ]
        for action, rules in calls:
            if rules:
                getattr(ec2, f"{action}_{direction.lower()}")(GroupId=group, IpPermissions=rules)


def _rules(properties: Properties, direction: str) -> dict[str, dict[str, Any]]:
    """The permissions of a group by what they allow, which is the rule without its description."""
    listed = properties.get(f"SecurityGroup{direction}", [_OPEN] if direction == "Egress" else [])
    return {
        repr(permission({name: value for name, value in rule.items() if name != "Description"})): permission(rule)
        for rule in listed
    }


def _as_permission(given: Properties) -> Properties:
    """A rule of its own has the properties of EC2's IpPermission beside its group."""
    if "GroupId" not in given:
        raise HandlerError("GroupId is missing")
    own = pick(given, "GroupId", "ref")
    return {**own, "IpPermissions": [permission({name: given[name] for name in given.keys() - own.keys()})]}


def _rule(direction: str, more: str = "") -> Row:
    """The row of a rule as a resource of its own, so that two groups can refer to each other."""
    return ec2(
        type=f"AWS::EC2::SecurityGroup{direction}",
        properties=f"GroupId {_RULE} {' '.join(_PEERS[direction])} {more}",
        create=f"AuthorizeSecurityGroup{direction}",
        update=f"UpdateSecurityGroupRuleDescriptions{direction}",
        delete=f"RevokeSecurityGroup{direction}",
        ref="{SecurityGroupRules.0.SecurityGroupRuleId}",
        ident={"GroupId": "{GroupId}", "SecurityGroupRuleIds": "{ref}"},
        attributes={"Id": "{ref}"},
        must_exist={"GroupId": "security group", **_PEERS[direction]},
        prepare=_as_permission,
    )


register(
    ec2(
        type="AWS::EC2::SecurityGroup",
        properties="GroupDescription GroupName SecurityGroupEgress SecurityGroupIngress Tags VpcId",
        name=("GroupName", 255),
        create="CreateSecurityGroup",
        read="DescribeSecurityGroups",
        delete="DeleteSecurityGroup",
        ref="{GroupId}",
        ident={"GroupId": "{ref}", "GroupIds": "{ref}"},
        renames={"GroupDescription": "Description"},
        attributes={"Id": "{ref}", "VpcId": "VpcId"},
        tag_kind="security-group",
        must_exist={
            "VpcId": "VPC",
            **{
                f"SecurityGroup{direction}.{name}": kind
                for direction, peers in _PEERS.items()
                for name, kind in peers.items()
            },
        },
        by_hand="SecurityGroupEgress SecurityGroupIngress",
        hook=_set_rules,
    ),
    _rule("Ingress", "SourceSecurityGroupOwnerId"),
    _rule("Egress"),
)
