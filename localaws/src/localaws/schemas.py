"""The CloudFormation registry's schemas, bundled with cfn-lint: allowed values, create-only properties, tags."""

import functools
import json
import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import regex  # type: ignore[import-untyped]  # comes with cfn-lint
from jsonschema import Draft7Validator, ValidationError, validators

DEFAULT_REGION = "us-east-1"
CUSTOM_RESOURCE = "AWS::CloudFormation::CustomResource"

Schema = dict[str, Any]


def registered_name(type_name: str) -> str:
    """The registered type of `type_name`: all Custom::* types share AWS::CloudFormation::CustomResource."""
    return CUSTOM_RESOURCE if type_name.startswith("Custom::") else type_name


def is_registered(type_name: str, region: str) -> bool:
    """Whether CloudFormation knows the type in the Region (in us-east-1 for Regions that cfn-lint does not list)."""
    return registered_name(type_name) in _index(region)


def schema(type_name: str, region: str) -> Schema:
    """The registry schema of the type. Raises KeyError for an unknown type."""
    return _load(_index(region)[registered_name(type_name)])


def create_only(type_name: str, region: str) -> tuple[str, ...]:
    """Pointers (`/properties/A/B`) to properties whose change replaces the resource."""
    return tuple(schema(type_name, region).get("createOnlyProperties", ()))


def tag_property(type_name: str, region: str) -> str | None:
    """Name of the property that takes the stack's tags, if CloudFormation can tag the type."""
    found = schema(type_name, region)
    tagging = found.get("tagging", {})
    if tagging.get("taggable", "Tags" in found["properties"]):
        return str(tagging.get("tagProperty", "/properties/Tags")).rsplit("/", 1)[-1]
    return None


def is_list(type_name: str, name: str, region: str) -> bool:
    """Whether a top-level property is a list. Some maps have no type in their schema."""
    root = schema(type_name, region)
    return bool(_follow(root["properties"][name], root).get("type") == "array")


def values_at(properties: Mapping[str, Any], pointer: str) -> list[Any]:
    """The values at `pointer` (`/properties/A/*/B`), none if the path does not exist."""
    values: list[Any] = [properties]
    for step in pointer.split("/")[2:]:
        values = [inner for value in values for inner in _step(value, step)]
    return values


def _step(value: Any, step: str) -> list[Any]:
    if step == "*":
        return list(value) if isinstance(value, list) else []
    return [value[step]] if isinstance(value, Mapping) and step in value else []


def coerce(type_name: str, properties: dict[str, Any], region: str) -> dict[str, Any]:
    """The properties with scalars in the schema's types: CloudFormation accepts "true" for true and 5 for "5".

    A custom resource gets every scalar as a string, as AWS sends them to its function.
    """
    found = schema(type_name, region)
    if registered_name(type_name) != CUSTOM_RESOURCE:
        coerced: dict[str, Any] = _coerce(properties, found, found)
        return coerced
    # CloudFormation itself uses the timeout; the function does not get it
    own, known = "ServiceTimeout", found["properties"]
    return {
        name: _coerce(value, known[own], found) if name == own else _as_text(value)
        for name, value in properties.items()
    }


