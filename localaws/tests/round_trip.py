"""The round trip of a resource type: created, read back through boto3, changed, emptied and deleted by its handler."""

import functools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from botocore import xform_name
from botocore.exceptions import ClientError, ParamValidationError

from handler_parts import Stack, tags
from localaws import schemas
from localaws.properties import replacement
from localaws.resources import HANDLERS, HandlerError
from localaws.rows.handler import RowHandler

EMPTY: tuple[Any, ...] = (None, False, "", [], {})
_REFERENCE = re.compile(r"\$\((\w+)(?:\.([\w.]+))?\)")
_PLACE = re.compile(r"(\w*)(?:\(([^)]*)\))?(?:\.(.+))?")


Reader = Callable[[Stack, str], Any]
"""Reads what a call cannot, by the resource's Ref."""


@dataclass(frozen=True)
class Case:
    """A resource type with the values that its properties get.

    * `values`: a property's first value, or a pair of the first and the second. Those that are not here are made from
      the registry's schema. `$(name)` is the Ref of a part, `$(name.Attribute)` an attribute.
    * `base`: properties that every resource of the case needs although the schema does not require them.
    * `only`, `without`: the supported properties that the case tests; all of them by default.
    * `read`, `at`: where the whole resource and single properties are read back, as `Operation(Member=value).path`;
      the row's own call by default. `ident`, `service`: those of the row by default.
    * `each`: structures whose members change and are removed one by one; a member's name is `Property.Member`.
    * `fixed`: properties that can neither change nor be removed although the schema says so. `kept`: properties that
      cannot be removed. The handler refuses both. `replaced`: those whose change replaces the resource although they
      are not create-only in the schema.
    * `stays`: properties that keep their value when they are removed. `defaults`: values to which properties return
      that are not those before the first time. `gone`: a member and its value by which a deleted resource is known.
    * `gives`: patterns of Ref and attributes. `label`: of a case that is not the type's first.
    """

    type: str
    values: Mapping[str, Any] = field(default_factory=dict)
    base: str = ""
    only: str = ""
    without: str = ""
    read: str | Reader = ""
    at: Mapping[str, str | Reader] = field(default_factory=dict)
    ident: Mapping[str, str] = field(default_factory=dict)
    service: str = ""
    fixed: str = ""
    each: str = ""
    replaced: str = ""
    kept: str = ""
    stays: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    gives: Mapping[str, str] = field(default_factory=dict)
    gone: tuple[str, str] | None = None
    region: str = "us-east-1"
    label: str = ""

    @property
    def names(self) -> list[str]:
        """The properties of the case, in the order of their steps."""
        supported = HANDLERS[self.type].supported_properties
        chosen = set(self.only.split()) or supported - set(self.without.split())
        return [*(name for name in self.values if name in chosen), *sorted(chosen - self.values.keys())]


Part = Any  # a type with its properties, or a function that makes it and returns its Ref


