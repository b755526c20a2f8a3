"""The network of a cluster: a VPC created here or an existing one, and the security groups of the nodes."""

from collections.abc import Sequence
from functools import cached_property

from aws_cdk import Fn
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultracluster.config.network import CreateNetwork, ExistingNetwork, Network
from ultracluster.config.node_groups import Controller
from ultracluster.constructs.acknowledgements import acknowledge
from ultracluster.constructs.endpoints import (
    INTERFACE_SERVICES,
    KARPENTER_SERVICES,
    InterfaceEndpoints,
    S3Endpoint,
)
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.references import SecurityGroup, Subnet, Vpc, security_group_id, subnet_id, vpc_id
from ultracluster.constructs.security_groups import member_group
from ultracluster.constructs.vpc import ClusterVpc
from ultracluster.errors import InvalidArgument

NO_ROUTE_TABLE = {"Annotation::@aws-cdk/aws-ec2:noSubnetRouteTableId": "Routes of these subnets are managed elsewhere."}


class NodeNetwork(Construct):
    """What every network gives, whether this app creates it or it exists already.

    Ids are strings, for constructs that take an id. The L2 views are made on first use.
    """

    vpc_id: str
    """Id of the VPC."""
    node_subnet_id: str
    """Id of the subnet of nodes and file system, in the environment's zone."""
    control_plane_subnet_ids: tuple[str, ...]
    """Ids of the private subnets of the control plane and of interface endpoints."""
    cluster_security_group_id: str
    """Id of the security group of controller, login nodes and compute nodes."""
    efa_security_group_id: str
    """Id of the security group of everything that talks over EFA."""

    @cached_property
    def vpc(self) -> ec2.IVpc:
        """The VPC as an L2. Its private subnets are those of the control plane, in the Region's first zones."""
        zones = Fn.get_azs()
        subnets = self.control_plane_subnet_ids
        view = ec2.Vpc.from_vpc_attributes(
            self,
            "VpcView",
            vpc_id=self.vpc_id,
            availability_zones=[Fn.select(i, zones) for i in range(len(subnets))],
            private_subnet_ids=list(subnets),
            private_subnet_route_table_ids=self._route_table_ids(),
        )
        acknowledge(view, NO_ROUTE_TABLE)
        return view

    @cached_property
    def node_subnet(self) -> ec2.ISubnet:
        """The subnet of nodes and file system as an L2."""
        return self._subnet("NodeSubnetView", self.node_subnet_id)

    @cached_property
    def control_plane_subnets(self) -> list[ec2.ISubnet]:
        """The subnets of the control plane as L2s."""
        return [
            self._subnet(f"ControlPlaneSubnetView{i}", subnet) for i, subnet in enumerate(self.control_plane_subnet_ids)
        ]

    @cached_property
    def cluster_security_group(self) -> ec2.ISecurityGroup:
        """The security group of controller, login nodes and compute nodes as an L2."""
        return self._security_group("ClusterGroupView", self.cluster_security_group_id)

    @cached_property
    def efa_security_group(self) -> ec2.ISecurityGroup:
        """The security group of everything that talks over EFA as an L2."""
        return self._security_group("EfaGroupView", self.efa_security_group_id)

    @property
    def node_security_group_ids(self) -> tuple[str, str]:
        """Ids of both security groups, which accelerated nodes carry."""
        return (self.efa_security_group_id, self.cluster_security_group_id)

    def _route_table_ids(self) -> list[str] | None:
        """Ids of the route tables of the control-plane subnets; None where they are not known."""
        return None

    def _subnet(self, id: str, subnet: str) -> ec2.ISubnet:
        imported = ec2.Subnet.from_subnet_id(self, id, subnet)
        acknowledge(imported, NO_ROUTE_TABLE)
        return imported

    def _security_group(self, id: str, group: str) -> ec2.ISecurityGroup:
        return ec2.SecurityGroup.from_security_group_id(self, id, group)


class ClusterNetwork(NodeNetwork):
    """VPC, subnets and security groups of a cluster.

    With `settings.create` everything is created, with the endpoints that keep nodes off the internet. The S3 endpoint
    reaches buckets of the account and `existing_buckets`, names of buckets that another account may own.
    `control_plane` and `karpenter` decide which services get an interface endpoint. With `settings.existing` only the
    security groups are created. Accelerated nodes carry both groups, the controller and login nodes the cluster group.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Network,
        zone: str | None = None,
        existing_buckets: Sequence[str] = (),
        control_plane: Controller = "pcs",
        karpenter: bool = False,
    ) -> None:
        super().__init__(scope, id)
        self._created = made = self._create(settings.create, zone) if settings.create else None
        self._settle(made or _existing(settings))
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
        if made:
            S3Endpoint(
                self, "S3", vpc=self.vpc_id, route_tables=made.private_route_tables, other_buckets=existing_buckets
            )
        if settings.create and settings.create.private_endpoints:
            InterfaceEndpoints(
                self,
                "Endpoints",
                vpc=self.vpc_id,
                subnets=self.control_plane_subnet_ids,
                clients=self.cluster_security_group_id,
                services=INTERFACE_SERVICES[control_plane] | (KARPENTER_SERVICES if karpenter else {}),
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
        return cls(scope, id, settings=Network(existing=existing))

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
        found = NodeNetwork(scope, id)
        found.vpc_id, found.node_subnet_id = vpc_id(vpc), subnet_id(node_subnet)
        found.control_plane_subnet_ids = tuple(map(subnet_id, control_plane_subnets))
        found.cluster_security_group_id = security_group_id(cluster_security_group)
        found.efa_security_group_id = security_group_id(efa_security_group)
        return found

    def _create(self, settings: CreateNetwork, zone: str | None) -> ClusterVpc:
        if zone is None:
            raise InvalidArgument("zone is missing. Name the Availability Zone of the nodes, for example us-east-2b")
        key = DataKey(self, "LogKey", description="Flow logs of the cluster's network")
        return ClusterVpc(self, "Vpc", settings=settings, zone=zone, key=key)

    def _route_table_ids(self) -> list[str] | None:
        if self._created is None:
            return None
        return [table.attr_route_table_id for table in self._created.private_route_tables[1:]]

    def _settle(self, place: "ClusterVpc | ExistingNetwork") -> None:
        self.vpc_id, self.node_subnet_id = place.vpc_id, place.node_subnet_id
        self.control_plane_subnet_ids = tuple(place.control_plane_subnet_ids)


def _existing(settings: Network) -> ExistingNetwork:
    if not settings.existing:
        raise InvalidArgument("network has neither create nor existing; exactly one is allowed")
    return settings.existing
