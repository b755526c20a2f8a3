"""Failures on demand: the next operations on a resource type or logical id answer as AWS does on a bad day."""

import threading
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

from botocore.exceptions import ClientError

from ultracluster.localaws.resources import Context

Name = Literal["insufficient-capacity", "throttling", "quota-exceeded", "access-denied"]
Operation = Literal["create", "update", "delete"]

NAMES: tuple[Name, ...] = get_args(Name)
OPERATIONS: tuple[Operation, ...] = get_args(Operation)


@dataclass(frozen=True)
class Fault:
    """What fails, how, and how many more times. `on` is a resource type or a logical id."""

    name: Name
    on: str
    times: int = 1
    operations: tuple[Operation, ...] = ("create", "update")


_lock = threading.Lock()
_faults: list[Fault] = []


def inject(name: Name, on: str, *, times: int = 1, operations: tuple[Operation, ...] = ("create", "update")) -> Fault:
    """Let the next `times` of these operations on a resource type or logical id fail. ValueError for unknown names."""
    if name not in NAMES:
        raise ValueError(f"no fault is named {name!r}; there are {', '.join(NAMES)}")
    if times < 1 or not operations or not set(operations) <= set(OPERATIONS):
        raise ValueError(f"a fault strikes at least once, on some of {', '.join(OPERATIONS)}")
    fault = Fault(name, on, times, tuple(operations))
    with _lock:
        _faults.append(fault)
    return fault


def waiting() -> list[Fault]:
    """The faults that have not struck all their times."""
    with _lock:
        return list(_faults)


def clear() -> None:
    """Forget every fault."""
    with _lock:
        _faults.clear()


def strike(context: Context, operation: Operation) -> None:
    """Raise the ClientError of a fault that waits for this operation, if one does."""
    with _lock:
        found = next((fault for fault in _faults if _meets(fault, context, operation)), None)
        if found is None:
            return
        place = _faults.index(found)
        _faults[place : place + 1] = [replace(found, times=found.times - 1)] if found.times > 1 else []
    raise _error(found.name, context, operation)


def _meets(fault: Fault, context: Context, operation: Operation) -> bool:
    return fault.on in (context.type, context.logical_id) and operation in fault.operations


class _Codes(NamedTuple):
    """The error codes of a service for faults that every service knows."""

    throttling: str = "ThrottlingException"
    quota: str = "ServiceQuotaExceededException"
    denied: str = "AccessDeniedException"


# API references: "Error codes" of EC2, S3 and IAM, "Errors" of the create operations of the others.
_SERVICES = {
    "EC2": _Codes("RequestLimitExceeded", "{resource}LimitExceeded", "UnauthorizedOperation"),
    "FSx": _Codes(quota="ServiceLimitExceeded"),
    "IAM": _Codes("Throttling", "LimitExceeded", "AccessDenied"),
    "KMS": _Codes(quota="LimitExceededException"),
    "Lambda": _Codes("TooManyRequestsException", "CodeStorageExceededException"),
    "Logs": _Codes(quota="LimitExceededException"),
    "S3": _Codes("SlowDown", "TooManyBuckets", "AccessDenied"),
}
_EC2_NAMES = {"EIP": "Address", "Instance": "Vcpu", "VPC": "Vpc", "VPCEndpoint": "VpcEndpoint"}


def _error(name: Name, context: Context, operation: Operation) -> ClientError:
    """The error that the service behind the type answers with."""
    service, resource = context.type.split("::")[-2:]
    codes = _SERVICES.get(service, _Codes())
    action = f"{operation.capitalize()}{resource}"
    code, message = {
        "insufficient-capacity": (
            "InsufficientInstanceCapacity" if service == "EC2" else "InsufficientCapacityException",
            "We currently do not have sufficient capacity in the Availability Zone you requested. Our system will be "
            "working on provisioning additional capacity.",
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
