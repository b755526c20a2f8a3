"""Properties that a row supports: those of the registry's schema that its calls take."""

import re

from localaws import schemas
from localaws.rows import shapes
from localaws.rows.row import Row

_NAMES = re.compile(r"\{(\w+)")


def supported_properties(row: Row) -> frozenset[str]:
    """The row's list, or the properties that a call takes or that identify the resource, less the ignored."""
    if row.properties is not None:
        return frozenset(row.properties.split())
    schema = schemas.schema(row.type, schemas.DEFAULT_REGION)
    read_only = {pointer.split("/")[2] for pointer in schema.get("readOnlyProperties", ()) if pointer.count("/") == 2}
    named = {*row.by_hand.split(), *(name for setting in row.settings for name in setting.names), row.tags}
    named |= {entries.property for entries in row.entries}
    named |= {name for template in row.ident.values() for name in _NAMES.findall(str(template))}
    taken = {name for name in schema["properties"] if name in named or _taken(row, name)}
    return frozenset(taken - read_only - set(row.ignored.split()))


def _taken(row: Row, name: str) -> bool:
    """Whether the creation, update or deletion has a member for the property."""
    calls = (action for action in (row.create, row.update, row.delete) if action)
    inputs = (shapes.input_of(row.service, action) for action in calls)
    kind = row.type.rsplit("::", 1)[-1]
    return any(shapes.member_path(shape, name, row.renames, kind) for shape in inputs)
