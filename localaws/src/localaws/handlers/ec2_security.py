"""EC2: security groups and their rules."""

from typing import Any

from localaws.handlers.ec2_network import ec2
from localaws.resources import Context, HandlerError, Properties, pick
from localaws.rows.handler import register
from localaws.rows.row import Row

_RULE = "IpProtocol FromPort ToPort CidrIp CidrIpv6 Description"
_PEERS = {
    "CidrIp": ("IpRanges", "CidrIp"),
    "CidrIpv6": ("Ipv6Ranges", "CidrIpv6"),
    "SourceSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
    "DestinationSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
    "SourcePrefixListId": ("PrefixListIds", "PrefixListId"),
    "DestinationPrefixListId": ("PrefixListIds", "PrefixListId"),
}
"""Where EC2's IpPermission has the peer of a rule."""
_REFERENCES = {
    "Ingress": {"SourceSecurityGroupId": "security group", "SourcePrefixListId": "prefix list"},
    "Egress": {"DestinationSecurityGroupId": "security group", "DestinationPrefixListId": "prefix list"},
}
_OPEN = {"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}
"""The egress rule of a group that the template gives none."""


def permission(rule: Properties) -> dict[str, Any]:
    """A rule of a template as EC2's IpPermission. Raises HandlerError for what EC2 would refuse."""
    if dropped := rule.keys() - {*_RULE.split(), "SourceSecurityGroupOwnerId", *_PEERS}:
        raise HandlerError(f"the embedded AWS does not support {', '.join(sorted(dropped))} of a security group rule")
    protocol, ports = str(rule["IpProtocol"]), pick(rule, "FromPort", "ToPort")
    if protocol in ("tcp", "udp", "6", "17") and len(ports) != 2:
        raise HandlerError(f"a rule for protocol {protocol} needs FromPort and ToPort")
    named = [name for name in _PEERS if name in rule]
    if len(named) != 1:
        raise HandlerError("a security group rule needs exactly one of a CIDR, a security group and a prefix list")
    listed, member = _PEERS[named[0]]
    owner = {"UserId": rule["SourceSecurityGroupOwnerId"]} if "SourceSecurityGroupOwnerId" in rule else {}
    peer = {member: rule[named[0]], **owner, **pick(rule, "Description")}
    # EC2 ignores ports in rules for all protocols.
    return {"IpProtocol": protocol, **({} if protocol == "-1" else ports), listed: [peer]}


def _rules(properties: Properties, direction: str) -> dict[str, dict[str, Any]]:
    """The permissions of a group by what they allow, which is the rule without its description."""
    rules = properties.get(f"SecurityGroup{direction}", [_OPEN] if direction == "Egress" else [])
    return {repr(permission(pick(rule, *sorted(rule.keys() - {"Description"})))): permission(rule) for rule in rules}


def _set_rules(context: Context, old: Properties, new: Properties) -> None:
    """Remove, add and describe the group's own rules."""

    def call(action: str, direction: str, allowed: dict[str, Any]) -> None:
        name = f"{action}_{direction.lower()}"
        getattr(context.client("ec2"), name)(GroupId=new["ref"], IpPermissions=[allowed])

    for direction in _REFERENCES:
        before, after = _rules(old, direction), _rules(new, direction)
        for rule in (rule for rule in before if rule not in after):
            call("revoke_security_group", direction, before[rule])
        for rule, allowed in after.items():
            if rule not in before:
                call("authorize_security_group", direction, allowed)
            elif allowed != before[rule]:
                call("update_security_group_rule_descriptions", direction, allowed)


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
        properties=f"GroupId {_RULE} {' '.join(_REFERENCES[direction])} {more}",
        create=f"AuthorizeSecurityGroup{direction}",
        update=f"UpdateSecurityGroupRuleDescriptions{direction}",
        delete=f"RevokeSecurityGroup{direction}",
        ref="{SecurityGroupRules.0.SecurityGroupRuleId}",
        ident={"GroupId": "{GroupId}", "SecurityGroupRuleIds": "{ref}"},
        must_exist={"GroupId": "security group", **_REFERENCES[direction]},
        prepare=_as_permission,
    )


register(
    ec2(
        type="AWS::EC2::SecurityGroup",
        name=("GroupName", 255),
        ref="{GroupId}",
        ident={"GroupId": "{ref}", "GroupIds": "{ref}"},
        renames={"GroupDescription": "Description"},
        attributes={"VpcId": "VpcId"},
        must_exist={
            "VpcId": "VPC",
            **{f"SecurityGroup{each}.{name}": kind for each in _REFERENCES for name, kind in _REFERENCES[each].items()},
        },
        by_hand="SecurityGroupEgress SecurityGroupIngress",
        hook=_set_rules,
    ),
    _rule("Ingress", "SourceSecurityGroupOwnerId"),
    _rule("Egress"),
)
