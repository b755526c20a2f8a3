"""The CloudFormation API of the embedded AWS, in place of moto's. Responses have the shapes of botocore's model."""

import logging
import re
import sys
import threading
import types
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, ClassVar, cast

from moto.core.responses import ActionResult, EmptyResult

from localaws.changesets import changes_outputs, plan, requested_version
from localaws.engine import OnFailure, Operation
from localaws.intrinsics import TemplateError
from localaws.queries import Queries, Refused, as_validation_errors, invalid
from localaws.resource_steps import Verb
from localaws.resources import client, require
from localaws.stacks import ChangeSet, Stack, StackBackend, Version, stack_backends
from localaws.templates import required_capabilities

logger = logging.getLogger(__name__)

NO_CHANGES = "The submitted information didn't contain changes. Submit different information to create a change set."
STACK_NAME = "[a-zA-Z][-a-zA-Z0-9]{0,127}"
NO_UPDATES = "No updates are to be performed."
UNSUPPORTED = (
    "DeploymentMode",
    "NotificationARNs",
    "ResourceTypes",
    "ResourcesToImport",
    "RetainExceptOnCreate",
    "StackPolicyBody",
    "StackPolicyDuringUpdateBody",
    "StackPolicyDuringUpdateURL",
    "StackPolicyURL",
    "TimeoutInMinutes",
)
UPDATABLE = frozenset(
    {
        "CREATE_COMPLETE",
        "CREATE_FAILED",
        "UPDATE_COMPLETE",
        "UPDATE_FAILED",
        "UPDATE_ROLLBACK_COMPLETE",
    }
)


def install() -> None:
    """Register this class for CloudFormation in moto, in process and in its server.

    moto's own CloudFormation package is never imported, because it imports dozens of other services.
    """
    module = types.ModuleType("moto.cloudformation")
    module.__dict__["cloudformation_backends"] = stack_backends
    sys.modules[module.__name__] = module
    StackBackend.urls_of = types.SimpleNamespace(
        url_bases=[r"https?://cloudformation\.(.+)\.amazonaws\.com"], url_paths={"{0}/$": CloudFormation.dispatch}
    )


