"""A VPC with its subnets, NAT gateways and flow logs, and a default security group without rules."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from ipaddress import IPv4Network
from typing import NamedTuple

from aws_cdk import Fn, Stack, Token
from aws_cdk import aws_ec2 as ec2
from aws_cdk.interfaces.aws_kms import IKeyRef
from constructs import Construct

from ultracluster.catalog.zones import control_plane_zones
from ultracluster.config.network import CreateNetwork, is_zone_id, subnet_plan, zone_plan
from ultracluster.constructs.acknowledgements import acknowledge
from ultracluster.constructs.functions import InlineResource
from ultracluster.constructs.log_groups import log_group
from ultracluster.constructs.names import ACCOUNT, own_arn
from ultracluster.constructs.retention import retain
from ultracluster.constructs.roles import managed_policy, service_role

ZONES_OF_FILE = "The environment file names the zones of the control plane."


class _Subnet(NamedTuple):
    """A subnet, the construct around it, and its route table."""

    scope: Construct
    subnet: ec2.CfnSubnet
    table: ec2.CfnRouteTable
    association: ec2.CfnSubnetRouteTableAssociation


class ClusterVpc(Construct):
    """A VPC with one node subnet in `zone`, and control-plane and public subnets in two zones.

    Nodes without EFA may be in `further_zones`, each with a subnet.

    These are `control_plane_zones`, or two zones that the catalogue knows by id. In a stack whose Region is a token
    they are the account's first two zones, one of which EKS may refuse. Nothing is looked up at synth. They are
    Availability Zones, never Local Zones, where the PCS controller cannot run.
    Public subnets and the internet gateway are created only with NAT gateways, which are the only resources with a
    public address. The node subnet routes through the first NAT gateway.

    The VPC and its private subnets are retained: a retained file system or cluster keeps network interfaces in them,
    and AWS deletes no subnet in use.
    """

    vpc_id: str
    """Id of the VPC."""
    node_subnet_id: str
    """Id of the node subnet."""
    zone_subnet_ids: Mapping[str, str]
    """Ids of the subnets of nodes in further zones, by zone."""
    control_plane_subnet_ids: tuple[str, ...]
    """Ids of the control-plane subnets."""
    private_route_tables: list[ec2.CfnRouteTable]
    """Route tables of the node subnet, of the control-plane subnets, and of the subnets in further zones."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: CreateNetwork,
        zone: str,
        key: IKeyRef,
        further_zones: Sequence[str] = (),
    ) -> None:
        super().__init__(scope, id)
        plan = subnet_plan(settings.block)
        chosen = settings.control_plane_zones or control_plane_zones(Stack.of(self).region)
        zones = chosen or [Fn.select(i, Fn.get_azs()) for i in (0, 1)]
        self._path = self.node.path
        self._vpc = ec2.CfnVPC(
            self,
            "Resource",
            cidr_block=settings.cidr,
            enable_dns_hostnames=True,
            enable_dns_support=True,
            tags=_name(self._path),
        )
        nodes = self._subnet("Nodes", plan.node, zone)
        _accept_fixed_zone(nodes.subnet, "Capacity is reserved in this zone and in no other.")
        control_plane = [
            self._subnet(f"ControlPlane{i}", block, zones[i]) for i, block in enumerate(plan.control_plane)
        ]
        for made, zone_of_plane in zip(control_plane, zones, strict=True):
            _accept_named_zone(made.subnet, zone_of_plane)
        blocks = zone_plan(settings.block)
        further = {each: self._subnet(f"Nodes-{each}", blocks[each[-1]], each) for each in further_zones}
        for made in further.values():
            _accept_fixed_zone(made.subnet, "The environment file names the zones of the node group.")
        retain(self._vpc, nodes.subnet, *(made.subnet for made in control_plane))
        if settings.nat_gateways:
            gateways = self._nat_gateways(settings.nat_gateways, plan.public, zones)
            in_node_zone = ((made, 0) for made in (nodes, *further.values()))
            for private, gateway in (*in_node_zone, *((made, i) for i, made in enumerate(control_plane))):
                _default_route(private, nat_gateway_id=gateways[min(gateway, len(gateways) - 1)])
        if settings.flow_logs:
            self._flow_logs(key)
        self._remove_default_rules(key)
        self.vpc_id, self.node_subnet_id = self._vpc.ref, nodes.subnet.ref
        self.zone_subnet_ids = {each: made.subnet.ref for each, made in further.items()}
        self.control_plane_subnet_ids = tuple(made.subnet.ref for made in control_plane)
        self.private_route_tables = [nodes.table, *(made.table for made in (*control_plane, *further.values()))]
        self._control_plane = control_plane

    @cached_property
    def control_plane_zones(self) -> tuple[str, ...]:
        """Names of the zones of the control-plane subnets, known at deployment."""
        return tuple(made.subnet.attr_availability_zone for made in self._control_plane)

    def _subnet(self, id: str, block: IPv4Network, zone: str) -> _Subnet:
        scope = Construct(self, id)
        name = _name(f"{self._path}/{id}")
        subnet = ec2.CfnSubnet(
            scope,
            "Subnet",
            vpc_id=self._vpc,
            cidr_block=str(block),
            availability_zone=None if is_zone_id(zone) else zone,
            availability_zone_id=zone if is_zone_id(zone) else None,
            map_public_ip_on_launch=False,
            tags=name,
        )
        table = ec2.CfnRouteTable(scope, "RouteTable", vpc_id=self._vpc, tags=name)
        association = ec2.CfnSubnetRouteTableAssociation(
            scope, "RouteTableAssociation", route_table_id=table, subnet_id=subnet
        )
        return _Subnet(scope, subnet, table, association)

    def _nat_gateways(self, count: int, blocks: Sequence[IPv4Network], zones: Sequence[str]) -> list[ec2.CfnNatGateway]:
        gateway = ec2.CfnInternetGateway(self, "InternetGateway")
        attachment = ec2.CfnVPCGatewayAttachment(
            self, "GatewayAttachment", vpc_id=self._vpc, internet_gateway_id=gateway
        )
        gateways = []
        for i, block in enumerate(blocks):
            public = self._subnet(f"Public{i}", block, zones[i])
            _accept_named_zone(public.subnet, zones[i])
            route = _default_route(public, gateway_id=gateway)
            route.add_resource_dependency(attachment)
            reason = "The route of a subnet that holds nothing but NAT gateways, which need it to lead anything out."
            acknowledge(route, {"NIST.800.53.R5-VPCNoUnrestrictedRouteToIGW": reason})
            if i < count:
                gateways.append(self._nat_gateway(public, f"{self._path}/Public{i}", route))
        return gateways

    def _nat_gateway(self, public: _Subnet, path: str, route: ec2.CfnRoute) -> ec2.CfnNatGateway:
        address = ec2.CfnEIP(public.scope, "EIP", domain="vpc", tags=_name(path))
        gateway = ec2.CfnNatGateway(
            public.scope,
            "NATGateway",
            subnet_id=public.subnet,
            allocation_id=address.attr_allocation_id,
            tags=_name(path),
        )
        for before in (route, public.association):
            gateway.add_resource_dependency(before)
        return gateway

    def _flow_logs(self, key: IKeyRef) -> None:
        """Source of the permissions: VPC User Guide, "IAM role for publishing flow logs" (2026)."""
        group = log_group(self, "FlowLogs", name="/aws/vpc/flow-logs", key=key)
        role = service_role(
            self,
            "FlowLogRole",
            service="vpc-flow-logs.amazonaws.com",
            description="Delivers flow logs",
            conditions={
                "StringEquals": {"aws:SourceAccount": ACCOUNT},
                "ArnLike": {"aws:SourceArn": own_arn("ec2", "vpc-flow-log/*")},
            },
        )
        actions = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
        policy = managed_policy(
            self, "FlowLogPolicy", roles=[role], statements=[{"Action": actions, "Resource": group.log_group_arn}]
        )
        flow_log = ec2.CfnFlowLog(
            self,
            "FlowLog",
            resource_type="VPC",
            resource_id=self._vpc,
            traffic_type="ALL",
            log_destination_type="cloud-watch-logs",
            log_group_name=group.log_group_name,
            deliver_logs_permission_arn=role,
        )
        flow_log.add_resource_dependency(policy)

    def _remove_default_rules(self, key: IKeyRef) -> None:
        group = self._vpc.attr_default_security_group
        actions = ["ec2:RevokeSecurityGroupEgress", "ec2:RevokeSecurityGroupIngress"]
        InlineResource(
            self,
            "DefaultSecurityGroup",
            handler="default_security_group",
            resource_type="Custom::ClosedDefaultSecurityGroup",
            properties={"GroupId": group},
            statements=[{"Action": actions, "Resource": own_arn("ec2", f"security-group/{group}")}],
            key=key,
            timeout_seconds=60,
        )
        reason = "Its default group is closed by Custom::ClosedDefaultSecurityGroup, which the rule cannot see."
        acknowledge(self._vpc, {"NIST.800.53.R5-VPCDefaultSecurityGroupClosed": reason})