def _as_text(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _as_text(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_as_text(inner) for inner in value]
    return text(value) if isinstance(value, bool | int | float) else value


def text(value: Any) -> str:
    """A scalar as CloudFormation writes it in a string."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def system_tags(type_name: str, region: str) -> bool:
    """Whether CloudFormation adds its own tags (aws:cloudformation:...) to resources of the type."""
    return bool(schema(type_name, region).get("tagging", {}).get("cloudFormationSystemTags", False))


def _coerce(value: Any, part: Schema, root: Schema) -> Any:
    part = _follow(part, root)
    if isinstance(value, Mapping):
        known = part.get("properties", {})
        return {name: _coerce(inner, known.get(name, {}), root) for name, inner in value.items()}
    if isinstance(value, list):
        return [_coerce(item, part.get("items", {}), root) for item in value]
    kinds = part.get("type", ())
    return _scalar(value, (kinds,) if isinstance(kinds, str) else tuple(kinds))


def _follow(part: Schema, root: Schema) -> Schema:
    while "$ref" in part:
        pointer = str(part["$ref"]).split("/")[1:]
        part = functools.reduce(lambda inner, step: inner[step], pointer, root)
    return part


def _scalar(value: Any, kinds: tuple[str, ...]) -> Any:
    if isinstance(value, str) and kinds and "string" not in kinds:
        if "boolean" in kinds and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if "integer" in kinds and re.fullmatch(r"-?\d+", value):
            return int(value)
        if "number" in kinds and re.fullmatch(r"-?\d+(\.\d+)?", value):
            return float(value) if "." in value else int(value)
    if isinstance(value, bool | int | float) and kinds == ("string",):
        return text(value)
    return value


def problems(type_name: str, properties: dict[str, Any], region: str) -> list[str]:
    """Validation problems of the properties, in CloudFormation's words; empty when they are valid."""
    found = schema(type_name, region)
    read_only = {pointer.split("/")[2] for pointer in found.get("readOnlyProperties", ()) if pointer.count("/") == 2}
    refused = [f"#: extraneous key [{name}] is read-only" for name in sorted(read_only & properties.keys())]
    errors = sorted(_Validator(found).iter_errors(properties), key=lambda error: list(map(str, error.absolute_path)))
    return refused + list(dict.fromkeys(_say(error) for error in errors))


def _say(error: ValidationError) -> str:
    where = "#" + "".join(f"/{step}" for step in error.absolute_path)
    if error.validator == "required":
        missing = re.findall(r"'([^']*)'", error.message)[0]
        return f"{where}: required key [{missing}] not found"
    return f"{where}: {error.message}"


def _matches(pattern: str, value: str) -> bool:
    """Whether an ECMAScript pattern matches. The few patterns that do not compile are left to the service."""
    try:
        return regex.search(pattern, value) is not None
    except regex.error:
        return True


def _pattern(_: Any, pattern: str, instance: Any, __: Schema) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _matches(pattern, instance):
        yield ValidationError(f"string [{instance}] does not match pattern {pattern}")


def _pattern_properties(validator: Any, patterns: Schema, instance: Any, _: Schema) -> Iterator[ValidationError]:
    for name, value in instance.items() if isinstance(instance, Mapping) else ():
        for pattern, part in patterns.items():
            if _matches(pattern, name):
                yield from validator.descend(value, part, path=name, schema_path=pattern)


def _additional_properties(validator: Any, part: Any, instance: Any, schema: Schema) -> Iterator[ValidationError]:
    for name, value in instance.items() if isinstance(instance, Mapping) else ():
        known = name in schema.get("properties", {})
        if not known and not any(_matches(pattern, name) for pattern in schema.get("patternProperties", {})):
            if part is False:
                yield ValidationError(f"extraneous key [{name}] is not permitted")
            elif isinstance(part, Mapping):
                yield from validator.descend(value, part, path=name)


def _required_xor(_: Any, names: list[str], instance: Any, __: Schema) -> Iterator[ValidationError]:
    if isinstance(instance, Mapping) and sum(name in instance for name in names) != 1:
        yield ValidationError(f"exactly one of {names} is required")


def _dependent_excluded(_: Any, rules: dict[str, list[str]], instance: Any, __: Schema) -> Iterator[ValidationError]:
    for name, excluded in rules.items():
        clash = [
            other for other in excluded if isinstance(instance, Mapping) and name in instance and other in instance
        ]
        if clash:
            yield ValidationError(f"[{name}] cannot be given together with {clash}")


_Validator: type[Draft7Validator] = validators.extend(  # type: ignore[no-untyped-call]
    Draft7Validator,
    {
        "additionalProperties": _additional_properties,
        "dependentExcluded": _dependent_excluded,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "requiredXor": _required_xor,
    },
)


@functools.cache
def bundled() -> Path:
    """The folder of cfn-lint's data."""
    found = find_spec("cfnlint")  # importing the package would take half a second
    if found is None or found.submodule_search_locations is None:
        raise ModuleNotFoundError("cfn-lint brings the registry schemas; install it")
    return Path(found.submodule_search_locations[0]) / "data"


@functools.cache
def _index(region: str) -> dict[str, str]:
    path = bundled() / "schemas" / "providers" / f"{region}.json"
    known = path if path.is_file() else path.with_name(f"{DEFAULT_REGION}.json")
    index: dict[str, str] = json.loads(known.read_text())
    return index


@functools.cache
def _load(name: str) -> Schema:
    loaded: Schema = json.loads((bundled() / "schemas" / "resources" / f"{name}.json").read_text())
    return loaded
