"""AWS::SQS::Queue and AWS::SQS::QueuePolicy."""

from typing import Any

from ultracluster.localaws.handlers.common import json_text, tag_changes
from ultracluster.localaws.resources import (
    Context,
    Handler,
    HandlerError,
    Properties,
    Resource,
    handler,
    require,
    require_key,
    tag_map,
)

# SQS API reference, CreateQueue (2026): defaults of attributes that the template no longer sets.
DEFAULTS = {
    "DelaySeconds": "0",
    "KmsDataKeyReusePeriodSeconds": "300",
    "KmsMasterKeyId": "",
    "MaximumMessageSize": "262144",
    "MessageRetentionPeriod": "345600",
    "ReceiveMessageWaitTimeSeconds": "0",
    "RedrivePolicy": "",
    "SqsManagedSseEnabled": "true",
    "VisibilityTimeout": "30",
}


def require_queue(context: Context, arn: str) -> str:
    """The URL of the queue of this ARN; HandlerError when it does not exist."""
    sqs, name = context.client("sqs"), arn.rsplit(":", 1)[-1]
    found = require(lambda: sqs.get_queue_url(QueueName=name), f"queue {arn} does not exist")
    return str(found["QueueUrl"])


@handler
class Queue(Handler):
    """A standard queue. Ref gives its URL."""

    type = "AWS::SQS::Queue"
    supported_properties = frozenset({*DEFAULTS, "QueueName", "Tags"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the queue."""
        name = properties.get("QueueName") or context.physical_name(80)
        tags = {**tag_map(properties.get("Tags")), **context.tags}
        sqs = context.client("sqs")
        made = sqs.create_queue(QueueName=name, Attributes=self._attributes(context, properties), tags=tags)
        return self._resource(context, made["QueueUrl"])

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Set all attributes again."""
        sqs = context.client("sqs")
        gone = {name: value for name, value in DEFAULTS.items() if name in old and name not in new}
        sqs.set_queue_attributes(QueueUrl=physical_id, Attributes={**gone, **self._attributes(context, new)})
        added, removed = tag_changes(old, new)
        if added:
            sqs.tag_queue(QueueUrl=physical_id, Tags=added)
        if removed:
            sqs.untag_queue(QueueUrl=physical_id, TagKeys=removed)
        return self._resource(context, physical_id)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the queue."""
        context.client("sqs").delete_queue(QueueUrl=physical_id)

    def _attributes(self, context: Context, properties: Properties) -> dict[str, str]:
        if key := properties.get("KmsMasterKeyId"):
            require_key(context, key)
            if properties.get("SqsManagedSseEnabled"):
                raise HandlerError("You can use one type of server-side encryption (SSE) at one time.")
        redrive = properties.get("RedrivePolicy")
        if isinstance(redrive, dict):
            require_queue(context, redrive["deadLetterTargetArn"])
        names = DEFAULTS.keys() & properties.keys()
        return {name: _text(properties[name]) for name in sorted(names)}

    def _resource(self, context: Context, url: str) -> Resource:
        answer = context.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        arn = answer["Attributes"]["QueueArn"]
        return Resource(url, {"Arn": arn, "QueueName": arn.rsplit(":", 1)[-1], "QueueUrl": url})


@handler
class QueuePolicy(Handler):
    """A policy of queues."""

    type = "AWS::SQS::QueuePolicy"
    supported_properties = frozenset({"PolicyDocument", "Queues"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Put the policy on every queue."""
        self._write(context, properties["Queues"], json_text(properties["PolicyDocument"]))
        name = context.physical_name(100)
        return Resource(name, {"Id": name})

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Put the policy again, and remove it from queues that left the list."""
        self._write(context, new["Queues"], json_text(new["PolicyDocument"]))
        self._write(context, [url for url in old["Queues"] if url not in new["Queues"]], "")
        return Resource(physical_id, {"Id": physical_id})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Remove the policy from every queue."""
        self._write(context, properties["Queues"], "")

    def _write(self, context: Context, urls: list[str], policy: str) -> None:
        for url in urls:
            context.client("sqs").set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})


def _text(value: Any) -> str:
    return json_text(value) if isinstance(value, dict | str) else str(value).lower()
