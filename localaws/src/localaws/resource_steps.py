"""What a stack operation does with one resource after another: create, update, replace, delete, retain.

Each step records its events, and itself for estimates. Resources are handled one at a time.
"""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from botocore.exceptions import BotoCoreError, ClientError

from localaws import faults
from localaws.estimates import Step
from localaws.estimates import Verb as StepVerb
from localaws.intrinsics import Scope, TemplateError
from localaws.parallel import clashes
from localaws.properties import check, handler_of, replacement, resolved_properties
from localaws.resources import Context, HandlerError, Properties, Resource, Unfinished, Untouched, is_gone
from localaws.stacks import Record, Stack, Version
from localaws.templates import Declaration

logger = logging.getLogger(__name__)

Verb = Literal["CREATE", "UPDATE", "DELETE"]

REPLACING = "Requested update requires the creation of a new physical resource; hence creating one."


class OperationFailed(Exception):
    """An operation on a stack fails; the message becomes the stack's StatusReason."""


class ResourceSteps:
    """The steps of one operation on the resources of a stack."""

    def __init__(self, stack: Stack, token: str | None, steps: list[Step]) -> None:
        self._stack = stack
        self._token = token
        self._steps = steps
        self._clashes: dict[str, str] = {}
        self._phase = 0
        self._found: dict[tuple[str, str], Mapping[str, Any]] = {}

    def deploy(self, wanted: Mapping[str, Declaration], scope: Scope, version: Version) -> dict[str, Resource]:
        """Create and update resources in their order. OperationFailed at the first that fails."""
        self._phase += 1
        self._found = {}
        self._clashes = clashes(wanted, wanted.keys() - self._stack.resources.keys())
        ready: dict[str, Resource] = {}
        for rank, declaration in enumerate(wanted.values()):
            known = replace(scope, resources=ready)
            ready[declaration.logical_id] = self._deploy_resource(declaration, rank, known, version)
        return ready

    def clean_up(self, keep: Callable[[Record], bool]) -> None:
        """Delete resources that left the stack, unless `keep`. Those that fail to delete are left behind, as in AWS.

        RetainExceptOnCreate retains what an update removes, and deletes what an update created and rolls back.
        """
        self._phase += 1
        current = {record.key for record in self._stack.resources.values()}
        for record in sorted(self._stack.alive.values(), key=lambda record: -record.rank):
            if record.key not in current:
                self._delete_one(record, keep=keep(record))
                self._stack.remove(record)

    def delete_all(self, keep: Callable[[Record], bool]) -> list[str]:
        """Delete all remaining resources, dependents first. Returns the logical ids that failed."""
        stack = self._stack
        self._phase += 1
        current = {record.key for record in stack.resources.values()}
        order = sorted(stack.alive.values(), key=lambda record: (record.key in current, -record.rank))
        failed: list[str] = []
        blocked: set[str] = set()
        for record in order:
            if record.logical_id in blocked:
                blocked |= record.needs
            elif not self._delete_one(record, keep=keep(record)):
                failed.append(record.logical_id)
                blocked |= record.needs
            else:
                stack.remove(record)
        return failed

    def _delete_one(self, record: Record, *, keep: bool) -> bool:
        """Delete or retain the resource. False when the deletion failed."""
        if keep:
            self._event(record, "DELETE_SKIPPED", None)
            return True
        self._event(record, "DELETE_IN_PROGRESS", None)
        self._note("DELETE", record, record.properties)
        context = self._context(record.logical_id, record.type)

        def delete() -> Resource:
            faults.raise_injected(context, "delete")
            try:
                handler_of(record.type).delete(context, record.physical_id, record.properties)
            except ClientError as error:
                if not is_gone(error):
                    raise
            return record.resource

        done = _result_of(delete)
        if isinstance(done, Resource):
            self._event(record, "DELETE_COMPLETE", None)
            return True
        self._event(record, "DELETE_FAILED", done)
        return False

    def _deploy_resource(self, declaration: Declaration, rank: int, scope: Scope, version: Version) -> Resource:
        """Create or update one resource, or leave it when it already matches its declaration."""
        stack = self._stack
        name = declaration.logical_id
        record = stack.resources.get(name)
        try:
            properties = resolved_properties(declaration, scope, version.tags, stack.region)
            if record is None or record.attempted is not None or record.properties != properties:
                check(declaration.type, name, properties, stack.region)
        except (TemplateError, HandlerError) as error:
            verb: Verb = "UPDATE" if record else "CREATE"
            raise self._record_failure(declaration, record, verb, str(error), None) from error
        if record is None:
            return self._create(declaration, properties, rank, verb="CREATE").resource
        if record.attempted is None and record.properties == properties:
            stack.set_current(_with_declaration(record, declaration, rank))
            self._note("NONE", declaration, properties)
            if record.status.endswith("_FAILED"):
                self._event(record, "UPDATE_COMPLETE", None)
            return record.resource
        return self._change(declaration, record, properties, rank).resource

    def _change(self, declaration: Declaration, record: Record, properties: Properties, rank: int) -> Record:
        stack = self._stack
        if replacement(record.type, record.properties, properties, stack.region) == "True":
            self._mark_replaced(record, declaration)
            self._event(record, "UPDATE_IN_PROGRESS", REPLACING, properties)
            return self._create(declaration, properties, rank, verb="UPDATE")
        self._event(record, "UPDATE_IN_PROGRESS", None, properties)
        self._note("UPDATE", declaration, properties)
        old = record.attempted or record.properties
        handler = handler_of(record.type)
        context = self._context(declaration.logical_id, declaration.type)

        def update() -> Resource:
            faults.raise_injected(context, "update")
            stack.set_current(replace(record, attempted=properties))  # until the update succeeds
            try:
                return handler.update(context, record.physical_id, old, properties)
            except Untouched:
                stack.set_current(record)
                raise

        made = _result_of(update)
        if not isinstance(made, Resource):
            raise self._record_failure(declaration, record, "UPDATE", made, properties)
        if made.physical_id != record.physical_id:  # a custom resource may return another physical id
            stack.set_current(record)
            self._mark_replaced(record, declaration)
        return self._record_success(declaration, properties, made, rank, "UPDATE_COMPLETE")

    def _mark_replaced(self, record: Record, declaration: Declaration) -> None:
        """Mark `record` as replaced: the clean-up deletes or retains it by its UpdateReplacePolicy."""
        self._stack.alive[record.key] = replace(record, deletion_policy=declaration.update_replace_policy)

    def _create(self, declaration: Declaration, properties: Properties, rank: int, *, verb: Verb) -> Record:
        context = self._context(declaration.logical_id, declaration.type)
        self._note("CREATE", declaration, properties)
        if verb == "CREATE":
            self._event(declaration, "CREATE_IN_PROGRESS", None, properties)

        def create() -> Resource:
            faults.raise_injected(context, "create")
            if clash := self._clashes.get(declaration.logical_id):
                raise HandlerError(clash)
            try:
                return handler_of(declaration.type).create(context, properties)
            except Unfinished as error:
                left = _record(declaration, properties, Resource(error.physical_id, {}), rank, "CREATE_FAILED")
                self._stack.alive[left.key] = left
                raise

        made = _result_of(create)
        if not isinstance(made, Resource):
            record = self._stack.resources.get(declaration.logical_id)
            raise self._record_failure(declaration, record, verb, made, properties)
        return self._record_success(declaration, properties, made, rank, f"{verb}_COMPLETE")

    def _record_success(
        self, declaration: Declaration, properties: Properties, made: Resource, rank: int, status: str
    ) -> Record:
        record = _record(declaration, properties, made, rank, status)
        self._stack.set_current(record)
        self._event(record, status, None, properties)
        return record

    def _record_failure(
        self, declaration: Declaration, record: Record | None, verb: Verb, reason: str, properties: Properties | None
    ) -> OperationFailed:
        name = declaration.logical_id
        failed = self._stack.resources[name] if record else declaration
        self._event(failed, f"{verb}_FAILED", reason, properties)
        return OperationFailed(f"The following resource(s) failed to {verb.lower()}: [{name}]. ")

    def _context(self, logical_id: str, type_name: str) -> Context:
        stack = self._stack
        return Context(stack.account, stack.region, stack.name, stack.id, logical_id, type_name, found=self._found)

    def _note(self, verb: StepVerb, what: Declaration | Record, properties: Properties) -> None:
        """Record a step for the estimate of the operation's time."""
        self._steps.append(Step(what.logical_id, what.type, verb, what.needs, properties, self._phase))

    def _event(
        self, what: Declaration | Record, status: str, reason: str | None, properties: Properties | None = None
    ) -> None:
        """Record an event, and the status of a resource that exists."""
        physical_id = ""
        if isinstance(what, Record):
            physical_id = what.physical_id
            self._stack.set_resource_status(what, status, reason)
        shown = None if properties is None else json.dumps(properties, default=str)
        self._stack.event(what.logical_id, physical_id, what.type, status, reason, token=self._token, properties=shown)


