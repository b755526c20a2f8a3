"""Stack operations: create, update in place or by replacement, roll back, delete. Each step leaves an event.

The order and the statuses are those of the CloudFormation User Guide, "Stack status codes" and "Update behaviors of
stack resources"; resources are handled one after the other, each after all that it needs.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from botocore.exceptions import BotoCoreError, ClientError

from ultracluster.localaws import faults
from ultracluster.localaws.intrinsics import Scope, TemplateError, resolve
from ultracluster.localaws.outside import Region
from ultracluster.localaws.properties import check, desired, handler_of, replacement
from ultracluster.localaws.resources import Context, HandlerError, NotUpdatable, Properties, Resource
from ultracluster.localaws.schemas import text
from ultracluster.localaws.stacks import Good, Output, Record, Stack, StackBackend, Version
from ultracluster.localaws.templates import Declaration, declarations, transforms, with_conditions
from ultracluster.localaws.templates import outputs as declared_outputs

logger = logging.getLogger(__name__)

Verb = Literal["CREATE", "UPDATE", "DELETE"]
OnFailure = Literal["ROLLBACK", "DO_NOTHING", "DELETE"]

REPLACING = "Requested update requires the creation of a new physical resource; hence creating one."
IN_USE = "Delete canceled. Cannot delete export {export} as it is in use by {users}."
GONE = ("NotFound", "NoSuch", "DoesNotExist")


class Failed(Exception):
    """An operation on a stack cannot go on; the message is the stack's StatusReason."""


