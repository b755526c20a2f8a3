"""The handler of a row: create, describe, update and delete by the calls that the row names."""

import functools
import time
from collections.abc import Mapping
from typing import Any

from botocore import xform_name
from botocore.model import Shape

from localaws import schemas
from localaws.handlers.common import suppress_gone, tag_changes, undo_on_failure
from localaws.resources import (
    HANDLERS,
    Context,
    Described,
    Handler,
    HandlerError,
    NotUpdatable,
    Properties,
    Resource,
    changed,
    pick,
    tag_map,
)
from localaws.rows import answers, shapes
from localaws.rows.conventions import completed
from localaws.rows.existing import check_references
from localaws.rows.row import Entries, Row, Setting
from localaws.rows.supported import supported_properties

WAIT_SECONDS = 60.0
"""Time in which a resource becomes ready."""
FAILED = ("FAILED", "MISCONFIGURED")
"""Ends of terminal states."""


def register(*rows: Row) -> None:
    """Adds the handlers of rows. ValueError for a type that has one."""
    for row in rows:
        if row.type in HANDLERS:
            raise ValueError(f"two handlers for {row.type}")
        HANDLERS[row.type] = RowHandler(row)


class RowHandler(Handler):
    """Handles the type of a row."""

    def __init__(self, row: Row) -> None:
        self._given = row
        self.type = row.type  # type: ignore[misc]  # other handlers have a class for each type
        self._kind = row.type.rsplit("::", 1)[-1]
        self._by_hand = set(row.by_hand.split())
        settings = (name for setting in row.settings for name in setting.names)
        self._entries = {entries.property for entries in row.entries}
        self._set_apart = {*settings, *self._entries, *self._by_hand, row.tags or ""}

    @functools.cached_property
    def row(self) -> Row:
        """The row with what it leaves out. Botocore's model is loaded when it is first needed."""
        return completed(self._given)

    @functools.cached_property
    def supported_properties(self) -> frozenset[str]:  # type: ignore[override]  # a constant of other handlers
        """The properties that the row lists, or those of its calls."""
        return supported_properties(self.row)

    @functools.cached_property
    def _create_only(self) -> set[str]:
        """Properties whose change replaces the resource."""
        pointers = schemas.create_only(self.type, schemas.DEFAULT_REGION)
        return {pointer.removeprefix("/properties/") for pointer in pointers}

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the resource, then what further calls set."""
        row = self.row
        check_references(context, row.must_exist, {}, properties)
        if row.name and row.name[0] not in properties:
            end = "".join(text for each, text in row.name_suffix.items() if properties.get(each))
            name = context.physical_name(row.name[1] - len(end)) + end
            properties = {**properties, row.name[0]: name.lower() if row.lower_name else name}
        properties = self._checked(context, {}, self._prepared(properties))
        later = {name for setting in row.settings if setting.at_creation for name in setting.names} | self._entries
        later = {row.tags or "", *((later | self._by_hand) - self._needed(row.create))}
        plain = {name: value for name, value in properties.items() if name not in later}
        answer = self._call(context, row.create, properties, plain, self._new_tags(context, properties))
        physical_id = answers.text(row.ref, {**_place(context), **properties, **answers.flat(answer)}, self._kind)
        with undo_on_failure(lambda: self.delete(context, physical_id, properties)):
            for setting in row.settings:
                if setting.at_creation:
                    self._set(context, setting, {}, {**properties, "ref": physical_id})
            self._set_entries(context, {}, {**properties, "ref": physical_id})
            if row.hook:
                row.hook(context, {}, {**properties, "ref": physical_id})
            values = {**properties, **answers.flat(answer), "ref": physical_id}
            tags = self._tags_of(context, properties) if row.tags_later else {}
            return self._described(context, values, tags, [])

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Send what changed, with the values that removed properties return to."""
        if wrong := changed(old, new) & self._create_only:
            raise NotUpdatable(self.type, wrong)
        check_references(context, self.row.must_exist, old, new)
        old, new = (self._prepared({**each, "ref": physical_id}) for each in (old, new))
        new = self._checked(context, old, new)
        if names := changed(old, new) - self._set_apart - self._of_deletion() - self._of_entries():
            self._update(context, old, new, names)
        for setting in self.row.settings:
            self._set(context, setting, old, new)
        self._set_entries(context, old, new)
        if self.row.hook and pick(old, *self._by_hand) != pick(new, *self._by_hand):
            self.row.hook(context, old, new)
        return self._described(context, new, *tag_changes(old, new, self.row.tags or ""))

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the resource."""
        properties = {**properties, "ref": physical_id}
        if self.row.hook and self.row.hook_on_delete:
            self.row.hook(context, properties, {name: properties[name] for name in properties.keys() - self._by_hand})
        self._set_entries(context, properties, {"ref": physical_id})
        known = answers.flat(self._found(context, properties)) if self.row.read_to_delete else {}
        self._call(context, self.row.delete, {**known, **properties}, pick(properties, *self._of_deletion()))

    def replaces(self, old: Properties, new: Properties) -> bool:
        """Whether a member changed that the row names."""
        if self.row.replaces and self.row.replaces(old, new):
            return True
        return any(answers.at(old, path, "") != answers.at(new, path, "") for path in self.row.replacing.split())

    def _update(self, context: Context, old: Properties, new: Properties, names: set[str]) -> None:
        row = self.row
        whole = row.whole or row.update == row.create
        shape = shapes.input_of(row.service, row.update)
        moved = {name for name in names if f"Add{name}" in shapes.members(shape)}
        names = names - moved
        inner = names & {*row.by_member.split()}
        changes = {name: self._changes(name, old.get(name) or {}, new.get(name) or {}) for name in inner}
        gone = {name: row.resets[name] for name in names - new.keys() if name in row.resets}
        removed = [row.removals[name] for name in names - new.keys() if name in row.removals]
        handled = {*gone, *inner, *row.removals}
        fixed = {name for name in names if not whole and name not in new and name not in handled}
        gone = {name: value for name, value in gone.items() if value is not None}
        fixed |= {name for name in names if not shapes.member_path(shape, name, row.renames, self._kind)}
        if fixed or row.update is None or shape is None:
            raise NotUpdatable(self.type, fixed or names)
        sent = {*new} if whole else names | self._needed(row.update) | self._beside(shape, names)
        apart = self._set_apart | inner | (self._create_only if row.update != row.create else set())
        given = {**pick(new, *sent - apart), **gone, **{k: v for k, v in changes.items() if v}}
        for name in moved:
            before, after = old.get(name) or [], new.get(name) or []
            given[f"Add{name}"] = [each for each in after if each not in before]
            given[f"Remove{name}"] = [each for each in before if each not in after]
        more = {name: value for members in (row.update_with, *removed) for name, value in members.items()}
        if given or more:
            self._call(context, row.update, new, given, more)

    def _changes(self, name: str, old: Properties, new: Properties) -> Properties:
        """The members of a structure that differ. Removed ones, also of inner structures, return to their defaults."""
        row, shape = self.row, shapes.input_of(self.row.service, self.row.update)
        for step in shapes.member_path(shape, name, row.renames, self._kind) or ():
            shape = shapes.members(shape).get(step)
        names = changed(old, new)
        resets = {each: row.resets[f"{name}.{each}"] for each in names if f"{name}.{each}" in row.resets}
        unknown = {each for each in names if not shapes.member_path(shape, f"{name}.{each}", row.renames, "")}
        if fixed := unknown | (names - new.keys() - resets.keys()):
            raise NotUpdatable(self.type, [f"{name}.{each}" for each in fixed])
        given: Properties = {}
        for each in names:
            value, reset = new.get(each), resets.get(each)
            if isinstance(value, dict) and isinstance(reset, dict):
                given[each] = {**reset, **value}
            else:
                given[each] = reset if value is None else value
        return {each: value for each, value in given.items() if value is not None}

    def _beside(self, shape: Shape, names: set[str]) -> set[str]:
        """Properties in a structure of the call that also has one of `names`: a call replaces the whole structure."""
        inner = {each: path[0] for each, path in self._paths(self.row.update).items() if len(path) > 1}
        touched = {inner[each] for each in names & inner.keys()}
        return {each for each, step in inner.items() if step in touched and shapes.members(shapes.members(shape)[step])}

    def _needed(self, action: str | None) -> set[str]:
        """Properties that a call cannot do without."""
        needed = getattr(shapes.input_of(self.row.service, action), "required_members", ())
        return {each for each, path in self._paths(action).items() if path[0] in needed}

    def _paths(self, action: str | None) -> dict[str, list[str]]:
        """Where a call takes each property."""
        shape, known = shapes.input_of(self.row.service, action), self.supported_properties
        paths = {each: shapes.member_path(shape, each, self.row.renames, self._kind) for each in known}
        return {each: path for each, path in paths.items() if path}

    def _set(self, context: Context, setting: Setting, old: Properties, new: Properties) -> None:
        before, after = (setting.of(properties) for properties in (old, new))
        if before == after:
            return
        if setting.kept and (gone := before.keys() - after.keys()):
            raise NotUpdatable(self.type, gone)
        if self.row.ready:
            self._found(context, new)
        removes = not after and setting.remove
        action = setting.remove if removes else (not before and setting.create) or setting.put
        given = {} if removes else {**setting.reset, **after, **pick(new, *setting.also.split())}
        self._call(context, str(action), new, given, setting.fixed, setting.renames)

    def _set_entries(self, context: Context, old: Properties, new: Properties) -> None:
        """Remove the entries of lists that are gone, then add those that are new."""
        for entries in self.row.entries:

            def calls(action: str, values: Properties, entries: Entries = entries, **instead: Any) -> list[Properties]:
                each_of = ({**values, **each, **instead} for each in entries.of(values))
                return [self._parameters(context, action, values, each) for each in each_of]

            kept, before = calls(entries.remove, new, **entries.removal), calls(entries.add, old)
            for call in calls(entries.remove, old, **entries.removal):
                if call not in kept:
                    with suppress_gone():
                        self._send(context, entries.remove, call)
            for call in calls(entries.add, new):
                if call not in before:
                    self._send(context, entries.add, call)

    def _found(self, context: Context, properties: Properties) -> Mapping[str, Any]:
        """The resource as the service describes it; nothing where the row has no such call."""
        row = self.row
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            found: dict[str, Any] = {}
            for action in (row.read or "").split():
                address = self._address(context, shapes.input_of(row.service, action), properties)
                found |= answers.payload(self._call(context, action, properties), address)
            status = str(answers.lookup(found, "Status", self._kind) or found.get("Lifecycle"))
            if row.ready in (None, status):
                return found
            if status.endswith(FAILED) or time.monotonic() > deadline:
                raise HandlerError(f"{self.type} {properties['ref']} is {status}: {answers.reason(found)}")
            time.sleep(0.05)

    def _described(self, context: Context, values: Properties, added: dict[str, str], removed: list[str]) -> Resource:
        """The resource, tagged and ready. It is described when that needs it, or when an attribute is asked for."""
        if not (self.row.ready or self.row.described_at_once or added or removed):
            return Resource(
                values["ref"], Described(lambda: self._attributes(context, values, self._found(context, values)))
            )
        found = self._found(context, values)
        self._tag(context, {**values, **answers.flat(found)}, added, removed)
        return Resource(values["ref"], self._attributes(context, values, found))

    def _attributes(self, context: Context, values: Properties, found: Mapping[str, Any]) -> dict[str, Any]:
        """The schema's read-only properties in what the service describes, and the row's attributes."""
        schema = schemas.schema(self.type, context.region)
        read_only = schema.get("readOnlyProperties", ())
        attributes: dict[str, Any] = {}
        known = {**_place(context), **values, **answers.flat(found)}
        for name in {*(".".join(pointer.split("/")[2:]) for pointer in read_only), *self.row.attributes}:
            template = self.row.attributes.get(name, name)
            path, has_default, default = template.partition("|")
            if "{" in template:
                attributes[name] = answers.text(template, known, self._kind)
            elif (value := answers.at(found, path, self._kind)) is not None:
                attributes[name] = answers.shown(value)
            elif has_default:
                attributes[name] = default
            elif schema["primaryIdentifier"] == [f"/properties/{name}"]:
                attributes[name] = values["ref"]
            elif "." not in name and schemas.is_list(self.type, name, context.region):
                attributes[name] = []
        if self.row.describe:
            attributes |= self.row.describe(context, known)
        return attributes

    def _tag(self, context: Context, values: Mapping[str, Any], added: dict[str, str], removed: list[str]) -> None:
        row = self.row
        for action, tags in ((row.untag, removed), (row.tag, added)):
            if tags and row.tags:
                shape = shapes.input_of(row.service, action)
                names, known = shapes.members(shape), {**_place(context), **values}
                member = next(name for name in names if "tag" in name.lower())
                given = {member: shapes.tags(tags, names[member])}
                for name in {*getattr(shape, "required_members", ())} - {member}:
                    value = answers.text(row.ident.get(name, row.arn), known, self._kind)
                    given[name] = shapes.converted(value, names[name], name, {})
                self._send(context, action, given)

    def _tags_of(self, context: Context, properties: Properties) -> dict[str, str]:
        """The template's tags, and CloudFormation's where the schema says so."""
        own = self.row.system_tags
        system = context.tags if own or (own is None and schemas.system_tags(self.type, context.region)) else {}
        return {**tag_map(properties.get(self.row.tags or "")), **system}

    def _new_tags(self, context: Context, properties: Properties) -> dict[str, Any]:
        """The tags as the creation takes them."""
        shape = shapes.input_of(self.row.service, self.row.create)
        member, tags = shapes.member(shape, "Tags"), self._tags_of(context, properties)
        if not self.row.tags or not tags:
            return {}
        if kind := self.row.tag_kind:
            listed = [{"Key": key, "Value": value} for key, value in tags.items()]
            return {"TagSpecifications": [{"ResourceType": kind, "Tags": listed}]}
        return {member: shapes.tags(tags, shapes.members(shape)[member])} if member else {}

    def _address(self, context: Context, shape: Any, properties: Properties) -> dict[str, Any]:
        """The members of a call that identify the resource, as far as they are known."""
        given: dict[str, Any] = {}
        for name, member in shapes.members(shape).items():
            template = self.row.ident.get(name)
            if template and ("{ref" not in str(template) or "ref" in properties):
                value = answers.text(template, {**_place(context), **properties}, self._kind)
                if value:
                    given[name] = shapes.converted(value, member, name, {})
        return given

    def _parameters(
        self,
        context: Context,
        action: str,
        values: Properties,
        given: Properties | None = None,
        more: Mapping[str, Any] | None = None,
        renames: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """The members of an action for the resource of `values`: `given` properties and `more`, where it has them."""
        row = self.row
        shape = shapes.input_of(row.service, action)
        sent = shapes.parameters(given or {}, shape, {**row.renames, **(renames or {})}, self._kind)
        fixed = {name: value for name, value in (more or {}).items() if name in shapes.members(shape)}
        return {**sent, **fixed, **self._address(context, shape, values)}

    def _call(self, context: Context, action: str | None, *about: Any) -> dict[str, Any]:
        """Call an action, if the row has it, with `_parameters` of `about`."""
        return self._send(context, action, self._parameters(context, action, *about)) if action else {}

    def _send(self, context: Context, action: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Call an action. HandlerError for what it lists as unsuccessful."""
        answer: dict[str, Any] = getattr(context.client(self.row.service), xform_name(action))(**parameters)
        for failed in answer.get("Unsuccessful", ()):
            raise HandlerError(failed["Error"]["Message"])
        return answer

    def _of_deletion(self) -> set[str]:
        """Properties that only the deletion reads."""
        return self._paths(self.row.delete).keys() - self._paths(self.row.create).keys()

    def _of_entries(self) -> set[str]:
        """Properties that the calls for entries take."""
        return {name for entries in self.row.entries for name in self._paths(entries.add)}

    def _prepared(self, properties: Properties) -> Properties:
        """The properties as the row's `prepare` returns them. HandlerError for members that are not supported."""
        for path in self.row.ignored.split():
            if "." in path and any(value is not None for value in answers.every(properties, path)):
                within, _, name = path.rpartition(".")
                raise HandlerError(f"the embedded AWS does not support {name} of {within} of {self.type}")
        return self.row.prepare(properties) if self.row.prepare else properties

    def _checked(self, context: Context, old: Properties, new: Properties) -> Properties:
        """The properties as the row's `check` returns them, after its refusals."""
        return self.row.check(context, old, new) or new if self.row.check else new


def _place(context: Context) -> dict[str, str]:
    return {"account": context.account, "partition": context.partition, "region": context.region}
