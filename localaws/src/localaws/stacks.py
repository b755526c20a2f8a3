"""The state of the embedded CloudFormation: stacks with their versions, resources, outputs and events."""

import threading
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from moto.core.base_backend import BackendDict, BaseBackend

from localaws.estimates import StackOperation
from localaws.resources import Properties, Resource
from localaws.templates import Body

STACK_TYPE = "AWS::CloudFormation::Stack"


@dataclass(frozen=True)
class Version:
    """A template with its parameters, as one request deploys it."""

    source: str  # the template text of the request
    body: Body
    given: Mapping[str, str]  # parameters of the request
    values: Mapping[str, Any]  # parameters as functions resolve them
    tags: Mapping[str, str]
    capabilities: tuple[str, ...] = ()
    role_arn: str | None = None
    notification_arns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Record:
    """A physical resource of a stack."""

    logical_id: str
    type: str
    physical_id: str
    properties: Properties
    attributes: Mapping[str, Any]
    metadata: Mapping[str, Any]
    deletion_policy: str
    needs: frozenset[str]
    rank: int  # position in the order of creation
    status: str
    reason: str | None
    at: datetime
    attempted: Properties | None = None  # properties of a failed update in place, which may have been applied in part

    @property
    def key(self) -> tuple[str, str]:
        """Identifies a resource; its replacement has another key."""
        return self.logical_id, self.physical_id

    @property
    def resource(self) -> Resource:
        """The resource as Ref and Fn::GetAtt see it."""
        return Resource(self.physical_id, self.attributes)


@dataclass(frozen=True)
class Output:
    """One output of a stack."""

    value: str
    description: str | None
    export: str | None


@dataclass(frozen=True)
class LastGood:
    """The last complete deployment, to which a failed update rolls back."""

    version: Version
    resources: Mapping[str, Record]


@dataclass
class ChangeSet:
    """A change set."""

    name: str
    id: str
    kind: str  # CREATE or UPDATE
    version: Version
    changes: list[dict[str, Any]]
    status: str
    execution_status: str
    reason: str | None
    created: datetime
    description: str | None
    on_failure: str


@dataclass
class Stack:
    """A stack with its state and history."""

    name: str
    id: str
    account: str
    region: str
    created: datetime
    status: str
    reason: str | None = None
    updated: datetime | None = None
    deleted: datetime | None = None
    version: Version | None = None
    resources: dict[str, Record] = field(default_factory=dict)  # the current resource of each logical id
    alive: dict[tuple[str, str], Record] = field(default_factory=dict)  # these, and replaced ones until deleted
    last_good: LastGood | None = None
    outputs: dict[str, Output] = field(default_factory=dict)
    imports: frozenset[str] = frozenset()
    events: list[dict[str, Any]] = field(default_factory=list)  # oldest first, in the API's shape
    change_sets: dict[str, ChangeSet] = field(default_factory=dict)  # by name
    executed: str | None = None  # id of the change set that deployed this version
    termination_protection: bool = False
    disable_rollback: bool = False

    def set_status(self, status: str, reason: str | None = None, token: str | None = None) -> None:
        """Set the stack's status and record its event."""
        self.status, self.reason = status, reason
        self.event(self.name, self.id, STACK_TYPE, status, reason, token=token)

    def event(
        self,
        logical_id: str,
        physical_id: str,
        type_name: str,
        status: str,
        reason: str | None,
        *,
        token: str | None = None,
        properties: str | None = None,
    ) -> None:
        """Record an event, at least one millisecond after the last: clients see times in milliseconds."""
        at = datetime.now(UTC)
        if self.events:
            at = max(at, self.events[-1]["Timestamp"] + timedelta(milliseconds=1))
        event = {
            "StackId": self.id,
            "EventId": f"{logical_id}-{status}-{uuid.uuid4()}",
            "StackName": self.name,
            "LogicalResourceId": logical_id,
            "PhysicalResourceId": physical_id,
            "ResourceType": type_name,
            "Timestamp": at,
            "ResourceStatus": status,
            "ResourceStatusReason": reason,
            "ResourceProperties": properties,
            "ClientRequestToken": token,
        }
        self.events.append({name: value for name, value in event.items() if value is not None})

    def set_current(self, record: Record) -> None:
        """Make `record` the current resource of its logical id."""
        self.resources[record.logical_id] = record
        self.alive[record.key] = record

    def remove(self, record: Record) -> None:
        """Remove a resource that was deleted or that left the stack."""
        self.alive.pop(record.key, None)

    def set_resource_status(self, record: Record, status: str, reason: str | None) -> None:
        """Set the status of the resource wherever it is recorded."""
        changed: dict[str, Any] = {"status": status, "reason": reason, "at": datetime.now(UTC)}
        if record.key in self.alive:
            self.alive[record.key] = replace(self.alive[record.key], **changed)
        current = self.resources.get(record.logical_id)
        if current and current.key == record.key:
            self.resources[record.logical_id] = replace(current, **changed)


class StackBackend(BaseBackend):  # type: ignore[misc]
    """The stacks of one account and Region."""

    urls_of: ClassVar[Any]  # where moto reads the paths of the API and their methods

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.stacks: dict[str, Stack] = {}  # by id, deleted stacks included
        self.operations: list[StackOperation] = []  # oldest first, for estimates
        self.lock = threading.RLock()  # one operation at a time

    @property
    def _url_module(self) -> Any:
        return self.urls_of

    def live(self) -> Iterator[Stack]:
        """Stacks that are not deleted."""
        return (stack for stack in list(self.stacks.values()) if stack.status != "DELETE_COMPLETE")

    def find(self, name_or_id: str) -> Stack | None:
        """A stack by id, or a stack that is not deleted by name."""
        if name_or_id in self.stacks:
            return self.stacks[name_or_id]
        return next((stack for stack in self.live() if stack.name == name_or_id), None)

    def exports(self) -> dict[str, tuple[Stack, str]]:
        """Every export by name: its stack and its value."""
        return {
            output.export: (stack, output.value)
            for stack in self.live()
            for output in list(stack.outputs.values())
            if output.export
        }

    def importers(self, export: str) -> list[Stack]:
        """Stacks that import the export and are not deleted."""
        return [stack for stack in self.live() if export in stack.imports]


stack_backends = BackendDict(StackBackend, "cloudformation")


def operations() -> list[StackOperation]:
    """The operations of all accounts and Regions, oldest first in each."""
    backends = [backend for regions in stack_backends.values() for backend in regions.values()]
    return [operation for backend in backends for operation in backend.operations]


def forget_operations() -> None:
    """Let the next estimate begin here."""
    for regions in stack_backends.values():
        for backend in regions.values():
            backend.operations.clear()
