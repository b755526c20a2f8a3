"""A resource's properties: resolved and checked for its handler, and whether a change replaces the resource."""

from collections.abc import Mapping
from typing import Any, Literal

from localaws import schemas
from localaws.intrinsics import Scope, TemplateError, pending, resolve
from localaws.resources import HANDLERS, Handler, HandlerError, Properties, changed
from localaws.templates import Body, Declaration

ANY = "*"  # in `supported_properties`: every property, for custom resources

Replacement = Literal["True", "False", "Conditional"]


def handler_of(type_name: str) -> Handler:
    """The handler of the type. Raises KeyError when there is none.

    Custom resource types without a handler of their own share the one for all custom resources.
    """
    return HANDLERS.get(type_name) or HANDLERS[schemas.registered_name(type_name)]


def check_types(body: Body, region: str) -> None:
    """Raise TemplateError with the types that CloudFormation does not know or that have no handler here."""
    types = {about["Type"] for about in body["Resources"].values()}
    if unknown := sorted(name for name in types if not schemas.is_registered(name, region)):
        raise TemplateError(f"Template format error: Unrecognized resource types: [{', '.join(unknown)}]")
    if missing := sorted(name for name in types if schemas.registered_name(name) not in HANDLERS):
        raise TemplateError(f"The embedded AWS has no handler for these resource types: [{', '.join(missing)}]")


def resolved_properties(declaration: Declaration, scope: Scope, tags: Mapping[str, str], region: str) -> Properties:
    """The declared properties with functions evaluated, scalars in the schema's types and the stack's tags merged."""
    properties = schemas.coerce(declaration.type, resolve(declaration.properties, scope), region)
    name = schemas.tag_property(declaration.type, region)
    if tags and name in handler_of(declaration.type).supported_properties and not pending(properties.get(name)):
        properties[name] = _merge_tags(properties.get(name), tags, declaration.type, name, region)
    return properties


def _merge_tags(own: Any, tags: Mapping[str, str], type_name: str, name: str, region: str) -> Any:
    shape = schemas.schema(type_name, region)["properties"][name]
    # in the registry's schemas some maps have no type, but all lists have one
    if shape.get("type") != "array":
        return {**tags, **(own or {})}
    taken = {tag["Key"] for tag in own or ()}
    return [*(own or ()), *({"Key": key, "Value": value} for key, value in tags.items() if key not in taken)]


def check(type_name: str, logical_id: str, properties: Properties, region: str) -> None:
    """Raise HandlerError when the registry refuses the properties or the handler does not support one of them."""
    if problems := schemas.problems(type_name, properties, region):
        listed = "\n".join(problems)
        raise HandlerError(f"Properties validation failed for resource {logical_id} with message:\n{listed}")
    supported_properties = handler_of(type_name).supported_properties
    if ANY not in supported_properties and (dropped := sorted(properties.keys() - supported_properties)):
        raise HandlerError(f"the embedded AWS does not support {', '.join(dropped)} of {type_name} ({logical_id})")


def replacement(type_name: str, old: Properties, new: Properties, region: str) -> Replacement:
    """Whether this change replaces the resource; "Conditional" when that depends on values that are not known yet."""
    pointers = [
        pointer
        for pointer in schemas.create_only(type_name, region)
        if schemas.values_at(old, pointer) != schemas.values_at(new, pointer)
    ]
    if any(not pending(schemas.values_at(new, pointer)) for pointer in pointers):
        return "True"
    if pointers:
        return "Conditional"
    return "True" if not pending(new) and handler_of(type_name).replaces(old, new) else "False"


def changed_names(old: Properties, new: Properties) -> list[str]:
    """Names of the top-level properties that differ, sorted."""
    return sorted(changed(old, new))
