"""SQS: queues and their policies."""

from typing import Any

from localaws.resources import Context, HandlerError, Properties
from localaws.rows.handler import register
from localaws.rows.row import Entries, Row

# SQS API reference, CreateQueue (2026): defaults of attributes that the template no longer sets.
DEFAULTS = {
    "ContentBasedDeduplication": "false",
    "DeduplicationScope": "queue",
    "DelaySeconds": "0",
    "FifoThroughputLimit": "perQueue",
    "KmsDataKeyReusePeriodSeconds": "300",
    "KmsMasterKeyId": "",
    "MaximumMessageSize": "1048576",
    "MessageRetentionPeriod": "345600",
    "ReceiveMessageWaitTimeSeconds": "0",
    "RedrivePolicy": "",
    "SqsManagedSseEnabled": "true",
    "VisibilityTimeout": "30",
}


def _check_queue(_: Context, __: Properties, new: Properties) -> None:
    if new.get("KmsMasterKeyId") and new.get("SqsManagedSseEnabled"):
        raise HandlerError("You can use one type of server-side encryption (SSE) at one time.")


def _policy(property: str) -> dict[str, Any]:
    """The policy of each queue in a property."""
    action = "SetQueueAttributes"
    entries = Entries(property, add=action, remove=action, member="QueueUrl", removal={"PolicyDocument": ""})
    return {"entries": (entries,), "renames": {"PolicyDocument": "Attributes.Policy"}, "tags": None}


register(
    Row(
        type="AWS::SQS::Queue",
        service="sqs",
        name=("QueueName", 80),
        read="GetQueueAttributes",
        update="SetQueueAttributes",
        ident={"QueueUrl": "{ref}", "AttributeNames": "All"},
        name_suffix={"FifoQueue": ".fifo"},
        renames={name: f"Attributes.{name}" for name in (*DEFAULTS, "FifoQueue")},
        resets=DEFAULTS,
        attributes={"Arn": "{QueueArn}", "QueueName": "{QueueArn:}", "QueueUrl": "{ref}"},
        arn="{ref}",
        tag="TagQueue",
        untag="UntagQueue",
        must_exist={"KmsMasterKeyId": "KMS key", "RedrivePolicy.deadLetterTargetArn": "queue"},
        check=_check_queue,
    ),
    Row(
        type="AWS::SQS::QueuePolicy",
        service="sqs",
        properties="PolicyDocument Queues",
        name=("Id", 100),
        ref="{Id}",
        **_policy("Queues"),
    ),
    Row(
        type="AWS::SQS::QueueInlinePolicy",
        service="sqs",
        properties="PolicyDocument Queue",
        ref="{Queue}",
        **_policy("Queue"),
    ),
)
