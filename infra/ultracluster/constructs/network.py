"""The network of a cluster: a VPC created here or an existing one, and the security groups of the nodes."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

from aws_cdk import Fn
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultracluster.config.network import CreateNetwork, ExistingNetwork, Network
from ultracluster.config.node_groups import Controller
from ultracluster.constructs.acknowledgements import acknowledge
from ultracluster.constructs.endpoints import (
    FILE_SYSTEM_SERVICES,
    INTERFACE_SERVICES,
    KARPENTER_SERVICES,
    METRICS_SERVICES,
    InterfaceEndpoints,
    S3Endpoint,
)
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.references import (
    SecurityGroup,
    Subnet,
    Vpc,
    expect,
    expect_list,
    security_group_id,
    subnet_id,
    vpc_id,
)
from ultracluster.constructs.security_groups import member_group
from ultracluster.constructs.vpc import ClusterVpc
from ultracluster.errors import InvalidArgument

NO_ROUTE_TABLE = {"Annotation::@aws-cdk/aws-ec2:noSubnetRouteTableId": "Routes of these subnets are managed elsewhere."}


class NodeNetwork(Construct):
    """Attributes and methods of every network, created by this app or imported.

    Ids are strings, for constructs that take an id. The L2 views are created on first use. An L2 that the app passed in
    is its own view.
    """

    vpc_id: str
    """Id of the VPC."""
    node_subnet_id: str
    """Id of the subnet of nodes and file system, in the environment's zone."""
    zone_subnet_ids: Mapping[str, str] = MappingProxyType({})
    """Ids of the subnets of nodes by zone: the environment's, and further ones."""
    control_plane_subnet_ids: tuple[str, ...]
    """Ids of the private subnets of the control plane and of interface endpoints."""
    cluster_security_group_id: str
    """Id of the security group of controller, login nodes and compute nodes."""
    efa_security_group_id: str
    """Id of the security group of everything that talks over EFA."""

    _created: ClusterVpc | None = None
    _cidr: str | None = None
    _node_zone: str | None = None
    _passed_vpc: ec2.IVpc | None = None
    _passed_node_subnet: ec2.ISubnet | None = None
    _passed_control_plane_subnets: tuple[ec2.ISubnet | None, ...] = ()
    _passed_cluster_security_group: ec2.ISecurityGroup | None = None
    _passed_efa_security_group: ec2.ISecurityGroup | None = None

    @cached_property
    def vpc(self) -> ec2.IVpc:
        """The VPC as an L2. Unless the app passed an L2, its private subnets are the control-plane subnets.

        In a VPC that was passed as an id or L1, the view takes the Region's first zones for theirs. Pass an L2 to
        `in_vpc` before you use this view with a construct that names a zone, such as `ec2.Instance`.
        """
        if self._passed_vpc:
            return self._passed_vpc
        count = len(self.control_plane_subnet_ids)
        created = self._created.control_plane_zones if self._created else ()
        zones = created or [Fn.select(i, Fn.get_azs()) for i in range(count)]
        view = ec2.Vpc.from_vpc_attributes(
            self,
            "VpcView",
            vpc_id=self.vpc_id,
            vpc_cidr_block=self._cidr,
            availability_zones=list(zones),
            private_subnet_ids=list(self.control_plane_subnet_ids),
            private_subnet_route_table_ids=self._route_table_ids[1 : 1 + count] or None,
        )
        acknowledge(view, NO_ROUTE_TABLE)
        return view

    @cached_property
    def node_subnet(self) -> ec2.ISubnet:
        """The subnet of nodes and file system as an L2."""
        if self._passed_node_subnet:
            return self._passed_node_subnet
        tables = self._route_table_ids
        return self._subnet_view(
            "NodeSubnetView", self.node_subnet_id, zone=self._node_zone, route_table_id=tables[0] if tables else None
        )

    @cached_property
    def control_plane_subnets(self) -> list[ec2.ISubnet]:
        """The subnets of the control plane as L2s."""
        if self._created:
            return self.vpc.private_subnets
        ids = self.control_plane_subnet_ids
        passed = self._passed_control_plane_subnets or (None,) * len(ids)
        return [subnet or self._subnet_view(f"ControlPlaneSubnetView{i}", ids[i]) for i, subnet in enumerate(passed)]

    @cached_property
    def cluster_security_group(self) -> ec2.ISecurityGroup:
        """The security group of controller, login nodes and compute nodes as an L2."""
        return self._passed_cluster_security_group or ec2.SecurityGroup.from_security_group_id(
            self, "ClusterGroupView", self.cluster_security_group_id
        )

    @cached_property
    def efa_security_group(self) -> ec2.ISecurityGroup:
        """The security group of everything that talks over EFA as an L2."""
        return self._passed_efa_security_group or ec2.SecurityGroup.from_security_group_id(
            self, "EfaGroupView", self.efa_security_group_id
        )

    @property
    def node_security_group_ids(self) -> tuple[str, str]:
        """Ids of both security groups, which nodes with EFA carry."""
        return (self.efa_security_group_id, self.cluster_security_group_id)

    def security_group_ids(self, *, efa: bool) -> tuple[str, ...]:
        """Ids of the security groups of nodes with or without EFA."""
        return self.node_security_group_ids if efa else (self.cluster_security_group_id,)

    @cached_property
    def _route_table_ids(self) -> list[str]:
        """Ids of the route tables of the node subnet and the control-plane subnets; empty where they are not known."""
        return [table.attr_route_table_id for table in self._created.private_route_tables] if self._created else []

    def _subnet_view(
        self, id: str, subnet: str, *, zone: str | None = None, route_table_id: str | None = None
    ) -> ec2.ISubnet:
        view = ec2.Subnet.from_subnet_attributes(
            self, id, subnet_id=subnet, availability_zone=zone, route_table_id=route_table_id
        )
        if route_table_id is None:
            acknowledge(view, NO_ROUTE_TABLE)
        return view

    def _pass(self, vpc: Vpc, node_subnet: Subnet, control_plane_subnets: Sequence[Subnet]) -> None:
        """Keeps those of the resources that are L2s, to be their own views."""
        self._passed_vpc = _l2(vpc, "private_subnets")
        self._passed_node_subnet = _l2(node_subnet, "internet_connectivity_established")
        self._passed_control_plane_subnets = tuple(
            _l2(subnet, "internet_connectivity_established") for subnet in control_plane_subnets
        )


