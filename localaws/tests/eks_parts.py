"""An account with the resources that an EKS cluster refers to."""

import base64
import json
from typing import Any, NamedTuple

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.backends import get_backend

from localaws.services.capacity import reservations_of

ACCOUNT, REGION = "123456789012", "us-east-2"
VERSION, NEXT, OLD = "1.35", "1.36", "1.34"
ADMIN = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
VIEW = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy"
POD_ACTIONS = ("sts:AssumeRole", "sts:TagSession")
MIME = b'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="=="\n\n--==--\n'


class Account(NamedTuple):
    eks: Any
    ec2: Any
    iam: Any
    vpc: str
    subnets: list[str]  # one in zone a, one in zone b
    group: str
    cluster_role: str
    node_role: str
    pod_role: str


def make_account() -> Account:
    ec2, iam = boto3.client("ec2", REGION), boto3.client("iam", REGION)
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnets = [make_subnet(ec2, vpc, f"10.0.{number}.0/24", f"us-east-2{zone}") for number, zone in enumerate("ab")]
    group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
    roles = (
        make_role(iam, "cluster", "eks.amazonaws.com"),
        make_role(iam, "node", "ec2.amazonaws.com"),
        make_role(iam, "pod", "pods.eks.amazonaws.com", *POD_ACTIONS),
    )
    return Account(boto3.client("eks", REGION), ec2, iam, vpc, subnets, group, *roles)


def clear() -> None:
    """Delete the clusters, the resources that EKS created for them, and reservations; the account stays."""
    get_backend("eks")[ACCOUNT][REGION].reset()
    ec2 = get_backend("ec2")[ACCOUNT][REGION]
    ec2.enis.clear()
    reservations_of(ec2).clear()


def make_subnet(ec2: Any, vpc: str, cidr: str, zone: str) -> str:
    return str(ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone=zone)["Subnet"]["SubnetId"])


def make_role(iam: Any, name: str, service: str, *actions: str) -> str:
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": list(actions) or "sts:AssumeRole"}
    made = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps({"Statement": [statement]}))
    return str(made["Role"]["Arn"])


def make_template(account: Account, **data: Any) -> str:
    """A launch template for P5, with an ENA interface and an EFA one."""
    interfaces = [
        {"DeviceIndex": 0, "NetworkCardIndex": 0, "InterfaceType": "interface", "Groups": [account.group]},
        {"DeviceIndex": 0, "NetworkCardIndex": 1, "InterfaceType": "efa-only", "Groups": [account.group]},
    ]
    user_data = base64.b64encode(MIME).decode()
    full = {"InstanceType": "p5.48xlarge", "NetworkInterfaces": interfaces, "UserData": user_data, **data}
    full = {name: value for name, value in full.items() if value is not None}
    name = f"template-{len(account.ec2.describe_launch_templates()['LaunchTemplates'])}"
    made = account.ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=full)
    return str(made["LaunchTemplate"]["LaunchTemplateId"])


def cluster_request(account: Account, **changes: Any) -> dict[str, Any]:
    vpc = {"subnetIds": account.subnets, **changes.pop("resourcesVpcConfig", {})}
    access = {"authenticationMode": "API"}
    full = {"name": "train", "version": VERSION, "roleArn": account.cluster_role, "accessConfig": access}
    return {**full, "resourcesVpcConfig": vpc, **changes}


def group_request(account: Account, **changes: Any) -> dict[str, Any]:
    full = {
        "clusterName": "train",
        "nodegroupName": "gpu",
        "subnets": account.subnets[:1],
        "nodeRole": account.node_role,
        "amiType": "AL2023_x86_64_NVIDIA",
        **changes,
    }
    return {name: value for name, value in full.items() if value is not None}


def refused(code: str, text: str, call: Any, **request: Any) -> None:
    with pytest.raises(ClientError, match=text) as caught:
        call(**request)
    assert caught.value.response["Error"]["Code"] == code, caught.value
