"""Every resource type is created, read back, changed, emptied and deleted; each property takes part."""

import pytest
from botocore.exceptions import ClientError

from handler_parts import Stack
from localaws import schemas
from localaws.resources import HANDLERS
from localaws.rows.handler import RowHandler
from round_trip import Case, Trip, World, steps
from row_data import CASES, PARTS, UNTESTED, load

ROWS = sorted(name for name, handler in HANDLERS.items() if isinstance(handler, RowHandler))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.type} {case.label}".strip())
def test_each_property_arrives_changes_and_returns_to_its_default(stack: Stack, case: Case) -> None:
    failures = Trip(stack, case, PARTS).run()
    assert failures.keys() == UNTESTED.get(f"{case.type} {case.label}".strip(), {}).keys(), failures


@pytest.mark.parametrize("type_name", ROWS)
def test_each_supported_property_takes_part(type_name: str) -> None:
    tried = {step for case in CASES if case.type == type_name for step in steps(case)}
    create_only = schemas.create_only(type_name, "us-east-1")
    required = schemas.schema(type_name, "us-east-1").get("required", ())
    for name in HANDLERS[type_name].supported_properties:
        change = "replace" if f"/properties/{name}" in create_only else "update"
        changes = {(name, change), (name, "replace")} | {step for step in tried if step[0].startswith(f"{name}.")}
        assert (name, "create") in tried
        assert changes & tried, name
        replaced = change == "replace" or (name, "replace") in tried
        assert replaced or name in required or (name, "remove") in tried


@pytest.mark.parametrize(("type_name", "names"), load("supported").items())
def test_no_property_loses_its_support(type_name: str, names: str) -> None:
    assert set(names.split()) <= HANDLERS[type_name].supported_properties


@pytest.mark.parametrize(("name", "user", "words"), load("in_use"))
def test_what_is_in_use_is_not_deleted(stack: Stack, name: str, user: str, words: str) -> None:
    world = World(stack, PARTS)
    for part in (name, user):
        world.filled(f"$({part})")
    with pytest.raises(ClientError, match=words):
        world.delete(name)
    world.delete(user)
    world.delete(name)
