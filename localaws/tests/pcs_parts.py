"""An account with the resources that a PCS cluster refers to."""

import base64
import json
from typing import Any, NamedTuple

import boto3

REGION = "us-east-1"
MIME = b'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="=="\n\n--==--\n'


class Account(NamedTuple):
    pcs: Any
    ec2: Any
    iam: Any
    vpc: str
    subnet: str
    group: str
    profile: str
    template: str


def make_account() -> Account:
    ec2, iam = boto3.client("ec2", REGION), boto3.client("iam", REGION)
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
    profile = make_profile(iam, "node", "/aws-pcs/")
    template = make_template(ec2, group)
    return Account(boto3.client("pcs", REGION), ec2, iam, vpc, subnet, group, profile, template)


def make_profile(iam: Any, name: str, path: str = "/") -> str:
    iam.create_role(RoleName=name, Path=path, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17"}))
    arn: str = iam.create_instance_profile(InstanceProfileName=name, Path=path)["InstanceProfile"]["Arn"]
    iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)
    return arn


def make_template(ec2: Any, group: str, **data: Any) -> str:
    interface = {"DeviceIndex": 0, "NetworkCardIndex": 0, "InterfaceType": "efa", "Groups": [group]}
    full = {
        "ImageId": "ami-12345678",
        "NetworkInterfaces": [interface],
        "UserData": base64.b64encode(MIME).decode(),
        **data,
    }
    full = {name: value for name, value in full.items() if value is not None}
    name = f"template-{len(ec2.describe_launch_templates()['LaunchTemplates'])}"
    made = ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=full)
    return str(made["LaunchTemplate"]["LaunchTemplateId"])


def cluster_request(account: Account, **changes: Any) -> dict[str, Any]:
    return {
        "clusterName": "train",
        "scheduler": {"type": "SLURM", "version": "25.11"},
        "size": "SMALL",
        "networking": {"subnetIds": [account.subnet], "securityGroupIds": [account.group]},
        **changes,
    }


def group_request(account: Account, **changes: Any) -> dict[str, Any]:
    full = {
        "clusterIdentifier": "train",
        "computeNodeGroupName": "gpu",
        "subnetIds": [account.subnet],
        "customLaunchTemplate": {"id": account.template, "version": "1"},
        "iamInstanceProfileArn": account.profile,
        "scalingConfiguration": {"minInstanceCount": 0, "maxInstanceCount": 8},
        "instanceConfigs": [{"instanceType": "p5.48xlarge"}],
        **changes,
    }
    return {name: value for name, value in full.items() if value is not None}


def setting(name: str, value: str) -> dict[str, str]:
    return {"parameterName": name, "parameterValue": value}
