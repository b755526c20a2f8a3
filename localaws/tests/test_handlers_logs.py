"""CloudWatch Logs: groups, resource policies and deliveries."""

import re
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from handler_parts import Stack, tags
from localaws.resources import HANDLERS, HandlerError, NotUpdatable
from localaws.services.logs import PCS_LOG_TYPES

GROUP = "AWS::Logs::LogGroup"
SOURCE, DESTINATION, DELIVERY = (f"AWS::Logs::{kind}" for kind in ("DeliverySource", "DeliveryDestination", "Delivery"))
BEDROCK = {"ResourceArn": "arn:aws:bedrock:us-east-1:123456789012:knowledge-base/kb", "LogType": "APPLICATION_LOGS"}


def key_for(stack: Stack, *services: str) -> str:
    statements = [
        {"Effect": "Allow", "Principal": {"Service": service}, "Action": "kms:*", "Resource": "*"}
        for service in services
    ]
    return stack.create("AWS::KMS::Key", KeyPolicy={"Statement": statements}).attributes["Arn"]


def group(stack: Stack, name: str) -> dict[str, Any]:
    return stack.client("logs").describe_log_groups(logGroupNamePrefix=name)["logGroups"][0]


def tags_of(stack: Stack, arn: str) -> dict[str, str]:
    return own(stack.client("logs").list_tags_for_resource(resourceArn=arn)["tags"])


def own(found: dict[str, str]) -> dict[str, str]:
    """Tags without those that CloudFormation adds."""
    return {key: value for key, value in found.items() if not key.startswith("aws:")}


def test_log_group_is_read_back_and_changed_in_place(stack):
    first, second = (key_for(stack, "logs.us-east-1.amazonaws.com") for _ in range(2))
    fixed = {"LogGroupName": "/train/pcs", "LogGroupClass": "INFREQUENT_ACCESS"}
    old = {**fixed, "RetentionInDays": 30, "KmsKeyId": first, "Tags": tags(team="a", cost="1")}
    made = stack.create(GROUP, **old)
    arn = "arn:aws:logs:us-east-1:123456789012:log-group:/train/pcs"
    assert made == ("/train/pcs", {"Arn": f"{arn}:*"})
    found = group(stack, "/train/pcs")
    assert (found["retentionInDays"], found["kmsKeyId"]) == (30, first)
    assert found["logGroupClass"] == "INFREQUENT_ACCESS"
    assert tags_of(stack, arn) == {"team": "a", "cost": "1"}

    new = {
        **fixed,
        "RetentionInDays": 90,
        "KmsKeyId": second,
        "DeletionProtectionEnabled": True,
        "Tags": tags(team="b"),
    }
    stack.update(GROUP, "/train/pcs", old, new)
    found = group(stack, "/train/pcs")
    assert (found["retentionInDays"], found["kmsKeyId"]) == (90, second)
    assert found["deletionProtectionEnabled"] is True
    assert tags_of(stack, arn) == {"team": "b"}
    with pytest.raises(ClientError, match="protected"):
        stack.delete(GROUP, "/train/pcs")
    stack.update(GROUP, "/train/pcs", new, fixed)
    found = group(stack, "/train/pcs")
    assert found.keys() & {"retentionInDays", "kmsKeyId"} == set()
    stack.delete(GROUP, "/train/pcs")
    assert stack.client("logs").describe_log_groups()["logGroups"] == []


def test_log_group_is_named_by_cloudformation_without_a_name(stack):
    made = stack.make(GROUP)
    assert made.startswith("Train-Thing-")
    assert group(stack, made)["logGroupClass"] == "STANDARD"


@pytest.mark.parametrize("services", [(), ("fsx.amazonaws.com",)])
def test_key_policy_must_allow_cloudwatch_logs(stack, services):
    key = key_for(stack, *services)
    for refused in (key, "arn:aws:kms:us-east-1:123456789012:key/nokey"):
        with pytest.raises(ClientError, match="does not exist or is not allowed to be used with Arn 'arn:aws:logs:"):
            stack.create(GROUP, KmsKeyId=refused)


def test_class_of_a_log_group_cannot_change(stack):
    made = stack.make(GROUP)
    with pytest.raises(NotUpdatable, match="LogGroupClass"):
        HANDLERS[GROUP].update(stack.context(GROUP), made, {}, {"LogGroupClass": "INFREQUENT_ACCESS"})


