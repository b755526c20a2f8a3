"""The store of the services that moto lacks: kinds of resources as rows, their state, and what is refused.

A service is a list of kinds, a list of rules, and a class of `actions.Actions`. Names, members, timestamps, tags,
states and error shapes come from botocore's model of the service; a kind says only what the model does not.
"""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from moto.core.base_backend import BaseBackend
from moto.moto_api._internal.managed_state_model import ManagedState

from localaws.services import models
from localaws.services.references import References
from localaws.services.service import Refusal

Description = dict[str, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind:
    """A kind of resource of a service.

    * `noun`: its name in the model's operations. `type`: its name in errors, by default that of CloudFormation.
      `item`: the class of its items.
    * `address`: members of requests that say which one it is for; several are alternatives.
    * `id`: the member of the description with the id, by default `address`. `new_id` makes it; None if the request
      names it, or, without `address`, if there is one for each parent. `by_name`: requests may have the name instead.
    * `name`: a member that is unique within the parent. `arn`: the part of the ARN after the account.
    * `parent`: the kind within which it is. `quota`: how many there may be there.
    * `active`: verbs that need an ACTIVE parent. `active_itself`: verbs that need the resource ACTIVE.
    * `defaults` of the description, and members that an update merges, `merged`, where it replaces others.
    * Hooks: `describe` changes `call.new`, the description, at creation and update before the rules. `made` runs after
      creation, `changed` after an update, `removed` before the deletion. `listed`: whether a list contains an item.
    * `missing`, `taken`, `full`, `busy`: messages with {word}, {id}, {name}, {parent}, {existing[member]}, {count},
      {limit} and {status}.
    """

    noun: str
    item: "type[Item] | None" = None
    address: str = ""
    id: str = ""
    new_id: "Callable[[Call], str] | None" = None
    by_name: bool = False
    name: str | None = None
    arn: str = ""
    type: str = ""
    parent: "Kind | None" = None
    quota: int | None = None
    active: str = ""
    active_itself: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    merged: str = ""
    describe: "Callable[[Call], None] | None" = None
    made: "Callable[[Call], None] | None" = None
    changed: "Callable[[Call], None] | None" = None
    removed: "Callable[[Call], None] | None" = None
    listed: "Callable[[Call, Item], bool] | None" = None
    word: str = ""
    missing: str = "{noun} {id} was not found."
    taken: str = "A {word} named {name} already exists."
    full: str = "There are {count} {word}s already; {limit} is the limit."
    busy: str = "{name} is {status}, not ACTIVE."

    @property
    def id_member(self) -> str:
        """The member of the description with the id."""
        return self.id or self.address


class Item(ManagedState):  # type: ignore[misc]  # moto is untyped
    """A resource: the description that the API returns, the state, and what the service owns elsewhere for it."""

    def __init__(self, store: "Store", kind: Kind, description: Description, parent: "Item | None") -> None:
        self.shape = models.description_shape(store.model, kind.noun)
        state = f"{store.model.service_name}::{models.hyphenated(kind.noun)}"
        super().__init__(state, models.transitions(self.shape))
        self.store, self.kind, self.description, self.parent = store, kind, description, parent
        self.owned: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        return self.description[name]

    @property
    def id(self) -> str:
        """The id."""
        return str(self[self.kind.id_member])

    @property
    def arn(self) -> str:
        """The ARN; empty for a kind that has none."""
        return str(self.description.get(models.arn_member(self.shape, self.kind.noun), ""))

    @property
    def tags(self) -> dict[str, str]:
        """The tags."""
        return self.store.tags.get(self.arn, {})

    def view(self, status: str | None = None) -> Description:
        """The description with state and tags. Each call advances the state."""
        self.advance()
        state = models.state(self.shape, status or self.status)
        return {**copy.deepcopy(self.description), **state, **models.tags_out(self.shape, self.tags)}

    def change(self, changes: Description) -> None:
        """Set these members; None removes a member."""
        new = {**self.description, **changes, **models.stamps(self.shape, models.MODIFIED)}
        self.description = {name: value for name, value in new.items() if value is not None}
        self.status = "UPDATING"


@dataclass
class Call:
    """A request about a kind, as hooks and rules see it. `item` is None at creation until it is stored."""

    store: "Store"
    operation: str
    verb: str
    kind: Kind
    request: dict[str, Any]
    parent: Item | None = None
    item: Item | None = None
    new: Description = field(default_factory=dict)

    @property
    def references(self) -> References:
        """Look-ups in other services."""
        return self.store.references

    @property
    def old(self) -> Description:
        """The description before the request; empty at creation."""
        return self.item.description if self.item else {}

    @property
    def others(self) -> list[Item]:
        """The other resources of the kind with the same parent."""
        return [item for item in self.store.all(self.kind, self.parent) if item is not self.item]

    @property
    def siblings(self) -> list[Item]:
        """All resources of the parent."""
        return [item for item in self.store.items if item.parent is self.parent]

    @property
    def children(self) -> list[Item]:
        """All resources within this one."""
        return [item for item in self.store.items if item.parent is self.item]

    @property
    def within(self) -> Item:
        """The parent, of a kind that has one."""
        assert self.parent is not None  # noqa: S101 - for the type checker
        return self.parent

    @property
    def target(self) -> Item:
        """The resource, after its creation."""
        assert self.item is not None  # noqa: S101 - for the type checker
        return self.item


class Rule(NamedTuple):
    """What a service refuses: `check` raises Refusal for a call of one of the `operations`."""

    operations: str
    check: Callable[[Call], None]
    source: str


class Store(BaseBackend):  # type: ignore[misc]
    """The resources of a service in one account and Region. `urls_of` maps paths to response classes."""

    urls_of: ClassVar[Any]
    model: ClassVar[Any]
    label: ClassVar[str]
    """The service's name in CloudFormation's types."""

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.items: list[Item] = []
        self.tags: dict[str, dict[str, str]] = {}
        self.references = References(account_id, region_name, self.partition)

    @property
    def _url_module(self) -> Any:
        return self.urls_of

    def arn(self, resource: str) -> str:
        """The ARN of `resource` in this account and Region."""
        return f"arn:{self.partition}:{self.model.signing_name}:{self.region_name}:{self.account_id}:{resource}"

    def all(self, kind: Kind, parent: Item | None = None) -> list[Item]:
        """All resources of a kind, of one parent if given."""
        return [item for item in self.items if item.kind is kind and parent in (None, item.parent)]

    def find(self, kind: Kind, identifier: str, parent: Item | None = None) -> Item | None:
        """The resource of this id, or name where requests may have it."""
        for item in self.all(kind, parent):
            if identifier == item.id or (kind.by_name and identifier == item[kind.name or kind.id_member]):
                return item
        return None

    def get(self, kind: Kind, identifier: str, parent: Item | None = None) -> Item:
        """The resource of this id or name; Refusal when it does not exist."""
        found = self.find(kind, identifier, parent)
        if found is None:
            raise self.missing(kind, identifier, parent)
        return found

    def missing(self, kind: Kind, identifier: str, parent: Item | None = None) -> Refusal:
        """That a resource does not exist."""
        code = models.error_code(self.model, f"{kind.noun}NotFound", "ResourceNotFoundException")
        return self.refusal(kind, code, kind.missing, identifier, parent=parent, id=identifier)

    def refusal(
        self, kind: Kind, code: str, message: str, resource_id: str, *, parent: Item | None = None, **words: Any
    ) -> Refusal:
        """An error about a resource of a kind. With `words` the message is a template for them."""
        name, above = kind.type or f"AWS::{self.label}::{kind.noun}", parent.id if parent else ""
        known = {"type": name, "noun": kind.noun, "word": kind.word, "parent": above, **words}
        text = message.format_map(known) if words else message
        quota = models.plural(kind.noun).lower()
        return Refusal(code, text, resourceId=resource_id, resourceType=name, quotaCode=quota)

    def require_active(self, *items: Item) -> None:
        """Refusal unless all items are ACTIVE."""
        code = models.error_code(self.model, "ConflictException", "ResourceInUseException")
        for item in items:
            if (status := item.status) != models.ready(item.shape):
                name = item[item.kind.name or item.kind.id_member]
                raise self.refusal(item.kind, code, item.kind.busy, item.id, name=name, status=status)

    def check_new(self, call: Call, new_id: str) -> None:
        """Refusal when the id or the name is taken, or the quota is reached."""
        kind, there = call.kind, self.all(call.kind, call.parent)
        name = call.new.get(kind.name or kind.id_member, new_id)
        code = models.error_code(self.model, "ConflictException", "ResourceInUseException")
        for item in there:
            if item.id == new_id or (kind.name and item[kind.name] == name):
                words: dict[str, Any] = {"id": new_id, "name": name, "existing": item}
                raise self.refusal(kind, code, kind.taken, item.id, parent=call.parent, **words)
        if kind.quota is not None and len(there) >= kind.quota:
            words, owner = {"count": len(there), "limit": kind.quota}, str(name) if kind.name else self.region_name
            full = models.error_code(self.model, *models.QUOTA_ERRORS)
            raise self.refusal(kind, full, kind.full, owner, parent=call.parent, **words)

    def add(self, kind: Kind, new_id: str, description: Description, parent: Item | None, tags: Any = None) -> Item:
        """Store a new resource with its ARN, timestamps and tags."""
        shape = models.description_shape(self.model, kind.noun)
        above = models.parent_members(shape, parent.kind.noun, parent.kind.id_member) if parent else ()
        named = {**dict.fromkeys(above, parent.id if parent else ""), **description, kind.id_member: new_id}
        item = (kind.item or Item)(self, kind, named, parent)
        item.description |= models.stamps(shape, models.CREATED | models.MODIFIED)
        if kind.arn:
            item.description[models.arn_member(shape, kind.noun)] = self.arn(kind.arn.format_map(item.description))
            self.tags[item.arn] = models.tags_in(tags)
        self.items.append(item)
        return item

    def remove(self, *items: Item) -> None:
        """Remove resources with all that is within them, and their tags."""
        for item in items:
            self.remove(*(child for child in self.items if child.parent is item))
            self.items.remove(item)
            self.tags.pop(item.arn, None)


def checks(rules: tuple[Rule, ...], call: Call) -> Iterator[Rule]:
    """The rules for the operation of a call, in their order."""
    return (rule for rule in rules if call.operation in rule.operations.split())
