"""What single types do beyond the round trip."""

import json
import re
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.moto_api import state_manager

from handler_parts import ACCOUNT, Stack, tags
from localaws.properties import replacement
from localaws.resources import HandlerError
from localaws.services.logs import PCS_LOG_TYPES
from round_trip import World
from row_data import PARTS, managed_document, policy

KEY, GROUP, QUEUE, POLICY = "AWS::KMS::Key", "AWS::Logs::LogGroup", "AWS::SQS::Queue", "AWS::SQS::QueuePolicy"


@pytest.mark.parametrize(("properties", "days"), [({}, 30), ({"PendingWindowInDays": 7}, 7)])
def test_a_deleted_key_waits(stack: Stack, properties: dict[str, int], days: int) -> None:
    key = stack.make(KEY, **properties)
    stack.delete(KEY, key, **properties)
    found = stack.client("kms").describe_key(KeyId=key)["KeyMetadata"]
    assert round((found["DeletionDate"].timestamp() - found["CreationDate"].timestamp()) / 86400) == days


def test_a_protected_log_group_is_not_deleted(stack: Stack) -> None:
    group = stack.make(GROUP, DeletionProtectionEnabled=True)
    with pytest.raises(ClientError, match="protected"):
        stack.delete(GROUP, group)


def test_a_new_log_group_does_not_inherit_tags_of_the_old_one(stack: Stack) -> None:
    stack.make(GROUP, LogGroupName="/a", Tags=tags(team="a"))
    stack.delete(GROUP, "/a")
    stack.make(GROUP, LogGroupName="/a")
    arn = "arn:aws:logs:us-east-1:123456789012:log-group:/a"
    assert "team" not in stack.client("logs").list_tags_for_resource(resourceArn=arn)["tags"]


def test_a_source_takes_every_log_type_of_pcs_in_the_api(stack: Stack) -> None:
    model = boto3.client("logs", "us-east-1").meta.service_model.operation_model("PutDeliverySource")
    documentation = model.input_shape.members["logType"].documentation
    types: Any = re.search(r"For PCS, the valid values are(.*?)</li>", documentation)
    assert set(re.findall(r"PCS_\w+", types[1])) == set(PCS_LOG_TYPES)
    cluster = World(stack, PARTS).filled("$(pcs.Arn)")
    for number, kind in enumerate(PCS_LOG_TYPES):
        stack.create("AWS::Logs::DeliverySource", Name=f"n{number}", ResourceArn=cluster, LogType=kind)


def test_a_queues_policy_outlives_changes_of_the_queue(stack: Stack) -> None:
    url, sqs = stack.make(QUEUE, QueueName="kept"), stack.client("sqs")
    allow = {"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": "*"}]}
    stack.make(POLICY, Queues=[url], PolicyDocument=allow)
    stack.update(QUEUE, url, {"QueueName": "kept"}, {"QueueName": "kept", "DelaySeconds": 5})
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])["Attributes"]["Policy"]
    assert json.loads(found) == allow


@pytest.mark.parametrize(
    ("kind", "part", "named"),
    [("pcs::cluster", "pcs", {"clusterIdentifier": "$(pcs.Id)"}), ("eks::cluster", "cluster", {"name": "$(cluster)"})],
)
def test_a_resource_is_created_when_it_is_active(stack: Stack, kind: str, part: str, named: dict[str, str]) -> None:
    world = World(stack, PARTS)
    world.filled("$(subnet) $(subnet2) $(sg) $(cluster_role)")
    state_manager.set_transition(kind, {"progression": "manual", "times": 3})
    try:
        world.filled(f"$({part})")
    finally:
        state_manager.unset_transition(kind)
    client = stack.client(kind.split(":")[0])
    describe = client.get_cluster if part == "pcs" else client.describe_cluster
    assert describe(**world.filled(named))["cluster"]["status"] == "ACTIVE"


def test_pcs_refuses_an_update_to_an_empty_list(stack: Stack) -> None:
    world = World(stack, PARTS)
    cluster, properties = world.filled("$(pcs)"), world.filled(PARTS["pcs"][1])
    empty = {**properties, "SlurmConfiguration": {"SlurmCustomSettings": []}}
    with pytest.raises(HandlerError, match="SlurmCustomSettings is an empty list"):
        stack.update("AWS::PCS::Cluster", cluster, properties, empty)