def test_new_group_does_not_inherit_tags_of_the_old_one(stack):
    stack.make(GROUP, LogGroupName="/a", Tags=tags(team="a"))
    stack.delete(GROUP, "/a")
    stack.make(GROUP, LogGroupName="/a")
    assert tags_of(stack, "arn:aws:logs:us-east-1:123456789012:log-group:/a") == {}


def test_resource_policy_is_read_back(stack):
    logs = stack.client("logs")
    old, new = ({"PolicyName": "p", "PolicyDocument": f'{{"Version": "{version}"}}'} for version in ("1", "2"))
    assert stack.create("AWS::Logs::ResourcePolicy", **old) == ("p", {})
    stack.update("AWS::Logs::ResourcePolicy", "p", old, new)
    found = logs.describe_resource_policies()["resourcePolicies"]
    assert [(policy["policyName"], policy["policyDocument"]) for policy in found] == [("p", '{"Version": "2"}')]
    stack.delete("AWS::Logs::ResourcePolicy", "p")
    assert logs.describe_resource_policies()["resourcePolicies"] == []


def cluster(stack: Stack) -> str:
    vpc = stack.make("AWS::EC2::VPC", CidrBlock="10.0.0.0/16")
    subnet = stack.make("AWS::EC2::Subnet", VpcId=vpc, CidrBlock="10.0.0.0/24", AvailabilityZone="us-east-1a")
    nodes = stack.make("AWS::EC2::SecurityGroup", GroupDescription="nodes", VpcId=vpc)
    made = stack.client("pcs").create_cluster(
        clusterName="train",
        scheduler={"type": "SLURM", "version": "25.11"},
        size="SMALL",
        networking={"subnetIds": [subnet], "securityGroupIds": [nodes]},
    )
    return made["cluster"]["arn"]


def delivered(stack: Stack) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A delivery of a PCS cluster's scheduler logs, with the properties of its two ends."""
    source = {"Name": "scheduler", "ResourceArn": cluster(stack), "LogType": "PCS_SCHEDULER_LOGS", "Tags": tags(a="b")}
    stack.make(SOURCE, **source)
    arn = stack.create(GROUP, LogGroupName="/train/pcs").attributes["Arn"]
    destination = {"Name": "group", "DestinationResourceArn": arn, "OutputFormat": "json", "Tags": tags(a="b")}
    made = stack.create(DESTINATION, **destination)
    asked = {"DeliverySourceName": "scheduler", "DeliveryDestinationArn": made.attributes["Arn"]}
    return stack.make(DELIVERY, **asked, Tags=tags(a="b")), source, destination


def test_delivery_of_scheduler_logs_is_read_back(stack):
    logs = stack.client("logs")
    delivery, source, destination = delivered(stack)
    found = logs.get_delivery_source(name="scheduler")["deliverySource"]
    assert (found["service"], found["logType"]) == ("pcs", "PCS_SCHEDULER_LOGS")
    assert (found["resourceArns"], own(found["tags"])) == ([source["ResourceArn"]], {"a": "b"})
    found = logs.get_delivery_destination(name="group")["deliveryDestination"]
    target = found["deliveryDestinationConfiguration"]["destinationResourceArn"]
    assert (target, found["outputFormat"]) == (destination["DestinationResourceArn"], "json")
    assert own(found["tags"]) == {"a": "b"}
    shown = logs.get_delivery(id=delivery)["delivery"]
    assert (shown["deliverySourceName"], shown["deliveryDestinationArn"]) == ("scheduler", found["arn"])
    assert (shown["deliveryDestinationType"], own(shown["tags"])) == ("CWL", {"a": "b"})
    assert "recordFields" not in shown

    asked = {"DeliverySourceName": "scheduler", "DeliveryDestinationArn": found["arn"]}
    old, new = {**asked, "Tags": tags(a="b")}, {**asked, "RecordFields": ["event"], "Tags": tags(c="d")}
    stack.update(DELIVERY, delivery, old, new)
    shown = logs.get_delivery(id=delivery)["delivery"]
    assert (shown["recordFields"], own(shown["tags"])) == (["event"], {"c": "d"})
    stack.update(DELIVERY, delivery, new, {**asked, "RecordFields": ["event"]})
    assert own(logs.get_delivery(id=delivery)["delivery"].get("tags", {})) == {}
    stack.update(SOURCE, "scheduler", source, {**source, "Tags": tags(c="d")})
    stack.update(DESTINATION, "group", destination, {**destination, "Tags": tags(c="d")})
    assert own(logs.get_delivery_source(name="scheduler")["deliverySource"]["tags"]) == {"c": "d"}
    assert own(logs.get_delivery_destination(name="group")["deliveryDestination"]["tags"]) == {"c": "d"}


