"""CloudWatch Logs: groups, resource policies and deliveries."""

import re
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from handler_parts import Stack, tags
from localaws.services.logs import PCS_LOG_TYPES

GROUP = "AWS::Logs::LogGroup"
SOURCE, DESTINATION, DELIVERY = (f"AWS::Logs::{kind}" for kind in ("DeliverySource", "DeliveryDestination", "Delivery"))


def group(stack: Stack, name: str) -> dict[str, Any]:
    return stack.client("logs").describe_log_groups(logGroupNamePrefix=name)["logGroups"][0]


def tags_of(stack: Stack, arn: str) -> dict[str, str]:
    return own(stack.client("logs").list_tags_for_resource(resourceArn=arn)["tags"])


def own(found: dict[str, str]) -> dict[str, str]:
    """Tags without those that CloudFormation adds."""
    return {key: value for key, value in found.items() if not key.startswith("aws:")}


def test_new_group_does_not_inherit_tags_of_the_old_one(stack):
    stack.make(GROUP, LogGroupName="/a", Tags=tags(team="a"))
    stack.delete(GROUP, "/a")
    stack.make(GROUP, LogGroupName="/a")
    assert tags_of(stack, "arn:aws:logs:us-east-1:123456789012:log-group:/a") == {}


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
