"""Fault injection: the next operations on a resource type or logical id fail with an error of AWS."""

import threading
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

from botocore.exceptions import ClientError

from localaws.resources import Context, HandlerError

Name = Literal["insufficient-capacity", "throttling", "quota-exceeded", "access-denied"]
Operation = Literal["create", "update", "delete"]

NAMES: tuple[Name, ...] = get_args(Name)
OPERATIONS: tuple[Operation, ...] = get_args(Operation)


@dataclass(frozen=True)
class Fault:
    """An injected fault and how many more times it is raised. `on` is a resource type or a logical id."""

    name: Name
    on: str
    times: int = 1
    operations: tuple[Operation, ...] = ("create", "update")


_lock = threading.Lock()
_faults: list[Fault] = []


def inject(name: Name, on: str, *, times: int = 1, operations: tuple[Operation, ...] = ("create", "update")) -> Fault:
    """Fail the next `times` of these operations on a resource type or logical id. ValueError for unknown names."""
    if name not in NAMES:
        raise ValueError(f"unknown fault {name!r}; use one of {', '.join(NAMES)}")
    if times < 1 or not operations or not set(operations) <= set(OPERATIONS):
        raise ValueError(f"set times to 1 or more, and operations to one or more of {', '.join(OPERATIONS)}")
    fault = Fault(name, on, times, tuple(operations))
    with _lock:
        _faults.append(fault)
    return fault


def pending() -> list[Fault]:
    """The faults that are not used up."""
    with _lock:
        return list(_faults)


def clear() -> None:
    """Remove all faults."""
    with _lock:
        _faults.clear()


def raise_injected(context: Context, operation: Operation) -> None:
    """Raise the error of a fault that was injected for this operation, if there is one.

    That is the ClientError of the service, except where missing capacity is no error of a call: EKS accepts the node
    group and then sets it to CREATE_FAILED. PCS sets it to ACTIVE and goes on trying to launch its nodes, so the fault
    is used up without an error.

    Sources: EKS API Reference, Issue; aws/containers-roadmap issue 2204; AWS PCS User Guide, "Scaling logs"; AWS PCS
    API Reference, ComputeNodeGroup: its status does not say how healthy the group is (2026).
    """
    with _lock:
        found = next((fault for fault in _faults if _matches(fault, context, operation)), None)
        if found is None:
            return
        place = _faults.index(found)
        _faults[place : place + 1] = [replace(found, times=found.times - 1)] if found.times > 1 else []
    if found.name == "insufficient-capacity" and context.type == "AWS::PCS::ComputeNodeGroup":
        return
    if found.name == "insufficient-capacity" and context.type == "AWS::EKS::Nodegroup":
        message = f"Could not launch Instances. InsufficientInstanceCapacity - {_NO_CAPACITY}"
        raise HandlerError(f"[Issue(Code=AsgInstanceLaunchFailures, Message={message}, ResourceIds=[])]")
    raise _error(found.name, context, operation)


def _matches(fault: Fault, context: Context, operation: Operation) -> bool:
    return fault.on in (context.type, context.logical_id) and operation in fault.operations


class _Codes(NamedTuple):
    """Error codes of a service for throttling, quotas and denied access."""

    throttling: str = "ThrottlingException"
    quota: str = "ServiceQuotaExceededException"
    denied: str = "AccessDeniedException"


# API references: "Error codes" of EC2, S3 and IAM, "Errors" of the create operations of the other services.
_SERVICES = {
    "EC2": _Codes("RequestLimitExceeded", "{resource}LimitExceeded", "UnauthorizedOperation"),
    "FSx": _Codes(quota="ServiceLimitExceeded"),
    "IAM": _Codes("Throttling", "LimitExceeded", "AccessDenied"),
    "KMS": _Codes(quota="LimitExceededException"),
    "Lambda": _Codes("TooManyRequestsException", "CodeStorageExceededException"),
    "Logs": _Codes(quota="LimitExceededException"),
    "S3": _Codes("SlowDown", "TooManyBuckets", "AccessDenied"),
}
_NO_CAPACITY = (
    "We currently do not have sufficient capacity in the Availability Zone you requested. Our system will be working "
    "on provisioning additional capacity."
)
_EC2_NAMES = {"EIP": "Address", "Instance": "Vcpu", "VPC": "Vpc", "VPCEndpoint": "VpcEndpoint"}


def _error(name: Name, context: Context, operation: Operation) -> ClientError:
    """The error that the resource type's service returns."""
    service, resource = context.type.split("::")[-2:]
    codes = _SERVICES.get(service, _Codes())
    action = f"{operation.capitalize()}{resource}"
    code, message = {
        "insufficient-capacity": (
            "InsufficientInstanceCapacity" if service == "EC2" else "InsufficientCapacityException",
            _NO_CAPACITY,
        ),
        "throttling": (codes.throttling, "Rate exceeded"),
        "quota-exceeded": (
            codes.quota.format(resource=_EC2_NAMES.get(resource, resource)),
            f"You have reached the quota for {resource} in this account and region.",
        ),
        "access-denied": (
            codes.denied,
            f"User: arn:{context.partition}:sts::{context.account}:assumed-role/deploy/AWSCloudFormation is not "
            f"authorized to perform: {service.lower()}:{action} because no identity-based policy allows the action",
        ),
    }[name]
    return ClientError({"Error": {"Code": code, "Message": message}}, action)
