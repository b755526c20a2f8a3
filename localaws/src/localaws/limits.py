"""CloudFormation's limits of a template, in its own words."""

from collections.abc import Mapping
from typing import Any

from localaws.intrinsics import TemplateError
from localaws.records import records

LIMITS: dict[str, Any] = records("cloudformation")
# Section, the limit's name, and CloudFormation's words for a template with more.
_COUNTS = (
    ("Resources", "resources", "Number of resources, {}, is greater than maximum allowed, {}"),
    ("Parameters", "parameters", "Parameter count {} is greater than max allowed {}"),
    ("Outputs", "outputs", "Outputs count {} is greater than max allowed {}"),
    ("Mappings", "mappings", "Mappings count {} is greater than max allowed {}"),
)


def check_size(source: str) -> None:
    """Raise TemplateError for the text of a template that is too large."""
    if len(source.encode()) > LIMITS["template_bytes"]:
        raise TemplateError(f"Template may not exceed {LIMITS['template_bytes']} bytes in size.")


def check_counts(body: Mapping[str, Any]) -> None:
    """Raise TemplateError for a template with too many of anything, or with a long description."""
    for section, name, words in _COUNTS:
        if (count := len(body.get(section) or ())) > LIMITS[name]:
            raise TemplateError(f"Template format error: {words.format(count, LIMITS[name])}")
    for name, mapping in (body.get("Mappings") or {}).items():
        if (count := len(mapping)) > (most := LIMITS["mapping_attributes"]):
            raise TemplateError(f"Template format error: {count} attributes of mapping {name}; the maximum is {most}")
    if len(str(body.get("Description", "")).encode()) > (most := LIMITS["description_bytes"]):
        raise TemplateError(f"Template format error: 'Description' length is greater than {most}.")


def check_parameter(name: str, value: str) -> None:
    """Raise TemplateError for a parameter whose value is too long."""
    if (size := len(value.encode())) > (most := LIMITS["parameter_value_bytes"]):
        raise TemplateError(f"Parameter {name}: the value has {size} bytes; the maximum is {most}")
