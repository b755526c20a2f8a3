"""Times of operations in an account, on the simulated clock."""

import json
from dataclasses import asdict
from typing import Any

import pytest

from localaws import Estimate, estimate, estimates
from localaws.estimates import LEAST, MOST, STACK_TYPE, StackOperation, Step, Verb, critical_path, schedule, seconds
from localaws.records import records
from localaws.schemas import is_registered
from stack_parts import QUEUE, TOPIC, Stacks, queue, topic

NAT, CLUSTER, ROLE = "AWS::EC2::NatGateway", "AWS::EKS::Cluster", "AWS::IAM::Role"


def step(name: str, type_name: str, *needs: str, verb: Verb = "CREATE", phase: int = 0, **properties: Any) -> Step:
    return Step(name, type_name, verb, frozenset(needs), properties, phase)


def takes(type_name: str, verb: Verb = "CREATE") -> float:
    return seconds(step("X", type_name, verb=verb))


def ends(*steps: Step) -> dict[str, float]:
    return {timed.step.logical_id: timed.end for timed in schedule(steps)}


def test_resources_without_dependencies_are_created_side_by_side():
    assert ends(step("A", NAT), step("B", CLUSTER)) == {"A": takes(NAT), "B": takes(CLUSTER)}


def test_a_resource_begins_when_the_last_of_those_that_it_needs_has_ended():
    found = schedule([step("A", NAT), step("B", CLUSTER), step("C", ROLE, "A", "B"), step("D", ROLE, "A")])
    assert [timed.start for timed in found] == [0, 0, takes(CLUSTER), takes(NAT)]
    assert [timed.step.logical_id for timed in critical_path(found)] == ["B", "C"]


def test_an_unchanged_resource_takes_no_time_but_keeps_its_place():
    found = ends(step("A", NAT, verb="UPDATE"), step("B", CLUSTER, "A", verb="NONE"), step("C", ROLE, "B"))
    assert found["C"] == takes(NAT, "UPDATE") + takes(ROLE)


def test_a_resource_is_deleted_after_those_that_need_it():
    found = ends(step("B", CLUSTER, "A", verb="DELETE"), step("A", ROLE, verb="DELETE"), step("C", NAT, verb="DELETE"))
    assert found["A"] == takes(CLUSTER, "DELETE") + takes(ROLE, "DELETE")
    assert found["C"] == takes(NAT, "DELETE")


def test_a_clean_up_begins_when_the_deployment_has_ended():
    found = schedule([step("A", CLUSTER), step("B", NAT), step("A", CLUSTER, verb="DELETE", phase=1)])
    assert found[2].start == takes(CLUSTER)
    assert [timed.step.verb for timed in critical_path(found)] == ["CREATE", "DELETE"]


def test_figures_may_depend_on_properties():
    inside, outside = (seconds(step("F", "AWS::Lambda::Function", **given)) for given in ({"VpcConfig": {}}, {}))
    gateway = seconds(step("E", "AWS::EC2::VPCEndpoint", VpcEndpointType="Gateway"))
    interface = seconds(step("E", "AWS::EC2::VPCEndpoint", VpcEndpointType="Interface"))
    assert inside > outside
    assert interface > gateway == seconds(step("E", "AWS::EC2::VPCEndpoint"))


def test_every_figure_has_a_range_and_a_source_and_is_for_a_type_that_exists():
    figures = records("durations")
    assert "estimates" in figures["about"]
    rows = [(name, row) for name, found in figures["types"].items() for row in found]
    for name, row in [*rows, ("default", figures["default"])]:
        assert len(row["source"]) >= len("estimate"), name
        for verb in ("create", "update", "delete"):
            least, likely, most = row[verb]
            assert 0 < least <= likely <= most, (name, verb)
    for name, found in figures["types"].items():
        assert name.startswith("Custom::") or is_registered(name, "us-east-1"), name
        assert ["when" in row for row in found] == [True] * (len(found) - 1) + [False], name


def operation(name: str, *steps: Step, imports: str = "", exports: str = "") -> StackOperation:
    return StackOperation("1", "us-east-2", name, list(steps), frozenset(exports.split()), frozenset(imports.split()))


