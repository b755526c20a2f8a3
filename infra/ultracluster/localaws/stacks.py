"""What the embedded CloudFormation remembers of its stacks: versions, resources, outputs, events."""

import threading
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from moto.core.base_backend import BackendDict, BaseBackend

from ultracluster.localaws.resources import Properties, Resource
from ultracluster.localaws.templates import Body

STACK_TYPE = "AWS::CloudFormation::Stack"


@dataclass(frozen=True)
class Version:
    """One state that a stack was asked to have."""

    source: str  # the template as it was given
    body: Body
    given: Mapping[str, str]  # parameters as given
    values: Mapping[str, Any]  # parameters as the template sees them
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
    rank: int  # its place in the order of creation
    status: str
    reason: str | None
    at: datetime
    attempted: Properties | None = None  # of an update in place that failed: what may be half there

    @property
    def key(self) -> tuple[str, str]:
        """What tells a resource from the one that replaced it."""
        return self.logical_id, self.physical_id

    @property
    def resource(self) -> Resource:
        """The resource as functions of a template see it."""
        return Resource(self.physical_id, dict(self.attributes))


@dataclass(frozen=True)
class Output:
    """One output of a stack."""

    value: str
    description: str | None
    export: str | None


@dataclass(frozen=True)
class Good:
    """What a stack goes back to when an update fails."""

    version: Version
    resources: Mapping[str, Record]


@dataclass
class ChangeSet:
    """A change that was asked for and can be executed."""

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
    """A stack and all that is known of it."""

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
    resources: dict[str, Record] = field(default_factory=dict)  # the current one of each logical id
    alive: dict[tuple[str, str], Record] = field(default_factory=dict)  # these, and all that still await deletion
    good: Good | None = None
    outputs: dict[str, Output] = field(default_factory=dict)
    imports: frozenset[str] = frozenset()
    events: list[dict[str, Any]] = field(default_factory=list)  # oldest first, in the API's words
    change_sets: dict[str, ChangeSet] = field(default_factory=dict)  # by name
    executed: str | None = None  # id of the change set that made this version
    termination_protection: bool = False
    disable_rollback: bool = False

    def now(self, status: str, reason: str | None = None, token: str | None = None) -> None:
        """Take on a status, with its event."""
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
        """Record an event, later than the last by what a client can see of a time: a millisecond."""
        at = datetime.now(UTC)
        if self.events:
            at = max(at, self.events[-1]["Timestamp"] + timedelta(milliseconds=1))
        told = {
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
        self.events.append({name: value for name, value in told.items() if value is not None})

    def keep(self, record: Record) -> None:
        """Make `record` the current resource of its logical id."""
        self.resources[record.logical_id] = record
        self.alive[record.key] = record

    def forget(self, record: Record) -> None:
        """The resource is gone, or no longer the stack's."""
        self.alive.pop(record.key, None)

    def mark(self, record: Record, status: str, reason: str | None = None) -> None:
        """Give the resource a new status wherever it is recorded."""
        told: dict[str, Any] = {"status": status, "reason": reason, "at": datetime.now(UTC)}
        if record.key in self.alive:
            self.alive[record.key] = replace(self.alive[record.key], **told)
        current = self.resources.get(record.logical_id)
        if current and current.key == record.key:
            self.resources[record.logical_id] = replace(current, **told)


class StackBackend(BaseBackend):  # type: ignore[misc]
    """The stacks of one account and region."""

    urls_of: ClassVar[Any]  # where moto looks for the paths of the API and what answers them

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.stacks: dict[str, Stack] = {}  # by id, deleted ones too
        self.lock = threading.RLock()  # one operation at a time

    @property
    def _url_module(self) -> Any:
        return self.urls_of

    def live(self) -> Iterator[Stack]:
        """Stacks that are not deleted."""
        return (stack for stack in list(self.stacks.values()) if stack.status != "DELETE_COMPLETE")

    def find(self, name_or_id: str) -> Stack | None:
        """A stack by id, or a live one by name."""
        if name_or_id in self.stacks:
            return self.stacks[name_or_id]
        return next((stack for stack in self.live() if stack.name == name_or_id), None)

    def exports(self) -> dict[str, tuple[Stack, str]]:
        """Exporting stack and value of every export, by name."""
        return {
            output.export: (stack, output.value)
            for stack in self.live()
            for output in list(stack.outputs.values())
            if output.export
        }

    def importers(self, export: str) -> list[Stack]:
        """The live stacks that import an export."""
        return [stack for stack in self.live() if export in stack.imports]


stack_backends = BackendDict(StackBackend, "cloudformation")
