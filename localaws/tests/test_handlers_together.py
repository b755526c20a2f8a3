"""One CloudFormation stack with every EC2, IAM, KMS, S3 and Logs type: created, updated, rolled back, deleted."""

import copy
from typing import Any

import pytest
from botocore.exceptions import ClientError

from localaws.resources import HANDLERS, client
from stack_parts import Stacks

REGION = "us-east-2"
TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
ALLOW = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]}


def ref(name: str) -> dict[str, str]:
    return {"Ref": name}


def att(name: str, attribute: str) -> dict[str, list[str]]:
    return {"Fn::GetAtt": [name, attribute]}


def thing(type_name: str, /, depends_on: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {"Type": f"AWS::{type_name}", "Properties": properties, **({"DependsOn": depends_on} if depends_on else {})}


def resources() -> dict[str, Any]:
    root = {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"}
    logs_service = {"Fn::Sub": "logs.${AWS::Region}.amazonaws.com"}
    key_policy = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"AWS": root}, "Action": "kms:*", "Resource": "*"},
            {"Effect": "Allow", "Principal": {"Service": logs_service}, "Action": "kms:*", "Resource": "*"},
            {"Effect": "Allow", "Principal": {"AWS": att("Role", "Arn")}, "Action": "kms:Decrypt", "Resource": "*"},
        ],
    }
    nowhere = "arn:aws:bedrock:us-east-2:123456789012:knowledge-base/kb"
    return {
        "Vpc": thing("EC2::VPC", CidrBlock="10.0.0.0/16", EnableDnsHostnames=True, EnableDnsSupport=True),
        "Public": thing("EC2::Subnet", VpcId=ref("Vpc"), CidrBlock="10.0.0.0/24", AvailabilityZone="us-east-2a"),
        "Nodes": thing("EC2::Subnet", VpcId=ref("Vpc"), CidrBlock="10.0.16.0/20", AvailabilityZone="us-east-2a"),
        "Gateway": thing("EC2::InternetGateway"),
        "Attachment": thing("EC2::VPCGatewayAttachment", VpcId=ref("Vpc"), InternetGatewayId=ref("Gateway")),
        "PublicTable": thing("EC2::RouteTable", VpcId=ref("Vpc")),
        "PublicRoute": thing(
            "EC2::Route",
            ["Attachment"],
            RouteTableId=ref("PublicTable"),
            DestinationCidrBlock="0.0.0.0/0",
            GatewayId=ref("Gateway"),
        ),
        "PublicTableOfSubnet": thing(
            "EC2::SubnetRouteTableAssociation", SubnetId=ref("Public"), RouteTableId=ref("PublicTable")
        ),
        "Address": thing("EC2::EIP", Domain="vpc"),
        "Nat": thing(
            "EC2::NatGateway",
            ["PublicRoute", "PublicTableOfSubnet"],
            SubnetId=ref("Public"),
            AllocationId=att("Address", "AllocationId"),
        ),
        "NodeTable": thing("EC2::RouteTable", VpcId=ref("Vpc")),
        "NodeRoute": thing(
            "EC2::Route", RouteTableId=ref("NodeTable"), DestinationCidrBlock="0.0.0.0/0", NatGatewayId=ref("Nat")
        ),
        "NodeTableOfSubnet": thing(
            "EC2::SubnetRouteTableAssociation", SubnetId=ref("Nodes"), RouteTableId=ref("NodeTable")
        ),
        "Efa": thing(
            "EC2::SecurityGroup",
            GroupDescription="EFA",
            VpcId=ref("Vpc"),
            SecurityGroupEgress=[{"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "CidrIp": "0.0.0.0/0"}],
        ),
        "EfaIn": thing(
            "EC2::SecurityGroupIngress",
            GroupId=att("Efa", "GroupId"),
            IpProtocol="-1",
            SourceSecurityGroupId=att("Efa", "GroupId"),
        ),
        "EfaOut": thing(
            "EC2::SecurityGroupEgress",
            GroupId=att("Efa", "GroupId"),
            IpProtocol="-1",
            DestinationSecurityGroupId=att("Efa", "GroupId"),
        ),
        "S3": thing(
            "EC2::VPCEndpoint",
            VpcId=ref("Vpc"),
            ServiceName={"Fn::Sub": "com.amazonaws.${AWS::Region}.s3"},
            RouteTableIds=[ref("NodeTable")],
        ),
        "Ssm": thing(
            "EC2::VPCEndpoint",
            VpcId=ref("Vpc"),
            ServiceName={"Fn::Sub": "com.amazonaws.${AWS::Region}.ssm"},
            VpcEndpointType="Interface",
            PrivateDnsEnabled=True,
            SubnetIds=[ref("Nodes")],
            SecurityGroupIds=[ref("Efa")],
        ),
        "Role": thing("IAM::Role", AssumeRolePolicyDocument=TRUST, Path="/aws-pcs/"),
        "RolePolicy": thing("IAM::Policy", PolicyName="read", PolicyDocument=ALLOW, Roles=[ref("Role")]),
        "Shared": thing("IAM::ManagedPolicy", PolicyDocument=ALLOW, Roles=[ref("Role")]),
        "Profile": thing("IAM::InstanceProfile", Roles=[ref("Role")], Path="/aws-pcs/"),
        "Key": thing("KMS::Key", KeyPolicy=key_policy, EnableKeyRotation=True),
        "Alias": thing("KMS::Alias", AliasName="alias/train", TargetKeyId=ref("Key")),
        "Logs": thing("Logs::LogGroup", LogGroupName="/train", RetentionInDays=30, KmsKeyId=att("Key", "Arn")),
        "Errors": thing(
            "Logs::MetricFilter",
            LogGroupName=ref("Logs"),
            FilterPattern="ERROR",
            MetricTransformations=[{"MetricNamespace": "Train", "MetricName": "Errors", "MetricValue": "1"}],
        ),
        "Query": thing(
            "Logs::QueryDefinition", Name="errors", QueryString="fields @message", LogGroupNames=[ref("Logs")]
        ),
        "LogsPolicy": thing("Logs::ResourcePolicy", PolicyName="train", PolicyDocument='{"Statement": []}'),
        "Flows": thing(
            "EC2::FlowLog",
            ResourceId=ref("Vpc"),
            ResourceType="VPC",
            TrafficType="ALL",
            LogGroupName=ref("Logs"),
            DeliverLogsPermissionArn=att("Role", "Arn"),
        ),
        "Source": thing("Logs::DeliverySource", Name="kb", ResourceArn=nowhere, LogType="APPLICATION_LOGS"),
        "Destination": thing("Logs::DeliveryDestination", Name="train", DestinationResourceArn=att("Logs", "Arn")),
        "Delivery": thing(
            "Logs::Delivery",
            DeliverySourceName=ref("Source"),
            DeliveryDestinationArn=att("Destination", "Arn"),
        ),
        "Bucket": thing(
            "S3::Bucket",
            BucketEncryption={
                "ServerSideEncryptionConfiguration": [
                    {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": att("Key", "Arn")}}
                ]
            },
            VersioningConfiguration={"Status": "Enabled"},
        ),
        "BucketPolicy": thing("S3::BucketPolicy", Bucket=ref("Bucket"), PolicyDocument={"Statement": []}),
        "Group": thing("EC2::PlacementGroup", Strategy="cluster"),
        "Bastion": thing(
            "EC2::Instance", ImageId="ami-12c6146b", SubnetId=ref("Nodes"), SecurityGroupIds=[att("Efa", "GroupId")]
        ),
        "Template": thing(
            "EC2::LaunchTemplate",
            LaunchTemplateData={
                "InstanceType": "p5.48xlarge",
                "IamInstanceProfile": {"Arn": att("Profile", "Arn")},
                "Placement": {"GroupName": att("Group", "GroupName")},
                "NetworkInterfaces": [
                    {"DeviceIndex": 0, "NetworkCardIndex": 0, "InterfaceType": "efa", "Groups": [ref("Efa")]}
                ],
            },
        ),
    }


OUTPUTS = {
    "Version": {"Value": att("Template", "LatestVersionNumber")},
    "Template": {"Value": ref("Template")},
    "Efa": {"Value": att("Efa", "GroupId")},
}


def left() -> dict[str, int]:
    """Number of resources outside the default VPC, by kind."""
    ec2, iam_, logs_ = client("ec2", REGION), client("iam", REGION), client("logs", REGION)
    own = [{"Name": "tag-key", "Values": ["aws:cloudformation:stack-id"]}]
    return {
        "VPCs": len(ec2.describe_vpcs(Filters=own)["Vpcs"]),
        "subnets": len(ec2.describe_subnets(Filters=own)["Subnets"]),
        "groups": len(ec2.describe_security_groups(Filters=own)["SecurityGroups"]),
        "tables": len(ec2.describe_route_tables(Filters=own)["RouteTables"]),
        "gateways": len(ec2.describe_internet_gateways()["InternetGateways"]),
        "addresses": len(ec2.describe_addresses()["Addresses"]),
        "endpoints": len(ec2.describe_vpc_endpoints()["VpcEndpoints"]),
        "interfaces": len(ec2.describe_network_interfaces()["NetworkInterfaces"]),
        "instances": len(
            [each for each in ec2.describe_instances()["Reservations"] if each["Instances"][0]["State"]["Code"] < 48]
        ),
        "templates": len(ec2.describe_launch_templates()["LaunchTemplates"]),
        "placement groups": len(ec2.describe_placement_groups()["PlacementGroups"]),
        "flow logs": len(ec2.describe_flow_logs()["FlowLogs"]),
        "roles": len(iam_.list_roles()["Roles"]),
        "profiles": len(iam_.list_instance_profiles()["InstanceProfiles"]),
        "policies": len(iam_.list_policies(Scope="Local")["Policies"]),
        "log groups": len(logs_.describe_log_groups()["logGroups"]),
        "deliveries": len(logs_.describe_deliveries()["deliveries"]),
        "buckets": len(client("s3", REGION).list_buckets()["Buckets"]),
        "aliases": len([a for a in client("kms", REGION).list_aliases()["Aliases"] if a["AliasName"] == "alias/train"]),
    }


def test_every_type_of_these_modules_is_in_the_stack():
    services = {"EC2", "IAM", "KMS", "S3", "Logs"}
    types = {name for name in HANDLERS if name.split("::")[1] in services}
    assert {about["Type"] for about in resources().values()} == types


def test_stack_is_created_updated_and_deleted(stacks: Stacks):
    first = resources()
    assert stacks.create(first, Outputs=OUTPUTS, Capabilities=["CAPABILITY_IAM"]) == "CREATE_COMPLETE"
    assert [kind for kind, count in left().items() if not count] == []
    ids, outputs = stacks.ids(), stacks.outputs()
    assert outputs == {"Version": "1", "Template": ids["Template"], "Efa": ids["Efa"]}

    second = copy.deepcopy(first)
    second["Template"]["Properties"]["LaunchTemplateData"]["InstanceType"] = "p5en.48xlarge"
    second["Group"]["Properties"] = {"Strategy": "partition", "PartitionCount": 3}
    options: dict[str, Any] = {"Outputs": OUTPUTS, "Capabilities": ["CAPABILITY_IAM"]}
    assert stacks.update(second, **options) == "UPDATE_COMPLETE"
    changed = stacks.ids()
    assert {name for name in ids if ids[name] != changed[name]} == {"Group"}
    assert stacks.outputs()["Version"] == "2"
    data = client("ec2", REGION).describe_launch_template_versions(
        LaunchTemplateId=ids["Template"], Versions=["$Latest"]
    )["LaunchTemplateVersions"][0]["LaunchTemplateData"]
    assert data["Placement"]["GroupName"] == changed["Group"]

    third = copy.deepcopy(second)
    third["Vpc"]["Properties"]["EnableDnsSupport"] = True
    third["Logs"]["Properties"]["RetentionInDays"] = 90
    third["Template"]["Properties"]["LaunchTemplateData"]["KeyName"] = "nobody"
    assert stacks.update(third, **options) == "UPDATE_ROLLBACK_COMPLETE"
    assert "key pair nobody does not exist" in stacks.event_reason("Template", "UPDATE_FAILED")
    group = client("logs", REGION).describe_log_groups(logGroupNamePrefix="/train")["logGroups"][0]
    assert group["retentionInDays"] == 30

    assert stacks.delete() == "DELETE_COMPLETE"
    assert {kind: count for kind, count in left().items() if count} == {}


@pytest.mark.parametrize("broken", ["Nat", "Ssm", "Template", "BucketPolicy", "Delivery"])
def test_failed_creation_leaves_nothing(stacks: Stacks, broken: str):
    wrong = {
        "Nat": {"AllocationId": "eipalloc-0123456789abcdef0"},
        "Ssm": {"SecurityGroupIds": ["sg-0123456789abcdef0"]},
        "Template": {"LaunchTemplateData": {"InstanceType": "p9.48xlarge"}},
        "BucketPolicy": {"Bucket": "nowhere"},
        "Delivery": {"DeliverySourceName": "nowhere"},
    }
    asked = resources()
    asked[broken]["Properties"] |= wrong[broken]
    assert stacks.create(asked, Capabilities=["CAPABILITY_IAM"]) == "ROLLBACK_COMPLETE"
    assert {kind: count for kind, count in left().items() if count} == {}


def test_attribute_is_read_once_and_only_when_something_refers_to_it(stacks: Stacks) -> None:
    group, parameter = thing("Logs::LogGroup", LogGroupName="logs"), "SSM::Parameter"
    user = thing(parameter, Type="String", Value=att("Logs", "Arn"))
    template, logs = {"Logs": group, "Quiet": thing("Logs::LogGroup", LogGroupName="quiet")}, client("logs", REGION)
    assert stacks.create({**template, "User": user}) == "CREATE_COMPLETE"
    for name in ("logs", "quiet"):
        logs.delete_log_group(logGroupName=name)
    more = thing(parameter, Type="String", Value="more")
    assert stacks.update({**template, "User": user, "More": more}) == "UPDATE_COMPLETE"
    late = thing(parameter, Type="String", Value=att("Quiet", "Arn"))
    with pytest.raises(ClientError, match="Arn of resource Quiet cannot be read: the resource does not exist"):
        stacks.update({**template, "User": user, "More": more, "Late": late})
    assert stacks.status() == "UPDATE_COMPLETE"


def test_association_that_does_not_succeed_fails_though_nothing_refers_to_it(stacks: Stacks) -> None:
    steps = [{"action": "aws:runShellScript", "name": "run", "inputs": {"runCommand": ["true"]}}]
    document = thing("SSM::Document", DocumentType="Command", Content={"schemaVersion": "2.2", "mainSteps": steps})
    association = thing("SSM::Association", Name=ref("Document"), WaitForSuccessTimeoutSeconds=15)
    assert stacks.create({"Document": document, "Association": association}) == "ROLLBACK_COMPLETE"
    assert "did not succeed within 15 seconds" in stacks.event_reason("Association", "CREATE_FAILED")
