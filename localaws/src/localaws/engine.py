"""Stack operations: create, update in place or by replacement, roll back, delete. Each step records an event.

Order and statuses follow the CloudFormation User Guide, "Stack status codes" and "Update behaviors of
stack resources"; resources are handled one at a time, each after the resources that it depends on.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from botocore.exceptions import BotoCoreError, ClientError

from localaws import faults
from localaws.estimates import StackOperation, Step
from localaws.estimates import Verb as StepVerb
from localaws.intrinsics import Scope, TemplateError, resolve
from localaws.parallel import clashes
from localaws.properties import check, handler_of, replacement, resolved_properties
from localaws.region import RegionLookup
from localaws.resources import Context, HandlerError, Properties, Resource, Untouched, is_gone
from localaws.schemas import text
from localaws.stacks import LastGood, Output, Record, Stack, StackBackend, Version
from localaws.templates import Declaration, declarations, transforms, with_conditions
from localaws.templates import outputs as declared_outputs

logger = logging.getLogger(__name__)

Verb = Literal["CREATE", "UPDATE", "DELETE"]
OnFailure = Literal["ROLLBACK", "DO_NOTHING", "DELETE"]

REPLACING = "Requested update requires the creation of a new physical resource; hence creating one."
IN_USE = "Delete canceled. Cannot delete export {export} as it is in use by {users}."


class OperationFailed(Exception):
    """An operation on a stack fails; the message becomes the stack's StatusReason."""


def scope_of(stack: Stack, version: Version, region: RegionLookup) -> Scope:
    """Everything that functions in this version's template may refer to, before any resource exists."""
    pseudo = {
        "AWS::AccountId": stack.account,
        "AWS::NotificationARNs": list(version.notification_arns),
        "AWS::Partition": "aws",
        "AWS::Region": stack.region,
        "AWS::StackId": stack.id,
        "AWS::StackName": stack.name,
        "AWS::URLSuffix": "amazonaws.com",
    }
    scope = Scope({**version.values, **pseudo}, version.body.get("Mappings", {}), region)
    return with_conditions(version.body, replace(scope, transforms=transforms(version.body)))