def test_a_change_to_dedicated_tenancy_replaces_a_vpc() -> None:
    default: dict[str, Any] = {"CidrBlock": "10.1.0.0/16"}
    dedicated = {**default, "InstanceTenancy": "dedicated"}
    assert replacement("AWS::EC2::VPC", default, dedicated, "us-east-1") == "True"
    assert replacement("AWS::EC2::VPC", dedicated, default, "us-east-1") == "False"


@pytest.mark.parametrize(
    ("region", "zone"),
    [("us-east-1", "us-east-1-dfw-2a"), ("us-east-1", "us-east-1-atl-2a"), ("us-west-2", "us-west-2-phx-2a")],
)
def test_subnets_can_be_in_local_zones_with_capacity_blocks(stack: Stack, region: str, zone: str) -> None:
    there = Stack(region)
    vpc = there.make("AWS::EC2::VPC", CidrBlock="10.0.0.0/16")
    made = there.create("AWS::EC2::Subnet", VpcId=vpc, CidrBlock="10.0.0.0/24", AvailabilityZone=zone)
    assert made.attributes["AvailabilityZone"] == zone


@pytest.mark.parametrize(
    "name",
    [
        "CloudWatchAgentServerPolicy",
        "AmazonPrometheusQueryAccess",
        "AmazonPrometheusRemoteWriteAccess",
        "service-role/AWSLambdaBasicExecutionRole",
        "AdministratorAccess",
    ],
)
def test_managed_policies_of_aws_exist(stack: Stack, name: str) -> None:
    assert stack.client("iam").get_policy(PolicyArn=f"arn:aws:iam::aws:policy/{name}")["Policy"]


def test_a_managed_policy_has_at_most_five_versions(stack: Stack) -> None:
    old = {"ManagedPolicyName": "mine", "PolicyDocument": policy(Action="s3:Get0", Resource="*")}
    arn = stack.make("AWS::IAM::ManagedPolicy", **old)
    for number in range(1, 8):
        new = {**old, "PolicyDocument": policy(Action=f"s3:Get{number}", Resource="*")}
        changed = stack.update("AWS::IAM::ManagedPolicy", arn, old, new)
        assert changed.attributes["DefaultVersionId"] == f"v{number + 1}"
        assert managed_document(stack, arn) == new["PolicyDocument"]
        old = new
    assert len(stack.client("iam").list_policy_versions(PolicyArn=arn)["Versions"]) == 5
    stack.delete("AWS::IAM::ManagedPolicy", arn, **old)


def test_an_instance_profile_whose_role_was_removed_gets_another(stack: Stack) -> None:
    iam, trust = stack.client("iam"), policy(Principal={"Service": "ec2.amazonaws.com"}, Action="sts:AssumeRole")
    first, second = (stack.make("AWS::IAM::Role", AssumeRolePolicyDocument=trust) for _ in range(2))
    made = stack.make("AWS::IAM::InstanceProfile", Roles=[first])
    iam.remove_role_from_instance_profile(InstanceProfileName=made, RoleName=first)
    with pytest.raises(ClientError, match="NoSuchEntity"):
        iam.remove_role_from_instance_profile(InstanceProfileName=made, RoleName=first)
    stack.update("AWS::IAM::InstanceProfile", made, {"Roles": [first]}, {"Roles": [second]})
    found = iam.get_instance_profile(InstanceProfileName=made)["InstanceProfile"]["Roles"]
    assert [role["RoleName"] for role in found] == [second]


def test_a_topic_whose_policy_is_deleted_may_be_used_by_the_account(stack: Stack) -> None:
    world = World(stack, PARTS)
    topic, sns = world.filled("$(topic)"), stack.client("sns")
    document = policy(Principal={"Service": "aps.amazonaws.com"}, Action="sns:Publish", Resource=topic)
    made = stack.make("AWS::SNS::TopicPolicy", Topics=[topic], PolicyDocument=document)
    stack.delete("AWS::SNS::TopicPolicy", made, Topics=[topic], PolicyDocument=document)
    (statement,) = json.loads(sns.get_topic_attributes(TopicArn=topic)["Attributes"]["Policy"])["Statement"]
    assert {"SNS:Publish", "SNS:Subscribe"} <= set(statement["Action"])
    assert (statement["Resource"], statement["Condition"]) == (topic, {"StringEquals": {"AWS:SourceOwner": ACCOUNT}})
