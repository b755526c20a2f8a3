"""Finds what differs between the templates of two environments."""

import re
from functools import cache
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
        return {stack: self._template(template, references.get(stack, {})) for stack, template in these.items()}

    def _template(self, this: dict[str, Any], reference: dict[str, Any]) -> dict[str, Any]:
        counterparts = reference.get("Resources", {})
        resources = {
            logical_id: self._resource(resource, counterparts.get(logical_id, {}))
            for logical_id, resource in this["Resources"].items()
        }
        return {**self._of(this, reference), "Resources": resources}

    def _resource(self, this: dict[str, Any], reference: dict[str, Any]) -> Any:
        different = self._of(this, reference)
        return {"Type": this["Type"], **different} if different else this["Type"]

    def _of(self, this: Any, reference: Any) -> Any:
        """`this` without what equals the reference; what only the reference has is None."""
        if not (isinstance(this, dict) and isinstance(reference, dict)):
            return this
        return {
            key: self._of(this.get(key), reference.get(key))
            for key in {**this, **reference}
            if not (key in this and key in reference and self._same(this[key], reference[key]))
        }

    def _same(self, this: Any, reference: Any) -> bool:
        match this, reference:
            case str(), str():
                return not _forms(this, self._this).isdisjoint(_forms(reference, self._reference))
            case dict(), dict():
                return this.keys() == reference.keys() and all(self._same(this[key], reference[key]) for key in this)
            case list(), list():
                return len(this) == len(reference) and all(map(self._same, this, reference))
        return type(this) is type(reference) and bool(this == reference)


@cache
def _forms(text: str, environment: Environment) -> set[str]:
    """`text` as it is, and with the environment's name, its Region or both replaced."""
    name = rf"(?<![\w.-]){re.escape(environment.name)}(?![\w.])"
    regional = text.replace(environment.region, "<region>")
    return {text, regional, re.sub(name, "<name>", text), re.sub(name, "<name>", regional)}
