"""How a value of the wrong shape is put into words: pydantic's errors as problems of ours."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, Tag
from pydantic_core import ErrorDetails

from ultracluster.config.codes import Code
from ultracluster.config.environment import Environment
from ultracluster.config.fields import LOOKS_LIKE
from ultracluster.config.problems import Path, Problem

_SHAPES: dict[str, Code] = {
    "missing": "missing-key",
    "extra_forbidden": "unknown-key",
    "literal_error": "value-not-allowed",
    "string_pattern_mismatch": "invalid-format",
    "greater_than": "out-of-range",
    "greater_than_equal": "out-of-range",
    "less_than": "out-of-range",
    "less_than_equal": "out-of-range",
    "string_too_long": "wrong-length",
    "string_too_short": "wrong-length",
    "too_long": "wrong-length",
    "too_short": "wrong-length",
}
_KINDS = {
    "string": "text",
    "int": "a whole number",
    "bool": "true or false",
    "tuple": "a list",
    "mapping": "a mapping",
    "model": "a mapping",
    "dict": "a mapping",
}
_SIDES = {"<text>": "text", "<number>": "a whole number", "<mapping>": "a mapping"}
_TAG = re.compile(r"<\w+>")
_LIMITS = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most"}
_SHOWN = 60
"""Characters of a value that a message shows."""


ENTRY = "the entry"
"""Stands for the key of a value that is an entry of a list."""


def misshapen(details: ErrorDetails, written: Mapping[Path, str]) -> Problem:
    """Pydantic's word on the shape of a value, in ours; `at` is the path from the top of the file.

    `written` is how a value that is not text stands in the file.
    """
    # these parts name a side of a union, or that a mapping's key is meant: neither is in the file
    tagged = tuple(part for part in details["loc"] if part != "[key]")
    path = tuple(part for part in tagged if not _is_tag(part))
    value, context = details["input"], details.get("ctx", {})
    if details["type"] in ("union_tag_invalid", "union_tag_not_found") and isinstance(value, dict):
        return _unknown_kind(path, value, _kinds(tagged))
    code = _SHAPES.get(details["type"], "wrong-type")
    message, hint = _words(code, tagged, value, _shown(value, written.get(path)), context, details["type"])
    return Problem(code, path, message, hint)


def _unknown_kind(path: Path, value: dict[str, Any], kinds: list[str]) -> Problem:
    """A section whose `type` decides what else may be in it has none, or one that does not exist."""
    if value.get("type") is None:
        message = "nothing is given" if "type" in value else "this key is missing"
        return Problem("missing-key", (*path, "type"), message, f"add type: {' or '.join(kinds)}")
    message, hint = _choice("type", value["type"], _shown(value["type"], None), ", ".join(kinds))
    return Problem("value-not-allowed", (*path, "type"), message, hint)


def _is_tag(part: str | int) -> bool:
    return isinstance(part, str) and bool(_TAG.fullmatch(part))


def _kinds(path: Path) -> list[str]:
    """Names of the sides of the union at `path`, those of their tags."""
    return [tag.strip("<>") for tag in _sides(_annotation(path))]


def _kinds_with(key: str, path: Path) -> list[str]:
    """Names of the other sides of the union at `path`, of whose side it names, that have `key`."""
    if not path or not _is_tag(path[-1]):
        return []
    models = {tag: _model(side) for tag, side in _sides(_annotation(path[:-1])).items()}
    return [tag.strip("<>") for tag, model in models.items() if model and key in model.model_fields]


def _sides(annotation: Any) -> dict[str, Any]:
    """Sides of a union by their tag."""
    found: dict[str, Any] = {}
    for side in get_args(_bare(annotation)):
        if get_origin(side) is Annotated:
            found |= {item.tag: side for item in get_args(side)[1:] if isinstance(item, Tag)}
    return found


def secondary(details: ErrorDetails) -> bool:
    """Whether pydantic only says that a list is short because it left out entries that were refused themselves."""
    return details["type"] == "too_short" and len(details["input"]) >= details["ctx"]["min_length"]


def _words(code: Code, path: Path, value: Any, shown: str, context: dict[str, Any], kind: str) -> tuple[str, str]:
    """What is wrong with a value and what is allowed; and what to do."""
    while path and _is_tag(path[-1]):
        path = path[:-1]
    key = "the file" if not path else path[-1] if isinstance(path[-1], str) else ENTRY
    match code:
        case "missing-key":
            return "this key is missing", f"add {key}: with its value"
        case "unknown-key":
            known = _known_keys(path[:-1])
            near, others = get_close_matches(key, known, n=1), _kinds_with(key, path[:-1])
            hint = f"remove {key}, which is of type: {others[0]}" if others else f"remove {key}"
            hint = f"did you mean {near[0]}?" if near and not others else hint
            return f"no such key here; known are {', '.join(known)}", hint
        case "value-not-allowed":
            return _choice(key, value, shown, str(context["expected"]).replace("'", ""))
        case "invalid-format":
            looks_like = LOOKS_LIKE[context["pattern"]]
            return f"{shown} does not look like {looks_like}", f"write {key} like that"
        case "out-of-range":
            limit, bound = next((name, bound) for name, bound in context.items() if name in _LIMITS)
            allowed = f"{_LIMITS[limit]} {bound}"
            hint = f"set {key}: {bound}" if limit in ("ge", "le") else f"choose a value of {allowed}"
            return f"{shown} is out of range; allowed is {allowed}", hint
        case "wrong-length":
            return _length(value, context)
        case _:
            return _type(path, key, value, shown, kind)


def _choice(key: str, value: Any, shown: str, allowed: str) -> tuple[str, str]:
    choices = allowed.replace(" or ", ", ").split(", ")
    near = choices if len(choices) == 1 else get_close_matches(str(value), choices, n=1)
    setting = "write" if key == ENTRY else f"set {key}:"
    hint = f"{setting} {near[0]}" if near else "choose one of them"
    # text without its quotes, unless they are what is wrong with it
    plain = shown.strip("'") if isinstance(value, str) and value and value not in choices else shown
    return f"{plain} is not allowed; allowed is {allowed}", hint


def _length(value: Any, context: dict[str, Any]) -> tuple[str, str]:
    one, many = ("character", "characters") if isinstance(value, str) else ("entry", "entries")
    there = f"{len(value)} {one if len(value) == 1 else many}"
    if "max_length" in context:
        return f"{there}; allowed are at most {context['max_length']}", "shorten it"
    least = context["min_length"]
    return f"{there}; needed {'is' if least == 1 else 'are'} at least {least}", f"add {'one' if least == 1 else many}"


def _type(path: Path, key: str, value: Any, shown: str, kind: str) -> tuple[str, str]:
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        allowed = " or ".join(dict.fromkeys(_SIDES.get(tag, "a mapping") for tag in _sides(_annotation(path))))
    else:
        allowed = _KINDS.get(kind.removesuffix("_type").removesuffix("_parsing"), "another type")
    if value is None:
        hint = f"give {key} a value" if _required(path) else f"give {key} a value, or remove it"
        return f"nothing is given; allowed is {allowed}", hint
    if allowed in ("text", "text or a whole number") and not isinstance(value, dict | list):
        quoted = f'"{shown}"' if key == ENTRY else f'{key}: "{shown}"'
        return f"{shown} is not {allowed}", f"put it in quotes: {quoted}"
    if allowed == "true or false" and shown.strip("'").lower() in _BOOLEANS:
        return f"{shown} is not {allowed}", f"set {key}: {_BOOLEANS[shown.strip(chr(39)).lower()]}"
    if isinstance(value, str) and allowed == "a whole number" and value.isdecimal():
        return f"{shown} in quotes is text, not {allowed}", f"set {key}: {value}"
    return f"{shown} is not {allowed}", f"write {key} as {allowed}"


_BOOLEANS = {"yes": "true", "on": "true", "1": "true", "true": "true"}
_BOOLEANS |= {"no": "false", "off": "false", "0": "false", "false": "false"}


def _shown(value: Any, written: str | None) -> str:
    """A value as a message shows it: as it is written, and not at any length."""
    if value is None:
        return "nothing"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = repr(value) if written is None else written
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _required(path: Path) -> bool:
    """Whether the key at `path` must be there."""
    model = _model(_annotation(path[:-1]))
    return bool(model and path[-1] in model.model_fields and model.model_fields[str(path[-1])].is_required())


def _known_keys(path: Path) -> list[str]:
    """Keys of the section at `path`."""
    model = _model(_annotation(path))
    return list(model.model_fields) if model else []


def _annotation(path: Path) -> Any:
    """What the value at `path`, which may name sides of unions by their tags, is read as."""
    annotation: Any = Environment
    for part in path:
        model = _model(annotation)
        if _is_tag(part):
            annotation = _sides(annotation)[str(part)]
        elif model and part in model.model_fields:
            annotation = model.model_fields[str(part)].annotation
        else:
            # an entry of a list or mapping: its type is the last argument but for a tuple's ellipsis
            annotation = next(argument for argument in reversed(get_args(_bare(annotation))) if argument is not ...)
    return annotation


def _bare(annotation: Any) -> Any:
    """An annotation without Annotated and None."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    sides = [side for side in get_args(annotation) if side is not NoneType]
    return _bare(sides[0]) if get_origin(annotation) in (Union, UnionType) and len(sides) == 1 else annotation


def _model(annotation: Any) -> type[BaseModel] | None:
    """The model that a mapping of this type is read as."""
    bare = _bare(annotation)
    if isinstance(bare, type) and issubclass(bare, BaseModel):
        return bare
    if get_origin(bare) in (Union, UnionType):
        return next(filter(None, map(_model, get_args(bare))), None)
    return None
