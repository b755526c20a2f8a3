"""Finds what differs between the templates of two environments."""

import json
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import cache
from itertools import takewhile
from operator import eq
from typing import Any, NamedTuple


class Environment(NamedTuple):
    """The values of an environment that appear all over its templates."""

    name: str
    region: str


class Difference:
    """Compares templates of two environments; a text may differ by the environment's name and Region."""

    def __init__(self, this: Environment, reference: Environment) -> None:
        self._this = this
        self._reference = reference

    def templates(self, these: dict[str, Any], references: dict[str, Any]) -> dict[str, Any]:
        """By stack and logical ID: the type of each resource, and what differs from the reference's resource."""
        return {
            stack: self._template(template, references.get(_nearest(stack, references), {}))
            for stack, template in these.items()
        }

    def _template(self, this: dict[str, Any], reference: dict[str, Any]) -> dict[str, Any]:
        resources = {
            logical_id: self._resource(logical_id, resource, reference.get("Resources", {}))
            for logical_id, resource in this["Resources"].items()
        }
        return {**self._of(this, reference), "Resources": resources}

    def _resource(self, logical_id: str, this: dict[str, Any], references: dict[str, Any]) -> Any:
        like = self._counterpart(logical_id, this, references)
        different = self._of(this, references.get(like, {}))
        if like != logical_id and like in references:
            different = {"like": like, **different}
        return {"Type": this["Type"], **different} if different else this["Type"]

    def _counterpart(self, logical_id: str, this: dict[str, Any], references: dict[str, Any]) -> str:
        """The resource with this ID; else that of the type whose ID begins alike: names are parts of IDs."""
        if logical_id in references:
            return logical_id
        alike = {_nameless(other, self._reference.name): other for other in references}
        if (same := alike.get(_nameless(logical_id, self._this.name))) is not None:
            return same
        return _nearest(logical_id, [other for other, each in references.items() if each["Type"] == this["Type"]])

    def _of(self, this: Any, reference: Any) -> Any:
        """`this` without what equals the reference; what only the reference has is None."""
        match this, reference:
            case ({"Fn::Sub": {"Lines": _} as lines}, {"Lines": _}) | (
                {"Lines": _} as lines,
                {"Fn::Sub": {"Lines": _}},
            ):
                plain = reference.get("Fn::Sub", reference)
                return {"Fn::Sub": "Fn::Sub" in this, **self._of(lines, plain)}
            case dict(), dict():
                return {
                    key: self._of(this.get(key), reference.get(key))
                    for key in {**this, **reference}
                    if not (key in this and key in reference and self._same(this[key], reference[key]))
                }
            case list(), list() if len(json.dumps(this)) > len(json.dumps(found := self._list(this, reference))):
                return found
        return this

    def _list(self, this: list[Any], reference: list[Any]) -> dict[str, Any]:
        """By index in the reference: the element's difference, those that stand in its place, None where it is gone."""
        found: dict[str, Any] = {}
        for first, last, elements in self._edits(this, reference):
            if len(elements) == last - first:
                pairs = zip(range(first, last), elements, strict=True)
                found |= {f"[{at}]": self._of(each, reference[at]) for at, each in pairs}
            else:
                found[f"[{first}:{last}]"] = elements or None
        return found

    def _edits(self, this: list[Any], reference: list[Any]) -> Iterator[tuple[int, int, list[Any]]]:
        literal = {json.dumps(each) for each in this} & {json.dumps(each) for each in reference}

        def keys(values: list[Any], environment: Environment) -> list[str]:
            texts = [json.dumps(each) for each in values]
            return [text if text in literal else _form(text, environment) for text in texts]

        matcher = SequenceMatcher(None, keys(reference, self._reference), keys(this, self._this), autojunk=False)
        for kind, first, last, start, end in matcher.get_opcodes():
            if kind != "equal":
                yield first, last, this[start:end]

    def _same(self, this: Any, reference: Any) -> bool:
        match this, reference:
            case str(), str():
                return not _forms(this, self._this).isdisjoint(_forms(reference, self._reference))
            case dict(), dict():
                return this.keys() == reference.keys() and all(self._same(this[key], reference[key]) for key in this)
            case list(), list():
                return len(this) == len(reference) and all(map(self._same, this, reference))
        return type(this) is type(reference) and bool(this == reference)


def _nearest(name: str, names: Any) -> str:
    """The name itself, else the name that begins most alike; empty where none does."""
    if name in names:
        return name
    begins = {other: len(list(takewhile(bool, map(eq, name, other)))) for other in names}
    best = max(begins, key=lambda other: begins[other], default="")
    return best if begins.get(best, 0) >= 4 else ""


def _nameless(logical_id: str, name: str) -> str:
    return re.sub(r"[0-9A-F]{8}$", "", logical_id).replace(re.sub(r"\W", "", name), "<name>", 1)


def _form(text: str, environment: Environment) -> str:
    """`text` with the environment's name and Region replaced."""
    return _unnamed(text.replace(environment.region, "<region>"), environment)


def _unnamed(text: str, environment: Environment) -> str:
    return re.sub(rf"(?<![\w.-]){re.escape(environment.name)}(?![\w.])", "<name>", text)


@cache
def _forms(text: str, environment: Environment) -> set[str]:
    """`text` as it is, and with the environment's name, its Region or both replaced."""
    regional = text.replace(environment.region, "<region>")
    return {text, regional, _unnamed(text, environment), _form(text, environment)}
