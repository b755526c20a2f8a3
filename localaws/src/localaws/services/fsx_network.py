"""Validation of a Lustre file system's network: subnet, security groups and their rules."""

from collections.abc import Callable, Iterable
from typing import Any

from localaws.services.references import References
from localaws.services.service import Refusal

LNET_PORT = 988


def check_network(references: References, request: dict[str, Any]) -> tuple[Any, list[Any]]:
    """The subnet and the security groups, or the VPC's default group. Refusal when FSx would refuse them."""
    subnet_id = request["SubnetIds"][0]
    subnet = references.subnet(subnet_id)
    if subnet is None:
        raise _refusal(f"The subnet {subnet_id} does not exist.", InvalidSubnetId=subnet_id)
    groups = [_group(references, group_id, subnet.vpc_id) for group_id in request.get("SecurityGroupIds") or ()]
    groups = groups or [references.default_security_group(subnet.vpc_id)]
    ids = ", ".join(group.id for group in groups)
    if not _any_rule(groups, _allows_lnet):
        message = f"The security groups {ids} do not permit Lustre LNET network traffic on port {LNET_PORT}."
        raise _refusal(message, InvalidSecurityGroupId=groups[0].id)
    if (request.get("LustreConfiguration") or {}).get("EfaEnabled") and not any(_allows_efa(group) for group in groups):
        message = f"EFA needs a security group that allows all traffic to and from itself by its id; {ids} do not."
        raise _refusal(message, InvalidSecurityGroupId=groups[0].id)
    return subnet, groups


def _group(references: References, group_id: str, vpc_id: str) -> Any:
    group = references.security_group(group_id)
    if group is None or group.vpc_id != vpc_id:
        where = "does not exist" if group is None else f"is not in VPC {vpc_id}"
        raise _refusal(f"The security group {group_id} {where}.", InvalidSecurityGroupId=group_id)
    return group


def _any_rule(groups: Iterable[Any], matches: Callable[[Any], bool]) -> bool:
    """Whether a rule matches inbound, and another outbound."""
    groups = list(groups)
    inbound = any(matches(rule) for group in groups for rule in group.ingress_rules)
    return inbound and any(matches(rule) for group in groups for rule in group.egress_rules)


def _allows_lnet(rule: Any) -> bool:
    if rule.ip_protocol == "-1":
        return True
    return rule.ip_protocol == "tcp" and int(rule.from_port) <= LNET_PORT <= int(rule.to_port)


def _allows_efa(group: Any) -> bool:
    """Whether a group allows all traffic to and from itself. EFA ignores rules with CIDR blocks, even 0.0.0.0/0."""
    return _any_rule([group], lambda rule: rule.ip_protocol == "-1" and rule.source_group.get("GroupId") == group.id)


def _refusal(message: str, **members: str) -> Refusal:
    return Refusal("InvalidNetworkSettings", message, **members)
