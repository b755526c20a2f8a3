"""The row of a resource type."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from localaws.resources import Context, Properties, pick

Check = Callable[[Context, Properties, Properties], Properties | None]
"""Refuses, by HandlerError, what the service would refuse, and may return other properties for the calls.

Gets the context, the old properties ({} at creation) and the new ones.
"""

_NOTHING: tuple[Any, ...] = ("", [], {}, None)


@dataclass(frozen=True)
class Setting:
    """Properties that a call of their own sets, after the creation and when they change.

    `create` is called when there were none before, `put` otherwise. When they are gone, `remove` is called, or `put`
    with `reset`. With `spread`, the members of the one property are the call's own.
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

    def of(self, properties: Properties) -> Properties:
        """The properties of this setting that have a value; with `spread`, the members of the one."""
        given = {name: value for name, value in pick(properties, *self.names).items() if value not in _NOTHING}
        if not self.spread:
            return given
        inner = {name: value for each in given.values() for name, value in each.items()}
        return {name: value for name, value in inner.items() if value not in _NOTHING}

    @property
    def names(self) -> tuple[str, ...]:
        """The properties."""
        return tuple(self.properties.split())


@dataclass(frozen=True, kw_only=True)
class Row:
    """How CloudFormation handles a resource type by the calls of its service.

    Values in `ident`, `attributes`, `arn` and `ref` are templates: `{ref}` is the physical id, other names in braces
    are properties or members of the service's answer, and `{Name/}` is the part after the last slash, `{Name:}` the
    one after the last colon.

    * `properties`: those that are supported, where they cannot be derived (`rows.supported`). `ignored`: those that the
      calls take and the service here drops. `name`: the one that CloudFormation makes up, and its greatest length.
    * `create`, `read`, `update`, `delete`: actions of the API. With `whole`, an update sends all properties, and those
      that it leaves out return to their defaults; as it does if it is the action that creates.
    * `ref`: Ref. `ident`: the members of any call that say which resource it is for.
    * `renames`: members whose names differ from the property's; `a.b` is a member of a member.
    * `resets`: what a removed property returns to, None to leave it out of the call.
    * `attributes`: read-only properties whose members have other names. `ready`: the status to wait for.
    * `tags`: the property, None if the type has none. `tags_later`: moto drops the tags of the creation.
    * `check`: refusals. `hook` sets the properties `by_hand`, after the creation and when they change; its arguments
      are the context, the old properties and the new ones with `ref`. With `hook_on_delete` it first takes them away.
    """

    type: str
    service: str
    create: str
    delete: str
    ref: str
    ident: Mapping[str, str]
    properties: str | None = None
    ignored: str = ""
    read: str | None = None
    update: str | None = None
    whole: bool = False
    name: tuple[str, int] | None = None
    lower_name: bool = False
    renames: Mapping[str, str] = field(default_factory=dict)
    resets: Mapping[str, Any] = field(default_factory=dict)
    settings: tuple[Setting, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    tags: str | None = "Tags"
    arn: str = "{Arn}"
    tag: str = "TagResource"
    untag: str = "UntagResource"
    tags_later: bool = False
    ready: str | None = None
    check: Check | None = None
    by_hand: str = ""
    hook: Callable[[Context, Properties, Properties], None] | None = None
    hook_on_delete: bool = False