class Operation:
    """One operation on one stack, from the in-progress status to the last event."""

    def __init__(self, backend: StackBackend, stack: Stack, token: str | None = None) -> None:
        self._backend = backend
        self._stack = stack
        self._token = token
        self._before = stack.status
        self._clashes: dict[str, str] = {}
        self._phase = 0
        self._found: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._done = StackOperation(stack.account, stack.region, stack.name)
        self._note_references()
        backend.operations.append(self._done)

    def begin(self, verb: Verb, reason: str | None = "User Initiated") -> None:
        """Set the in-progress status of `verb`."""
        if verb == "UPDATE":
            self._stack.updated = datetime.now(UTC)
        self._set_status(f"{verb}_IN_PROGRESS", reason)

    def deploy(self, verb: Verb, version: Version, on_failure: OnFailure) -> None:
        """Deploy `version`. A failure rolls the stack back unless `on_failure` says otherwise."""
        stack = self._stack
        stack.version = version
        try:
            outputs, imports = self._apply(version)
            self._check_exports(outputs)
        except OperationFailed as failure:
            if on_failure == "DO_NOTHING":
                self._set_status(f"{verb}_FAILED", str(failure))
                return
            self.roll_back(str(failure))
            if on_failure == "DELETE" and stack.last_good is None:
                self._set_status("DELETE_IN_PROGRESS")
                self._deleted()
            return
        stack.outputs, stack.imports = outputs, imports
        self._note_references()
        if verb == "UPDATE":
            self._set_status("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")
            self._clean_up(lambda record: record.deletion_policy != "Delete")
        stack.last_good = LastGood(version, dict(stack.resources))
        self._set_status(f"{verb}_COMPLETE")

    def roll_back(self, reason: str | None) -> None:
        """Roll back to the last complete version, or delete everything when there is none."""
        if self._stack.last_good is None:
            self._roll_back_creation(reason)
        else:
            self._roll_back_update(self._stack.last_good, reason)

    def delete(self, retain: Iterable[str] = ()) -> None:
        """Delete the stack's resources, except those that a DeletionPolicy or `retain` (logical ids) retains."""
        stack = self._stack
        for export in _exports(stack.outputs):
            if users := self._importers(export):
                self._set_status(self._before, IN_USE.format(export=export, users=users))  # as AWS does
                return
        failed = self._delete_all(lambda record: record.deletion_policy != "Delete" or record.logical_id in set(retain))
        if failed:
            self._set_status("DELETE_FAILED", f"The following resource(s) failed to delete: [{', '.join(failed)}]. ")
        else:
            self._deleted()

    def _apply(self, version: Version) -> tuple[dict[str, Output], frozenset[str]]:
        """Create and update the resources of `version`. Returns its outputs and the exports that it imports.

        Raises OperationFailed at the first resource that fails.
        """
        stack = self._stack
        self._phase += 1
        self._found = {}
        region = RegionLookup(self._backend)
        try:
            scope = scope_of(stack, version, region)
            wanted = declarations(version.body, scope.conditions)
        except TemplateError as error:
            raise OperationFailed(str(error)) from error
        ready: dict[str, Resource] = {}
        self._clashes = clashes(wanted, wanted.keys() - stack.resources.keys())
        for rank, declaration in enumerate(wanted.values()):
            known = replace(scope, resources=ready)
            ready[declaration.logical_id] = self._deploy_resource(declaration, rank, known, version)
        try:
            outputs = dict(_outputs(version, replace(scope, resources=ready)))
        except TemplateError as error:
            raise OperationFailed(str(error)) from error
        stack.resources = {name: stack.resources[name] for name in wanted}
        return outputs, frozenset(region.imports)

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
            self._stack.event(
                declaration.logical_id, "", declaration.type, "CREATE_IN_PROGRESS", None, properties=_dump(properties)
            )

        def create() -> Resource:
            faults.raise_injected(context, "create")
            if clash := self._clashes.get(declaration.logical_id):
                raise HandlerError(clash)
            return handler_of(declaration.type).create(context, properties)

        made = _result_of(create)
        if not isinstance(made, Resource):
            record = self._stack.resources.get(declaration.logical_id)
            raise self._record_failure(declaration, record, verb, made, properties)
        return self._record_success(declaration, properties, made, rank, f"{verb}_COMPLETE")

    def _record_success(
        self, declaration: Declaration, properties: Properties, made: Resource, rank: int, status: str
    ) -> Record:
        record = Record(
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
        self._stack.set_current(record)
        self._event(record, status, None, properties)
        return record

    def _record_failure(
        self, declaration: Declaration, record: Record | None, verb: Verb, reason: str, properties: Properties | None
    ) -> OperationFailed:
        name = declaration.logical_id
        physical_id = record.physical_id if record else ""
        self._stack.event(
            name,
            physical_id,
            declaration.type,
            f"{verb}_FAILED",
            reason,
            properties=None if properties is None else _dump(properties),
        )
        if record:
            self._stack.set_resource_status(self._stack.resources[name], f"{verb}_FAILED", reason)
        return OperationFailed(f"The following resource(s) failed to {verb.lower()}: [{name}]. ")

    def _check_exports(self, outputs: Mapping[str, Output]) -> None:
        """Exports are unique in a Region. An export in use can neither change nor be removed."""
        stack = self._stack
        mine = _exports(outputs)
        for other in self._backend.live():
            clash = [name for name in mine if other is not stack and name in _exports(other.outputs)]
            if clash:
                raise OperationFailed(f"Export with name {clash[0]} is already exported by stack {other.name}.")
        for name, value in _exports(stack.outputs).items():
            users = self._importers(name)
            if users and name not in mine:
                raise OperationFailed(IN_USE.format(export=name, users=users))
            if users and mine[name] != value:
                raise OperationFailed(f"Export {name} cannot be updated as it is in use by {users}")

    def _importers(self, export: str) -> str:
        """Names of the other stacks that import the export."""
        return ", ".join(user.name for user in self._backend.importers(export) if user is not self._stack)

    def _roll_back_creation(self, reason: str | None) -> None:
        stack = self._stack
        self._set_status("ROLLBACK_IN_PROGRESS", f"{reason or ''}Rollback requested by user.")
        stack.outputs, stack.imports = {}, frozenset()
        failed = self._delete_all(lambda record: record.deletion_policy == "Retain")
        listed = f"The following resource(s) failed to delete: [{', '.join(failed)}]. " if failed else None
        self._set_status("ROLLBACK_FAILED" if failed else "ROLLBACK_COMPLETE", listed)

    def _roll_back_update(self, last_good: LastGood, reason: str | None) -> None:
        stack = self._stack
        self._set_status("UPDATE_ROLLBACK_IN_PROGRESS", reason)
        stack.version = last_good.version
        stack.resources = {
            name: replace(stack.alive.get(record.key, record), deletion_policy=record.deletion_policy)
            for name, record in last_good.resources.items()
        }
        try:
            stack.outputs, stack.imports = self._apply(last_good.version)
        except OperationFailed as failure:
            self._set_status("UPDATE_ROLLBACK_FAILED", str(failure))
            return
        self._set_status("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS")
        self._clean_up(lambda record: record.deletion_policy == "Retain")
        stack.last_good = LastGood(last_good.version, dict(stack.resources))
        self._set_status("UPDATE_ROLLBACK_COMPLETE")

    def _clean_up(self, keep: Callable[[Record], bool]) -> None:
        """Delete resources that left the stack, unless `keep`. Those that fail to delete are left behind, as in AWS.

        RetainExceptOnCreate retains what an update removes, and deletes what an update created and rolls back.
        """
        self._phase += 1
        current = {record.key for record in self._stack.resources.values()}
        for record in sorted(self._stack.alive.values(), key=lambda record: -record.rank):
            if record.key not in current:
                self._delete_one(record, keep=keep(record))
                self._stack.remove(record)

    def _delete_all(self, keep: Callable[[Record], bool]) -> list[str]:
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

    def _deleted(self) -> None:
        stack = self._stack
        stack.outputs, stack.imports, stack.last_good = {}, frozenset(), None
        stack.deleted = datetime.now(UTC)
        self._set_status("DELETE_COMPLETE")

    def _context(self, logical_id: str, type_name: str) -> Context:
        stack = self._stack
        return Context(stack.account, stack.region, stack.name, stack.id, logical_id, type_name, found=self._found)

    def _note(self, verb: StepVerb, what: Declaration | Record, properties: Properties) -> None:
        """Record a step for the estimate of the operation's time."""
        self._done.steps.append(Step(what.logical_id, what.type, verb, what.needs, properties, self._phase))

    def _note_references(self) -> None:
        self._done.exports |= _exports(self._stack.outputs).keys()
        self._done.imports |= self._stack.imports

    def _set_status(self, status: str, reason: str | None = None) -> None:
        self._stack.set_status(status, reason, self._token)

    def _event(self, record: Record, status: str, reason: str | None, properties: Properties | None = None) -> None:
        self._stack.set_resource_status(record, status, reason)
        self._stack.event(
            record.logical_id,
            record.physical_id,
            record.type,
            status,
            reason,
            token=self._token,
            properties=None if properties is None else _dump(properties),
        )


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


def _with_declaration(record: Record, declaration: Declaration, rank: int) -> Record:
    """The record of an unchanged resource, with the declaration's metadata, policies and dependencies."""
    return replace(
        record,
        metadata=declaration.metadata,
        deletion_policy=declaration.deletion_policy,
        needs=declaration.needs,
        rank=rank,
    )


def _outputs(version: Version, scope: Scope) -> Iterator[tuple[str, Output]]:
    for name, about in declared_outputs(version.body, scope.conditions):
        value = resolve(about["Value"], scope)
        export = about.get("Export", {}).get("Name")
        if not isinstance(value, str | int | float):
            raise TemplateError(f"Template format error: Output {name} must be a string, not {value!r}")
        yield name, Output(text(value), about.get("Description"), resolve(export, scope) if export else None)


def _exports(outputs: Mapping[str, Output]) -> dict[str, str]:
    return {output.export: output.value for output in outputs.values() if output.export}


def _dump(properties: Properties) -> str:
    return json.dumps(properties, default=str)
