"""How a value of the wrong shape is put into words: pydantic's errors as problems of ours."""

import re
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from infra.config.codes import Code
from infra.config.environment import Environment
from infra.config.fields import LOOKS_LIKE
from infra.config.problems import Path, Problem

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
_LIMITS = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most"}


def misshapen(details: ErrorDetails) -> Problem:
    """Pydantic's word on the shape of a value, in ours; `at` is the path from the top of the file."""
    # parts in angle brackets name a side of a union, [key] a mapping's key: neither is in the file
    path = tuple(part for part in details["loc"] if not str(part).startswith(("<", "[")))
    code = _SHAPES.get(details["type"], "wrong-type")
    value, context = details["input"], details.get("ctx", {})
    message, hint = _words(code, path, value, context, details["type"])
    return Problem(code, path, message, hint)


def secondary(details: ErrorDetails) -> bool:
    """Whether pydantic only says that a list is short because it left out entries that were refused themselves."""
    return details["type"] == "too_short" and len(details["input"]) >= details["ctx"]["min_length"]


def _words(code: Code, path: Path, value: Any, context: dict[str, Any], kind: str) -> tuple[str, str]:
    """What is wrong with a value and what is allowed; and what to do."""
    key = str(path[-1]) if path else "the file"
    match code:
        case "missing-key":
            return f"{key} is missing", f"add {key}:"
        case "unknown-key":
            known = _known_keys(path[:-1])
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"remove {key}"
            return f"{key} is not a key here; known are {', '.join(known)}", hint
        case "value-not-allowed":
            allowed = str(context["expected"]).replace("'", "")
            near = get_close_matches(str(value), allowed.replace(" or ", ", ").split(", "), n=1)
            return f"{value} is not allowed; allowed is {allowed}", f"set {key}: {near[0] if near else '...'}"
        case "invalid-format":
            looks_like = LOOKS_LIKE[context["pattern"]]
            return f"{value!r} does not look like {looks_like}", f"write {key} like that"
        case "out-of-range":
            limit = " and ".join(f"{_LIMITS[name]} {bound}" for name, bound in context.items() if name in _LIMITS)
            return f"{value} is out of range; allowed is {limit}", "choose a value in range"
        case "wrong-length":
            return _length(value, context)
        case _:
            return _type(key, value, context, kind)


def _length(value: Any, context: dict[str, Any]) -> tuple[str, str]:
    what = "characters" if isinstance(value, str) else "entries"
    if "max_length" in context:
        return f"{len(value)} {what}; at most {context['max_length']} are allowed", "shorten it"
    return f"{len(value)} {what}; at least {context['min_length']} needed", "add what is missing"


def _type(key: str, value: Any, context: dict[str, Any], kind: str) -> tuple[str, str]:
    if kind == "union_tag_invalid":
        allowed = " or ".join(f"a {tag}" for tag in re.findall(r"<(\w+)>", context["expected_tags"]))
    else:
        allowed = _KINDS.get(kind.removesuffix("_type").removesuffix("_parsing"), "another type")
    if value is None:
        return f"nothing is given; allowed is {allowed}", f"give {key} a value, or remove it"
    if allowed == "text" and not isinstance(value, dict | list):
        return f"{value} is not text", f'put it in quotes: {key}: "{value}"'
    shown = "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else repr(value)
    return f"{shown} is not {allowed}", f"write {key} as {allowed}"


def _known_keys(path: Path) -> list[str]:
    """Keys of the section at `path`."""
    annotation: Any = Environment
    for part in path:
        model = _model(annotation)
        if model and part in model.model_fields:
            annotation = model.model_fields[str(part)].annotation
        else:
            # an entry of a list or mapping: its type is the last argument but for a tuple's ellipsis
            annotation = next(argument for argument in reversed(get_args(_bare(annotation))) if argument is not ...)
    model = _model(annotation)
    return list(model.model_fields) if model else []


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
