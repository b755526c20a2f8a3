"""Resources of one stack that CloudFormation would create at the same time, although their service refuses that."""

import pytest

from localaws import parallel
from localaws.parallel import clashes
from localaws.templates import declarations
from stack_parts import TOPIC, Stacks, topic


def delivery(source, destination, *after):
    properties = {"DeliverySourceName": source, "DeliveryDestinationArn": {"Fn::GetAtt": [destination, "Arn"]}}
    return {"Type": "AWS::Logs::Delivery", "Properties": properties, "DependsOn": list(after)}


def clashing(resources, existing=()):
    ends = {name: {"Type": "AWS::Logs::DeliveryDestination", "Properties": {}} for name in ("One", "Two")}
    wanted = declarations({"Resources": {**ends, **resources}}, {})
    return set(clashes(wanted, wanted.keys() - set(existing)))


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"A": delivery("a", "One"), "B": delivery("b", "One")}, {"B"}),
        ({"A": delivery("a", "One"), "B": delivery("a", "Two")}, {"B"}),
        ({"A": delivery("a", "One"), "B": delivery("b", "Two")}, set()),
        ({"A": delivery("a", "One"), "B": delivery("b", "One", "A")}, set()),
        ({"A": delivery("a", "One"), "B": delivery("b", "Two", "A"), "C": delivery("c", "One", "B")}, set()),
    ],
)
def test_deliveries_that_share_an_end_wait_for_each_other(resources, expected):
    assert clashing(resources) == expected


def test_a_delivery_that_exists_locks_nothing():
    assert clashing({"A": delivery("a", "One"), "B": delivery("b", "One")}, existing=["A"]) == set()


def test_a_clash_fails_the_stack(stacks: Stacks, monkeypatch):
    monkeypatch.setitem(parallel.ONE_AT_A_TIME, TOPIC, (("DisplayName",), "it is being updated"))
    one, other = topic(DisplayName="x"), topic(DisplayName="x")
    assert stacks.create({"A": one, "B": other}) == "ROLLBACK_COMPLETE"
    assert stacks.event_reason("B", "CREATE_FAILED") == "it is being updated"
    stacks.delete()
    assert stacks.create({"A": one, "B": {**other, "DependsOn": "A"}}) == "CREATE_COMPLETE"
