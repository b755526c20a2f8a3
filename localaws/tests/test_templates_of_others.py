"""Small templates in the style of any team, none of an UltraCluster: created, updated without a change, deleted."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from localaws import local_aws
from localaws.resources import client

FILES = sorted((Path(__file__).parent / "templates").glob("*.yaml"))
REGION = "eu-central-1"
NAMED = ["CAPABILITY_NAMED_IAM"]
EXPECTED = {
    "custom": {"Total": "42"},
    "parameters": {"Nodes": "2"},
    "launch": {"Version": "1"},
}


def failures(cloudformation: Any, stack: str) -> list[str]:
    events = cloudformation.describe_stack_events(StackName=stack)["StackEvents"]
    return [str(event.get("ResourceStatusReason")) for event in events if "FAILED" in event["ResourceStatus"]]


@pytest.fixture(scope="module")
def cloudformation() -> Iterator[Any]:
    with local_aws():
        yield client("cloudformation", REGION)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_template_lives_and_leaves_nothing(cloudformation: Any, file: Path) -> None:
    request = {"StackName": file.stem, "TemplateBody": file.read_text(), "Capabilities": NAMED}
    stack = cloudformation.create_stack(**request)["StackId"]
    assert failures(cloudformation, stack) == []
    cloudformation.get_waiter("stack_create_complete").wait(StackName=stack)
    (found,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", [])}
    assert outputs.items() >= EXPECTED.get(file.stem, {}).items()
    assert all(outputs.values())
    with pytest.raises(ClientError, match="No updates are to be performed"):
        cloudformation.update_stack(**request)
    cloudformation.delete_stack(StackName=stack)
    assert failures(cloudformation, stack) == []
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=stack)
    left = cloudformation.list_stack_resources(StackName=stack)["StackResourceSummaries"]
    assert {each["ResourceStatus"] for each in left} == {"DELETE_COMPLETE"}


def test_there_are_enough_of_them() -> None:
    assert len(FILES) >= 12