class CloudFormation(Queries):
    """One CloudFormation request, with one method for each action. moto's dispatcher calls them by name."""

    # Seconds that a response waits for the stack operation it starts; None waits until the end. The server sets it: the
    # CDK CLI polls every five seconds, so it shows the progress of long operations and never polls for short ones.
    wait_seconds: ClassVar[float | None] = None

    def create_stack(self) -> ActionResult:
        """CreateStack."""
        name = self.params["StackName"]
        if self.backend.find(name):
            raise Refused("AlreadyExistsException", f"Stack [{name}] already exists")
        stack = self._new_stack(name, "CREATE_IN_PROGRESS")
        version = self._version(stack)
        stack.termination_protection = bool(self.params.get("EnableTerminationProtection"))
        self.backend.stacks[stack.id] = stack
        self._deploy(stack, version, "CREATE", self._on_failure(self.params.get("OnFailure")))
        return ActionResult({"StackId": stack.id})

    def update_stack(self) -> ActionResult:
        """UpdateStack."""
        stack = self._updatable(self.params["StackName"])
        version = self._version(stack)
        with as_validation_errors():
            if not self._differs(stack, version, plan(stack, version, self.backend)):
                raise invalid(NO_UPDATES)
        self._deploy(stack, version, "UPDATE", self._on_failure(None))
        return ActionResult({"StackId": stack.id})

    def delete_stack(self) -> EmptyResult:
        """DeleteStack. A missing stack is no error."""
        stack = self.backend.find(self.params["StackName"])
        if stack is None or stack.status == "DELETE_COMPLETE":
            return EmptyResult()
        if stack.termination_protection:
            raise invalid(f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled")
        if stack.status.endswith("_IN_PROGRESS") and stack.status != "REVIEW_IN_PROGRESS":
            raise invalid(f"Stack [{stack.name}] cannot be deleted while in status {stack.status}")
        retain = tuple(self.params.get("RetainResources") or ())
        if retain and stack.status != "DELETE_FAILED":
            raise invalid("RetainResources can only be specified when the stack is in the DELETE_FAILED state.")
        operation = self._begin(stack, "DELETE")
        self._run(stack, lambda: operation.delete(retain))
        return EmptyResult()

    def rollback_stack(self) -> ActionResult:
        """RollbackStack. `cdk rollback` calls it after a failure with rollback disabled."""
        stack = self._existing_stack(self.params["StackName"])
        if stack.status not in ("CREATE_FAILED", "UPDATE_FAILED"):
            raise invalid(f"Stack [{stack.name}] in state {stack.status} cannot be rolled back")
        operation = Operation(self.backend, stack, self.params.get("ClientRequestToken"))
        stack.set_status("UPDATE_ROLLBACK_IN_PROGRESS" if stack.last_good else "ROLLBACK_IN_PROGRESS")
        self._run(stack, lambda: operation.roll_back(None))
        return ActionResult({"StackId": stack.id})

    def continue_update_rollback(self) -> EmptyResult:
        """ContinueUpdateRollback."""
        stack = self._existing_stack(self.params["StackName"])
        if stack.status != "UPDATE_ROLLBACK_FAILED":
            raise invalid(f"Stack {stack.id} is in {stack.status} state and can not continue its rollback.")
        if self.params.get("ResourcesToSkip"):
            raise invalid("The embedded AWS does not skip resources in a rollback")
        operation = Operation(self.backend, stack, self.params.get("ClientRequestToken"))
        stack.set_status("UPDATE_ROLLBACK_IN_PROGRESS")
        self._run(stack, lambda: operation.roll_back(None))
        return EmptyResult()

    def update_termination_protection(self) -> ActionResult:
        """UpdateTerminationProtection."""
        stack = self._existing_stack(self.params["StackName"])
        stack.termination_protection = bool(self.params["EnableTerminationProtection"])
        return ActionResult({"StackId": stack.id})

    def create_change_set(self) -> ActionResult:
        """CreateChangeSet of the types CREATE and UPDATE."""
        name, kind = self.params["StackName"], self.params.get("ChangeSetType", "UPDATE")
        if kind not in ("CREATE", "UPDATE"):
            raise invalid(f"The embedded AWS makes no change sets of type {kind}")
        stack = self._stack_for(name, kind)
        set_name = self.params["ChangeSetName"]
        if set_name in stack.change_sets:
            raise Refused("AlreadyExistsException", f"ChangeSet {set_name} already exists")
        version = self._version(stack)
        self.backend.stacks[stack.id] = stack
        if not stack.events:
            stack.set_status("REVIEW_IN_PROGRESS", "User Initiated", self.params.get("ClientToken"))
        change_set = self._change_set(stack, set_name, kind, version)
        stack.change_sets[set_name] = change_set
        return ActionResult({"Id": change_set.id, "StackId": stack.id})

    def execute_change_set(self) -> EmptyResult:
        """ExecuteChangeSet. Deletes the stack's other change sets, as AWS does."""
        stack, change_set = self._existing_change_set()
        if change_set.execution_status != "AVAILABLE":
            raise Refused(
                "InvalidChangeSetStatus",
                f"ChangeSet [{change_set.id}] cannot be executed in its current status of [{change_set.status}]",
            )
        stack.executed = change_set.id
        stack.change_sets.clear()
        verb: Verb = "CREATE" if change_set.kind == "CREATE" else "UPDATE"
        self._deploy(stack, change_set.version, verb, self._on_failure(change_set.on_failure))
        return EmptyResult()

    def delete_change_set(self) -> EmptyResult:
        """DeleteChangeSet. A missing change set is no error; a missing stack is."""
        found = self._change_set_or_none()
        if found:
            stack, change_set = found
            del stack.change_sets[change_set.name]
        return EmptyResult()

    def _updatable(self, name: str) -> Stack:
        stack = self.backend.find(name)
        if stack is None or stack.status in ("DELETE_COMPLETE", "REVIEW_IN_PROGRESS"):
            raise invalid(f"Stack [{name}] does not exist")
        if stack.status not in UPDATABLE:
            raise invalid(f"Stack:{stack.id} is in {stack.status} state and can not be updated.")
        return stack

    def _stack_for(self, name: str, kind: str) -> Stack:
        if kind == "UPDATE":
            return self._updatable(name)
        stack = self.backend.find(name)
        if stack is None or stack.status == "DELETE_COMPLETE":
            return self._new_stack(name, "REVIEW_IN_PROGRESS")
        if stack.status != "REVIEW_IN_PROGRESS":
            raise invalid(f"Stack [{name}] already exists and cannot be created again with the changeSet [{name}].")
        return stack

    def _new_stack(self, name: str, status: str) -> Stack:
        if not re.fullmatch(STACK_NAME, name):
            where = f"Value '{name}' at 'stackName' failed to satisfy constraint"
            raise invalid(
                f"1 validation error detected: {where}: Member must satisfy regular expression pattern: {STACK_NAME}"
            )
        arn = f"arn:aws:cloudformation:{self.region}:{self.current_account}:stack/{name}/{uuid.uuid4()}"
        return Stack(name, arn, self.current_account, self.region, datetime.now(UTC), status)

    def _version(self, stack: Stack) -> Version:
        if ignored := sorted(_ignored(self.params)):
            raise invalid(f"The embedded AWS does not support {', '.join(ignored)}")
        with as_validation_errors():
            version = requested_version(self.params, stack, self.backend)
            if version.role_arn:
                role = version.role_arn.rsplit("/", 1)[-1]
                iam = client("iam", self.region, self.current_account)
                require(lambda: iam.get_role(RoleName=role), f"Role {version.role_arn} is invalid or cannot be assumed")
        missing = [name for name in required_capabilities(version.body) if not _acknowledged(name, version)]
        if missing:
            raise Refused("InsufficientCapabilitiesException", f"Requires capabilities : [{', '.join(missing)}]")
        return version

    def _change_set(self, stack: Stack, name: str, kind: str, version: Version) -> ChangeSet:
        reason = None
        changes: list[dict[str, Any]] = []
        try:
            changes = plan(stack, version, self.backend)
            if kind == "UPDATE" and not self._differs(stack, version, changes):
                reason = NO_CHANGES
        except TemplateError as error:
            reason = str(error)
        return ChangeSet(
            name=name,
            id=f"arn:aws:cloudformation:{self.region}:{self.current_account}:changeSet/{name}/{uuid.uuid4()}",
            kind=kind,
            version=version,
            changes=changes,
            status="FAILED" if reason else "CREATE_COMPLETE",
            execution_status="UNAVAILABLE" if reason else "AVAILABLE",
            reason=reason,
            created=datetime.now(UTC),
            description=self.params.get("Description"),
            on_failure=self.params.get("OnStackFailure") or "ROLLBACK",
        )

    def _differs(self, stack: Stack, version: Version, changes: list[dict[str, Any]]) -> bool:
        if changes or stack.version is None or version.tags != stack.version.tags:
            return True
        return stack.status.endswith("_FAILED") or changes_outputs(stack, version, self.backend)

    def _on_failure(self, asked: str | None) -> OnFailure:
        if self.params.get("DisableRollback"):
            return "DO_NOTHING"
        return cast("OnFailure", asked or "ROLLBACK")

    def _begin(self, stack: Stack, verb: Verb) -> Operation:
        operation = Operation(self.backend, stack, self.params.get("ClientRequestToken"))
        operation.begin(verb)
        return operation

    def _deploy(self, stack: Stack, version: Version, verb: Verb, on_failure: OnFailure) -> None:
        stack.disable_rollback = on_failure == "DO_NOTHING"
        operation = self._begin(stack, verb)
        self._run(stack, lambda: operation.deploy(verb, version, on_failure))

    def _run(self, stack: Stack, job: Callable[[], None]) -> None:
        """Run the job, one at a time in a Region. The response waits for it up to `wait_seconds`."""
        lock = self.backend.lock

        def run() -> None:
            with lock:
                try:
                    job()
                except Exception as error:
                    failed = f"{stack.status.removesuffix('_IN_PROGRESS')}_FAILED"
                    stack.set_status(failed, f"Internal failure: {error!r}")
                    logger.exception("operation on stack %s failed", stack.name)

        if self.wait_seconds is None:
            run()
        else:
            thread = threading.Thread(target=run, name=f"stack {stack.name}", daemon=True)
            thread.start()
            thread.join(self.wait_seconds)


def _acknowledged(capability: str, version: Version) -> bool:
    """CAPABILITY_NAMED_IAM covers CAPABILITY_IAM."""
    return bool({capability, "CAPABILITY_NAMED_IAM"} & set(version.capabilities))


def _ignored(params: dict[str, Any]) -> Iterator[str]:
    """Parameters of the request that the embedded AWS would ignore in silence.

    ImportExistingResources is not one of them: without a resource to import it changes nothing, and with one the stack
    fails with "already exists".
    """
    yield from (name for name in UNSUPPORTED if params.get(name))
    if (params.get("RollbackConfiguration") or {}).get("RollbackTriggers"):
        yield "RollbackConfiguration.RollbackTriggers"
    if (params.get("DeploymentConfig") or {}).get("Mode", "STANDARD") != "STANDARD":
        yield "DeploymentConfig.Mode"
