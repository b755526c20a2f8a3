"""Fault injection."""

import pytest

from localaws import faults, local_aws
from localaws.resources import Context, HandlerError
from stack_parts import TOPIC, Fake, Stacks, topic


@pytest.mark.parametrize(
    ("name", "type_name", "code"),
    [
        ("insufficient-capacity", "AWS::EC2::Instance", "InsufficientInstanceCapacity"),
        ("insufficient-capacity", "AWS::FSx::FileSystem", "InsufficientCapacityException"),
        ("throttling", "AWS::EC2::LaunchTemplate", "RequestLimitExceeded"),
        ("throttling", "AWS::PCS::Queue", "ThrottlingException"),
        ("quota-exceeded", "AWS::PCS::Cluster", "ServiceQuotaExceededException"),
        ("quota-exceeded", "AWS::EC2::VPC", "VpcLimitExceeded"),
        ("access-denied", "AWS::EC2::VPC", "UnauthorizedOperation"),
        ("access-denied", "AWS::Grafana::Workspace", "AccessDeniedException"),
    ],
)
def test_each_fault_has_its_services_error_code(name: faults.Name, type_name: str, code: str) -> None:
    with local_aws():
        faults.inject(name, type_name)
        with pytest.raises(faults.ClientError) as raised:
            faults.raise_injected(Context("1" * 12, "us-east-2", "s", "id", "Thing", type_name), "create")
    assert raised.value.response["Error"]["Code"] == code


@pytest.mark.parametrize("operation", ["create", "update"])
def test_missing_capacity_fails_a_node_group_of_eks_by_its_health(operation: faults.Operation) -> None:
    with local_aws():
        faults.inject("insufficient-capacity", "AWS::EKS::Nodegroup")
        context = Context("1" * 12, "us-east-2", "s", "id", "Thing", "AWS::EKS::Nodegroup")
        with pytest.raises(HandlerError, match=r"AsgInstanceLaunchFailures.*do not have sufficient capacity"):
            faults.raise_injected(context, operation)


@pytest.mark.parametrize("operation", ["create", "update"])
def test_missing_capacity_fails_no_compute_node_group_of_pcs(operation: faults.Operation) -> None:
    with local_aws():
        faults.inject("insufficient-capacity", "AWS::PCS::ComputeNodeGroup")
        context = Context("1" * 12, "us-east-2", "s", "id", "Thing", "AWS::PCS::ComputeNodeGroup")
        faults.raise_injected(context, operation)
        assert faults.pending() == []


def test_fault_fails_the_resource_and_rolls_back(stacks: Stacks) -> None:
    stacks.create({"A": topic(), "B": topic(DisplayName="one")})
    before = dict(Fake.there)
    faults.inject("insufficient-capacity", "New")
    status = stacks.update({"A": topic(), "B": topic(DisplayName="two"), "New": {**topic(), "DependsOn": "B"}})
    assert status == "UPDATE_ROLLBACK_COMPLETE"
    assert Fake.there == before
    reason = stacks.event_reason("New", "CREATE_FAILED")
    assert reason.startswith("We currently do not have sufficient capacity")
    assert "InsufficientCapacityException" in reason


def test_injected_update_failure_needs_no_rollback_of_the_resource(stacks: Stacks) -> None:
    stacks.create({"A": topic(DisplayName="one")})
    faults.inject("throttling", TOPIC, operations=("update",))
    assert stacks.update({"A": topic(DisplayName="two")}) == "UPDATE_ROLLBACK_COMPLETE"
    assert Fake.calls == ["create A"]


def test_fault_is_raised_as_often_as_requested(stacks: Stacks) -> None:
    faults.inject("throttling", TOPIC, times=2)
    for name, status in (("a", "ROLLBACK_COMPLETE"), ("b", "ROLLBACK_COMPLETE"), ("c", "CREATE_COMPLETE")):
        assert stacks.create({"A": topic()}, name) == status
    assert faults.pending() == []


def test_fault_can_fail_a_deletion(stacks: Stacks) -> None:
    stacks.create({"A": topic()})
    faults.inject("access-denied", "A", operations=("delete",))
    assert stacks.delete() == "DELETE_FAILED"
    assert stacks.delete() == "DELETE_COMPLETE"


def test_new_embedded_aws_has_no_faults() -> None:
    faults.inject("throttling", "A")
    with local_aws():
        assert faults.pending() == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "earthquake", "on": "A"}, "unknown fault 'earthquake'"),
        ({"name": "throttling", "on": "A", "times": 0}, "times to 1 or more"),
        ({"name": "throttling", "on": "A", "operations": ("read",)}, "one or more of create, update, delete"),
    ],
)
def test_unknown_faults_are_refused(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        faults.inject(**arguments)  # type: ignore[arg-type]
