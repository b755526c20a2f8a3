"""References between stacks: exports, imports, outputs read by name."""

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from localaws import accounts
from stack_parts import Fake, Stacks, topic


def exporting(value: Any, name: str = "shared") -> dict[str, Any]:
    return {"Out": {"Value": value, "Export": {"Name": name}}}


@pytest.fixture
def pair(stacks: Stacks) -> Stacks:
    stacks.create({"A": topic(TopicName="one")}, "giver", Outputs=exporting({"Ref": "A"}))
    stacks.create({"B": topic(DisplayName={"Fn::ImportValue": "shared"})}, "taker")
    return stacks


def test_import_gets_the_exported_value(pair: Stacks) -> None:
    assert Fake.there[pair.ids("taker")["B"]] == {"DisplayName": pair.ids("giver")["A"]}
    assert pair.api.list_imports(ExportName="shared")["Imports"] == ["taker"]
    exports = pair.api.list_exports()["Exports"]
    assert [(export["Name"], export["Value"]) for export in exports] == [("shared", pair.ids("giver")["A"])]


def test_export_in_use_is_not_deleted_with_its_stack(pair: Stacks) -> None:
    assert pair.delete("giver") == "CREATE_COMPLETE"
    assert pair.reason("giver") == "Delete canceled. Cannot delete export shared as it is in use by taker."
    pair.delete("taker")
    assert pair.delete("giver") == "DELETE_COMPLETE"
    assert Fake.there == {}


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ({}, "Delete canceled. Cannot delete export shared as it is in use by taker."),
        (exporting("other"), "Export shared cannot be updated as it is in use by taker"),
    ],
)
def test_export_in_use_cannot_change_or_be_removed(pair: Stacks, outputs: dict[str, Any], words: str) -> None:
    before = pair.ids("giver")
    assert (
        pair.update({"A": topic(TopicName="one"), "C": topic()}, "giver", Outputs=outputs) == "UPDATE_ROLLBACK_COMPLETE"
    )
    assert pair.event_reason("giver", "UPDATE_ROLLBACK_IN_PROGRESS", "giver") == words
    assert pair.ids("giver") == before
    assert len(pair.api.list_exports()["Exports"]) == 1


def test_replacement_behind_an_export_in_use_is_rolled_back(pair: Stacks) -> None:
    before = pair.ids("giver")
    status = pair.update({"A": topic(TopicName="two")}, "giver", Outputs=exporting({"Ref": "A"}))
    assert status == "UPDATE_ROLLBACK_COMPLETE"
    assert pair.ids("giver") == before


def test_export_can_be_removed_after_its_import(pair: Stacks) -> None:
    pair.update({"B": topic(DisplayName="own")}, "taker")
    assert pair.update({"A": topic(TopicName="one")}, "giver") == "UPDATE_COMPLETE"
    assert pair.api.list_exports()["Exports"] == []


def test_export_names_are_unique(pair: Stacks) -> None:
    assert pair.create({"A": topic()}, "third", Outputs=exporting("x")) == "ROLLBACK_COMPLETE"
    words = "Export with name shared is already exported by stack giver."
    assert words in pair.event_reason("third", "ROLLBACK_IN_PROGRESS", "third")


def test_import_of_a_missing_export_fails_the_resource(stacks: Stacks) -> None:
    stacks.create({"B": topic(DisplayName={"Fn::ImportValue": "nowhere"})})
    assert stacks.event_reason("B", "CREATE_FAILED") == "No export named nowhere found."


def test_output_is_read_from_another_stack_by_name(stacks: Stacks) -> None:
    stacks.create({"A": topic()}, "giver", Outputs={"Out": {"Value": {"Ref": "A"}}})
    reference = {"Fn::GetStackOutput": {"StackName": "giver", "OutputName": "Out"}}
    stacks.create({"B": topic(DisplayName=reference)}, "taker")
    assert Fake.there[stacks.ids("taker")["B"]] == {"DisplayName": stacks.ids("giver")["A"]}
    assert stacks.delete("giver") == "DELETE_COMPLETE"  # such a reference does not prevent the deletion


def test_stacks_of_another_region_or_account_are_not_seen(stacks: Stacks) -> None:
    stacks.create({"A": topic()})
    for client in (
        boto3.client("cloudformation", "eu-west-1"),
        boto3.client(
            "cloudformation",
            "us-east-2",
            aws_access_key_id=accounts.access_key("111122223333"),
            aws_secret_access_key=accounts.SECRET,
        ),
    ):
        assert client.describe_stacks()["Stacks"] == []
        with pytest.raises(ClientError, match="Stack with id stack does not exist"):
            client.describe_stacks(StackName="stack")
