"""AWS::SQS::Queue and AWS::SQS::QueuePolicy."""

from localaws.handlers.common import json_text
from localaws.resources import (
    Context,
    Handler,
    HandlerError,
    Properties,
    Resource,
    handler,
    require,
    require_key,
)
from localaws.rows.handler import register
from localaws.rows.row import Row

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


def _check_queue(context: Context, _: Properties, new: Properties) -> None:
    if key := new.get("KmsMasterKeyId"):
        require_key(context, key)
        if new.get("SqsManagedSseEnabled"):
            raise HandlerError("You can use one type of server-side encryption (SSE) at one time.")
    redrive = new.get("RedrivePolicy")
    if isinstance(redrive, dict):
        require_queue(context, redrive["deadLetterTargetArn"])


register(
    Row(
        type="AWS::SQS::Queue",
        service="sqs",
        name=("QueueName", 80),
        create="CreateQueue",
        read="GetQueueAttributes",
        update="SetQueueAttributes",
        delete="DeleteQueue",
        ref="{QueueUrl}",
        ident={"QueueUrl": "{ref}", "AttributeNames": "All"},
        renames={name: f"Attributes.{name}" for name in DEFAULTS},
        resets=DEFAULTS,
        attributes={"Arn": "{QueueArn}", "QueueName": "{QueueArn:}", "QueueUrl": "{ref}"},
        arn="{ref}",
        tag="TagQueue",
        untag="UntagQueue",
        check=_check_queue,
    ),
)


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
