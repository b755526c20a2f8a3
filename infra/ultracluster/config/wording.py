"""Pydantic's errors about the shape of a value as Problems, in plain words."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, Tag
from pydantic_core import ErrorDetails

from ultracluster.config.codes import Code
from ultracluster.config.fields import CDK_VALUE, FORMATS
from ultracluster.config.problems import Path, Problem
from ultracluster.config.repairs import meant_choice, meant_number, meant_text

_TIME = re.compile(r"\d:\d\d$")
"""The end of a time, which parsers of YAML 1.1 take for a number."""

_PRICE = re.compile(r"price|bid")
"""Keys that people write to limit the price of Spot Instances."""


_NOT_OFFERED = {
    "multi_az_1": (
        "nodes are in one zone, and a second file server in another one would make each write wait for that zone",
        "set deployment: single_az_ha_2, which survives a file server, or type: efs, which survives a zone",
    )
}
"""Values that a service has and environments do not, each with the reason and what to write instead."""

_SHAPES: dict[str, Code] = {
    "missing": "missing-key",
    "extra_forbidden": "unknown-key",
    "literal_error": "value-not-allowed",
    "string_pattern_mismatch": "invalid-format",
    CDK_VALUE: "invalid-format",
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
_SIDES = {"<flag>": "true or false", "<text>": "text", "<number>": "a whole number", "<mapping>": "a mapping"}
_SIDES |= {"<list>": "a list"}
_TAG = re.compile(r"<\w+>")
_LIMITS = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most"}
_SHOWN = 60
"""Maximum length of a value in a message."""


_GONE: dict[Path, tuple[str, str]] = {
    ("health", "quarantine"): (
        "the quarantine no longer exists: PCS drains a node with a fault, and on EKS node repair acts on it",
        "remove quarantine; section 'From the quarantine' of docs/upgrading.md frees nodes that it holds",
    ),
}
"""Keys of earlier versions: what to say in place of the list of known keys, and the hint."""

EXTENDS = "extends"
"""Key of an environment file that no model has: the loader reads it."""

ENTRY = "the entry"
"""Used in place of the key for an entry of a list."""


class _Place(NamedTuple):
    """Place of a value: `path` from the top of `root`, with the tags that name sides of unions.

    `in_file` is True for data of a file, False for data built in Python.
    """

    root: type[BaseModel]
    path: Path
    in_file: bool

    @property
    def above(self) -> "_Place":
        """The section that holds the value."""
        return self._replace(path=self.path[:-1])

    @property
    def annotation(self) -> Any:
        """The type of the value."""
        annotation: Any = self.root
        for part in self.path:
            model = _model(annotation)
            if _is_tag(part):
                annotation = _sides(annotation)[str(part)]
            elif model and part in model.model_fields:
                annotation = model.model_fields[str(part)].annotation
            else:
                # an entry of a list or mapping: its type is the last argument but for a tuple's ellipsis
                annotation = next(argument for argument in reversed(get_args(_bare(annotation))) if argument is not ...)
        return annotation


def misshapen(details: ErrorDetails, root: type[BaseModel], written: Mapping[Path, str] | None) -> Problem:
    """Pydantic's error about the shape of a value as a Problem; `at` is the path from the top of `root`.

    `written` is the text in the file of each value that is not text; None for data that was built in Python.
    """
    # these parts name a side of a union, or that a mapping's key is meant: neither is in the data
    tagged = tuple(part for part in details["loc"] if part != "[key]")
    path = tuple(part for part in tagged if not _is_tag(part))
    place = _Place(root, tagged, written is not None)
    value, context = details["input"], details.get("ctx", {})
    no_side = details["type"] in ("union_tag_invalid", "union_tag_not_found") and isinstance(value, dict)
    # a union of texts, lists and so on has no `type`
    if no_side and not _sides(place.annotation).keys() <= _SIDES.keys():
        return _unknown_kind(path, value, _kinds(place))
    code = _SHAPES.get(details["type"], "wrong-type")
    shown = _shown(value, written.get(path) if written else None)
    message, hint = _words(code, place, value, shown, context, details["type"])
    return Problem(code, path, message, hint)


def _unknown_kind(path: Path, value: dict[str, Any], kinds: list[str]) -> Problem:
    """The `type` of a section decides which keys it takes: it is missing, or not one of the types."""
    if value.get("type") is None:
        message = "the value is empty" if "type" in value else "this key is required"
        hint = f"add {' or '.join(f'type: {kind}' for kind in kinds)}"
        return Problem("missing-key", (*path, "type"), message, hint)
    message, hint = _choice("type", value["type"], _shown(value["type"], None), ", ".join(kinds))
    return Problem("value-not-allowed", (*path, "type"), message, hint)


def _is_tag(part: str | int) -> bool:
    return isinstance(part, str) and bool(_TAG.fullmatch(part))


def _kinds(place: _Place) -> list[str]:
    """Names of the sections that the union at `place` chooses from, by their tags."""
    return [tag.strip("<>") for tag, side in _sides(place.annotation).items() if _model(side)]


def _kinds_with(key: str, place: _Place) -> list[str]:
    """Where `place` is one side of a union: names of the sides that have `key`."""
    if not place.path or not _is_tag(place.path[-1]):
        return []
    models = {tag: _model(side) for tag, side in _sides(place.above.annotation).items()}
    return [tag.strip("<>") for tag, model in models.items() if model and key in model.model_fields]


def _sides(annotation: Any) -> dict[str, Any]:
    """Sides of a union by their tag."""
    found: dict[str, Any] = {}
    for side in get_args(_bare(annotation)):
        if get_origin(side) is Annotated:
            found |= {item.tag: side for item in get_args(side)[1:] if isinstance(item, Tag)}
    return found


def secondary(details: ErrorDetails) -> bool:
    """Whether pydantic reports a list as too short only because it left out entries with errors of their own."""
    return details["type"] == "too_short" and len(details["input"]) >= details["ctx"]["min_length"]


def without_consequences(problems: Sequence[Problem]) -> list[Problem]:
    """`problems` without keys that are missing only because they are written in another way."""
    missing = {problem.path for problem in problems if problem.code == "missing-key"}
    explained = set[Path]()
    for problem in problems:
        if problem.code == "unknown-key":
            section = {path[-1]: path for path in missing if path[:-1] == problem.path[:-1]}
            near = get_close_matches(str(problem.path[-1]), [str(key) for key in section], n=1)
            # a section that takes true in place of its keys
            whole = len(problem.path) > 1 and problem.hint == f"set {problem.path[-2]}: true"
            explained |= {section[key] for key in (section if whole else near)}
    return [problem for problem in problems if problem.code != "missing-key" or problem.path not in explained]


def _words(code: Code, place: _Place, value: Any, shown: str, context: dict[str, Any], kind: str) -> tuple[str, str]:
    """Message (what is wrong, what is allowed) and hint (what to do)."""
    while place.path and _is_tag(place.path[-1]):
        place = place.above
    key = _key(place)
    match code:
        case "missing-key":
            return "this key is required", f"add {key}"
        case "unknown-key":
            if place.path in _GONE:
                return _GONE[place.path]
            known = _known_keys(place.above)
            near, others = get_close_matches(key, known, n=1), _kinds_with(key, place.above)
            hint = f"remove {key}, which belongs to type: {others[0]}" if others else f"remove {key}"
            hint = f"did you mean {near[0]}?" if near and not others else hint
            if place.path[-3:] == ("storage", "lustre", "existing"):
                listed = f"{{type: lustre, name: data, existing: {shown.strip(chr(39))}, mount_path: /fsx}}"
                hint = f"set storage.more: [{listed}] in place of storage.lustre"
            if key == "enabled" and "<flag>" in _sides(place.above.above.annotation):
                hint = f"set {place.above.above.path[-1]}: true"
            if _PRICE.search(key):
                hint = f"remove {key}: PCS, EKS and Karpenter take no limit of the Spot price"
            return f"unknown key; known keys: {', '.join(known)}", hint
        case "value-not-allowed" if isinstance(value, dict) and value.get("type") and _kinds(place):
            text, kinds = str(context["expected"]).replace("'", ""), " or ".join(_kinds(place))
            message = f"a mapping with type: {value['type']} is not allowed"
            return f"{message}; allowed: {text}, or a mapping with type: {kinds}", f"set {key}: {text}"
        case "value-not-allowed" if place.path[-2:] == ("observability", "metrics") and str(value).startswith("ws-"):
            return f"{value} is not allowed; allowed: none or a mapping", f"set metrics: {{existing: {value}}}"
        case "value-not-allowed" if str(value) in _NOT_OFFERED:
            why, hint = _NOT_OFFERED[value]
            return f"{value} is not offered: {why}", hint
        case "value-not-allowed":
            return _choice(key, value, shown, str(context["expected"]).replace("'", ""))
        case "invalid-format" if kind == CDK_VALUE:
            return f"{shown} is a CDK token or dummy, which has no value in a file", f"set {key} to its real value"
        case "invalid-format":
            return f"{shown} is not {FORMATS[context['pattern']]}", _format_hint(place, key, value, context["pattern"])
        case "out-of-range":
            limit, bound = next((name, bound) for name, bound in context.items() if name in _LIMITS)
            allowed = f"{_LIMITS[limit]} {bound}"
            hint = f"set {key}: {bound}" if limit in ("ge", "le") else f"set {key} to {allowed}"
            return f"{shown} is out of range; allowed: {allowed}", hint
        case "wrong-length":
            return _length(key, value, context)
        case _:
            return _type(place, key, value, shown, kind, context)


def _format_hint(place: _Place, key: str, value: str, pattern: str) -> str:
    """What to write instead of text in a wrong format. A key of a mapping is the value itself."""
    meant = meant_text(value, pattern)
    if meant is None:
        return f"write {key} in that format"
    if key == value and not _model(place.above.annotation):
        return f"rename it {meant}"
    quoted = f'"{meant}"' if meant.isdecimal() or _TIME.search(meant) else meant
    return f"write {quoted}" if key == ENTRY else f"set {key}: {quoted}"


def _key(place: _Place) -> str:
    """The key of the value at `place`; for the whole or an entry of a list, a word for it."""
    if not place.path:
        return "the file" if place.in_file else place.root.__name__
    last = place.path[-1]
    return last if isinstance(last, str) else ENTRY


def _choice(key: str, value: Any, shown: str, allowed: str) -> tuple[str, str]:
    choices = allowed.replace(" or ", ", ").split(", ")
    near = choices if len(choices) == 1 else _nearest(value, choices)
    setting = "write" if key == ENTRY else f"set {key}:"
    hint = f"{setting} {near[0]}" if near else "use one of the allowed values"
    # text without its quotes, unless they are what is wrong with it
    plain = shown.strip("'") if isinstance(value, str) and value and value not in choices else shown
    return f"{plain} is not allowed; allowed: {allowed}", hint


def _nearest(value: Any, choices: list[str]) -> list[str]:
    """The choice that is meant: of numbers the next larger one, else the largest; of texts a similar one."""
    if isinstance(value, int) and not isinstance(value, bool) and all(choice.isdecimal() for choice in choices):
        return [min(choices, key=lambda choice: (int(choice) < value, abs(int(choice) - value)))]
    meant = meant_choice(value, choices)
    return [meant] if meant else []


def _length(key: str, value: Any, context: dict[str, Any]) -> tuple[str, str]:
    one, many = ("character", "characters") if isinstance(value, str) else ("entry", "entries")
    has = f"{len(value)} {one if len(value) == 1 else many}"
    if "max_length" in context:
        return f"{has}; the maximum is {context['max_length']}", f"shorten {key}"
    least = context["min_length"]
    article = "a" if one == "character" else "an"
    return f"{has}; the minimum is {least}", f"add {f'{article} {one}' if least == 1 else many} to {key}"


def _type(place: _Place, key: str, value: Any, shown: str, kind: str, context: Mapping[str, Any]) -> tuple[str, str]:
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        allowed = " or ".join(dict.fromkeys(_side(tag, side) for tag, side in _sides(place.annotation).items()))
    else:
        allowed = _KINDS.get(kind.removesuffix("_type").removesuffix("_parsing"), "another type")
    if not place.in_file and "class_name" in context:
        allowed = f"{context['class_name']} or a mapping"
    if allowed == "true or false" and "<mapping>" in _sides(place.annotation):
        allowed = "true, false or a mapping"
    if value is None:
        model = _model(place.annotation)
        if (
            allowed == "a mapping"
            and model
            and not _required(place)
            and not any(each.is_required() for each in model.model_fields.values())
        ):
            return f"the value is empty; expected {allowed}", f"set {key}: {{}} for its defaults, or remove {key}"
        hint = f"set a value for {key}" if _required(place) else f"set a value for {key}, or remove {key}"
        return f"the value is empty; expected {allowed}", hint
    if allowed in ("text", "text or a whole number") and not isinstance(value, dict | list):
        quoted = f'"{shown}"' if key == ENTRY else f'{key}: "{shown}"'
        return f"{shown} is not {allowed}", f"put it in quotes: {quoted}"
    if allowed.startswith("true") and shown.strip("'").lower() in _BOOLEANS:
        return f"{shown} is not {allowed}", f"set {key}: {_BOOLEANS[shown.strip(chr(39)).lower()]}"
    if isinstance(value, str) and allowed.startswith("a whole number") and (number := meant_number(value)):
        text = f"{shown} in quotes is text, not {allowed}" if number == value else f"{shown} is not {allowed}"
        return text, f"set {key}: {number}"
    if allowed == "a list" and isinstance(value, str) and (_PLAIN.fullmatch(value) or _NETWORK.fullmatch(value)):
        return f"{shown} is not {allowed}", f"{'write' if key == ENTRY else f'set {key}:'} [{value}]"
    known = _known_keys(place) if allowed == "a mapping" and place.path and not _sides(place.annotation) else []
    keys = f"; known keys: {', '.join(known)}" if known else ""
    if isinstance(value, str) and "type" in known and _PLAIN.fullmatch(value):
        return f"{shown} is not {allowed}{keys}", f"set {key}: {{type: {value}}}"
    if form := _other_form(place, key, value):
        if allowed == "a mapping" and (sides := _sides(place.annotation)):
            allowed = " or ".join(dict.fromkeys(_side(tag, side) for tag, side in sides.items()))
        return f"{shown} is not {allowed}{keys}", f"set {form}"
    if isinstance(value, list) and allowed == "a mapping" and not known and _are_names(value):
        if not _model(get_args(_bare(place.annotation))[-1]):
            return f"{shown} is not {allowed}", f"set {key}: {{NAME: {value[0]}}}, with a name for each entry"
        return f"{shown} is not {allowed}", f"set {key}: {{{', '.join(f'{name}: {{}}' for name in value)}}}"
    return f"{shown} is not {allowed}{keys}", f"write {key} as {allowed}"


def _side(tag: str, side: Any) -> str:
    """One side of a union in words."""
    return _SIDES.get(tag, "a mapping" if _model(side) else tag.strip("<>"))


def _other_form(place: _Place, key: str, value: Any) -> str | None:
    """`value` under the key or in the mapping that was probably meant, as text of the file."""
    sides = _sides(place.annotation)
    if isinstance(value, list) and f"{key}s" in _known_keys(place.above) and _are_names(value):
        return f"{key}s: [{', '.join(value)}]"
    if isinstance(value, str) and _model(sides.get(f"<{value}>")):
        return f"{key}: {{type: {value}}}"
    fields = model.model_fields if (model := _model(place.annotation)) else {}
    for name, field in fields.items():
        if get_origin(bare := _bare(field.annotation)) is Literal and value in get_args(bare):
            return f"{key}: {{{name}: {value}}}"
    names = [name for name, field in fields.items() if field.is_required()] or [*fields]
    if len(names) != 1 or "type" in fields:
        return None
    takes_list = get_origin(_bare(fields[names[0]].annotation)) is tuple
    if isinstance(value, str) and not takes_list and _PLAIN.fullmatch(value):
        return f"{key}: {{{names[0]}: {value}}}"
    if isinstance(value, list) and takes_list:
        return f"{key}: {{{names[0]}: [...]}}"
    return None


def _are_names(values: list[Any]) -> bool:
    return 0 < len(values) <= 3 and all(isinstance(each, str) and _PLAIN.fullmatch(each) for each in values)


_PLAIN = re.compile(r"[A-Za-z_/][\w@./+-]{0,59}")
"""Text that needs no quotes in YAML."""

_NETWORK = re.compile(r"\d+(\.\d+){3}/\d+")
"""A CIDR block."""

_BOOLEANS = {"yes": "true", "on": "true", "1": "true", "true": "true"}
_BOOLEANS |= {"no": "false", "off": "false", "0": "false", "false": "false"}


def _shown(value: Any, written: str | None) -> str:
    """A value as messages show it: as written in the file, and shortened."""
    if value is None:
        return "an empty value"
    if isinstance(value, dict | list | tuple):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, BaseModel):
        return type(value).__name__
    text = repr(value) if written is None else written
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _required(place: _Place) -> bool:
    """Whether the key at `place` is required."""
    model, key = _model(place.above.annotation), place.path[-1] if place.path else None
    return bool(model and key in model.model_fields and model.model_fields[str(key)].is_required())


def _known_keys(place: _Place) -> list[str]:
    """Keys of the section at `place`."""
    model = _model(place.annotation)
    of_file = [EXTENDS] if place.in_file and not place.path else []
    return [*model.model_fields, *of_file] if model else []


def _bare(annotation: Any) -> Any:
    """An annotation without Annotated and None."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    sides = [side for side in get_args(annotation) if side is not NoneType]
    return _bare(sides[0]) if get_origin(annotation) in (Union, UnionType) and len(sides) == 1 else annotation


def _model(annotation: Any) -> type[BaseModel] | None:
    """The model that validates a mapping of this type."""
    bare = _bare(annotation)
    if isinstance(bare, type) and issubclass(bare, BaseModel):
        return bare
    if get_origin(bare) in (Union, UnionType):
        return next(filter(None, map(_model, get_args(bare))), None)
    return None
