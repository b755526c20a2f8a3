"""A VPC of our own: its subnets, ways out, flow logs and closed default security group."""

from collections.abc import Sequence
from ipaddress import IPv4Network
from typing import cast

from aws_cdk import CfnTag, Duration, Fn, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from infra.config.network import CreateNetwork, subnet_plan
from infra.constructs.acknowledgements import acknowledge
from infra.constructs.functions import InlineResource
from infra.constructs.keys import log_group


class ClusterVpc(Construct):
    """A VPC with one node subnet in `zone`, and control-plane and public subnets in the Region's first two zones.

    Which two zones those are, CloudFormation knows: nothing is looked up. They are Availability Zones, never Local
    Zones, since PCS's controller cannot live in one. Public subnets and the internet gateway come only with NAT
    gateways; nothing in them has a public address but those. The node subnet leaves through the first NAT gateway.

    The VPC and its private subnets are retained: a retained file system or cluster has its interfaces in them, and AWS
    deletes no subnet in use.
    """

    def __init__(self, scope: Construct, id: str, *, settings: CreateNetwork, zone: str, key: kms.IKey) -> None:
        super().__init__(scope, id)
        plan = subnet_plan(settings.block)
        first_zones = [Fn.select(i, Fn.get_azs()) for i in (0, 1)]
        self._vpc = ec2.CfnVPC(
            self,
            "Resource",
            cidr_block=settings.cidr,
            enable_dns_hostnames=True,
            enable_dns_support=True,
            tags=[CfnTag(key="Name", value=self.node.path)],
        )
        self._vpc.apply_removal_policy(RemovalPolicy.RETAIN)
        self.vpc: ec2.IVpc = ec2.Vpc.from_vpc_attributes(
            self, "Vpc", vpc_id=self._vpc.ref, availability_zones=first_zones, vpc_cidr_block=settings.cidr
        )
        self.node_subnet = self._subnet("Nodes", plan.node, zone)
        _let_name_its_zone(self.node_subnet)
        self.control_plane_subnets = tuple(
            self._subnet(f"ControlPlane{i}", block, first_zones[i]) for i, block in enumerate(plan.control_plane)
        )
        if settings.nat_gateways:
            self._ways_out(settings.nat_gateways, plan.public, first_zones)
        if settings.flow_logs:
            self._log_flows(key)
        self._close_default_security_group(key)

    def _subnet(self, id: str, block: IPv4Network, zone: str) -> ec2.Subnet:
        subnet = ec2.PrivateSubnet(
            self,
            id,
            vpc_id=self._vpc.ref,
            cidr_block=str(block),
            availability_zone=zone,
            map_public_ip_on_launch=False,
        )
        cast("ec2.CfnSubnet", subnet.node.find_child("Subnet")).apply_removal_policy(RemovalPolicy.RETAIN)
        return subnet

    def _ways_out(self, count: int, blocks: Sequence[IPv4Network], zones: Sequence[str]) -> None:
        gateway = ec2.CfnInternetGateway(self, "InternetGateway")
        attachment = ec2.CfnVPCGatewayAttachment(
            self, "GatewayAttachment", vpc_id=self._vpc.ref, internet_gateway_id=gateway.ref
        )
        public = [self._public_subnet(f"Public{i}", block, zones[i]) for i, block in enumerate(blocks)]
        for subnet in public:
            subnet.add_default_internet_route(gateway.ref, attachment)
        nats = [subnet.add_nat_gateway().ref for subnet in public[:count]]
        self.node_subnet.add_default_nat_route(nats[0])
        for i, private in enumerate(self.control_plane_subnets):
            private.add_default_nat_route(nats[min(i, count - 1)])

    def _public_subnet(self, id: str, block: IPv4Network, zone: str) -> ec2.PublicSubnet:
        subnet = ec2.PublicSubnet(
            self,
            id,
            vpc_id=self._vpc.ref,
            cidr_block=str(block),
            availability_zone=zone,
            map_public_ip_on_launch=False,
        )
        reason = "The route of a subnet that holds nothing but NAT gateways, which need it to lead anything out."
        acknowledge(subnet, {"NIST.800.53.R5-VPCNoUnrestrictedRouteToIGW": reason})
        return subnet

    def _log_flows(self, key: kms.IKey) -> None:
        """Source of the permissions: VPC User Guide, "IAM role for publishing flow logs" (2026)."""
        stack = Stack.of(self)
        group = log_group(self, "FlowLogs", name="/aws/vpc/flow-logs", key=key)
        flow_logs = f"arn:{stack.partition}:ec2:{stack.region}:{stack.account}:vpc-flow-log/*"
        role = iam.Role(
            self,
            "FlowLogRole",
            assumed_by=iam.ServicePrincipal(
                "vpc-flow-logs.amazonaws.com",
                conditions={
                    "StringEquals": {"aws:SourceAccount": stack.account},
                    "ArnLike": {"aws:SourceArn": flow_logs},
                },
            ),
        )
        policy = iam.ManagedPolicy(self, "FlowLogPolicy", description="Delivers flow logs", roles=[role])
        group.grant(policy, "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents")
        flow_log = ec2.CfnFlowLog(
            self,
            "FlowLog",
            resource_type="VPC",
            resource_id=self._vpc.ref,
            traffic_type="ALL",
            log_destination_type="cloud-watch-logs",
            log_group_name=group.log_group_name,
            deliver_logs_permission_arn=role.role_arn,
        )
        flow_log.node.add_dependency(policy)

    def _close_default_security_group(self, key: kms.IKey) -> None:
        stack = Stack.of(self)
        group = self._vpc.attr_default_security_group
        arn = f"arn:{stack.partition}:ec2:{stack.region}:{stack.account}:security-group/{group}"
        actions = ["ec2:RevokeSecurityGroupIngress", "ec2:RevokeSecurityGroupEgress"]
        InlineResource(
            self,
            "DefaultSecurityGroup",
            handler="default_security_group",
            resource_type="Custom::ClosedDefaultSecurityGroup",
            properties={"GroupId": group},
            statements=[iam.PolicyStatement(actions=actions, resources=[arn])],
            key=key,
            timeout=Duration.minutes(1),
        )
        reason = "Its default group is closed by Custom::ClosedDefaultSecurityGroup, which the rule cannot see."
        acknowledge(self._vpc, {"NIST.800.53.R5-VPCDefaultSecurityGroupClosed": reason})


def _let_name_its_zone(subnet: ec2.Subnet) -> None:
    """Capacity is reserved in one zone, so the environment names it: said to CDK's own validation and to cfn-lint."""
    resource = cast("ec2.CfnSubnet", subnet.node.find_child("Subnet"))
    acknowledge(resource, {"CloudFormation-Validate::W3010": "Capacity is reserved in this zone and in no other."})
    resource.add_metadata("cfn-lint", {"config": {"ignore_checks": ["W3010"]}})
