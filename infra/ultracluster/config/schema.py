"""The JSON Schema of the environment file, with the help that editors show for each key."""

import ast
import inspect
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from ultracluster.config.environment import Environment
from ultracluster.config.settings import Settings
from ultracluster.config.wording import EXTENDS

_EXTENDS = {
    "description": "Path, relative to this file, of a file with shared keys. Mappings of the two are merged; lists and "
    "other values of this file replace those of the shared one, which cannot extend a third.",
    "type": "string",
}
DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _WithoutTitles(GenerateJsonSchema):
    """Omits the titles of keys, which only repeat the key."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


def environment_schema() -> dict[str, Any]:
    """The JSON Schema. Rules about more than one value are left to `ultracluster validate`."""
    schema = Environment.model_json_schema(schema_generator=_WithoutTitles)
    sections = {"Environment": schema, **schema["$defs"]}
    # once each: a section with two bases is a subclass of both
    for section in dict.fromkeys(_sections(Settings)):
        if section.__name__ in sections:
            _describe(section, sections[section.__name__]["properties"])
    for name in ("Pcs", "Eks"):
        _require_type(sections[name])
    # a file that extends another one leaves keys to it
    needed = {"if": {"not": {"required": [EXTENDS]}}, "then": {"required": schema.pop("required")}}
    schema["properties"] = {EXTENDS: _EXTENDS, **schema["properties"]}
    return {"$schema": DIALECT, **schema, **needed, "title": "Environment of a GPU UltraCluster"}


def _sections(base: type[Settings]) -> Iterator[type[Settings]]:
    for section in base.__subclasses__():
        yield section
        yield from _sections(section)


def _require_type(definition: dict[str, Any]) -> None:
    """Requires `type` in a file, where it selects the control plane; in Python the models have a default."""
    del definition["properties"]["type"]["default"]
    definition["required"].insert(0, "type")


def _describe(section: type[Settings], properties: dict[str, Any]) -> None:
    bases = [base for base in section.__mro__ if issubclass(base, Settings) and base is not Settings]
    helps = {key: text for base in reversed(bases) for key, text in _docstrings(base).items()}
    for key, text in helps.items():
        form = properties[key].get("description", "")
        properties[key]["description"] = f"{text} {form}".strip()


def _docstrings(section: type[Settings]) -> dict[str, str]:
    """Docstrings of the fields of a class. Pydantic's `use_attribute_docstrings` slows every import by 0.1 s."""
    (definition,) = ast.parse(dedent(inspect.getsource(section))).body
    found: dict[str, str] = {}
    if isinstance(definition, ast.ClassDef):
        for field, text in zip(definition.body, definition.body[1:], strict=False):
            match field, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=key)),
                    ast.Expr(value=ast.Constant(value=str(words))),
                ):
                    found[key] = " ".join(words.split())
    return found
