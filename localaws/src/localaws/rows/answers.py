"""What a service answers: the resource in it, its members by a property's name, and texts made of them."""

import re
from collections.abc import Mapping
from typing import Any

from localaws.resources import HandlerError
from localaws.rows.shapes import plain

_PAGING = ("ResponseMetadata", "nextToken", "NextToken")
_BRACES = re.compile(r"\{(\w+)([/:]?)\}")


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
    """Why a service says that a resource failed."""
    return next((found[name] for name in ("health", "errorInfo", "statusReason") if found.get(name)), "")


def text(template: str, values: Mapping[str, Any], kind: str) -> str:
    """A template of a row with values in place of its names."""

    def value(found: re.Match[str]) -> str:
        name, separator = found.groups()
        answered = values[name] if name in values else lookup(values, name, kind)
        whole = "" if answered is None else str(answered)
        return whole.rsplit(separator, 1)[-1] if separator else whole

    return _BRACES.sub(value, template)
