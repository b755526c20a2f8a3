"""boto3's waiters and paginators against resources of every service: what clients and tools rely on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

import eks_parts
from localaws import local_aws

REGION = eks_parts.REGION
FOLDER = Path(__file__).parent / "templates"
NAMED = ["CAPABILITY_NAMED_IAM"]
OTHERS = ["custom", "watch"]
TEMPLATES = sorted(file.stem for file in FOLDER.glob("*.yaml") if file.stem not in OTHERS)
# Per paginator: the members of its pages, and how many there are. Every template is deployed twice.
PAGES = {
    ("amp", "list_workspaces"): ("workspaces", 3),
    ("cloudformation", "describe_stacks"): ("Stacks", 2 * len(TEMPLATES)),
    ("cloudformation", "list_stacks"): ("StackSummaries", 2 * len(TEMPLATES)),
    ("cloudwatch", "describe_alarms"): ("MetricAlarms", 2),
    ("ec2", "describe_nat_gateways"): ("NatGateways", 2),
    ("ec2", "describe_launch_templates"): ("LaunchTemplates", 2),
    ("ec2", "describe_vpc_endpoints"): ("VpcEndpoints", 2),
    ("ecr", "describe_repositories"): ("repositories", 2),
    ("eks", "list_clusters"): ("clusters", 3),
    ("eks", "list_access_policies"): ("accessPolicies", 36),
    ("events", "list_rules"): ("Rules", 2),
    ("fsx", "describe_file_systems"): ("FileSystems", 2),
    ("grafana", "list_workspaces"): ("workspaces", 2),
    ("iam", "list_instance_profiles"): ("InstanceProfiles", 2),
    ("lambda", "list_functions"): ("Functions", 2),
    ("logs", "describe_log_groups"): ("logGroups", 6),
    ("s3", "list_buckets"): ("Buckets", 4),
    ("scheduler", "list_schedules"): ("Schedules", 2),
    ("sns", "list_topics"): ("Topics", 4),
    ("sqs", "list_queues"): ("QueueUrls", 10),
    ("ssm", "describe_parameters"): ("Parameters", 8),
}

WITHOUT_SIZE = {("cloudformation", "describe_stacks"), ("cloudformation", "list_stacks"), ("sns", "list_topics")}


@pytest.fixture(scope="module")
def account() -> Iterator[eks_parts.Account]:
    with local_aws():
        made = eks_parts.make_account()
        cloudformation: Any = boto3.client("cloudformation", REGION)
        for name in TEMPLATES:
            body = (FOLDER / f"{name}.yaml").read_text()
            for number in (1, 2):
                cloudformation.create_stack(StackName=f"{name}-{number}", TemplateBody=body, Capabilities=NAMED)
        for name in ("one", "two", "three"):
            made.eks.create_cluster(**eks_parts.cluster_request(made, name=name))
            boto3.client("amp", REGION).create_workspace(alias=name)
        for name in ("one", "two"):
            boto3.client("grafana", REGION).create_workspace(
                workspaceName=name,
                accountAccessType="CURRENT_ACCOUNT",
                authenticationProviders=["SAML"],
                permissionType="SERVICE_MANAGED",
            )
        yield made


@pytest.mark.parametrize(("service", "operation"), PAGES, ids=lambda value: value)
def test_pages_of_any_size_hold_everything_once(account: eks_parts.Account, service: str, operation: str) -> None:
    member, count = PAGES[service, operation]
    paginator: Any = boto3.client(service, REGION).get_paginator(operation)
    sizes = (None,) if (service, operation) in WITHOUT_SIZE else (None, 5 if service == "ec2" else 1, 50)
    for size in sizes:
        pages = paginator.paginate(PaginationConfig={"PageSize": size} if size else {})
        found = [str(each) for page in pages for each in page.get(member, [])]
        assert (len(found), len(set(found))) == (count, count), size


def test_members_of_a_cluster_come_in_pages(account: eks_parts.Account) -> None:
    eks: Any = account.eks
    for name in ("coredns", "kube-proxy", "vpc-cni"):
        eks.create_addon(clusterName="one", addonName=name)
    paginator = eks.get_paginator("list_addons")
    pages = list(paginator.paginate(clusterName="one", PaginationConfig={"PageSize": 1}))
    assert sorted(name for page in pages for name in page["addons"]) == ["coredns", "kube-proxy", "vpc-cni"]
    assert len(pages) == 3


def test_waiters_see_the_state_that_they_wait_for(account: eks_parts.Account) -> None:
    def wait(service: str, waiter: str, **about: Any) -> None:
        boto3.client(service, REGION).get_waiter(waiter).wait(**about, WaiterConfig={"Delay": 1, "MaxAttempts": 3})

    one: Any = boto3.client("cloudformation", REGION)
    found = {
        each["LogicalResourceId"]: each["PhysicalResourceId"]
        for name in ("vpc-1", "function-1", "bucket-1", "roles-1", "queue-1")
        for each in one.describe_stack_resources(StackName=name)["StackResources"]
    }
    wait("cloudformation", "stack_create_complete", StackName="vpc-1")
    wait("cloudformation", "stack_exists", StackName="vpc-1")
    wait("ec2", "vpc_available", VpcIds=[found["Vpc"]])
    wait("ec2", "subnet_available", SubnetIds=[found["PrivateOne"]])
    wait("ec2", "nat_gateway_available", NatGatewayIds=[found["Nat"]])
    wait("lambda", "function_exists", FunctionName=found["Clean"])
    wait("lambda", "function_active_v2", FunctionName=found["Clean"])
    wait("lambda", "function_updated_v2", FunctionName=found["Clean"])
    wait("s3", "bucket_exists", Bucket=found["Data"])
    wait("iam", "role_exists", RoleName=found["Node"])
    wait("iam", "instance_profile_exists", InstanceProfileName=found["Profile"])
    wait("iam", "policy_exists", PolicyArn=found["Read"])
    wait("cloudwatch", "alarm_exists", AlarmNames=[found["Alarm"]])
    workspace = boto3.client("amp", REGION).list_workspaces()["workspaces"][0]["workspaceId"]
    wait("amp", "workspace_active", workspaceId=workspace)
    boto3.client("amp", REGION).delete_workspace(workspaceId=workspace)
    wait("amp", "workspace_deleted", workspaceId=workspace)
    boto3.client("amp", REGION).create_workspace(alias="again")


def test_waiters_of_eks_see_the_life_of_a_cluster(account: eks_parts.Account) -> None:
    eks: Any = account.eks
    eks.create_cluster(**eks_parts.cluster_request(account, name="brief"))
    eks.get_waiter("cluster_active").wait(name="brief")
    eks.create_nodegroup(**eks_parts.group_request(account, clusterName="brief", amiType="AL2023_x86_64_STANDARD"))
    eks.get_waiter("nodegroup_active").wait(clusterName="brief", nodegroupName="gpu")
    eks.create_addon(clusterName="brief", addonName="coredns")
    eks.get_waiter("addon_active").wait(clusterName="brief", addonName="coredns")
    eks.delete_addon(clusterName="brief", addonName="coredns")
    eks.get_waiter("addon_deleted").wait(clusterName="brief", addonName="coredns")
    eks.delete_nodegroup(clusterName="brief", nodegroupName="gpu")
    eks.get_waiter("nodegroup_deleted").wait(clusterName="brief", nodegroupName="gpu")
    eks.delete_cluster(name="brief")
    eks.get_waiter("cluster_deleted").wait(name="brief")


def test_waiters_of_change_sets_and_deletions() -> None:
    with local_aws():
        cloudformation: Any = boto3.client("cloudformation", REGION)
        request = {"StackName": "brief", "TemplateBody": (FOLDER / "queue.yaml").read_text()}
        cloudformation.create_change_set(**request, ChangeSetName="first", ChangeSetType="CREATE")
        named = {"StackName": "brief", "ChangeSetName": "first"}
        cloudformation.get_waiter("change_set_create_complete").wait(**named)
        cloudformation.execute_change_set(**named)
        cloudformation.get_waiter("stack_create_complete").wait(StackName="brief")
        cloudformation.update_stack(**request, Parameters=[{"ParameterKey": "Retries", "ParameterValue": "5"}])
        cloudformation.get_waiter("stack_update_complete").wait(StackName="brief")
        cloudformation.delete_stack(StackName="brief")
        cloudformation.get_waiter("stack_delete_complete").wait(StackName="brief")
