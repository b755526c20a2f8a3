"""Errors of the services that are added to moto, and validation of their input by botocore's model."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from moto.core.exceptions import ServiceException


class Refusal(ServiceException):  # type: ignore[misc]  # moto is untyped
    """An error response: a code of the service's model, a message, and the members of that error in the model."""

    def __init__(self, code: str, message: str, **members: Any) -> None:
        super().__init__(code, message)
        self.__dict__.update(members)


def invalid(field: str, message: str) -> Refusal:
    """A ValidationException about one field."""
    return Refusal("ValidationException", f"{field}: {message}", field=field, about=message)


def problems(shape: Any, value: Any, path: str) -> Iterator[str]:
    """Violations of the botocore shape by `value`: enumerations, patterns, lengths and ranges, in AWS's words."""
    if value is None or shape is None:
        return
    limits: Mapping[str, Any] = shape.metadata
    where = f"Value '{value}' at '{path}' failed to satisfy constraint: Member must"
    match shape.type_name:
        case "structure":
            for name, member in shape.members.items():
                yield from problems(member, value.get(name), f"{path}.{name}" if path else name)
        case "list":
            yield from _size(len(value), limits, f"{where} have length")
            for index, item in enumerate(value):
                yield from problems(shape.member, item, f"{path}.{index + 1}.member")
        case "map":
            for name, item in value.items():
                yield from problems(shape.key, name, f"{path}.key")
                yield from problems(shape.value, item, f"{path}.{name}.value")
        case "string":
            if (allowed := limits.get("enum")) and value not in allowed:
                yield f"{where} satisfy enum value set: [{', '.join(allowed)}]"
            yield from _size(len(value), limits, f"{where} have length")
            pattern = limits.get("pattern", "")
            # Python's re has no \p classes; AWS uses them only for tags.
            if pattern and r"\p" not in pattern and not re.fullmatch(pattern, value):
                yield f"{where} satisfy regular expression pattern: {pattern}"
        case "integer" | "long":
            yield from _size(value, limits, f"{where} have value")


def _size(size: int, limits: Mapping[str, Any], where: str) -> Iterator[str]:
    if "min" in limits and size < limits["min"]:
        yield f"{where} greater than or equal to {limits['min']}"
    if "max" in limits and size > limits["max"]:
        yield f"{where} less than or equal to {limits['max']}"
