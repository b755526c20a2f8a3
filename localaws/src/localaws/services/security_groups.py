"""Security group rules: their identity, and their descriptions, which moto stores only for CIDR rules."""

from typing import Any

from moto.ec2.models.security_groups import SecurityGroup, SecurityGroupBackend, SecurityGroupRule

from localaws.resources import pick
from localaws.services.patching import patch_method


def activate() -> None:
    """Compare rules by what they allow, and return the description of every rule."""
    patch_method(SecurityGroupRule, "__init__", _make_rule)
    SecurityGroupRule.__eq__ = _same_rule
    SecurityGroupRule.description = property(_description)
    patch_method(SecurityGroup, "_flattened_rules", _flattened_rules)
    patch_method(SecurityGroupBackend, "_sg_update_description", _update_description)


def _make_rule(
    original: Any,
    self: Any,
    backend: Any,
    ip_protocol: str,
    group_id: str,
    from_port: Any,
    to_port: Any,
    ip_range: Any,
    source_group: Any = None,
    prefix_list_id: Any = None,
    **kwargs: Any,
) -> None:
    self.prefix_list_description = (prefix_list_id or {}).get("Description")
    original(self, backend, ip_protocol, group_id, from_port, to_port, ip_range, source_group, prefix_list_id, **kwargs)


def _allows(rule: Any) -> tuple[Any, ...]:
    ports = None if rule.ip_protocol == "-1" else (rule.from_port, rule.to_port)
    source = rule.source_group.get("GroupId")
    return rule.ip_protocol, ports, rule.cidr_ipv4, rule.cidr_ipv6, source, rule.prefix_list_id


def _same_rule(self: Any, other: Any) -> bool:
    return _allows(self) == _allows(other)


def _description(self: Any) -> str | None:
    found: str | None = self.ip_range.get("Description") or self.source_group.get("Description")
    return found or self.prefix_list_description


def _update_description(_: Any, __: Any, new: Any, rule: Any) -> None:
    # One that the request omits is removed: EC2 API reference, UpdateSecurityGroupRuleDescriptionsIngress (2026).
    rule.prefix_list_description = new.prefix_list_description
    for of_rule, of_new in ((rule.ip_range, new.ip_range), (rule.source_group, new.source_group)):
        of_rule.pop("Description", None)
        of_rule.update(pick(of_new, "Description"))


def _flattened_rules(original: Any, self: Any, rules: list[Any]) -> Any:
    views = original(self, rules)
    for view in views:
        ports = view.ip_protocol, view.from_port, view.to_port
        lists = [r for r in rules if r.prefix_list_id and (r.ip_protocol, r.from_port, r.to_port) == ports]
        view.prefix_list_ids = [
            {"PrefixListId": rule.prefix_list_id} | ({"Description": rule.description} if rule.description else {})
            for rule in lists
        ]
    return views
