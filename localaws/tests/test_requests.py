"""Requests that the embedded services refuse as AWS does, and creations that types refuse, from tables."""

import copy
import re
from typing import Any

import pytest
from botocore import xform_name
from botocore.exceptions import ClientError

from handler_parts import Stack
from localaws.resources import HandlerError
from round_trip import World, least
from row_data import CASES, PARTS, REFUSALS, load

REQUESTS = [
    pytest.param(table, *refusal, id=f"{table['call']} {refusal[0]}"[:80])
    for table in load("requests")
    for refusal in table["refused"]
]


@pytest.fixture(scope="module")
def world(aws: None) -> World:
    """An account in which each part is created once: what is refused changes nothing."""
    return World(Stack(), PARTS)


def changed(request: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The request with other members; `a.b` is a member of a member, None removes one."""
    request = copy.deepcopy(request)
    for path, value in changes.items():
        *steps, last = path.split(".") if "/" not in path else [path]
        place = request
        for step in steps:
            place = place.setdefault(step, {})
        place[last] = value
        if value is None:
            del place[last]
    return request


def described(world: World, table: dict[str, Any], request: dict[str, Any]) -> Any:
    """What the table's other call returns, for the place that the request names."""
    client = world.stack.client(table["service"])
    shape = client.meta.service_model.operation_model(table["unchanged"]).input_shape
    place = {name: request[name] for name in ("clusterName", "clusterIdentifier") if name in shape.members}
    answer = getattr(client, xform_name(table["unchanged"]))(**place)
    return {name: value for name, value in answer.items() if name != "ResponseMetadata"}


@pytest.mark.parametrize(("table", "changes", "code", "words"), REQUESTS)
def test_a_request_is_refused(
    world: World, table: dict[str, Any], changes: dict[str, Any], code: str, words: str
) -> None:
    request = world.filled(changed(table["with"], changes))
    before = described(world, table, request)
    with pytest.raises(ClientError) as caught:
        getattr(world.stack.client(table["service"]), xform_name(table["call"]))(**request)
    assert described(world, table, request) == before
    error = caught.value.response["Error"]
    assert (error["Code"], bool(re.search(words, error["Message"]))) == (code, True), error


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
