"""A bucket's lifecycle rules: CloudFormation's form of them as S3's API takes it."""

from localaws.resources import Properties, pick

_RULE = "LifecycleConfiguration.Rules"
RENAMES = {
    f"{_RULE}.{name}": member
    for name, member in {
        "ExpirationDate": "Expiration.Date",
        "ExpirationInDays": "Expiration.Days",
        "ExpiredObjectDeleteMarker": "Expiration.ExpiredObjectDeleteMarker",
        "NoncurrentVersionExpirationInDays": "NoncurrentVersionExpiration.NoncurrentDays",
        "NoncurrentVersionTransitions.TransitionInDays": "NoncurrentDays",
        "Transitions.TransitionDate": "Date",
        "Transitions.TransitionInDays": "Days",
    }.items()
}
"""Members of rules under their names in the API."""

_CONDITIONS = ("Prefix", "ObjectSizeGreaterThan", "ObjectSizeLessThan")


def lifecycle_rule(rule: Properties) -> Properties:
    """A rule with its conditions in Filter, and the transitions that stand alone with the others.

    One condition stands alone; several are in And. The empty prefix, without conditions, matches all objects.
    """
    conditions, tags = pick(rule, *_CONDITIONS), rule.get("TagFilters", [])
    given = {name: value for name, value in rule.items() if name not in (*_CONDITIONS, "TagFilters")}
    if len(conditions) + len(tags) > 1:
        given["Filter"] = {"And": {**conditions, **({"Tags": tags} if tags else {})}}
    else:
        given["Filter"] = {"Tag": tags[0]} if tags else conditions or {"Prefix": ""}
    for name in ("Transition", "NoncurrentVersionTransition"):
        if name in given:
            given[f"{name}s"] = [*given.get(f"{name}s", ()), given.pop(name)]
    return given
