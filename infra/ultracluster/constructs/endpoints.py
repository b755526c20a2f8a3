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
    "Ec2": "ec2",
    "Ssm": "ssm",  # Session Manager needs these three
    "SsmMessages": "ssmmessages",
    "Ec2Messages": "ec2messages",
    "Logs": "logs",
    "Monitoring": "monitoring",
    "Sts": "sts",  # remote write signs with credentials of the regional STS
    "Kms": "kms",
    "EcrApi": "ecr.api",
    "EcrDocker": "ecr.dkr",
    "PrometheusWorkspaces": "aps-workspaces",
    "Fsx": "fsx",
}
"""Services that nodes of every control plane call, by construct id."""

INTERFACE_SERVICES: dict[Controller, dict[str, str]] = {
    "pcs": {
        **COMMON_SERVICES,
        "Pcs": "pcs",  # mandatory: nodes register here (AWS PCS User Guide, "interface endpoint")
        "SecretsManager": "secretsmanager",  # the scheduler's keys
    },
    # nodes without internet access join the cluster through these two (EKS User Guide, "private clusters", 2026)
    "eks": {**COMMON_SERVICES, "Eks": "eks", "EksAuth": "eks-auth"},
}
"""Services that the nodes of each control plane call, by construct id."""

KARPENTER_SERVICES = {"Sqs": "sqs"}
"""Further services that Karpenter calls: SQS, for its interruption queue."""


class S3Endpoint(Construct):
    """A gateway endpoint for buckets of this account, `other_buckets`, and the software that AWS publishes.

    Its policy prevents copying data to buckets of other accounts.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        vpc: Vpc,
        route_tables: Sequence[IRouteTableRef],
        other_buckets: Sequence[str] = (),
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
            policy_document=policy_document(_s3_statements(region, other_buckets)),
        )


class InterfaceEndpoints(Construct):
    """An interface endpoint with private DNS for each of `services`, by construct id, for `clients` on port 443."""

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