class World:
    """Resources that others refer to, each created when it is first needed."""

    def __init__(self, stack: Stack, parts: Mapping[str, Part]) -> None:
        self.stack, self._parts = stack, parts
        self._made: dict[str, tuple[str, dict[str, Any]]] = {}

    def filled(self, value: Any) -> Any:
        """The value with parts in place of their names."""
        if isinstance(value, Mapping):
            return {name: self.filled(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.filled(inner) for inner in value]
        return _REFERENCE.sub(lambda found: self._part(*found.groups()), value) if isinstance(value, str) else value

    def delete(self, name: str) -> None:
        """Delete a part that is a resource type with its properties."""
        type_name, properties = self._parts.get(name) or self._parts[name.rstrip("0123456789")]
        self.stack.delete(type_name, self._made[name][0], **self.filled(properties))

    def _part(self, name: str, attribute: str | None) -> str:
        if name not in self._made:
            part = self._parts.get(name) or self._parts[name.rstrip("0123456789")]
            if callable(part):
                self._made[name] = part(self.stack), {}
            else:
                made = self.stack.create(part[0], **self.filled(part[1]))
                self._made[name] = made.physical_id, made.attributes
        ref, attributes = self._made[name]
        return str(attributes[attribute] if attribute else ref)


def steps(case: Case) -> list[tuple[str, str]]:
    """What the round trip tries with each property: create, then replace or update, then remove."""
    schema, names = schemas.schema(case.type, case.region), case.names
    pointers = schemas.create_only(case.type, case.region)
    in_place = [name for name in names if f"/properties/{name}" not in pointers and name not in case.replaced.split()]
    replaced = [(name, "replace") for name in [*names, *case.replaced.split()] if name not in in_place]
    if case.label:  # the type's first case changes the others
        in_place = [name for name in in_place if isinstance(case.values.get(name, ()), tuple)]
    members = [f"{name}.{each}" for name in case.each.split() for each in case.values[name][0]]
    members = [name for name in members if name not in case.replaced.split()]
    differ = [name for name in members if len({str(_walk(each, name)) for each in _both(case)}) > 1]
    updated = [(name, "update") for name in [*in_place, *differ] if name not in case.each.split()]
    removed = [(name, "remove") for name in [*members, *in_place] if name not in schema.get("required", ())]
    return [*((name, "create") for name in names), *replaced, *updated, *removed]


def _both(case: Case) -> tuple[dict[str, Any], dict[str, Any]]:
    pairs = {name: value if isinstance(value, tuple) else (value, value) for name, value in case.values.items()}
    return {name: pair[0] for name, pair in pairs.items()}, {name: pair[1] for name, pair in pairs.items()}


class Trip:
    """One resource on its way through a case; `failures` names each step that failed, and why."""

    def __init__(self, stack: Stack, case: Case, parts: Mapping[str, Part]) -> None:
        self.stack, self.case = stack, case
        self.schema = schemas.schema(case.type, stack.region)
        handler = HANDLERS[case.type]
        self.row = handler.row if isinstance(handler, RowHandler) else None
        self.tag_property = schemas.tag_property(case.type, stack.region)
        world = World(stack, parts)
        pairs = {name: pair(case, name) for name in case.names}
        self.first, self.second = ({name: world.filled(pair[n]) for name, pair in pairs.items()} for n in (0, 1))
        self.world, self.failures = world, dict[str, str]()
        self.ref, self.given, self.attributes = "", dict[str, Any](), dict[str, Any]()

    def run(self) -> dict[str, str]:
        """The failed steps, `Property step`, each with its reason."""
        needed = least(self.case).keys()
        self._create({name: self.first[name] for name in self.first if name in needed})
        if self.row and self.row.name and self.row.name[0] in self.first.keys() - needed:
            assert "train-thing-" in str(self._read(self.row.name[0])).lower()
        defaults = {name: self._state(name) for name, _ in steps(self.case) if name.split(".")[0] not in needed}
        self._delete()
        self._create(self.first)
        told = {"Ref": self.ref, **self.attributes}
        for name, pattern in self.case.gives.items():
            assert re.fullmatch(self.world.filled(pattern), str(told[name])), (name, told[name])
        for name, value in self.first.items():
            self._expect(name, "create", functools.partial(self._check, name, value))
        for name, step in steps(self.case)[len(self.first) :]:
            if step == "replace":
                other = _walk(self.second, name)
                if other == _walk(self.first, name):
                    other = ["another"] if isinstance(other, list) else "another"
                changed = _with(self.first, name, other)
                assert replacement(self.case.type, self.first, changed, self.stack.region) == "True", name
            elif step == "update":
                self._expect(name, step, functools.partial(self._change, name))
            else:
                self._expect(name, step, functools.partial(self._remove, name, defaults.get(name)))
        self._delete()
        return self.failures

    def _expect(self, name: str, step: str, action: Callable[[], None]) -> None:
        refused = {"update": self.case.fixed, "remove": f"{self.case.fixed} {self.case.kept}"}.get(step, "")
        try:
            action()
        except (HandlerError, ClientError, ParamValidationError, AssertionError) as error:
            if not isinstance(error, HandlerError) or name not in refused.split():
                self.failures[f"{name} {step}"] = f"{type(error).__name__}: {error}"
        else:
            if name in refused.split():
                self.failures[f"{name} {step}"] = "is not refused"

    def _create(self, properties: dict[str, Any]) -> None:
        made = self.stack.create(self.case.type, **properties)
        self.ref, self.given, self.attributes = made.physical_id, properties, made.attributes

    def _delete(self) -> None:
        self.stack.delete(self.case.type, self.ref, **self.given)
        found = self._resource()
        if self.case.gone and found:
            assert _walk(found, self.case.gone[0]) == self.case.gone[1]
        else:
            assert not found, f"{self.ref} is still there: {found}"

    def _change(self, name: str) -> None:
        assert _walk(self.second, name) != _walk(self.first, name), f"{name} has one value"
        self._update(_with(self.given, name, _walk(self.second, name)))
        for other, value in self.given.items():
            if f"{other} create" not in self.failures:
                self._check(other, value)

    def _remove(self, name: str, default: Any) -> None:
        whole = self.given
        self._update(_with(whole, name, None))
        try:
            found, default = self._state(name), self._default(name, whole, default)
            assert found == default or (default and agrees(found, default)), (
                f"{name} is {found!r} without a value, and was {default!r} at first"
            )
        finally:
            self._update(whole)

    def _default(self, name: str, whole: dict[str, Any], default: Any) -> Any:
        if name in self.case.stays.split():
            return _walk(whole, name)
        return bare(self.case.defaults.get(name, default))

    def _state(self, name: str) -> Any:
        """A property's value without its empty parts; of a structure, the members that the case tests."""
        if name not in self.case.each.split():
            return bare(self._read(name))
        members = [each for each, _ in steps(self.case) if each.startswith(f"{name}.")]
        return bare({each: bare(self._read(each)) for each in members})

    def _update(self, properties: dict[str, Any]) -> None:
        self.attributes = self.stack.update(self.case.type, self.ref, self.given, properties).attributes
        self.given = properties

    def _check(self, name: str, wanted: Any) -> None:
        found = self._read(name)
        assert agrees(found, wanted), f"{name} is {found!r}, not {wanted!r}"

    def _read(self, name: str) -> Any:
        """The value of a property as the service shows it; None where it shows none."""
        if "." in name:
            structure, member = name.split(".")
            return self._member(self._read(structure) or {}, member)
        place = self.case.at.get(name)
        if place:
            found = self._called(place) if callable(place) else self._look(place)
        else:
            found = self._member(self._resource() or {}, name)
        if name == self.tag_property:
            found = {key: value for key, value in (as_map(found) or {}).items() if not key.startswith("aws:")}
        return found

    def _member(self, found: Mapping[str, Any], name: str) -> Any:
        if self.row and name in self.row.renames and (inner := _walk(found, self.row.renames[name])) is not None:
            return inner
        if name in found:
            return found[name]
        kind = self.case.type.rsplit("::", 1)[-1]
        known = {_plain(each): value for each, value in found.items()}
        names = (_plain(name), _plain(kind + name), _plain(name).removeprefix(_plain(kind)))
        return next((known[each] for each in names if each in known), None)

    def _resource(self) -> Any:
        """The resource as its calls describe it; None when it does not exist."""
        if callable(self.case.read):
            return self._called(self.case.read)
        found = [self._described(place) for place in self._reads()]
        return {name: value for each in found for name, value in each.items()} if found and all(found) else None

    def _reads(self) -> list[str]:
        return str(self.case.read or (self.row.read if self.row else "") or "").split()

    def _described(self, place: str) -> Any:
        found = self._look(place)
        if "." in place:
            return found
        about = {name: value for name, value in (found or {}).items() if name != "NextToken"}
        if any(not isinstance(value, dict | list) for value in about.values()):
            return about
        inner = next((value for value in about.values() if value), None)
        return inner[0] if isinstance(inner, list) else inner

    def _look(self, place: str) -> Any:
        """What `Operation(Member=value).path` gives; None after a not-found error."""
        match = _PLACE.fullmatch(self.world.filled(place))
        assert match, place
        if not match[1]:
            return _walk(self._resource() or {}, match[3])
        operation, given, path = match.groups()
        service = self.case.service or (self.row.service if self.row else "")
        client = self.stack.client(service)
        shape = client.meta.service_model.operation_model(operation).input_shape
        ident = {**(self.row.ident if self.row else {}), **self.case.ident}
        request: dict[str, Any] = {}
        for name, member in (shape.members if shape else {}).items():
            if name in ident:
                request[name] = _as(member, self._text(ident[name]))
        for pair in filter(None, (given or "").split(",")):
            name, _, value = pair.partition("=")
            request[name] = _as(shape.members[name], self._text(value))
        answer = _unless_missing(functools.partial(getattr(client, xform_name(operation)), **request))
        if answer is None:
            return None
        return _walk(answer, path) if path else {k: v for k, v in answer.items() if k != "ResponseMetadata"}

    def _called(self, reader: Reader) -> Any:
        return _unless_missing(functools.partial(reader, self.stack, self.ref))

    def _text(self, template: str) -> str:
        """A template with the resource's Ref, attributes and properties, as in a row."""
        values = {**self.given, **self.attributes, "ref": self.ref}

        def value(found: re.Match[str]) -> str:
            whole = str(values.get(found[1], ""))
            return whole.split(found[2])[int(found[3] or -1)] if found[2] else whole

        return re.sub(r"\{([\w.]+)([/:|]?)(\d*)\}", value, template)


def pair(case: Case, name: str) -> tuple[Any, Any]:
    """The first and the second value of a property: the case's, tags, or what the schema allows."""
    schema = schemas.schema(case.type, case.region)
    if name in case.values:
        value = case.values[name]
        return value if isinstance(value, tuple) else (value, value)
    if name == schemas.tag_property(case.type, case.region):
        before, after = {"team": "a", "old": "1"}, {"team": "b"}
        return (tags(**before), tags(**after)) if _is_list(schema, name) else (before, after)
    return generated(schema["properties"][name], schema, 0), generated(schema["properties"][name], schema, 1)


def least(case: Case) -> dict[str, Any]:
    """The properties without which there is no such resource."""
    needed = {*schemas.schema(case.type, case.region).get("required", ()), *case.base.split()}
    return {name: pair(case, name)[0] for name in case.names if name in needed}


def _unless_missing(call: Callable[[], Any]) -> Any:
    """What a call returns; None after a not-found error."""
    try:
        return call()
    except ClientError as error:
        answer = error.response
        missing = "NotFound|NoSuch|NonExist|Unknown|NotExist|InvalidDocument$"
        if answer["ResponseMetadata"]["HTTPStatusCode"] == 404 or re.search(missing, answer["Error"]["Code"]):
            return None
        raise


def generated(part: Mapping[str, Any], root: Mapping[str, Any], number: int) -> Any:
    """The first (0) or second (1) value that a schema allows."""
    while "$ref" in part:
        step: Any = root
        for name in part["$ref"].split("/")[1:]:
            step = step[name]
        part = step
    for choice in ("oneOf", "anyOf"):
        if choice in part and "properties" not in part:
            return generated(part[choice][0], root, number)
    if "enum" in part:
        return part["enum"][min(number, len(part["enum"]) - 1)]
    kind = part.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "boolean":
        return number == 0
    if kind in ("integer", "number"):
        return max(part.get("minimum", 1), 1) + number
    if kind == "string":
        return ("first", "second")[number]
    if kind == "array":
        return [generated(part["items"], root, number)]
    inner = part.get("properties", {})
    return {name: generated(inner[name], root, number) for name in part.get("required", inner)}


def agrees(found: Any, wanted: Any) -> bool:
    """Whether a service shows a template's value: names differ in case, texts may be JSON, and more may be shown."""
    if isinstance(found, bytes):
        found = found.decode()
    if isinstance(wanted, dict | list) and isinstance(found, str) and found.startswith(("{", "[")):
        found = json.loads(found)
    if isinstance(found, datetime):
        return found == datetime.fromisoformat(wanted)
    if isinstance(found, Mapping):
        wanted = as_map(wanted)
        known = {_plain(name): value for name, value in found.items()}
        return isinstance(wanted, Mapping) and all(
            agrees(known.get(_plain(name), known.get("id") if name.endswith("Id") else None), value)
            for name, value in wanted.items()
        )
    if isinstance(found, list) and isinstance(wanted, list):
        rest = list(found)  # services return most lists in an order of their own
        for each in wanted:
            same = next((one for one in rest if agrees(one, each)), None)
            if same is None:
                return False
            rest.remove(same)
        return not rest
    if found is None or isinstance(found, list):
        return found == wanted or (not found and wanted in EMPTY)
    if isinstance(found, float):
        return found == float(wanted)
    shown, told = schemas.text(found), schemas.text(wanted)
    return shown == told or (shown.startswith("arn:") and re.split("[:/]", shown)[-1] == told)


def bare(found: Any) -> Any:
    """A value without its empty parts."""
    if isinstance(found, Mapping):
        return {name: bare(value) for name, value in found.items() if bare(value) not in EMPTY} or None
    return None if found in EMPTY or found in ("{}", "[]") else found


def as_map(found: Any) -> Any:
    """Tags, or other pairs of names and values, as a map."""
    if not isinstance(found, list):
        return found
    pairs = [list(pair.values()) for pair in found]
    return {pair[0]: pair[1] for pair in pairs}


def _walk(value: Any, path: str) -> Any:
    """The value under a dotted path; a number is an item of a list, a name is taken of each."""
    for number, step in enumerate(steps := path.split(".")):
        if isinstance(value, list):
            if not step.isdigit():
                return [_walk(each, ".".join(steps[number:])) for each in value]
            value = value[int(step)] if int(step) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _with(properties: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    """The properties with another value of a property or member; None removes it."""
    name, _, member = name.partition(".")
    value = _with(properties[name], member, value) if member else value
    return {other: each for other, each in {**properties, name: value}.items() if each is not None}


def _as(shape: Any, value: str) -> Any:
    """A text as a call takes it."""
    whole = int(value) if shape.type_name in ("integer", "long") else value
    return [whole] if shape.type_name == "list" else whole


def _is_list(schema: Mapping[str, Any], name: str) -> bool:
    return bool(schema["properties"][name].get("type") == "array")


def _plain(name: str) -> str:
    """A name without case, punctuation and plural."""
    return re.sub(r"[^a-z0-9]", "", name.lower()).removesuffix("s")