def _result_of(call: Callable[[], Resource]) -> Resource | str:
    """The result of the call, or the reason of its failure as an event shows it."""
    try:
        return call()
    except ClientError as error:
        details = error.response["Error"]
        code = details.get("Code")
        return f"{details.get('Message', error)} (Operation: {error.operation_name}, Error Code: {code})"
    except (HandlerError, TemplateError, BotoCoreError) as error:
        return str(error)
    except Exception as error:  # a bug of the embedded AWS fails the resource and is named in its event
        logger.exception("handler failed")
        return f"Internal failure of the embedded AWS: {error!r}"


def _record(declaration: Declaration, properties: Properties, made: Resource, rank: int, status: str) -> Record:
    return Record(
        logical_id=declaration.logical_id,
        type=declaration.type,
        physical_id=made.physical_id,
        properties=properties,
        attributes=made.attributes,
        metadata=declaration.metadata,
        deletion_policy=declaration.deletion_policy,
        needs=declaration.needs,
        rank=rank,
        status=status,
        reason=None,
        at=datetime.now(UTC),
    )


def _with_declaration(record: Record, declaration: Declaration, rank: int) -> Record:
    """The record of an unchanged resource, with the declaration's metadata, policies and dependencies."""
    return replace(
        record,
        metadata=declaration.metadata,
        deletion_policy=declaration.deletion_policy,
        needs=declaration.needs,
        rank=rank,
    )
