"""Stacks of two fake resource types, deployed through boto3."""

import json
import time
from typing import Any, ClassVar

from localaws.resources import Context, Handler, HandlerError, Properties, Resource, client

REGION = "us-east-2"
TOPIC = "AWS::SNS::Topic"  # TopicName is create-only
QUEUE = "AWS::SQS::Queue"  # QueueName is create-only
TEMPLATE = {"Resources": {"First": {"Type": TOPIC}}}


class Fake(Handler):
    """Records its calls. The DisplayName or KmsMasterKeyId `refused` fails; `stuck` cannot be deleted."""

    supported_properties = frozenset(
        {"DisplayName", "TopicName", "Tags", "QueueName", "KmsMasterKeyId", "VisibilityTimeout"}
    )
    there: ClassVar[dict[str, Properties]] = {}
    calls: ClassVar[list[str]] = []

    def create(self, context: Context, properties: Properties) -> Resource:
        self._note("create", context, properties)
        physical_id = f"{context.logical_id}-{len(self.calls)}"
        return self._keep(physical_id, properties)

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        self._note("update", context, new)
        return self._keep(physical_id, new)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        self._note("delete", context, {})
        if properties.get("DisplayName") == "stuck":
            raise HandlerError("it is stuck")
        del self.there[physical_id]

    def _note(self, what: str, context: Context, properties: Properties) -> None:
        self.calls.append(f"{what} {context.logical_id}")
        if "refused" in (properties.get("DisplayName"), properties.get("KmsMasterKeyId")):
            raise HandlerError(f"{context.logical_id} is refused")

    def _keep(self, physical_id: str, properties: Properties) -> Resource:
        self.there[physical_id] = properties
        version = sum(call.startswith(("create", "update")) for call in self.calls)
        return Resource(
            physical_id, {"TopicArn": f"arn:{physical_id}", "Arn": f"arn:{physical_id}", "Version": version}
        )


class FakeTopic(Fake):
    type = TOPIC


class FakeQueue(Fake):
    type = QUEUE


class Stacks:
    """CloudFormation through boto3, with templates as dicts of resources."""

    def __init__(self) -> None:
        self.api: Any = client("cloudformation", REGION)

    def create(self, resources: dict[str, Any], name: str = "stack", **options: Any) -> str:
        return self._deploy(self.api.create_stack, resources, name, options)

    def update(self, resources: dict[str, Any], name: str = "stack", **options: Any) -> str:
        return self._deploy(self.api.update_stack, resources, name, options)

    def _deploy(self, call: Any, resources: dict[str, Any], name: str, options: dict[str, Any]) -> str:
        sections = {key: options.pop(key) for key in list(options) if key in ("Outputs", "Parameters", "Conditions")}
        call(StackName=name, TemplateBody=json.dumps({"Resources": resources, **sections}), **options)
        return self.status(name)

    def delete(self, name: str = "stack", **options: Any) -> str:
        stack_id = self.stack(name)["StackId"]
        self.api.delete_stack(StackName=name, **options)
        return self.status(stack_id)

    def stack(self, name: str = "stack") -> dict[str, Any]:
        found: dict[str, Any] = self.api.describe_stacks(StackName=name)["Stacks"][0]
        return found

    def status(self, name: str = "stack") -> str:
        return str(self.stack(name)["StackStatus"])

    def reason(self, name: str = "stack") -> str:
        return str(self.stack(name)["StackStatusReason"])

    def outputs(self, name: str = "stack") -> dict[str, str]:
        return {output["OutputKey"]: output["OutputValue"] for output in self.stack(name).get("Outputs", [])}

    def ids(self, name: str = "stack") -> dict[str, str]:
        rows = self.api.list_stack_resources(StackName=name)["StackResourceSummaries"]
        return {row["LogicalResourceId"]: row["PhysicalResourceId"] for row in rows}

    def events(self, name: str = "stack") -> list[tuple[str, str]]:
        """(logical id, status), oldest first."""
        told = self.api.describe_stack_events(StackName=name)["StackEvents"]
        return [(event["LogicalResourceId"], event["ResourceStatus"]) for event in reversed(told)]

    def event_reason(self, logical_id: str, status: str, name: str = "stack") -> str:
        told = self.api.describe_stack_events(StackName=name)["StackEvents"]
        return next(
            str(event["ResourceStatusReason"])
            for event in told
            if (event["LogicalResourceId"], event["ResourceStatus"]) == (logical_id, status)
        )


def topic(**properties: Any) -> dict[str, Any]:
    return {"Type": TOPIC, "Properties": properties}


def queue(**properties: Any) -> dict[str, Any]:
    return {"Type": QUEUE, "Properties": properties}


def settled(cloudformation: Any, stack: str) -> str:
    """Status of a stack once its operation has ended, for which a server waits some seconds only."""
    ends = time.monotonic() + 300
    while True:
        status = str(cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"])
        if not status.endswith("IN_PROGRESS"):
            return status
        assert time.monotonic() < ends, status
        time.sleep(0.1)