def _default_route(
    subnet: _Subnet,
    *,
    gateway_id: ec2.CfnInternetGateway | None = None,
    nat_gateway_id: ec2.CfnNatGateway | None = None,
) -> ec2.CfnRoute:
    return ec2.CfnRoute(
        subnet.scope,
        "DefaultRoute",
        route_table_id=subnet.table,
        destination_cidr_block="0.0.0.0/0",
        gateway_id=gateway_id,
        nat_gateway_id=nat_gateway_id,
    )


def _name(path: str) -> list[dict[str, str]]:
    return [{"key": "Name", "value": path}]


def _accept_named_zone(subnet: ec2.CfnSubnet, zone: str) -> None:
    """Accepts the findings on a zone that the file names. There are none on ids and on tokens."""
    if not is_zone_id(zone) and not Token.is_unresolved(zone):
        _accept_fixed_zone(subnet, ZONES_OF_FILE)


def _accept_fixed_zone(subnet: ec2.CfnSubnet, reason: str) -> None:
    """Accepts the findings of the CDK's validation and of cfn-lint on a fixed zone, for `reason`."""
    acknowledge(subnet, {"CloudFormation-Validate::W3010": reason})
    subnet.add_metadata("cfn-lint", {"config": {"ignore_checks": ["W3010"]}})
