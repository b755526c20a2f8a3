"""Private ways to AWS's services: the S3 gateway endpoint and the interface endpoints."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk.interfaces.aws_ec2 import IRouteTableRef
from constructs import Construct

from ultracluster.catalog.s3_endpoint import aws_owned_buckets
from ultracluster.constructs.names import ACCOUNT, PARTITION
from ultracluster.constructs.places import SecurityGroup, Subnet, Vpc
from ultracluster.constructs.roles import policy_document
from ultracluster.constructs.security_groups import Ports, allow, security_group

ControlPlane = Literal["pcs", "eks"]
"""What runs the nodes."""

COMMON_SERVICES = {
    "Ec2": "ec2",
    "Ssm": "ssm",  # Session Manager takes these three
    "SsmMessages": "ssmmessages",
    "Ec2Messages": "ec2messages",
    "Logs": "logs",
    "Monitoring": "monitoring",
    "Sts": "sts",  # remote write signs with what the regional STS gives
    "Kms": "kms",
    "EcrApi": "ecr.api",
    "EcrDocker": "ecr.dkr",
    "PrometheusWorkspaces": "aps-workspaces",
    "Fsx": "fsx",
}
"""Construct id to service, for what nodes of every control plane call."""

INTERFACE_SERVICES: dict[ControlPlane, dict[str, str]] = {
    "pcs": {
        **COMMON_SERVICES,
        "Pcs": "pcs",  # mandatory: nodes register here (AWS PCS User Guide, "interface endpoint")
        "SecretsManager": "secretsmanager",  # the scheduler's keys
    },
    # nodes without internet join through these two (EKS User Guide, "private clusters", 2026)
    "eks": {**COMMON_SERVICES, "Eks": "eks", "EksAuth": "eks-auth"},
}
"""The same for all that the nodes of a control plane call."""

KARPENTER_SERVICES = {"Sqs": "sqs"}
"""What Karpenter calls besides: the queue that tells it of interruptions."""


class S3Endpoint(Construct):
    """A gateway endpoint that reaches buckets of this account, those of `other_buckets`, and what AWS publishes.

    Nobody can carry data out through it to a bucket of an account of his own.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        vpc: Vpc,
        route_tables: Sequence[IRouteTableRef],
        other_buckets: Sequence[str],
    ) -> None:
        super().__init__(scope, id)
        region = Stack.of(self).region
        ec2.CfnVPCEndpoint(
            self,
            "Resource",
            vpc_id=vpc.vpc_id,
            vpc_endpoint_type="Gateway",
            service_name=f"com.amazonaws.{region}.s3",
            route_table_ids=list(route_tables),
            policy_document=policy_document(_s3_statements(region, other_buckets)),
        )


class InterfaceEndpoints(Construct):
    """An interface endpoint with private DNS for each service of a mapping, open to `clients` on port 443."""

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
        group = security_group(self, "Access", vpc=vpc, description="Interface endpoints of AWS services")
        https = Ports("tcp", 443, 443)
        allow(self, "Https", source=clients, target=group, ports=https, description="AWS APIs")
        region = Stack.of(self).region
        for endpoint_id, service in services.items():
            ec2.CfnVPCEndpoint(
                self,
                endpoint_id,
                vpc_id=vpc.vpc_id,
                vpc_endpoint_type="Interface",
                service_name=f"com.amazonaws.{region}.{service}",
                private_dns_enabled=True,
                subnet_ids=[subnet.subnet_id for subnet in subnets],
                security_group_ids=[group.security_group_id],
            )


def _s3_statements(region: str, other_buckets: Sequence[str]) -> list[dict[str, Any]]:
    anybody = {"Principal": {"AWS": "*"}}
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
    return statements
