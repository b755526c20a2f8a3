"""From CloudFormation's property names and values to the members of an API call, by botocore's model of the call."""

import functools
import json
import re
from collections.abc import Mapping
from typing import Any

from botocore.model import OperationModel, ServiceModel, Shape, StructureShape
from moto.core.utils import get_service_model

from localaws.resources import HandlerError
from localaws.schemas import text


@functools.cache
def operation(service: str, name: str) -> OperationModel:
    """Botocore's model of an API action, such as CreateLogGroup of `logs`."""
    return _model(service).operation_model(name)


def action(service: str, *names: str) -> str | None:
    """The first action of these names, whose case may differ: AWS::EC2::VPC has CreateVpc. None without one."""
    known = {each.lower(): each for each in _model(service).operation_names}
    return next((known[name.lower()] for name in names if name.lower() in known), None)


def input_of(service: str, name: str | None) -> StructureShape | None:
    """The input of an action; None without one."""
    return operation(service, name).input_shape if name else None


def _model(service: str) -> ServiceModel:
    return get_service_model(service)


def members(shape: Shape | None) -> Mapping[str, Shape]:
    """The members of a structure; none of other shapes."""
    return shape.members if isinstance(shape, StructureShape) else {}


def member(shape: Shape | None, name: str, kind: str = "") -> str | None:
    """The member of a structure that a property's name means.

    Names differ in case, and by the resource's `kind` before either: Name is `logGroupName` of a LogGroup.
    """
    found = {plain(each): each for each in members(shape)}
    names = (plain(name), plain(kind + name), plain(name).removeprefix(plain(kind)))
    return next((found[each] for each in names if each in found), None)


def member_path(shape: Shape | None, name: str, renames: Mapping[str, str], kind: str) -> list[str] | None:
    """Where the call takes a property, or with `Property.Member` a member of one, inside the shape of its structure.

    It is a member, or with a rename `a.b` a member of a member. None if nowhere.
    """
    path = (renames.get(name) or member(shape, name.rsplit(".", 1)[-1], kind) or "").split(".")
    return path if path[0] in members(shape) else None


def parameters(
    properties: Mapping[str, Any], shape: Shape | None, renames: Mapping[str, str], kind: str, within: str = ""
) -> dict[str, Any]:
    """The properties that the call takes, in its names and shapes. Others are left out.

    HandlerError for a member of a property (`within`) that the call does not have.
    """
    given: dict[str, Any] = {}
    for name, value in properties.items():
        where = f"{within}.{name}" if within else name
        path = member_path(shape, where, renames, kind)
        if path:
            inner, inside = given, shape
            for step in path[:-1]:
                inner, inside = inner.setdefault(step, {}), _inside(inside, step)
            inner[path[-1]] = converted(value, _inside(inside, path[-1]), where, renames)
        elif within:
            raise HandlerError(f"the embedded AWS does not support {name} of {within}")
    return given


def _inside(shape: Any, step: str) -> Any:
    return shape.value if shape.type_name == "map" else shape.members[step]


def converted(value: Any, shape: Shape, where: str, renames: Mapping[str, str]) -> Any:
    """A property's value as the call takes it. HandlerError for members that the call does not have.

    A document becomes text, a list of names and values a map, and text the bytes of a blob, where the shape is one.
    """
    kind = shape.type_name
    if isinstance(value, bytes):
        return value
    if kind == "structure" and isinstance(value, Mapping):
        return parameters(value, shape, renames, "", where)
    if kind == "list":
        listed = value if isinstance(value, list) else [value]
        return [converted(each, shape.member, where, renames) for each in listed]
    if kind == "map" and isinstance(value, list):
        return {each.get("Key", each.get("Name")): each["Value"] for each in value}
    if kind == "map" and isinstance(value, Mapping):
        return {name: converted(each, shape.value, where, renames) for name, each in value.items()}
    if kind == "string":
        return json.dumps(value) if isinstance(value, Mapping | list) else text(value)
    if kind in ("integer", "long") and isinstance(value, str | float):
        return int(value)
    if kind == "boolean" and isinstance(value, str):
        return value == "true"
    return value.encode() if kind == "blob" and isinstance(value, str) else value


def tags(given: Mapping[str, str] | list[str], shape: Shape) -> Any:
    """Tags, or keys of tags, in the shape of the call: a map, or a list of structures or keys."""
    if not isinstance(given, Mapping):
        return [{"Key": name} for name in given] if shape.member.type_name == "structure" else given
    if shape.type_name == "map":
        return dict(given)
    key, value = shape.member.members
    return [{key: name, value: each} for name, each in given.items()]


@functools.cache
def plain(name: str) -> str:
    """A name without case and punctuation."""
    return re.sub(r"[^a-z0-9]", "", name.lower())
