"""Every resource type is created, read back, changed, emptied and deleted; each property takes part."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from handler_parts import Stack
from localaws import schemas
from localaws.resources import HANDLERS, HandlerError
from localaws.rows.handler import RowHandler
from localaws.services import activate
from round_trip import Case, Trip, World, least, steps
from row_data import CASES, PARTS, REFUSALS, UNTESTED, load

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


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """An account in which each part is created once: what is refused changes nothing."""
    activate()
    with mock_aws():
        yield World(Stack(), PARTS)


LISTS = {
    "AWS::EC2::SecurityGroup": ("ec2", "describe_security_groups", "SecurityGroups"),
    "AWS::Events::Rule": ("events", "list_rules", "Rules"),
    "AWS::FSx::FileSystem": ("fsx", "describe_file_systems", "FileSystems"),
    "AWS::IAM::Role": ("iam", "list_roles", "Roles"),
    "AWS::S3::Bucket": ("s3", "list_buckets", "Buckets"),
    "AWS::Scheduler::Schedule": ("scheduler", "list_schedules", "Schedules"),
}
"""Calls that list the types of which a creation can fail after its first call."""


def listed(world: World, type_name: str) -> int:
    service, call, member = LISTS.get(type_name, ("ec2", "describe_vpcs", "Vpcs"))
    return len(getattr(world.stack.client(service), call)()[member])


@pytest.mark.parametrize(("type_name", "changes", "words"), REFUSALS)
def test_a_creation_is_refused(world: World, type_name: str, changes: dict[str, Any], words: str) -> None:
    case = next(case for case in CASES if case.type == type_name)
    properties = world.filled({**least(case), **changes})
    before = listed(world, type_name)
    with pytest.raises((HandlerError, ClientError), match=re.escape(words)):
        world.stack.create(type_name, **{name: value for name, value in properties.items() if value is not None})
    assert listed(world, type_name) == before


@pytest.mark.parametrize(("name", "user", "words"), load("in_use"))
def test_what_is_in_use_is_not_deleted(stack: Stack, name: str, user: str, words: str) -> None:
    world = World(stack, PARTS)
    for part in (name, user):
        world.filled(f"$({part})")
    with pytest.raises(ClientError, match=words):
        world.delete(name)
    world.delete(user)
    world.delete(name)
