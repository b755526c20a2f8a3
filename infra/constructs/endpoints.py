"""Private ways to AWS's services: the S3 gateway endpoint and the interface endpoints."""

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.catalog.s3_endpoint import aws_owned_buckets
from infra.constructs.security_groups import Ports, allow

INTERFACE_SERVICES = {
    "Pcs": "pcs",  # mandatory: nodes register here (AWS PCS User Guide, "interface endpoint")
    "Ec2": "ec2",
    "Ssm": "ssm",  # Session Manager takes these three
    "SsmMessages": "ssmmessages",
    "Ec2Messages": "ec2messages",
    "Logs": "logs",
    "Monitoring": "monitoring",
    "Sts": "sts",  # remote write signs with what the regional STS gives
    "Kms": "kms",
    "SecretsManager": "secretsmanager",  # the scheduler's keys
    "EcrApi": "ecr.api",
    "EcrDocker": "ecr.dkr",
    "PrometheusWorkspaces": "aps-workspaces",
    "Fsx": "fsx",
}
"""Construct id to service, for what nodes call."""


class S3Endpoint(Construct):
    """A gateway endpoint that reaches buckets of this account, those of `other_buckets`, and what AWS publishes.

    Nobody can carry data out through it to a bucket of an account of his own.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        other_buckets: Sequence[str],
    ) -> None:
        super().__init__(scope, id)
        endpoint = ec2.GatewayVpcEndpoint(
            self,
            "Resource",
            vpc=vpc,
            service=ec2.GatewayVpcEndpointAwsService.S3,
            subnets=[ec2.SubnetSelection(subnets=list(subnets))],
        )
        for statement in _s3_statements(Stack.of(self), other_buckets):
            endpoint.add_to_policy(statement)


class InterfaceEndpoints(Construct):
    """An interface endpoint with private DNS for each of INTERFACE_SERVICES, open to `clients` on port 443."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        clients: ec2.ISecurityGroup,
    ) -> None:
        super().__init__(scope, id)
        group = ec2.SecurityGroup(
            self, "Access", vpc=vpc, description="Interface endpoints of AWS services", allow_all_outbound=False
        )
        https = Ports("tcp", 443, 443)
        allow(self, "Https", source=clients, target=group, ports=https, description="AWS APIs")
        for endpoint_id, service in INTERFACE_SERVICES.items():
            ec2.InterfaceVpcEndpoint(
                self,
                endpoint_id,
                vpc=vpc,
                service=ec2.InterfaceVpcEndpointAwsService(service),
                subnets=ec2.SubnetSelection(subnets=list(subnets)),
                security_groups=[group],
                open=False,
            )


def _s3_statements(stack: Stack, other_buckets: Sequence[str]) -> list[iam.PolicyStatement]:
    arn = f"arn:{stack.partition}:s3:::"
    statements = [
        iam.PolicyStatement(
            sid="BucketsOfThisAccount",
            principals=[iam.AnyPrincipal()],
            actions=["s3:*"],
            resources=["*"],
            conditions={"StringEquals": {"aws:ResourceAccount": stack.account}},
        ),
        iam.PolicyStatement(
            sid="SoftwareOfAws",
            principals=[iam.AnyPrincipal()],
            actions=["s3:GetObject"],
            resources=[f"{arn}{name}/*" for name in aws_owned_buckets(stack.region)],
        ),
    ]
    if other_buckets:
        statements.append(
            iam.PolicyStatement(
                sid="ExistingBuckets",
                principals=[iam.AnyPrincipal()],
                actions=["s3:*"],
                resources=[f"{arn}{name}{part}" for name in other_buckets for part in ("", "/*")],
            )
        )
    return statements
