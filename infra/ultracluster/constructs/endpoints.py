"""VPC endpoints: the S3 gateway endpoint, and interface endpoints of other AWS services."""

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk.interfaces.aws_ec2 import IRouteTableRef
from constructs import Construct

from ultracluster.catalog.s3_endpoint import aws_owned_buckets
from ultracluster.config.node_groups import Controller
from ultracluster.constructs.names import ACCOUNT, PARTITION
from ultracluster.constructs.references import SecurityGroup, Subnet, Vpc, security_group_id, subnet_id, vpc_id
from ultracluster.constructs.roles import policy_document
from ultracluster.constructs.security_groups import Ports, allow, security_group

COMMON_SERVICES = {
    "Ssm": "ssm",  # Session Manager needs these two; Regions since 2024 have no ec2messages
    "SsmMessages": "ssmmessages",
    "EcrApi": "ecr.api",
    "EcrDocker": "ecr.dkr",
}
"""Services that nodes of every control plane call, by construct id.

Each endpoint costs money in each zone: only services that a role of the environment may call have one, as
tests/access checks. Source: Systems Manager User Guide, "VPC endpoints for Systems Manager" and "ec2messages,
ssmmessages, and other API operations" (2026).
"""

INTERFACE_SERVICES: dict[Controller, dict[str, str]] = {
    # mandatory: nodes register here (AWS PCS User Guide, "interface endpoint")
    "pcs": {
        **COMMON_SERVICES,
        "Pcs": "pcs",
        "Sts": "sts",  # root assumes the role of jobs
        "Logs": "logs",  # the CloudWatch agent
    },
    # nodes without internet access join the cluster through these (EKS User Guide, "private clusters", 2026)
    "eks": {
        **COMMON_SERVICES,
        "Ec2": "ec2",
        "Sts": "sts",  # for pods with IAM roles for service accounts
        "Eks": "eks",
        "EksAuth": "eks-auth",
        "Logs": "logs",  # Fluent Bit
    },
}
"""Services that the nodes of each control plane call, by construct id."""

FILE_SYSTEM_SERVICES: dict[Controller, dict[str, str]] = {"pcs": {}, "eks": {"Fsx": "fsx"}}
"""Further services for a file system: the FSx CSI driver calls FSx, while a mount command calls nothing."""

METRICS_SERVICES: dict[Controller, dict[str, str]] = {"pcs": {"ApsWorkspaces": "aps-workspaces"}, "eks": {}}
"""Further services for metrics: agents of PCS nodes send them, while AMP's scraper has interfaces of its own."""

KARPENTER_SERVICES = {"Sqs": "sqs"}
"""Further services that Karpenter calls: SQS, for its interruption queue."""


VERSION_ACTIONS = ("s3:GetObject", "s3:GetObjectVersion")
"""What reading one version of an object takes (Amazon S3 User Guide, permissions of GetObject, 2026)."""


class S3Endpoint(Construct):
    """A gateway endpoint for buckets of this account, `other_buckets`, and the software that AWS publishes.

    `read_only_buckets`, such as public data sets, can be listed and read, and the objects `boot_scripts`, as
    bucket/key, can be read. The policy prevents copying data to any other
    bucket of another account.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        vpc: Vpc,
        route_tables: Sequence[IRouteTableRef],
        other_buckets: Sequence[str] = (),
        read_only_buckets: Sequence[str] = (),
        boot_scripts: Sequence[str] = (),
    ) -> None:
        super().__init__(scope, id)
        region = Stack.of(self).region
        ec2.CfnVPCEndpoint(
            self,
            "Resource",
            vpc_id=vpc_id(vpc),
            vpc_endpoint_type="Gateway",
            service_name=f"com.amazonaws.{region}.s3",
            route_table_ids=list(route_tables),
            policy_document=policy_document(_s3_statements(region, other_buckets, read_only_buckets, boot_scripts)),
        )


class InterfaceEndpoints(Construct):
    """An interface endpoint with private DNS for each of `services`, by construct id, for `clients` on port 443."""

    security_group_id: str
    """Id of the security group of the endpoints."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        vpc: Vpc,
        subnets: Sequence[Subnet],
        clients: SecurityGroup,
        services: Mapping[str, str],
    ) -> None:
        super().__init__(scope, id)
        vpc, subnet_ids = vpc_id(vpc), [subnet_id(subnet) for subnet in subnets]
        group = security_group(self, "Access", vpc_id=vpc, description="Interface endpoints of AWS services")
        self.security_group_id = group
        https = Ports("tcp", 443, 443)
        allow(self, "Https", source=security_group_id(clients), target=group, ports=https, description="AWS APIs")
        region = Stack.of(self).region
        for endpoint_id, service in services.items():
            ec2.CfnVPCEndpoint(
                self,
                endpoint_id,
                vpc_id=vpc,
                vpc_endpoint_type="Interface",
                service_name=f"com.amazonaws.{region}.{service}",
                private_dns_enabled=True,
                subnet_ids=subnet_ids,
                security_group_ids=[group],
            )


def _s3_statements(
    region: str, other_buckets: Sequence[str], read_only_buckets: Sequence[str], boot_scripts: Sequence[str]
) -> list[dict[str, Any]]:
    anybody: dict[str, Any] = {"Principal": "*"}
    arn = f"arn:{PARTITION}:s3:::"
    statements = [
        {
            "Sid": "BucketsOfThisAccount",
            **anybody,
            "Action": "s3:*",
            "Resource": "*",
            "Condition": {"StringEquals": {"aws:ResourceAccount": ACCOUNT}},
        },
        {
            "Sid": "SoftwareOfAws",
            **anybody,
            "Action": "s3:GetObject",
            "Resource": [f"{arn}{name}/*" for name in aws_owned_buckets(region)],
        },
    ]
    if other_buckets:
        resources = [f"{arn}{name}{part}" for name in other_buckets for part in ("", "/*")]
        statements.append({"Sid": "ExistingBuckets", **anybody, "Action": "s3:*", "Resource": resources})
    if boot_scripts:
        objects = [f"{arn}{each}" for each in boot_scripts]
        statements.append({"Sid": "BootScripts", **anybody, "Action": list(VERSION_ACTIONS), "Resource": objects})
    reads = read_statements(read_only_buckets)
    return [*statements, *({"Sid": f"ReadOnlyBuckets{i}", **anybody, **read} for i, read in enumerate(reads))]


def read_statements(buckets: Sequence[str]) -> list[dict[str, Any]]:
    """Statements for listing and reading buckets, by name; none without buckets."""
    if not buckets:
        return []
    arns = [f"arn:{PARTITION}:s3:::{name}" for name in buckets]
    return [
        {"Action": "s3:ListBucket", "Resource": arns},
        {"Action": "s3:GetObject", "Resource": [f"{arn}/*" for arn in arns]},
    ]
