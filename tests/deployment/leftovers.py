"""What an account holds, read through boto3, for tests that look for what a failed deployment left behind."""

from collections.abc import Callable, Iterator
from typing import Any

Found = set[tuple[str, str]]
"""Kinds and ids of resources."""


def found(client: Callable[[str], Any]) -> Found:
    """Resources that cost money or hold a name or a quota. `client` returns boto3's client of a service.

    Default VPCs, the CDK's bootstrap resources and keys that are pending deletion, which cost nothing, are left out.
    """
    readers = (_network, _storage, _clusters, _functions)
    return {row for reader in readers for row in reader(client) if "cdk-hnb659fds" not in row[1]}


def owned(client: Callable[[str], Any]) -> set[str]:
    """Physical ids of the resources of all stacks."""
    cloudformation = client("cloudformation")
    return {
        resource["PhysicalResourceId"]
        for stack in cloudformation.describe_stacks()["Stacks"]
        for resource in cloudformation.describe_stack_resources(StackName=stack["StackName"])["StackResources"]
        if resource.get("PhysicalResourceId") and resource["ResourceStatus"] != "DELETE_COMPLETE"
    }


def _network(client: Callable[[str], Any]) -> Iterator[tuple[str, str]]:
    ec2 = client("ec2")
    for vpc in ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["false"]}])["Vpcs"]:
        yield "VPC", vpc["VpcId"]
        here = [{"Name": "vpc-id", "Values": [vpc["VpcId"]]}]
        yield from (("subnet", subnet["SubnetId"]) for subnet in ec2.describe_subnets(Filters=here)["Subnets"])
        yield from (
            ("security group", group["GroupId"])
            for group in ec2.describe_security_groups(Filters=here)["SecurityGroups"]
            # those that AWS makes: of the VPC, and of an EKS cluster
            if group["GroupName"] != "default" and not group["GroupName"].startswith("eks-cluster-sg-")
        )
        for endpoint in ec2.describe_vpc_endpoints(Filters=here)["VpcEndpoints"]:
            yield "endpoint", endpoint["VpcEndpointId"]
    for gateway in ec2.describe_nat_gateways()["NatGateways"]:
        if gateway["State"] != "deleted":
            yield "NAT gateway", gateway["NatGatewayId"]
    for template in ec2.describe_launch_templates()["LaunchTemplates"]:
        yield "launch template", template["LaunchTemplateId"]
    for group in ec2.describe_placement_groups()["PlacementGroups"]:
        yield "placement group", group["GroupName"]


def _storage(client: Callable[[str], Any]) -> Iterator[tuple[str, str]]:
    kms = client("kms")
    for bucket in client("s3").list_buckets()["Buckets"]:
        yield "bucket", bucket["Name"]
    for system in client("fsx").describe_file_systems()["FileSystems"]:
        yield "file system", system["FileSystemId"]
    for backup in client("fsx").describe_backups()["Backups"]:
        yield "backup", backup["BackupId"]
    for system in client("efs").describe_file_systems()["FileSystems"]:
        yield "EFS file system", system["FileSystemId"]
    for volume in client("ec2").describe_volumes()["Volumes"]:
        yield "volume", volume["VolumeId"]
    for key in kms.list_keys()["Keys"]:
        about = kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"]
        if about["KeyState"] != "PendingDeletion" and about["KeyManager"] == "CUSTOMER":
            yield "key", key["KeyId"]


def _clusters(client: Callable[[str], Any]) -> Iterator[tuple[str, str]]:
    for cluster in client("pcs").list_clusters()["clusters"]:
        yield "PCS cluster", cluster["arn"]
    for name in client("eks").list_clusters()["clusters"]:
        yield "EKS cluster", name
    for workspace in client("amp").list_workspaces()["workspaces"]:
        yield "AMP workspace", workspace["arn"]
    for workspace in client("grafana").list_workspaces()["workspaces"]:
        yield "Grafana workspace", workspace["id"]


def _functions(client: Callable[[str], Any]) -> Iterator[tuple[str, str]]:
    for page in client("logs").get_paginator("describe_log_groups").paginate():
        yield from (("log group", group["logGroupName"]) for group in page["logGroups"])
    for function in client("lambda").list_functions()["Functions"]:
        yield "function", function["FunctionName"]
    for page in client("iam").get_paginator("list_roles").paginate():
        yield from (("role", role["RoleName"]) for role in page["Roles"] if "/aws-service-role/" not in role["Path"])
