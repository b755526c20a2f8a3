"""A whole cluster as one CloudFormation stack: created, extended, rolled back, replaced, deleted."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from localaws import local_aws

GROUP_ID = {"Fn::GetAtt": ["Group", "GroupId"]}


def resource(kind: str, *depends: str, **properties: Any) -> dict[str, Any]:
    return {"Type": f"AWS::{kind}", "DependsOn": list(depends), "Properties": properties}


TEMPLATE: dict[str, Any] = {
    "Resources": {
        "Vpc": resource("EC2::VPC", CidrBlock="10.0.0.0/16"),
        "Subnet": resource("EC2::Subnet", VpcId={"Ref": "Vpc"}, CidrBlock="10.0.0.0/24"),
        "Group": resource("EC2::SecurityGroup", GroupDescription="efa", VpcId={"Ref": "Vpc"}),
        "In": resource("EC2::SecurityGroupIngress", GroupId=GROUP_ID, IpProtocol="-1", SourceSecurityGroupId=GROUP_ID),
        "Out": resource(
            "EC2::SecurityGroupEgress", GroupId=GROUP_ID, IpProtocol="-1", DestinationSecurityGroupId=GROUP_ID
        ),
        "Bucket": resource("S3::Bucket"),
        "Lustre": resource(
            "FSx::FileSystem",
            "In",
            "Out",
            FileSystemType="LUSTRE",
            StorageCapacity=4800,
            SubnetIds=[{"Ref": "Subnet"}],
            SecurityGroupIds=[GROUP_ID],
            LustreConfiguration={
                "DeploymentType": "PERSISTENT_2",
                "PerUnitStorageThroughput": 1000,
                "EfaEnabled": True,
                "MetadataConfiguration": {"Mode": "AUTOMATIC"},
            },
        ),
        "Link": resource(
            "FSx::DataRepositoryAssociation",
            FileSystemId={"Ref": "Lustre"},
            FileSystemPath="/data",
            DataRepositoryPath={"Fn::Sub": "s3://${Bucket}/"},
        ),
        "Role": resource("IAM::Role", Path="/aws-pcs/", AssumeRolePolicyDocument={"Version": "2012-10-17"}),
        "Profile": resource("IAM::InstanceProfile", Path="/aws-pcs/", Roles=[{"Ref": "Role"}]),
        "Template": resource(
            "EC2::LaunchTemplate",
            LaunchTemplateData={
                "ImageId": "ami-12345678",
                "NetworkInterfaces": [{"DeviceIndex": 0, "Groups": [GROUP_ID]}],
            },
        ),
        "Cluster": resource(
            "PCS::Cluster",
            Size="SMALL",
            Scheduler={"Type": "SLURM", "Version": "26.05"},
            Networking={"SubnetIds": [{"Ref": "Subnet"}], "SecurityGroupIds": [GROUP_ID]},
        ),
        "Nodes": resource(
            "PCS::ComputeNodeGroup",
            ClusterId={"Fn::GetAtt": ["Cluster", "Id"]},
            Name="gpu",
            InstanceConfigs=[{"InstanceType": "p5.48xlarge"}],
            SubnetIds=[{"Ref": "Subnet"}],
            IamInstanceProfileArn={"Fn::GetAtt": ["Profile", "Arn"]},
            ScalingConfiguration={"MinInstanceCount": 0, "MaxInstanceCount": 4},
            CustomLaunchTemplate={
                "TemplateId": {"Ref": "Template"},
                "Version": {"Fn::GetAtt": ["Template", "LatestVersionNumber"]},
            },
        ),
        "Queue": resource(
            "PCS::Queue",
            ClusterId={"Fn::GetAtt": ["Cluster", "Id"]},
            ComputeNodeGroupConfigurations=[{"ComputeNodeGroupId": {"Fn::GetAtt": ["Nodes", "Id"]}}],
        ),
        "Metrics": resource("APS::Workspace", Alias="train"),
        "Pictures": resource(
            "Grafana::Workspace",
            AccountAccessType="CURRENT_ACCOUNT",
            PermissionType="CUSTOMER_MANAGED",
            AuthenticationProviders=["AWS_SSO"],
            RoleArn={"Fn::GetAtt": ["Role", "Arn"]},
        ),
    },
    "Outputs": {"Cluster": {"Value": {"Ref": "Cluster"}}},
}


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from localaws.services import pcs_rules

    monkeypatch.setitem(pcs_rules.SLURM_VERSIONS, "26.05", pcs_rules.SLURM_VERSIONS["26.05"].replace(year=9999))
    with local_aws():
        yield boto3.client("cloudformation", "us-east-1")


def deploy(stacks: Any, template: dict[str, Any], action: str) -> str:
    arguments = {"StackName": "train", "Capabilities": ["CAPABILITY_IAM"]}
    getattr(stacks, f"{action}_stack")(**arguments, TemplateBody=json.dumps(template))
    return str(stacks.describe_stacks(StackName="train")["Stacks"][0]["StackStatus"])


def sized(size: str, most: int) -> dict[str, Any]:
    template = copy.deepcopy(TEMPLATE)
    template["Resources"]["Cluster"]["Properties"]["Size"] = size
    template["Resources"]["Nodes"]["Properties"]["ScalingConfiguration"]["MaxInstanceCount"] = most
    return template


def test_stack_of_a_pcs_cluster_is_created_updated_rolled_back_and_deleted(stacks: Any) -> None:
    pcs, fsx = boto3.client("pcs", "us-east-1"), boto3.client("fsx", "us-east-1")
    assert deploy(stacks, TEMPLATE, "create") == "CREATE_COMPLETE"
    first = pcs.list_clusters()["clusters"][0]
    outputs = stacks.describe_stacks(StackName="train")["Stacks"][0]["Outputs"]
    assert [output["OutputValue"] for output in outputs] == [first["arn"]]
    assert len(fsx.describe_data_repository_associations()["Associations"]) == 1

    assert deploy(stacks, sized("SMALL", 33), "update") == "UPDATE_ROLLBACK_COMPLETE"
    reasons = [
        event.get("ResourceStatusReason", "")
        for event in stacks.describe_stack_events(StackName="train")["StackEvents"]
    ]
    assert any("33 instances; a SMALL cluster manages 32" in reason for reason in reasons)
    named = {"clusterIdentifier": first["id"], "computeNodeGroupIdentifier": "gpu"}
    group = pcs.get_compute_node_group(**named)["computeNodeGroup"]
    assert group["scalingConfiguration"]["maxInstanceCount"] == 4

    assert deploy(stacks, sized("MEDIUM", 33), "update") == "UPDATE_COMPLETE"
    second = pcs.list_clusters()["clusters"]
    assert [cluster["id"] != first["id"] for cluster in second] == [True]
    queues = pcs.list_queues(clusterIdentifier=second[0]["id"])["queues"]
    group_id = pcs.list_compute_node_groups(clusterIdentifier=second[0]["id"])["computeNodeGroups"][0]["id"]
    shown = pcs.get_queue(clusterIdentifier=second[0]["id"], queueIdentifier=queues[0]["id"])["queue"]
    assert shown["computeNodeGroupConfigurations"] == [{"computeNodeGroupId": group_id}]
    assert len(fsx.describe_file_systems()["FileSystems"]) == 1

    stacks.delete_stack(StackName="train")
    assert pcs.list_clusters()["clusters"] == []
    assert fsx.describe_file_systems()["FileSystems"] == []
    assert boto3.client("amp", "us-east-1").list_workspaces()["workspaces"] == []
    assert boto3.client("grafana", "us-east-1").list_workspaces()["workspaces"] == []
