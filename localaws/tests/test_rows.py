"""Every resource type is created, read back, changed, emptied and deleted; each property takes part."""

import pytest

from handler_parts import Stack
from localaws import schemas
from localaws.resources import HANDLERS
from localaws.rows.handler import RowHandler
from round_trip import Case, Trip, steps
from row_data import CASES, PARTS, UNTESTED

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