def test_stacks_are_deployed_one_after_another_or_side_by_side():
    network = operation("network", step("N", NAT), exports="vpc")
    cluster = operation("cluster", step("C", CLUSTER), imports="vpc")
    other = operation("other", step("R", ROLE))
    itself = takes(STACK_TYPE)
    assert (
        estimates.estimate([network, cluster, other]).likely == takes(NAT) + takes(CLUSTER) + takes(ROLE) + 3 * itself
    )
    beside = estimates.estimate([network, cluster, other], concurrency=2)
    assert beside.likely == takes(NAT) + takes(CLUSTER) + 2 * itself
    assert [cause.logical_id for cause in beside.held_up_by] == ["C", "N"]
    assert {time.stack: time.start for time in beside.stacks} == {
        "network": 0,
        "cluster": takes(NAT) + itself,
        "other": 0,
    }


def test_a_stack_is_deleted_after_those_that_import_from_it():
    cluster = operation("cluster", step("C", CLUSTER, verb="DELETE"), imports="vpc")
    network = operation("network", step("N", NAT, verb="DELETE"), exports="vpc")
    assert estimates.estimate([cluster, network], concurrency=9).stacks[1].start > takes(CLUSTER, "DELETE")


def test_an_estimate_has_a_range_and_names_at_most_five_resources():
    steps = [step(f"C{number}", CLUSTER, *([f"C{number - 1}"] if number else [])) for number in range(9)]
    found = estimates.estimate([operation("all", *steps)])
    assert (found.least, found.most) == tuple(
        9 * seconds(steps[0], level) + seconds(step("", STACK_TYPE), level) for level in (LEAST, MOST)
    )
    assert len(found.held_up_by) == 5
    assert str(found).startswith(f"Estimate for an account: {round(found.likely / 60)} min (")
    assert f"; held up by {CLUSTER} C" in str(found)
    with pytest.raises(ValueError, match="concurrency must be at least 1"):
        estimates.estimate([], 0)


def test_no_change_is_said(stacks: Stacks):
    assert str(estimate()) == "Estimate for an account: no stack changed"


def test_operations_of_the_engine_are_timed(stacks: Stacks):
    itself = takes(STACK_TYPE)
    stacks.create({"A": topic(), "B": queue(QueueName={"Ref": "A"}), "C": topic()})
    first = takes(TOPIC) + takes(QUEUE) + itself
    assert estimate().likely == first
    assert [cause.logical_id for cause in estimate().held_up_by] == ["B", "A"]
    # B is replaced and then cleaned up; A is updated and C removed at the same time as the old B
    stacks.update({"A": topic(DisplayName="x"), "B": queue(QueueName="other")})
    second = max(takes(TOPIC, "UPDATE"), takes(QUEUE)) + max(takes(TOPIC, "DELETE"), takes(QUEUE, "DELETE"))
    assert estimate().likely == first + second + takes(STACK_TYPE, "UPDATE")
    stacks.delete()
    third = takes(QUEUE, "DELETE") + takes(STACK_TYPE, "DELETE")
    assert estimate(concurrency=9).stacks[-1].end == first + second + takes(STACK_TYPE, "UPDATE") + third


def test_a_rollback_takes_its_time_too(stacks: Stacks):
    stacks.create({"A": topic(), "B": queue(KmsMasterKeyId="refused", QueueName={"Ref": "A"})})
    expected = takes(TOPIC) + takes(QUEUE) + takes(TOPIC, "DELETE") + takes(STACK_TYPE)
    assert estimate().likely == expected


def test_stacks_are_ordered_by_their_exports(stacks: Stacks):
    out = {"T": {"Value": {"Ref": "A"}, "Export": {"Name": "t"}}}
    stacks.create({"A": topic()}, "first", Outputs=out)
    stacks.create({"B": queue(QueueName={"Fn::ImportValue": "t"})}, "second")
    stacks.create({"C": topic()}, "third")
    starts = {time.stack: time.start for time in estimate(concurrency=9).stacks}
    assert starts == {"first": 0, "second": takes(TOPIC) + takes(STACK_TYPE), "third": 0}


def test_a_server_answers_with_the_same_estimate():
    found = estimates.estimate([operation("all", step("C", CLUSTER))])
    assert Estimate.of(json.loads(json.dumps(asdict(found)))) == found
