"""Queues, rules and schedules created from template properties and read back through boto3."""

import json
from collections.abc import Iterator

import pytest
from moto import mock_aws

from eks_parts import REGION, make_role
from handler_parts import Stack
from localaws.services import activate

QUEUE, POLICY, RULE, SCHEDULE = (
    "AWS::SQS::Queue",
    "AWS::SQS::QueuePolicy",
    "AWS::Events::Rule",
    "AWS::Scheduler::Schedule",
)
ALLOW = {
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": "*",
        }
    ]
}


@pytest.fixture(scope="module")
def roles() -> Iterator[dict[str, str]]:
    activate()
    with mock_aws():
        iam = Stack(REGION).client("iam")
        services = ("scheduler", "events")
        yield {service: make_role(iam, service, f"{service}.amazonaws.com") for service in services}


@pytest.fixture
def stack(roles: dict[str, str]) -> Stack:
    return Stack(REGION)


def attributes(stack: Stack, url: str) -> dict[str, str]:
    found = stack.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
    return dict(found["Attributes"])


def test_a_queues_policy_outlives_changes_of_the_queue(stack: Stack) -> None:
    url = stack.make(QUEUE, QueueName="kept")
    made = stack.make(POLICY, Queues=[url], PolicyDocument=ALLOW)
    stack.update(QUEUE, url, {"QueueName": "kept"}, {"QueueName": "kept", "DelaySeconds": 5})
    assert json.loads(attributes(stack, url)["Policy"]) == ALLOW
    stack.delete(POLICY, made, Queues=[url], PolicyDocument=ALLOW)
    assert "Policy" not in attributes(stack, url)
    stack.delete(QUEUE, url)