class ClusterNetwork(NodeNetwork):
    """VPC, subnets and security groups of a cluster.

    With `settings.create` everything is created, with the endpoints that keep nodes off the internet. The S3 endpoint
    reaches buckets of the account and `existing_buckets`, names of buckets that another account may own; it only reads
    `read_only_buckets` and the objects `boot_scripts`, as bucket/key. `control_plane`, `karpenter`, `lustre` and
    `metrics` decide which services get an interface endpoint. With `settings.existing` only the security groups are
    created. Accelerated nodes carry both groups, the controller and login nodes the cluster group.
    """

    endpoints: InterfaceEndpoints | None = None
    """The interface endpoints that were created; None without."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Network,
        zone: str | None = None,
        further_zones: Sequence[str] = (),
        existing_buckets: Sequence[str] = (),
        read_only_buckets: Sequence[str] = (),
        boot_scripts: Sequence[str] = (),
        control_plane: Controller = "pcs",
        karpenter: bool = False,
        lustre: bool = True,
        metrics: bool = True,
    ) -> None:
        super().__init__(scope, id)
        expect(settings, Network, "settings")
        expect_list(existing_buckets, "existing_buckets")
        expect_list(read_only_buckets, "read_only_buckets")
        expect_list(boot_scripts, "boot_scripts")
        self._node_zone = zone
        if settings.create:
            self._cidr = settings.create.cidr
            self._created = self._create(settings.create, zone, further_zones)
        place = self._created or _existing(settings)
        self.vpc_id, self.node_subnet_id = place.vpc_id, place.node_subnet_id
        self.zone_subnet_ids = {**place.zone_subnet_ids, **({zone: place.node_subnet_id} if zone else {})}
        self.control_plane_subnet_ids = tuple(place.control_plane_subnet_ids)
        self.cluster_security_group_id = member_group(
            self,
            "ClusterGroup",
            vpc_id=self.vpc_id,
            description="Controller, login nodes and compute nodes",
            retained=True,  # the controller of a retained cluster still uses it
        )
        self.efa_security_group_id = member_group(
            self, "EfaGroup", vpc_id=self.vpc_id, description="Nodes that talk over EFA"
        )
        if self._created:
            tables = self._created.private_route_tables
            S3Endpoint(
                self,
                "S3",
                vpc=self.vpc_id,
                route_tables=tables,
                other_buckets=existing_buckets,
                read_only_buckets=read_only_buckets,
                boot_scripts=boot_scripts,
            )
        if settings.create and settings.create.private_endpoints:
            services = {
                **INTERFACE_SERVICES[control_plane],
                **(METRICS_SERVICES[control_plane] if metrics else {}),
                **(KARPENTER_SERVICES if karpenter else {}),
                **(FILE_SYSTEM_SERVICES[control_plane] if lustre else {}),
            }
            self.endpoints = InterfaceEndpoints(
                self,
                "Endpoints",
                vpc=self.vpc_id,
                subnets=self.control_plane_subnet_ids,
                clients=self.cluster_security_group_id,
                services=services,
            )

    @classmethod
    def in_vpc(
        cls, scope: Construct, id: str, *, vpc: Vpc, node_subnet: Subnet, control_plane_subnets: Sequence[Subnet]
    ) -> "ClusterNetwork":
        """The security groups of a cluster in an existing VPC of any CDK app. Raises WrongReference."""
        existing = ExistingNetwork(
            vpc_id=vpc_id(vpc),
            node_subnet_id=subnet_id(node_subnet),
            control_plane_subnet_ids=tuple(map(subnet_id, control_plane_subnets)),
        )
        network = cls(scope, id, settings=Network(existing=existing))
        network._pass(vpc, node_subnet, control_plane_subnets)
        return network

    @staticmethod
    def from_network_attributes(
        scope: Construct,
        id: str,
        *,
        vpc: Vpc,
        node_subnet: Subnet,
        control_plane_subnets: Sequence[Subnet],
        cluster_security_group: SecurityGroup,
        efa_security_group: SecurityGroup,
    ) -> NodeNetwork:
        """A network whose security groups exist too, for example from another app. Raises WrongReference."""
        network = NodeNetwork(scope, id)
        network.vpc_id, network.node_subnet_id = vpc_id(vpc), subnet_id(node_subnet)
        network.control_plane_subnet_ids = tuple(map(subnet_id, control_plane_subnets))
        network.cluster_security_group_id = security_group_id(cluster_security_group)
        network.efa_security_group_id = security_group_id(efa_security_group)
        network._pass(vpc, node_subnet, control_plane_subnets)
        network._passed_cluster_security_group = _l2(cluster_security_group, "allow_all_outbound")
        network._passed_efa_security_group = _l2(efa_security_group, "allow_all_outbound")
        return network

    def _create(self, settings: CreateNetwork, zone: str | None, further: Sequence[str]) -> ClusterVpc:
        if zone is None:
            raise InvalidArgument("zone is missing. Name the Availability Zone of the nodes, for example us-east-2b")
        key = DataKey(self, "LogKey", description="Flow logs of the cluster's network")
        return ClusterVpc(self, "Vpc", settings=settings, zone=zone, key=key, further_zones=further)


def _existing(settings: Network) -> ExistingNetwork:
    if not settings.existing:
        raise InvalidArgument("settings has neither create nor existing. Set exactly one")
    return settings.existing


def _l2(resource: object, attribute: str) -> Any:
    """The resource if it is an L2, which has `attribute`; None for an L1 or an id."""
    return resource if hasattr(resource, attribute) else None
