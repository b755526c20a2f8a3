"""A bucket's lifecycle rules: CloudFormation's form of them as S3's API takes it."""

from typing import Any

from localaws.handlers.common import require_only
from localaws.resources import Properties, pick

_RULE = frozenset(
    {"Id", "Status", "Prefix", "TagFilters", "ObjectSizeGreaterThan", "ObjectSizeLessThan"}
    | {"ExpirationInDays", "ExpirationDate", "ExpiredObjectDeleteMarker", "AbortIncompleteMultipartUpload"}
    | {"NoncurrentVersionExpiration", "NoncurrentVersionExpirationInDays"}
    | {"Transition", "Transitions", "NoncurrentVersionTransition", "NoncurrentVersionTransitions"}
)


def lifecycle_rules(rules: list[Properties]) -> list[dict[str, Any]]:
    """The rules as PutBucketLifecycleConfiguration takes them."""
    return [_rule(rule) for rule in rules]


def _rule(rule: Properties) -> dict[str, Any]:
    require_only(rule, set(_RULE), "a life cycle rule")
    asked: dict[str, Any] = {"Status": rule["Status"], "Filter": _filter(rule)}
    if "Id" in rule:
        asked["ID"] = rule["Id"]
    names = {"ExpirationInDays": "Days", "ExpirationDate": "Date"}
    names["ExpiredObjectDeleteMarker"] = "ExpiredObjectDeleteMarker"
    if expiration := {to: rule[name] for name, to in names.items() if name in rule}:
        asked["Expiration"] = expiration
    if transitions := [*rule.get("Transitions", ()), *pick(rule, "Transition").values()]:
        asked["Transitions"] = [_transition(found, "Days") for found in transitions]
    older = [*rule.get("NoncurrentVersionTransitions", ()), *pick(rule, "NoncurrentVersionTransition").values()]
    if older:
        asked["NoncurrentVersionTransitions"] = [_transition(found, "NoncurrentDays") for found in older]
    if "NoncurrentVersionExpirationInDays" in rule:
        asked["NoncurrentVersionExpiration"] = {"NoncurrentDays": rule["NoncurrentVersionExpirationInDays"]}
    return asked | pick(rule, "NoncurrentVersionExpiration", "AbortIncompleteMultipartUpload")


def _filter(rule: Properties) -> dict[str, Any]:
    """One condition stands alone; several are in And. The empty prefix, without conditions, matches all objects."""
    sizes = {name: int(value) for name, value in pick(rule, "ObjectSizeGreaterThan", "ObjectSizeLessThan").items()}
    tags = rule.get("TagFilters", [])
    conditions = {**pick(rule, "Prefix"), **sizes}
    if len(conditions) + len(tags) > 1:
        return {"And": {**conditions, **({"Tags": tags} if tags else {})}}
    return {"Tag": tags[0]} if tags else conditions or {"Prefix": ""}


def _transition(found: Properties, days: str) -> dict[str, Any]:
    names = {"TransitionInDays": days, "TransitionDate": "Date"}
    when = {to: found[name] for name, to in names.items() if name in found}
    return {**when, **pick(found, "StorageClass", "NewerNoncurrentVersions")}
