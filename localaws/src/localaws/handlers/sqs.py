"""SQS: queues and their policies."""

from localaws.handlers.common import json_text
from localaws.resources import Context, HandlerError, Properties, pick, require, require_key
from localaws.rows.handler import register
from localaws.rows.row import Row

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


def _put_policy(context: Context, old: Properties, new: Properties) -> None:
    """Put the policy on every queue, and remove it from those that left the list."""
    sqs, before, after = context.client("sqs"), _queues(old), _queues(new)
    for url in after:
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": json_text(new["PolicyDocument"])})
    for url in before:
        if url not in after:
            sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": ""})


def _queues(properties: Properties) -> list[str]:
    return [*properties.get("Queues", ()), *pick(properties, "Queue").values()]


register(
    Row(
        type="AWS::SQS::Queue",
        service="sqs",
        ignored="RedriveAllowPolicy",
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
        check=_check_queue,
    ),
    Row(
        type="AWS::SQS::QueuePolicy",
        service="sqs",
        name=("Id", 100),
        ref="{Id}",
        tags=None,
        by_hand="PolicyDocument Queues",
        hook=_put_policy,
        hook_on_delete=True,
    ),
    Row(
        type="AWS::SQS::QueueInlinePolicy",
        service="sqs",
        ref="{Queue}",
        tags=None,
        by_hand="PolicyDocument Queue",
        hook=_put_policy,
        hook_on_delete=True,
    ),
)
