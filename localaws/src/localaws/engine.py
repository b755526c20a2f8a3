"""Stack operations: create, update, roll back, delete, with the statuses and outputs of the stack.

Order and statuses follow the CloudFormation User Guide, "Stack status codes" and "Update behaviors of stack resources".
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from localaws.estimates import StackOperation
from localaws.intrinsics import Scope, TemplateError, resolve
from localaws.region import RegionLookup
from localaws.resource_steps import OperationFailed, ResourceSteps, Verb
from localaws.schemas import text
from localaws.stacks import LastGood, Output, Stack, StackBackend, Version
from localaws.templates import declarations, transforms, with_conditions
from localaws.templates import outputs as declared_outputs

OnFailure = Literal["ROLLBACK", "DO_NOTHING", "DELETE"]

IN_USE = "Delete canceled. Cannot delete export {export} as it is in use by {users}."


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

    def __init__(self, backend: StackBackend, stack: Stack, token: str | None) -> None:
        self._backend = backend
        self._stack = stack
        self._token = token
        self._before = stack.status
        self._done = StackOperation(stack.account, stack.region, stack.name)
        self._resources = ResourceSteps(stack, token, self._done.steps)
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
                self.begin("DELETE", None)
                self.delete()
            return
        stack.outputs, stack.imports = outputs, imports
        self._note_references()
        if verb == "UPDATE":
            self._set_status("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")
            self._resources.clean_up(lambda record: record.deletion_policy != "Delete")
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
        kept = set(retain)
        failed = self._resources.delete_all(
            lambda record: record.deletion_policy != "Delete" or record.logical_id in kept
        )
        if failed:
            self._set_status("DELETE_FAILED", f"The following resource(s) failed to delete: [{', '.join(failed)}]. ")
        else:
            self._deleted()

    def _apply(self, version: Version) -> tuple[dict[str, Output], frozenset[str]]:
        """Create and update the resources of `version`. Returns its outputs and the exports that it imports.

        Raises OperationFailed at the first resource that fails.
        """
        stack = self._stack
        region = RegionLookup(self._backend)
        try:
            scope = scope_of(stack, version, region)
            wanted = declarations(version.body, scope.conditions)
        except TemplateError as error:
            raise OperationFailed(str(error)) from error
        ready = self._resources.deploy(wanted, scope, version)
        try:
            outputs = dict(_outputs(version, replace(scope, resources=ready)))
        except TemplateError as error:
            raise OperationFailed(str(error)) from error
        stack.resources = {name: stack.resources[name] for name in wanted}
        return outputs, frozenset(region.imports)

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
        failed = self._resources.delete_all(lambda record: record.deletion_policy == "Retain")
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
        self._resources.clean_up(lambda record: record.deletion_policy == "Retain")
        stack.last_good = LastGood(last_good.version, dict(stack.resources))
        self._set_status("UPDATE_ROLLBACK_COMPLETE")

    def _deleted(self) -> None:
        stack = self._stack
        stack.outputs, stack.imports, stack.last_good = {}, frozenset(), None
        stack.deleted = datetime.now(UTC)
        self._set_status("DELETE_COMPLETE")

    def _note_references(self) -> None:
        self._done.exports |= _exports(self._stack.outputs).keys()
        self._done.imports |= self._stack.imports

    def _set_status(self, status: str, reason: str | None = None) -> None:
        self._stack.set_status(status, reason, self._token)


def _outputs(version: Version, scope: Scope) -> Iterator[tuple[str, Output]]:
    for name, about in declared_outputs(version.body, scope.conditions):
        value = resolve(about["Value"], scope)
        export = about.get("Export", {}).get("Name")
        if not isinstance(value, str | int | float):
            raise TemplateError(f"Template format error: Output {name} must be a string, not {value!r}")
        yield name, Output(text(value), about.get("Description"), resolve(export, scope) if export else None)


def _exports(outputs: Mapping[str, Output]) -> dict[str, str]:
    return {output.export: output.value for output in outputs.values() if output.export}
