"""Resources that the types of the round trip refer to, by name."""

import base64
from typing import Any

from handler_parts import ACCOUNT, Stack

ROOT = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "kms:*", "Resource": "*"}
USERS = {"Effect": "Allow", "Principal": {"Service": "logs.us-east-1.amazonaws.com"}, "Action": "kms:*"}
MIME = b'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="=="\n\n--==--\n'
PARAMETER = {"Type": "String", "Value": "v"}


def policy(*statements: dict[str, Any]) -> dict[str, Any]:
    """A policy document."""
    return {"Version": "2012-10-17", "Statement": list(statements)}


def allow(action: str, resource: str = "*", **more: Any) -> dict[str, Any]:
    """A policy document that allows an action."""
    return policy({"Effect": "Allow", "Action": action, "Resource": resource, **more})


def trust(service: str, *actions: str) -> dict[str, Any]:
    """A trust policy: the service may assume the role."""
    principal = {"Service": f"{service}.amazonaws.com"}
    return policy({"Effect": "Allow", "Principal": principal, "Action": list(actions) or "sts:AssumeRole"})


def assumed_by(role: str) -> dict[str, Any]:
    """A trust policy: the role may assume the role."""
    return policy({"Effect": "Allow", "Principal": {"AWS": role}, "Action": "sts:AssumeRole"})


def role(service: str, *actions: str) -> tuple[str, dict[str, Any]]:
    """A role that a service may assume."""
    return "AWS::IAM::Role", {"AssumeRolePolicyDocument": trust(service, *actions)}


def alarm(name: str) -> tuple[str, dict[str, Any]]:
    """An alarm."""
    metric = {"Namespace": "N", "MetricName": "M", "Statistic": "Sum", "Period": 60, "EvaluationPeriods": 1}
    compare = {"Threshold": 1, "ComparisonOperator": "GreaterThanThreshold"}
    return "AWS::CloudWatch::Alarm", {"AlarmName": name, **metric, **compare}


KEY = ("AWS::KMS::Key", {"KeyPolicy": policy(ROOT, {**USERS, "Resource": "*"})})


def group_of_itself(stack: Stack) -> str:
    """A security group that lets its members reach each other, as EFA needs it."""
    ec2 = stack.client("ec2")
    (subnet,) = ec2.describe_subnets(Filters=[{"Name": "cidr-block", "Values": ["10.0.0.0/24"]}])["Subnets"]
    group: str = ec2.create_security_group(GroupName="efa", Description="efa", VpcId=subnet["VpcId"])["GroupId"]
    itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=itself)
    ec2.authorize_security_group_egress(GroupId=group, IpPermissions=itself)
    return group


def nodes(cluster: str) -> tuple[str, dict[str, Any]]:
    """A compute node group of a PCS cluster."""
    return "AWS::PCS::ComputeNodeGroup", {
        "ClusterId": cluster,
        "InstanceConfigs": [{"InstanceType": "p5.48xlarge"}],
        "SubnetIds": ["$(subnet)"],
        "IamInstanceProfileArn": "$(pcs_profile.Arn)",
        "ScalingConfiguration": {"MinInstanceCount": 0, "MaxInstanceCount": 4},
        "CustomLaunchTemplate": {"TemplateId": "$(template)", "Version": "1"},
    }


TEMPLATE = (
    "AWS::EC2::LaunchTemplate",
    {
        "LaunchTemplateData": {
            "ImageId": "ami-12345678",
            "UserData": base64.b64encode(MIME).decode(),
            "NetworkInterfaces": [
                {"DeviceIndex": 0, "NetworkCardIndex": 0, "InterfaceType": "efa", "Groups": ["$(sg)"]}
            ],
        }
    },
)
PCS_PROFILE = ("AWS::IAM::InstanceProfile", {"Path": "/aws-pcs/", "Roles": ["$(pcs_role)"]})

