"""Read actions of CloudFormation's API: stacks, events, resources, exports, change sets, templates."""

import contextlib
from collections.abc import Iterator
from typing import cast

from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult, BaseResponse

from localaws import describe
from localaws.changesets import template_source
from localaws.intrinsics import TemplateError
from localaws.resources import HandlerError
from localaws.stacks import ChangeSet, Stack, StackBackend, Version, stack_backends
from localaws.templates import parse


class Refused(ServiceException):  # type: ignore[misc]  # moto is untyped
    """An error response with its code."""


def invalid(message: str) -> Refused:
    """A ValidationError, CloudFormation's error for most invalid requests."""
    return Refused("ValidationError", message)


@contextlib.contextmanager
def as_validation_errors() -> Iterator[None]:
    """Turn template errors into ValidationErrors."""
    try:
        yield
    except (TemplateError, HandlerError) as error:
        raise invalid(str(error)) from error


class Queries(BaseResponse):  # type: ignore[misc]  # moto is untyped
    """One CloudFormation request, with one method for each action. moto's dispatcher calls them by name."""

    def __init__(self) -> None:
        super().__init__(service_name="cloudformation")
        self.automated_parameter_parsing = True

    @property
    def backend(self) -> StackBackend:
        """The stacks of the caller's account and Region."""
        return cast("StackBackend", stack_backends[self.current_account][self.region])

    def describe_change_set(self) -> ActionResult:
        """DescribeChangeSet."""
        stack, change_set = self._existing_change_set()
        return ActionResult(describe.change_set(stack, change_set))

    def describe_change_set_hooks(self) -> ActionResult:
        """DescribeChangeSetHooks. The embedded AWS has no hooks."""
        stack, change_set = self._existing_change_set()
        return ActionResult(
            {
                "ChangeSetId": change_set.id,
                "ChangeSetName": change_set.name,
                "Hooks": [],
                "Status": "PLANNED",
                "StackId": stack.id,
                "StackName": stack.name,
            }
        )

    def list_change_sets(self) -> ActionResult:
        """ListChangeSets."""
        stack = self._existing_stack(self.params["StackName"])
        summaries = [describe.change_set(stack, change_set) for change_set in stack.change_sets.values()]
        return ActionResult({"Summaries": summaries})

    def list_hook_results(self) -> ActionResult:
        """ListHookResults, which the CDK CLI calls after a failure. The embedded AWS has no hooks."""
        return ActionResult({"HookResults": []})

    def describe_stacks(self) -> ActionResult:
        """DescribeStacks."""
        name = self.params.get("StackName")
        stacks = [self._existing_stack(name)] if name else list(self.backend.live())
        return ActionResult({"Stacks": [describe.stack(stack) for stack in stacks]})

    def list_stacks(self) -> ActionResult:
        """ListStacks."""
        wanted = self.params.get("StackStatusFilter")
        stacks = [stack for stack in self.backend.stacks.values() if not wanted or stack.status in wanted]
        return ActionResult({"StackSummaries": [describe.stack_summary(stack) for stack in stacks]})

    def describe_stack_events(self) -> ActionResult:
        """DescribeStackEvents, newest first."""
        stack = self._existing_stack(self.params["StackName"])
        return ActionResult({"StackEvents": stack.events[::-1]})

    def describe_events(self) -> ActionResult:
        """DescribeEvents, the newer API for the same events."""
        if "StackName" in self.params:
            stack = self._existing_stack(self.params["StackName"])
        elif "ChangeSetName" in self.params:
            stack = self._existing_change_set()[0]
        else:
            raise invalid("Either StackName, ChangeSetName or OperationId must be specified.")
        failed_only = (self.params.get("Filters") or {}).get("FailedEvents")
        return ActionResult({"OperationEvents": describe.operation_events(stack, failed_only=bool(failed_only))})

    def describe_stack_resources(self) -> ActionResult:
        """DescribeStackResources, by stack or by physical id."""
        stack = self._existing_stack(self.params["StackName"]) if "StackName" in self.params else self._owner()
        only = self.params.get("LogicalResourceId")
        resources = [describe.resource(stack, record) for record in list(stack.resources.values())]
        selected = [found for found in resources if only in (None, found["LogicalResourceId"])]
        return ActionResult({"StackResources": selected})

    def describe_stack_resource(self) -> ActionResult:
        """DescribeStackResource."""
        stack, name = self._existing_stack(self.params["StackName"]), self.params["LogicalResourceId"]
        if name not in stack.resources:
            raise invalid(f"Resource {name} does not exist for stack {stack.name}")
        return ActionResult({"StackResourceDetail": describe.resource(stack, stack.resources[name])})

    def list_stack_resources(self) -> ActionResult:
        """ListStackResources."""
        stack = self._existing_stack(self.params["StackName"])
        summaries = [describe.resource(stack, record) for record in list(stack.resources.values())]
        return ActionResult({"StackResourceSummaries": summaries})

    def list_exports(self) -> ActionResult:
        """ListExports."""
        exports = [
            {"ExportingStackId": stack.id, "Name": name, "Value": value}
            for name, (stack, value) in sorted(self.backend.exports().items())
        ]
        return ActionResult({"Exports": exports})

    def list_imports(self) -> ActionResult:
        """ListImports."""
        users = self.backend.importers(self.params["ExportName"])
        if not users:
            raise invalid(f"Export '{self.params['ExportName']}' is not imported by any stack.")
        return ActionResult({"Imports": [stack.name for stack in users]})

    def get_template(self) -> ActionResult:
        """GetTemplate of a stack or a change set."""
        if "ChangeSetName" in self.params:
            version: Version | None = self._existing_change_set()[1].version
        else:
            version = self._existing_stack(self.params["StackName"]).version
        body = version.source if version else "{}"
        return ActionResult({"TemplateBody": body, "StagesAvailable": ["Original", "Processed"]})

    def get_template_summary(self) -> ActionResult:
        """GetTemplateSummary."""
        with as_validation_errors():
            return ActionResult(describe.template_summary(parse(self._template())))

    def validate_template(self) -> ActionResult:
        """ValidateTemplate."""
        with as_validation_errors():
            return ActionResult(describe.template_summary(parse(self._template())))

    def _template(self) -> str:
        name = self.params.get("StackName")
        if not name:
            with as_validation_errors():
                return template_source(self.params, None, self.backend)
        version = self._existing_stack(name).version
        if version is None:
            raise invalid(f"Stack {name} has no template yet")
        return version.source

    def _existing_stack(self, name: str) -> Stack:
        stack = self.backend.find(name)
        if stack is None:
            raise invalid(f"Stack with id {name} does not exist")
        return stack

    def _owner(self) -> Stack:
        physical_id = self.params.get("PhysicalResourceId")
        for stack in self.backend.live():
            if any(record.physical_id == physical_id for record in stack.resources.values()):
                return stack
        raise invalid(f"Stack for {physical_id} does not exist")

    def _change_set_or_none(self) -> tuple[Stack, ChangeSet] | None:
        name = self.params["ChangeSetName"]
        stack_name = self.params.get("StackName")
        for stack in [self._existing_stack(stack_name)] if stack_name else self.backend.live():
            for found in stack.change_sets.values():
                if name in (found.name, found.id):
                    return stack, found
        return None

    def _existing_change_set(self) -> tuple[Stack, ChangeSet]:
        found = self._change_set_or_none()
        if found is None:
            raise Refused("ChangeSetNotFound", f"ChangeSet [{self.params['ChangeSetName']}] does not exist")
        return found
