"""The row of a resource type."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from localaws.resources import Context, Properties, pick

Check = Callable[[Context, Properties, Properties], Properties | None]
"""Refuses, by HandlerError, what the service would refuse, and may return other properties for the calls.

Gets the context, the old properties ({} at creation) and the new ones.
"""
Prepare = Callable[[Properties], Properties]
"""Other properties for the calls, of those of the template with `ref` or, before the creation, a made-up name."""

_NOTHING: tuple[Any, ...] = ("", [], {}, None)


@dataclass(frozen=True)
class Setting:
    """Properties that a call of their own sets, after the creation and when they change.

    `create` is called when there were none before, `put` otherwise. When they are gone, `remove` is called, or `put`
    with `reset`; with `kept`, the update is refused. With `spread`, the members of a structure are the call's own.
    `also` are properties that the call takes too and that are no reason for it.
    """

    properties: str
    _: KW_ONLY
    put: str
    create: str | None = None
    remove: str | None = None
    reset: Mapping[str, Any] = field(default_factory=dict)
    renames: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    spread: bool = False
    at_creation: bool = True
    kept: bool = False
    also: str = ""

    def of(self, properties: Properties) -> Properties:
        """The properties of this setting that have a value; with `spread`, the members of structures."""
        given = {name: value for name, value in pick(properties, *self.names).items() if value not in _NOTHING}
        if not self.spread:
            return given
        inner: Properties = {}
        for name, value in given.items():
            inner |= value if isinstance(value, Mapping) else {name: value}
        return {name: value for name, value in inner.items() if value not in _NOTHING}

    @property
    def names(self) -> tuple[str, ...]:
        """The properties."""
        return tuple(self.properties.split())


@dataclass(frozen=True)
class Entries:
    """A list with calls for each entry: `add` for one that is new or changed, `remove` for one that is gone.

    An entry is a structure, or the value of `member`. The calls' other members are properties of the resource;
    `removal` replaces them in `remove`. The deletion of the resource first removes all entries. A property that is no
    list has one entry.
    """

    property: str
    _: KW_ONLY
    add: str
    remove: str
    member: str = ""
    removal: Mapping[str, Any] = field(default_factory=dict)

    def of(self, properties: Properties) -> list[Properties]:
        """The members of each entry."""
        value = properties.get(self.property) or []
        listed = value if isinstance(value, list) else [value]
        return [each if isinstance(each, dict) else {self.member: each} for each in listed]


@dataclass(frozen=True, kw_only=True)
class Row:
    """How CloudFormation handles a resource type by the calls of its service.

    `rows.conventions` says what calls, `ref`, `ident` and `tag_kind` are where a row leaves them out. None: no call.

    Values in `ident`, `attributes`, `arn` and `ref` are templates: `{ref}` is the physical id, other names in braces
    are properties, members of the service's answer, `a.b` a member of a member, or `region`, `account` and `partition`.
    `{Name/}` is the part after the last slash, `{Name:}` the one after the last colon, `{Name/2}` the third between
    slashes. Of a list, `{Name.0}` is the first item.

    * `properties`: those that are supported, where they cannot be derived (`rows.supported`). `ignored`: those that the
      calls take and the service here drops, and members of them, as `Property.Member`.
    * `name`: the one that CloudFormation makes up, and its greatest length; `name_suffix`: its end with a property.
    * `create`, `read`, `update`, `delete`: actions of the API; more than one to read have their answers together.
      With `whole`, an update sends all properties, and those that it leaves out return to their defaults; as it does
      if it is the action that creates. `update_with`: members that an update always has.
      A list with members `AddName` and `RemoveName` in the update is changed by them.
    * `by_member`: structures of which an update sends only the members that changed. `replacing`: members
      `Property.Member` whose change replaces the resource, though the schema does not say so; `replaces` decides by
      the old and the new properties.
    * `ref`: Ref. `ident`: the members of any call that say which resource it is for.
    * `renames`: members whose names differ from the property's; `a.b` is a member of a member. Also of members, as
      `Property.Member`.
    * `resets`: what a removed property, or member of a structure in `by_member`, returns to, None to leave it out of
      the call. `removals`: the members of the update that take a property away.
    * `attributes`: read-only properties whose members have other names: templates, or paths `a.b` into the answer
      with, after `|`, a default. `describe` returns those that need other calls, by what is known of the resource;
      with `described_at_once` also where nobody asks for an attribute, since it may refuse the resource.
      `ready`: the status to wait for. With `read_to_delete`, the deletion takes members of the answer of `read`.
    * `tags`: the property, None if the type has none. `tags_later`: moto drops the tags of the creation.
      `system_tags`: whether CloudFormation adds its own, where the schema says nothing. `tag_kind`: the resource's
      name in EC2's TagSpecifications.
    * `must_exist`: the kind of the resource (`rows.existing`) that a property, or `Property.Member`, refers to.
    * `prepare`: changes to properties. `check`: refusals. `hook` sets the properties `by_hand`, after the creation
      and when they change; its arguments are the context, the old properties and the new ones with `ref`. With
      `hook_on_delete` it first takes them away.
    """

    type: str
    service: str
    ref: str = ""
    create: str | None = ""
    delete: str | None = ""
    ident: Mapping[str, Any] = field(default_factory=dict)
    properties: str | None = None
    ignored: str = ""
    read: str | None = ""
    update: str | None = ""
    whole: bool = False
    update_with: Mapping[str, Any] = field(default_factory=dict)
    by_member: str = ""
    replacing: str = ""
    replaces: Callable[[Properties, Properties], bool] | None = None
    name: tuple[str, int] | None = None
    name_suffix: Mapping[str, str] = field(default_factory=dict)
    lower_name: bool = False
    renames: Mapping[str, str] = field(default_factory=dict)
    resets: Mapping[str, Any] = field(default_factory=dict)
    removals: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    settings: tuple[Setting, ...] = ()
    entries: tuple[Entries, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    describe: Callable[[Context, Properties], Mapping[str, Any]] | None = None
    described_at_once: bool = False
    read_to_delete: bool = False
    tags: str | None = "Tags"
    arn: str = "{Arn}"
    tag: str = "TagResource"
    untag: str = "UntagResource"
    tags_later: bool = False
    system_tags: bool | None = None
    tag_kind: str = ""
    ready: str | None = None
    must_exist: Mapping[str, str] = field(default_factory=dict)
    prepare: Prepare | None = None
    check: Check | None = None
    by_hand: str = ""
    hook: Callable[[Context, Properties, Properties], None] | None = None
    hook_on_delete: bool = False
