"""Queues, rules and schedules created from template properties and read back through boto3."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from eks_parts import REGION, make_role
from handler_parts import Stack, tags
from localaws.resources import HandlerError
from localaws.services import activate

QUEUE, POLICY, RULE, SCHEDULE = (
    "AWS::SQS::Queue",
    "AWS::SQS::QueuePolicy",
    "AWS::Events::Rule",
    "AWS::Scheduler::Schedule",
)
SCALE = "arn:aws:scheduler:::aws-sdk:eks:updateNodegroupConfig"
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


def test_a_queue_is_created_updated_and_deleted(stack: Stack) -> None:
    old = {"QueueName": "interruptions", "MessageRetentionPeriod": 300, "SqsManagedSseEnabled": True}
    made = stack.create(QUEUE, **old, Tags=tags(team="a"))
    assert made.attributes["QueueName"] == made.attributes["Arn"].rsplit(":", 1)[-1]
    found = attributes(stack, made.physical_id)
    assert made.physical_id == made.attributes["QueueUrl"]
    assert made.attributes["Arn"] == found["QueueArn"] == f"arn:aws:sqs:{REGION}:123456789012:interruptions"
    assert (found["MessageRetentionPeriod"], found["SqsManagedSseEnabled"]) == ("300", "true")
    new = {"QueueName": "interruptions", "VisibilityTimeout": 60, "SqsManagedSseEnabled": False}
    stack.update(QUEUE, made.physical_id, {**old, "Tags": tags(team="a")}, {**new, "Tags": tags(team="b")})
    found = attributes(stack, made.physical_id)
    assert (found["MessageRetentionPeriod"], found["VisibilityTimeout"]) == ("345600", "60")
    assert found["SqsManagedSseEnabled"] == "false"
    assert stack.client("sqs").list_queue_tags(QueueUrl=made.physical_id)["Tags"]["team"] == "b"
    stack.delete(QUEUE, made.physical_id)
    assert "QueueUrls" not in stack.client("sqs").list_queues()


def test_references_of_a_queue_must_exist(stack: Stack) -> None:
    with pytest.raises(HandlerError, match="KMS key"):
        stack.create(QUEUE, KmsMasterKeyId=f"arn:aws:kms:{REGION}:123456789012:key/1")
    missing = {"deadLetterTargetArn": f"arn:aws:sqs:{REGION}:123456789012:nowhere", "maxReceiveCount": 3}
    with pytest.raises(HandlerError, match="nowhere does not exist"):
        stack.create(QUEUE, RedrivePolicy=missing)


def test_a_queues_policy_outlives_changes_of_the_queue(stack: Stack) -> None:
    url = stack.make(QUEUE, QueueName="kept")
    made = stack.make(POLICY, Queues=[url], PolicyDocument=ALLOW)
    stack.update(QUEUE, url, {"QueueName": "kept"}, {"QueueName": "kept", "DelaySeconds": 5})
    assert json.loads(attributes(stack, url)["Policy"]) == ALLOW
    stack.delete(POLICY, made, Queues=[url], PolicyDocument=ALLOW)
    assert "Policy" not in attributes(stack, url)
    stack.delete(QUEUE, url)


def test_a_rule_is_created_updated_and_deleted(stack: Stack) -> None:
    first, second = stack.create(QUEUE, QueueName="first"), stack.create(QUEUE, QueueName="second")
    pattern = {"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]}
    targets = [{"Id": name, "Arn": queue.attributes["Arn"]} for name, queue in (("1", first), ("2", second))]
    old = {"EventPattern": pattern, "Targets": targets, "State": "ENABLED", "Tags": tags(team="a")}
    made = stack.create(RULE, **old)
    events = stack.client("events")
    found = events.describe_rule(Name=made.physical_id)
    assert json.loads(found["EventPattern"]) == pattern
    assert made.attributes == {"Arn": found["Arn"], "RuleName": made.physical_id}
    assert len(events.list_targets_by_rule(Rule=made.physical_id)["Targets"]) == 2
    new = {**old, "State": "DISABLED", "Targets": targets[:1], "Tags": tags(team="b")}
    stack.update(RULE, made.physical_id, old, new)
    assert events.describe_rule(Name=made.physical_id)["State"] == "DISABLED"
    assert [found["Id"] for found in events.list_targets_by_rule(Rule=made.physical_id)["Targets"]] == ["1"]
    listed = events.list_tags_for_resource(ResourceARN=made.attributes["Arn"])["Tags"]
    assert {"Key": "team", "Value": "b"} in listed
    stack.delete(RULE, made.physical_id, **new)
    assert events.list_rules()["Rules"] == []
    for queue in (first, second):
        stack.delete(QUEUE, queue.physical_id)


@pytest.mark.parametrize(
    ("arn", "words"),
    [
        (f"arn:aws:sqs:{REGION}:123456789012:nowhere", "does not exist"),
        (f"arn:aws:lambda:{REGION}:123456789012:function:nobody", "does not exist"),
        (f"arn:aws:sns:{REGION}:123456789012:topic", "topic .* does not exist"),
        (f"arn:aws:kinesis:{REGION}:123456789012:stream/s", "only queues, topics and functions"),
    ],
)
def test_targets_of_a_rule_must_exist(stack: Stack, arn: str, words: str) -> None:
    with pytest.raises(HandlerError, match=words):
        stack.create(RULE, EventPattern={"source": ["aws.ec2"]}, Targets=[{"Id": "1", "Arn": arn}])
    assert stack.client("events").list_rules()["Rules"] == []


def schedule(roles: dict[str, str], **changes: Any) -> dict[str, Any]:
    scaling = {"ClusterName": "train", "NodegroupName": "gpu", "ScalingConfig": {"DesiredSize": 16}}
    target = {"Arn": SCALE, "RoleArn": roles["scheduler"], "Input": json.dumps(scaling), **changes.pop("Target", {})}
    window = {"Mode": "OFF"}
    full = {"Name": "start", "ScheduleExpression": "at(2026-12-01T11:30:00)", "FlexibleTimeWindow": window}
    return {**full, "Target": target, **changes}


def test_a_schedule_is_created_updated_and_deleted(stack: Stack, roles: dict[str, str]) -> None:
    old = schedule(roles, Description="block starts", ScheduleExpressionTimezone="Europe/Berlin", State="DISABLED")
    made = stack.create(SCHEDULE, **old)
    scheduler = stack.client("scheduler")
    found = scheduler.get_schedule(Name="start")
    assert (made.physical_id, made.attributes["Arn"]) == ("start", found["Arn"])
    assert (found["State"], found["ScheduleExpressionTimezone"]) == ("DISABLED", "Europe/Berlin")
    assert json.loads(found["Target"]["Input"])["ScalingConfig"] == {"DesiredSize": 16}
    stack.update(SCHEDULE, "start", old, schedule(roles, ScheduleExpression="rate(1 day)"))
    found = scheduler.get_schedule(Name="start")
    assert (found["ScheduleExpression"], found["State"]) == ("rate(1 day)", "ENABLED")
    assert (found["ScheduleExpressionTimezone"], found.get("Description")) == ("UTC", None)
    stack.delete(SCHEDULE, "start")
    assert scheduler.list_schedules()["Schedules"] == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ScheduleExpression": "at(2026-12-01 11:30)"}, "Invalid Schedule Expression"),
        ({"ScheduleExpression": "cron(0 12 * * ?)"}, "Invalid Schedule Expression"),
        ({"ScheduleExpressionTimezone": "Europe/Nowhere"}, "Invalid ScheduleExpressionTimezone"),
        ({"FlexibleTimeWindow": {"Mode": "FLEXIBLE"}}, "needs MaximumWindowInMinutes"),
        ({"Target": {"Arn": SCALE.replace("updateNodegroup", "resizeNodegroup")}}, "names no action"),
        ({"Target": {"Arn": SCALE.replace("updateNodegroupConfig", "describeNodegroup")}}, "names no action"),
        ({"Target": {"Arn": SCALE.replace("eks", "kubernetes")}}, "names no service"),
        ({"Target": {"Input": "[]"}}, "is not a JSON object"),
        ({"Target": {"DeadLetterConfig": {"Arn": f"arn:aws:sqs:{REGION}:123456789012:no"}}}, "does not exist"),
        ({"Target": {"RoleArn": "arn:aws:iam::123456789012:role/nobody"}}, "to assume the role"),
        ({"Target": {"RoleArn": "arn:aws:iam::123456789012:role/events"}}, "to assume the role"),
    ],
)
def test_schedules_that_are_refused(stack: Stack, roles: dict[str, str], changes: dict[str, Any], words: str) -> None:
    with pytest.raises(HandlerError, match=words):
        stack.create(SCHEDULE, **schedule(roles, **changes))
    assert stack.client("scheduler").list_schedules()["Schedules"] == []
