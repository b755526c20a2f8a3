"""Stack operations: creation, updates, replacement, rollback, deletion."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from stack_parts import Fake, Stacks, queue, topic

REFUSED = topic(DisplayName="refused")


def retained(resource: dict[str, Any], *policies: str) -> dict[str, Any]:
    return {**resource, **dict.fromkeys(policies or ("DeletionPolicy", "UpdateReplacePolicy"), "Retain")}


def test_resources_are_created_after_their_dependencies(stacks: Stacks) -> None:
    last = {**queue(), "DependsOn": "B"}
    assert stacks.create({"C": last, "B": queue(KmsMasterKeyId={"Ref": "A"}), "A": topic()}) == "CREATE_COMPLETE"
    assert Fake.calls == ["create A", "create B", "create C"]
    assert Fake.there["B-2"] == {"KmsMasterKeyId": "A-1"}


def test_every_step_is_an_event(stacks: Stacks) -> None:
    stacks.create({"A": topic()})
    assert stacks.events() == [
        ("stack", "CREATE_IN_PROGRESS"),
        ("A", "CREATE_IN_PROGRESS"),
        ("A", "CREATE_COMPLETE"),
        ("stack", "CREATE_COMPLETE"),
    ]


def test_events_have_different_times(stacks: Stacks) -> None:
    stacks.create({"A": topic(), "B": topic()})
    times = [event["Timestamp"] for event in stacks.api.describe_stack_events(StackName="stack")["StackEvents"]]
    assert len({round(time.timestamp() * 1000) for time in times}) == len(times)


def test_failed_creation_is_rolled_back_with_its_reason(stacks: Stacks) -> None:
    status = stacks.create({"A": topic(), "B": {**REFUSED, "DependsOn": "A"}})
    assert status == "ROLLBACK_COMPLETE"
    assert Fake.there == {}
    assert stacks.event_reason("B", "CREATE_FAILED") == "B is refused"
    assert "[B]" in stacks.event_reason("stack", "ROLLBACK_IN_PROGRESS")


def test_failed_creation_keeps_what_its_policy_retains(stacks: Stacks) -> None:
    always = {**topic(), "DeletionPolicy": "Retain"}
    later = {**topic(), "DeletionPolicy": "RetainExceptOnCreate"}
    stacks.create({"Always": always, "Later": later, "Z": {**REFUSED, "DependsOn": ["Always", "Later"]}})
    assert [physical_id.split("-")[0] for physical_id in Fake.there] == ["Always"]


def retained_once_created(resource: dict[str, Any]) -> dict[str, Any]:
    return {**resource, "DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}


def test_retain_except_on_create_retains_what_an_update_or_a_deletion_removes(stacks: Stacks) -> None:
    stacks.create({"A": retained_once_created(topic()), "B": retained_once_created(topic()), "C": topic()})
    stacks.update({"B": retained_once_created(topic()), "C": topic()})
    assert ("A", "DELETE_SKIPPED") in stacks.events()
    assert stacks.delete() == "DELETE_COMPLETE"
    assert sorted(physical_id.split("-")[0] for physical_id in Fake.there) == ["A", "B"]


def test_retain_except_on_create_deletes_what_a_failed_update_created(stacks: Stacks) -> None:
    old = {"A": retained_once_created(topic(TopicName="one"))}
    stacks.create(old)
    before = dict(Fake.there)
    new = {
        "A": retained_once_created(topic(TopicName="two")),
        "New": retained_once_created(topic()),
        "Always": {**topic(), "DeletionPolicy": "Retain"},
        "Z": {**REFUSED, "DependsOn": ["A", "New", "Always"]},
    }
    assert stacks.update(new) == "UPDATE_ROLLBACK_COMPLETE"
    left = sorted(physical_id for physical_id in Fake.there if physical_id not in before)
    assert [physical_id.split("-")[0] for physical_id in left] == ["Always"]
    assert before.keys() <= Fake.there.keys()


def test_resource_that_resists_the_roll_back_of_its_creation_is_retained_by_the_deletion(stacks: Stacks) -> None:
    stuck = retained_once_created(topic(DisplayName="stuck"))
    assert stacks.create({"A": stuck, "Z": {**REFUSED, "DependsOn": "A"}}) == "ROLLBACK_FAILED"
    assert stacks.delete() == "DELETE_COMPLETE"
    assert [physical_id.split("-")[0] for physical_id in Fake.there] == ["A"]


def test_protection_does_not_hinder_a_roll_back_but_the_deletion_after_it(stacks: Stacks) -> None:
    assert stacks.create({"A": REFUSED}, EnableTerminationProtection=True) == "ROLLBACK_COMPLETE"
    with pytest.raises(ClientError, match="TerminationProtection is enabled"):
        stacks.delete()


def test_rolled_back_creation_must_be_deleted_first(stacks: Stacks) -> None:
    stacks.create({"A": REFUSED})
    with pytest.raises(ClientError, match="ROLLBACK_COMPLETE state and can not be updated"):
        stacks.update({"A": topic()})
    with pytest.raises(ClientError, match="AlreadyExistsException"):
        stacks.create({"A": topic()})
    assert stacks.delete() == "DELETE_COMPLETE"
    assert stacks.create({"A": topic()}) == "CREATE_COMPLETE"


def test_failed_creation_can_stay_and_be_repaired(stacks: Stacks) -> None:
    broken = {"A": topic(), "B": {**REFUSED, "DependsOn": "A"}}
    assert stacks.create(broken, OnFailure="DO_NOTHING") == "CREATE_FAILED"
    assert stacks.update({"A": topic(), "B": topic()}) == "UPDATE_COMPLETE"
    assert Fake.calls == ["create A", "create B", "create B"]


def test_failed_creation_can_end_in_deletion(stacks: Stacks) -> None:
    stack_id = stacks.api.create_stack(
        StackName="stack", OnFailure="DELETE", TemplateBody=json.dumps({"Resources": {"A": REFUSED}})
    )["StackId"]
    assert stacks.status(stack_id) == "DELETE_COMPLETE"


def test_failed_creation_whose_resources_stay_does_not_end_in_deletion(stacks: Stacks) -> None:
    resources = {"A": topic(DisplayName="stuck"), "B": {**REFUSED, "DependsOn": "A"}}
    assert stacks.create(resources, OnFailure="DELETE") == "DELETE_FAILED"
    assert "[A]" in stacks.reason()


def test_all_events_of_an_operation_have_its_token(stacks: Stacks) -> None:
    stacks.create({"A": topic(), "B": {**REFUSED, "DependsOn": "A"}}, ClientRequestToken="one")
    found = stacks.api.describe_stack_events(StackName="stack")["StackEvents"]
    assert {event.get("ClientRequestToken") for event in found} == {"one"}


def test_update_in_place_touches_only_what_changed(stacks: Stacks) -> None:
    stacks.create({"A": topic(DisplayName="one"), "B": topic()})
    before = stacks.ids()
    assert stacks.update({"A": topic(DisplayName="two"), "B": topic()}) == "UPDATE_COMPLETE"
    assert stacks.ids() == before
    assert Fake.calls[2:] == ["update A"]


def test_create_only_change_replaces_and_dependents_follow(stacks: Stacks) -> None:
    def resources(name: str) -> dict[str, Any]:
        return {"A": topic(TopicName=name), "B": queue(KmsMasterKeyId={"Fn::GetAtt": ["A", "TopicArn"]})}

    stacks.create(resources("one"))
    old = stacks.ids()["A"]
    assert stacks.update(resources("two")) == "UPDATE_COMPLETE"
    new = stacks.ids()["A"]
    assert new != old
    assert Fake.there[stacks.ids()["B"]] == {"KmsMasterKeyId": f"arn:{new}"}
    assert Fake.calls[2:] == ["create A", "update B", "delete A"]
    assert old not in Fake.there


def test_replaced_resource_can_be_retained(stacks: Stacks) -> None:
    stacks.create({"A": retained(topic(TopicName="one"))})
    stacks.update({"A": retained(topic(TopicName="two"))})
    assert len(Fake.there) == 2
    assert ("A", "DELETE_SKIPPED") in stacks.events()


def test_dependent_sees_an_attribute_that_an_update_changed(stacks: Stacks) -> None:
    def resources(name: str) -> dict[str, Any]:
        return {"A": topic(DisplayName=name), "B": queue(VisibilityTimeout={"Fn::GetAtt": ["A", "Version"]})}

    stacks.create(resources("one"))
    stacks.update(resources("two"))
    assert Fake.there[stacks.ids()["B"]] == {"VisibilityTimeout": 3}


def test_removed_resource_is_deleted_after_the_update(stacks: Stacks) -> None:
    stacks.create({"A": topic(), "B": topic(DisplayName="one")})
    stacks.update({"B": topic(DisplayName="two")})
    assert Fake.calls[2:] == ["update B", "delete A"]
    assert stacks.ids().keys() == {"B"}
    cleaning = stacks.events().index(("stack", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"))
    assert stacks.events().index(("A", "DELETE_COMPLETE")) > cleaning


def test_failed_update_restores_everything(stacks: Stacks) -> None:
    good = {"A": topic(DisplayName="one"), "B": topic(TopicName="one"), "C": topic()}
    stacks.create(good, Outputs={"B": {"Value": {"Ref": "B"}}})
    ids, there, outputs = stacks.ids(), dict(Fake.there), stacks.outputs()
    bad = {
        "A": topic(DisplayName="two"),
        "B": topic(TopicName="two"),
        "New": topic(),
        "Z": {**REFUSED, "DependsOn": ["A", "B", "New"]},
    }
    assert stacks.update(bad, Outputs={"B": {"Value": {"Ref": "B"}}}) == "UPDATE_ROLLBACK_COMPLETE"
    assert (stacks.ids(), Fake.there, stacks.outputs()) == (ids, there, outputs)
    assert stacks.event_reason("Z", "CREATE_FAILED") == "Z is refused"
    assert "[Z]" in stacks.event_reason("stack", "UPDATE_ROLLBACK_IN_PROGRESS")


def test_failed_update_of_a_resource_is_rolled_back_on_that_resource(stacks: Stacks) -> None:
    stacks.create({"A": topic(DisplayName="one")})
    assert stacks.update({"A": topic(DisplayName="refused")}) == "UPDATE_ROLLBACK_COMPLETE"
    assert Fake.calls == ["create A", "update A", "update A"]
    assert list(Fake.there.values()) == [{"DisplayName": "one"}]


def test_stack_can_be_updated_after_a_rollback(stacks: Stacks) -> None:
    stacks.create({"A": topic(DisplayName="one")})
    stacks.update({"A": topic(DisplayName="refused")})
    assert stacks.update({"A": topic(DisplayName="two")}) == "UPDATE_COMPLETE"


def test_failed_update_can_wait_for_a_rollback(stacks: Stacks) -> None:
    stacks.create({"A": topic(DisplayName="one")})
    bad = {"A": topic(DisplayName="two"), "Z": {**REFUSED, "DependsOn": "A"}}
    assert stacks.update(bad, DisableRollback=True) == "UPDATE_FAILED"
    assert list(Fake.there.values()) == [{"DisplayName": "two"}]
    stacks.api.rollback_stack(StackName="stack")
    assert stacks.status() == "UPDATE_ROLLBACK_COMPLETE"
    assert list(Fake.there.values()) == [{"DisplayName": "one"}]


def test_failed_rollback_can_be_continued(stacks: Stacks, monkeypatch: pytest.MonkeyPatch) -> None:
    stacks.create({"A": topic(DisplayName="one")})
    original, tries = Fake.update, iter([True, False, True])

    def update(self: Any, *args: Any) -> Any:
        if not next(tries):
            raise RuntimeError("a broken handler")
        return original(self, *args)

    monkeypatch.setattr(Fake, "update", update)
    bad = {"A": topic(DisplayName="two"), "Z": {**REFUSED, "DependsOn": "A"}}
    assert stacks.update(bad) == "UPDATE_ROLLBACK_FAILED"
    assert "Internal failure of the embedded AWS: RuntimeError" in stacks.event_reason("A", "UPDATE_FAILED")
    stacks.api.continue_update_rollback(StackName="stack")
    assert stacks.status() == "UPDATE_ROLLBACK_COMPLETE"
    assert list(Fake.there.values()) == [{"DisplayName": "one"}]


def test_unsupported_property_fails_by_name(stacks: Stacks) -> None:
    assert stacks.create({"A": topic(FifoTopic=True)}) == "ROLLBACK_COMPLETE"
    assert (
        stacks.event_reason("A", "CREATE_FAILED")
        == "the embedded AWS does not support FifoTopic of AWS::SNS::Topic (A)"
    )


def test_property_that_the_registry_refuses_fails_by_name(stacks: Stacks) -> None:
    stacks.create({"A": topic(Colour="red")})
    assert "extraneous key [Colour] is not permitted" in stacks.event_reason("A", "CREATE_FAILED")


@pytest.mark.parametrize(
    ("type_name", "words"),
    [
        ("AWS::SNS::Topik", r"Unrecognized resource types: \[AWS::SNS::Topik\]"),
        ("AWS::RDS::DBInstance", r"no handler for these resource types: \[AWS::RDS::DBInstance\]"),
    ],
)
def test_type_without_a_handler_is_refused_by_name(stacks: Stacks, type_name: str, words: str) -> None:
    with pytest.raises(ClientError, match=words):
        stacks.create({"A": topic(), "B": {"Type": type_name}})
    assert Fake.calls == []


def test_type_of_a_resource_cannot_change(stacks: Stacks) -> None:
    stacks.create({"A": topic()})
    with pytest.raises(ClientError, match=r"Update of resource type is not permitted.*\[A\]"):
        stacks.update({"A": queue()})


def test_dependents_are_deleted_before_their_dependencies(stacks: Stacks) -> None:
    stacks.create({"B": queue(KmsMasterKeyId={"Ref": "A"}), "A": topic()})
    assert stacks.delete() == "DELETE_COMPLETE"
    assert Fake.calls[2:] == ["delete B", "delete A"]


def test_retained_resource_outlives_its_stack(stacks: Stacks) -> None:
    stack_id = stacks.stack(stacks.create({"A": retained(topic())}) and "stack")["StackId"]
    stacks.delete()
    assert len(Fake.there) == 1
    assert ("A", "DELETE_SKIPPED") in stacks.events(stack_id)


def test_dependencies_of_a_resource_that_cannot_be_deleted_stay(stacks: Stacks) -> None:
    stuck = topic(DisplayName="stuck")
    stacks.create({"A": topic(), "B": {**stuck, "DependsOn": "A"}, "C": topic()})
    assert stacks.delete() == "DELETE_FAILED"
    assert "[B]" in stacks.reason()
    assert sorted(physical_id.split("-")[0] for physical_id in Fake.there) == ["A", "B"]
    assert stacks.delete(RetainResources=["B"]) == "DELETE_COMPLETE"
    assert [physical_id.split("-")[0] for physical_id in Fake.there] == ["B"]


def test_protected_stack_is_not_deleted(stacks: Stacks) -> None:
    stacks.create({"A": topic()}, EnableTerminationProtection=True)
    with pytest.raises(ClientError, match="TerminationProtection is enabled"):
        stacks.delete()
    stacks.api.update_termination_protection(StackName="stack", EnableTerminationProtection=False)
    assert stacks.delete() == "DELETE_COMPLETE"


def test_stack_tags_and_their_changes_reach_resources(stacks: Stacks) -> None:
    own = {"A": topic(Tags=[{"Key": "team", "Value": "own"}])}
    stacks.create(own, Tags=[{"Key": "team", "Value": "stack"}, {"Key": "cost", "Value": "1"}])
    assert Fake.there["A-1"] == {"Tags": [{"Key": "team", "Value": "own"}, {"Key": "cost", "Value": "1"}]}
    stacks.update(own, Tags=[{"Key": "cost", "Value": "2"}])
    assert Fake.there["A-1"] == {"Tags": [{"Key": "team", "Value": "own"}, {"Key": "cost", "Value": "2"}]}