PARTS: dict[str, Any] = {
    "key": KEY,
    "key2": KEY,
    "topic": ("AWS::SNS::Topic", {}),
    "topic2": ("AWS::SNS::Topic", {}),
    "alarm": alarm("one"),
    "alarm2": alarm("two"),
    "queue": ("AWS::SQS::Queue", {}),
    "queue2": ("AWS::SQS::Queue", {}),
    "group": ("AWS::Logs::LogGroup", {}),
    "group2": ("AWS::Logs::LogGroup", {}),
    "bucket": ("AWS::S3::Bucket", {}),
    "role": role("ec2"),
    "role2": role("ec2"),
    "scheduler": role("scheduler"),
    "pod": role("pods.eks", "sts:AssumeRole", "sts:TagSession"),
    "pod2": role("pods.eks", "sts:AssumeRole", "sts:TagSession"),
    "capability": role("capabilities.eks", "sts:AssumeRole", "sts:TagSession"),
    "capability2": role("capabilities.eks", "sts:AssumeRole", "sts:TagSession"),
    "scraper": role("scraper.aps"),
    "scraper2": role("scraper.aps"),
    "target2": ("AWS::IAM::Role", {"AssumeRolePolicyDocument": assumed_by("$(scraper2.Arn)")}),
    "target": ("AWS::IAM::Role", {"AssumeRolePolicyDocument": assumed_by("$(scraper.Arn)")}),
    "cluster_role": role("eks"),
    "vpc": ("AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16", "EnableDnsHostnames": True}),
    "subnet": ("AWS::EC2::Subnet", {"VpcId": "$(vpc)", "CidrBlock": "10.0.0.0/24", "AvailabilityZone": "us-east-1a"}),
    "subnet2": ("AWS::EC2::Subnet", {"VpcId": "$(vpc)", "CidrBlock": "10.0.1.0/24", "AvailabilityZone": "us-east-1b"}),
    "sg": ("AWS::EC2::SecurityGroup", {"GroupDescription": "nodes", "VpcId": "$(vpc)"}),
    "sg2": ("AWS::EC2::SecurityGroup", {"GroupDescription": "nodes", "VpcId": "$(vpc)"}),
    "cluster": (
        "AWS::EKS::Cluster",
        {
            "Name": "train",
            "Version": "1.35",
            "RoleArn": "$(cluster_role.Arn)",
            "AccessConfig": {"AuthenticationMode": "API"},
            "ResourcesVpcConfig": {"SubnetIds": ["$(subnet)", "$(subnet2)"], "EndpointPrivateAccess": True},
        },
    ),
    "efa": group_of_itself,
    "lustre": (
        "AWS::FSx::FileSystem",
        {
            "FileSystemType": "LUSTRE",
            "StorageCapacity": 1200,
            "SubnetIds": ["$(subnet)"],
            "SecurityGroupIds": ["$(efa)"],
            "LustreConfiguration": {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125},
        },
    ),
    "pcs_role": ("AWS::IAM::Role", {"AssumeRolePolicyDocument": trust("ec2"), "Path": "/aws-pcs/"}),
    "template": TEMPLATE,
    "template2": TEMPLATE,
    "pcs_profile": PCS_PROFILE,
    "pcs_profile2": PCS_PROFILE,
    "pcs": (
        "AWS::PCS::Cluster",
        {
            "Size": "SMALL",
            "Scheduler": {"Type": "SLURM", "Version": "25.11"},
            "Networking": {"SubnetIds": ["$(subnet)"], "SecurityGroupIds": ["$(sg)"]},
        },
    ),
    "nodes": nodes("$(pcs.Id)"),
    "nodes2": nodes("$(pcs.Id)"),
    "workspace2": ("AWS::APS::Workspace", {}),
    "workspace": ("AWS::APS::Workspace", {}),
    "source": (
        "AWS::Logs::DeliverySource",
        {
            "Name": "kb",
            "ResourceArn": f"arn:aws:bedrock:us-east-1:{ACCOUNT}:knowledge-base/kb",
            "LogType": "APPLICATION_LOGS",
        },
    ),
    "destination": ("AWS::Logs::DeliveryDestination", {"Name": "bucket", "DestinationResourceArn": "$(bucket.Arn)"}),
}