def test_source_and_destination_of_a_delivery_are_not_deleted(stack):
    delivery, _, _ = delivered(stack)
    for kind, name in ((SOURCE, "scheduler"), (DESTINATION, "group")):
        with pytest.raises(ClientError, match="ConflictException"):
            stack.delete(kind, name)
    stack.delete(DELIVERY, delivery)
    stack.delete(SOURCE, "scheduler")
    stack.delete(DESTINATION, "group")
    logs = stack.client("logs")
    assert logs.describe_deliveries()["deliveries"] == []
    assert logs.describe_delivery_sources()["deliverySources"] == []
    assert logs.describe_delivery_destinations()["deliveryDestinations"] == []


def test_delivery_to_a_bucket_keeps_its_path(stack):
    bucket = stack.create("AWS::S3::Bucket").attributes["Arn"]
    stack.make(SOURCE, Name="kb", **BEDROCK)
    arn = stack.create(DESTINATION, Name="bucket", DestinationResourceArn=bucket).attributes["Arn"]
    path = {"S3SuffixPath": "logs/{yyyy}/", "S3EnableHiveCompatiblePath": True}
    made = stack.make(DELIVERY, DeliverySourceName="kb", DeliveryDestinationArn=arn, **path)
    shown = stack.client("logs").get_delivery(id=made)["delivery"]
    assert shown["s3DeliveryConfiguration"] == {"suffixPath": "logs/{yyyy}/", "enableHiveCompatiblePath": True}


@pytest.mark.parametrize(
    ("kind", "asked", "error", "reason"),
    [
        (
            SOURCE,
            {
                "ResourceArn": "arn:aws:pcs:us-east-1:123456789012:cluster/pcs_nothere00",
                "LogType": "PCS_SCHEDULER_LOGS",
            },
            HandlerError,
            "PCS cluster .* does not exist",
        ),
        (SOURCE, {"LogType": "PCS_SCHEDULER_LOGS"}, HandlerError, "ResourceArn is missing"),
        (SOURCE, {**BEDROCK, "LogType": "PCS_SCHEDULER_LOGS"}, ClientError, "not allowed for this LogSource"),
        (
            DESTINATION,
            {"DestinationResourceArn": "arn:aws:logs:us-east-1:123456789012:log-group:/nowhere:*"},
            HandlerError,
            "log group /nowhere does not exist",
        ),
        (
            DESTINATION,
            {"DestinationResourceArn": "arn:aws:s3:::nowhere"},
            HandlerError,
            "bucket nowhere does not exist",
        ),
    ],
)
def test_delivery_refuses_missing_references(stack, kind, asked, error, reason):
    with pytest.raises(error, match=reason):
        stack.create(kind, Name="n", **asked)


def test_pcs_source_takes_every_log_type_of_the_api_and_no_other(stack):
    documentation = client_documentation("logs", "PutDeliverySource", "logType")
    types = re.search(r"For PCS, the valid values are(.*?)</li>", documentation).group(1)
    assert set(re.findall(r"PCS_\w+", types)) == set(PCS_LOG_TYPES)
    arn = cluster(stack)
    for number, kind in enumerate(PCS_LOG_TYPES):
        stack.create(SOURCE, Name=f"n{number}", ResourceArn=arn, LogType=kind)


def client_documentation(service, operation, parameter):
    model = boto3.client(service, "us-east-1").meta.service_model.operation_model(operation)
    return model.input_shape.members[parameter].documentation


def test_pcs_source_refuses_unknown_log_types(stack):
    with pytest.raises(ClientError, match="not allowed for this LogSource"):
        stack.create(SOURCE, Name="n", ResourceArn=cluster(stack), LogType="ACCESS_LOGS")