def scope_of(stack: Stack, version: Version, region: Region) -> Scope:
    """What the functions of this version's template may refer to, before any resource exists."""
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
    """One operation on one stack, from its in-progress status to its last event."""

    def __init__(self, backend: StackBackend, stack: Stack, token: str | None = None) -> None:
        self._backend = backend
        self._stack = stack
        self._token = token
        self._before = stack.status

    def begin(self, verb: Verb, reason: str | None = "User Initiated") -> None:
        """Take the stack into the in-progress status of `verb`."""
        if verb == "UPDATE":
            self._stack.updated = datetime.now(UTC)
        self._now(f"{verb}_IN_PROGRESS", reason)

    def deploy(self, verb: Verb, version: Version, on_failure: OnFailure) -> None:
        """Bring the stack to `version`; when that fails, roll back unless told otherwise."""
        stack = self._stack
        stack.version = version
        try:
            outputs, imports = self._apply(version)
            self._check_exports(outputs)
        except Failed as failure:
            if on_failure == "DO_NOTHING":
                self._now(f"{verb}_FAILED", str(failure))
                return
            self.roll_back(str(failure))
            if on_failure == "DELETE" and stack.good is None:
                self._now("DELETE_IN_PROGRESS")
                self._deleted()
            return
        stack.outputs, stack.imports = outputs, imports
        if verb == "UPDATE":
            self._now("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")
            self._clean_up()
        stack.good = Good(version, dict(stack.resources))
        self._now(f"{verb}_COMPLETE")

    def roll_back(self, reason: str | None) -> None:
        """Go back to the last good version, or to nothing when there is none."""
        if self._stack.good is None:
            self._roll_back_creation(reason)
        else:
            self._roll_back_update(self._stack.good, reason)

    def delete(self, retain: Iterable[str] = ()) -> None:
        """Delete all that the stack made, except what a policy or `retain` (logical ids) keeps."""
        stack = self._stack
        for export in _exports(stack.outputs):
            if users := self._importers(export):
                self._now(self._before, IN_USE.format(export=export, users=users))  # AWS goes back, too
                return
        failed = self._delete_all(lambda record: record.deletion_policy != "Delete" or record.logical_id in set(retain))
        if failed:
            self._now("DELETE_FAILED", f"The following resource(s) failed to delete: [{', '.join(failed)}]. ")
        else:
            self._deleted()

    def _apply(self, version: Version) -> tuple[dict[str, Output], frozenset[str]]:
        """Create and update resources until they are as `version` says; its outputs and the exports it imports.

        Raises Failed at the first that cannot be.
        """
        stack = self._stack
        region = Region(self._backend)
        try:
            scope = scope_of(stack, version, region)
            wanted = declarations(version.body, scope.conditions)
        except TemplateError as error:
            raise Failed(str(error)) from error
        ready: dict[str, Resource] = {}
        for rank, declaration in enumerate(wanted.values()):
            ready[declaration.logical_id] = self._settle(declaration, rank, replace(scope, resources=ready), version)
        try:
            told = dict(_outputs(version, replace(scope, resources=ready)))
        except TemplateError as error:
            raise Failed(str(error)) from error
        stack.resources = {name: stack.resources[name] for name in wanted}
        return told, frozenset(region.imports)

    def _settle(self, declaration: Declaration, rank: int, scope: Scope, version: Version) -> Resource:
        """Create, change or leave one resource, so that it is as declared."""
        stack = self._stack
        name = declaration.logical_id
        record = stack.resources.get(name)
        try:
            properties = desired(declaration, scope, version.tags, stack.region)
            if record is None or record.attempted is not None or record.properties != properties:
                check(declaration.type, name, properties, stack.region)
        except (TemplateError, HandlerError) as error:
            raise self._failed(declaration, record, "UPDATE" if record else "CREATE", str(error), None) from error
        if record is None:
            return self._create(declaration, properties, rank, verb="CREATE").resource
        if record.attempted is None and record.properties == properties:
            stack.keep(_declared(record, declaration, rank))
            if record.status.endswith("_FAILED"):
                self._event(record, "UPDATE_COMPLETE", None)
            return record.resource
        return self._change(declaration, record, properties, rank).resource

    def _change(self, declaration: Declaration, record: Record, properties: Properties, rank: int) -> Record:
        stack = self._stack
        if replacement(record.type, record.properties, properties, stack.region) == "True":
            self._supersede(record, declaration)
            self._event(record, "UPDATE_IN_PROGRESS", REPLACING, properties)
            return self._create(declaration, properties, rank, verb="UPDATE")
        self._event(record, "UPDATE_IN_PROGRESS", None, properties)
        old = record.attempted or record.properties
        handler = handler_of(record.type)
        context = self._context(declaration.logical_id, declaration.type)

        def update() -> Resource:
            faults.strike(context, "update")
            stack.keep(replace(record, attempted=properties))  # until it is known to be done
            try:
                return handler.update(context, record.physical_id, old, properties)
            except NotUpdatable:
                stack.keep(record)
                raise

        made = _attempt(update)
        if not isinstance(made, Resource):
            raise self._failed(declaration, record, "UPDATE", made, properties)
        if made.physical_id != record.physical_id:  # a custom resource may answer an update with a new one
            stack.keep(record)
            self._supersede(record, declaration)
        return self._made(declaration, properties, made, rank, "UPDATE_COMPLETE")

    def _supersede(self, record: Record, declaration: Declaration) -> None:
        """From here on `record` only awaits deletion, under the policy for what is replaced."""
        self._stack.alive[record.key] = replace(record, deletion_policy=declaration.update_replace_policy)

    def _create(self, declaration: Declaration, properties: Properties, rank: int, *, verb: Verb) -> Record:
        context = self._context(declaration.logical_id, declaration.type)
        if verb == "CREATE":
            self._stack.event(
                declaration.logical_id, "", declaration.type, "CREATE_IN_PROGRESS", None, properties=_dump(properties)
            )

        def create() -> Resource:
            faults.strike(context, "create")
            return handler_of(declaration.type).create(context, properties)

        made = _attempt(create)
        if not isinstance(made, Resource):
            record = self._stack.resources.get(declaration.logical_id)
            raise self._failed(declaration, record, verb, made, properties)
        return self._made(declaration, properties, made, rank, f"{verb}_COMPLETE")

    def _made(self, declaration: Declaration, properties: Properties, made: Resource, rank: int, status: str) -> Record:
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
        self._stack.keep(record)
        self._event(record, status, None, properties)
        return record

    def _failed(
        self, declaration: Declaration, record: Record | None, verb: Verb, reason: str, properties: Properties | None
    ) -> Failed:
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
            self._stack.mark(self._stack.resources[name], f"{verb}_FAILED", reason)
        return Failed(f"The following resource(s) failed to {verb.lower()}: [{name}]. ")

    def _check_exports(self, outputs: Mapping[str, Output]) -> None:
        """Exports are unique in a region, and one that is in use neither changes nor goes."""
        stack = self._stack
        mine = _exports(outputs)
        for other in self._backend.live():
            clash = [name for name in mine if other is not stack and name in _exports(other.outputs)]
            if clash:
                raise Failed(f"Export with name {clash[0]} is already exported by stack {other.name}.")
        for name, value in _exports(stack.outputs).items():
            users = self._importers(name)
            if users and name not in mine:
                raise Failed(IN_USE.format(export=name, users=users))
            if users and mine[name] != value:
                raise Failed(f"Export {name} cannot be updated as it is in use by {users}")

    def _importers(self, export: str) -> str:
        """Names of the other stacks that import it."""
        return ", ".join(user.name for user in self._backend.importers(export) if user is not self._stack)

    def _roll_back_creation(self, reason: str | None) -> None:
        stack = self._stack
        self._now("ROLLBACK_IN_PROGRESS", f"{reason or ''}Rollback requested by user.")
        stack.outputs, stack.imports = {}, frozenset()
        failed = self._delete_all(lambda record: record.deletion_policy == "Retain")
        listed = f"The following resource(s) failed to delete: [{', '.join(failed)}]. " if failed else None
        self._now("ROLLBACK_FAILED" if failed else "ROLLBACK_COMPLETE", listed)

    def _roll_back_update(self, good: Good, reason: str | None) -> None:
        stack = self._stack
        self._now("UPDATE_ROLLBACK_IN_PROGRESS", reason)
        stack.version = good.version
        stack.resources = {
            name: replace(stack.alive.get(record.key, record), deletion_policy=record.deletion_policy)
            for name, record in good.resources.items()
        }
        try:
            stack.outputs, stack.imports = self._apply(good.version)
        except Failed as failure:
            self._now("UPDATE_ROLLBACK_FAILED", str(failure))
            return
        self._now("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS")
        self._clean_up()
        stack.good = Good(good.version, dict(stack.resources))
        self._now("UPDATE_ROLLBACK_COMPLETE")

    def _clean_up(self) -> None:
        """Delete what the current version no longer holds. What cannot be deleted is left behind, as AWS does."""
        current = {record.key for record in self._stack.resources.values()}
        for record in sorted(self._stack.alive.values(), key=lambda record: -record.rank):
            if record.key not in current:
                self._delete_one(record, keep=record.deletion_policy == "Retain")
                self._stack.forget(record)

    def _delete_all(self, keep: Callable[[Record], bool]) -> list[str]:
        """Delete everything alive, dependents first; the logical ids that could not be."""
        stack = self._stack
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
                stack.forget(record)
        return failed

    def _delete_one(self, record: Record, *, keep: bool) -> bool:
        """Whether the resource is gone or kept on purpose."""
        if keep:
            self._event(record, "DELETE_SKIPPED", None)
            return True
        self._event(record, "DELETE_IN_PROGRESS", None)
        context = self._context(record.logical_id, record.type)

        def delete() -> Resource:
            faults.strike(context, "delete")
            try:
                handler_of(record.type).delete(context, record.physical_id, record.properties)
            except ClientError as error:
                if not any(word in error.response["Error"].get("Code", "") for word in GONE):
                    raise
            return record.resource

        done = _attempt(delete)
        if isinstance(done, Resource):
            self._event(record, "DELETE_COMPLETE", None)
            return True
        self._event(record, "DELETE_FAILED", done)
        return False

    def _deleted(self) -> None:
        stack = self._stack
        stack.outputs, stack.imports, stack.good = {}, frozenset(), None
        stack.deleted = datetime.now(UTC)
        self._now("DELETE_COMPLETE")

    def _context(self, logical_id: str, type_name: str) -> Context:
        stack = self._stack
        return Context(stack.account, stack.region, stack.name, stack.id, logical_id, type_name)

    def _now(self, status: str, reason: str | None = None) -> None:
        self._stack.now(status, reason, self._token)

    def _event(self, record: Record, status: str, reason: str | None, properties: Properties | None = None) -> None:
        self._stack.mark(record, status, reason)
        self._stack.event(
            record.logical_id,
            record.physical_id,
            record.type,
            status,
            reason,
            token=self._token,
            properties=None if properties is None else _dump(properties),
        )


def _attempt(call: Callable[[], Resource]) -> Resource | str:
    """What the call made, or why it failed, in the words of an event."""
    try:
        return call()
    except ClientError as error:
        told = error.response["Error"]
        return f"{told.get('Message', error)} (Operation: {error.operation_name}, Error Code: {told.get('Code')})"
    except (HandlerError, TemplateError, BotoCoreError) as error:
        return str(error)
    except Exception as error:  # a fault of ours fails the resource, by name, like any other
        logger.exception("handler failed")
        return f"Internal failure of the embedded AWS: {error!r}"


def _declared(record: Record, declaration: Declaration, rank: int) -> Record:
    """The record of a resource that stays as it is, with what its declaration says beside its properties."""
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
