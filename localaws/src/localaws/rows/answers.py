"""Responses of services: the resource, its members by a property's name, and texts with their values."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from localaws.resources import HandlerError
from localaws.rows.shapes import plain

_PAGING = ("ResponseMetadata", "nextToken", "NextToken")
_BRACES = re.compile(r"\{([\w.]+)(?:([/:|])(-?\d*))?\}")


def payload(answer: Mapping[str, Any], address: Mapping[str, Any]) -> Mapping[str, Any]:
    """The resource in an answer: the answer itself, its only structure, or the one of a list that the address names.

    HandlerError when there is none.
    """
    about = {name: value for name, value in answer.items() if name not in _PAGING}
    inner = [value for value in about.values() if isinstance(value, dict | list)]
    if len(inner) < len(about) or not inner:
        return answer
    found = next((each for each in inner if each), [])
    listed = [found] if isinstance(found, dict) else found
    named = [each for each in listed if all(each.get(name, value) == value for name, value in address.items())]
    if not named:
        raise HandlerError("the resource does not exist")
    chosen: Mapping[str, Any] = named[0]
    return chosen


def flat(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The members of an answer, with those of its structures."""
    inner = {key: each for value in answer.values() if isinstance(value, dict) for key, each in value.items()}
    return {**inner, **{name: value for name, value in answer.items() if not isinstance(value, dict)}}


def lookup(found: Mapping[str, Any], name: str, kind: str) -> Any:
    """The value that an answer has under a property's name, or under `kind` and the name; None without one."""
    known = {plain(each): value for each, value in found.items()}
    names = (plain(name), plain(kind + name), plain(name).removeprefix(plain(kind)), f"resource{plain(name)}")
    return next((known[each] for each in names if each in known), None)


def reason(found: Mapping[str, Any]) -> Any:
    """The reason that a service gives for the failure of a resource."""
    named = ("health", "errorInfo", "statusReason", "FailureDetails")
    return next((found[name] for name in named if found.get(name)), "")


def at(found: Any, path: str, kind: str) -> Any:
    """The value at a path `a.b` of an answer; None where one of its steps is missing.

    In a list, `0` is the first item, and a name stands for the values of all items that have it.
    """
    value = found
    for step in path.split("."):
        if isinstance(value, list):
            every = [inner for each in value if (inner := at(each, step, kind)) is not None]
            value = next(iter(value[int(step) :]), None) if step.isdigit() else every or None
        else:
            inner = value if isinstance(value, Mapping) else {}
            value = inner[step] if step in inner else lookup(inner, step, kind)
    return value


def every(found: Mapping[str, Any], path: str) -> list[Any]:
    """The values at a path, also of lists in lists; none where a step is missing."""
    values = [at(found, path, "")]
    while any(isinstance(each, list) for each in values):
        values = [inner for each in values for inner in (each if isinstance(each, list) else [each])]
    return [each for each in values if each is not None]


def shown(value: Any) -> Any:
    """A value as Fn::GetAtt returns it: CloudFormation's names of members, and times as text."""
    if isinstance(value, Mapping):
        return {name[:1].upper() + name[1:]: shown(each) for name, each in value.items()}
    if isinstance(value, list):
        return [shown(each) for each in value]
    return value.isoformat() if isinstance(value, datetime) else value


def text(template: str, values: Mapping[str, Any], kind: str) -> str:
    """A template of a row with values in place of its names."""

    def value(found: re.Match[str]) -> str:
        path, separator, part = found.groups()
        answered = at(values, path, kind)
        whole = "" if answered is None else str(answered)
        parts = whole.split(separator) if separator else [whole]
        position = int(part or -1)
        return parts[position] if position < len(parts) else ""

    return _BRACES.sub(value, template)
