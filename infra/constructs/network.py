"""The network a cluster runs in: a VPC of its own or one that exists, and the security groups of its members."""

from collections.abc import Sequence

from aws_cdk import RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from infra.config.network import ExistingNetwork, Network
from infra.constructs.acknowledgements import acknowledge
from infra.constructs.endpoints import InterfaceEndpoints, S3Endpoint
from infra.constructs.keys import DataKey
from infra.constructs.security_groups import member_group
from infra.constructs.vpc import ClusterVpc


class ClusterNetwork(Construct):
    """VPC, subnets and security groups of a cluster.

    With `settings.create` everything is made, with the endpoints that keep nodes off the internet; `existing_buckets`
    are names of buckets that the S3 endpoint must reach although another account may own them. With
    `settings.existing` only the security groups are made. Nodes carry both groups; the controller and login nodes
    carry the cluster group.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Network,
        zone: str,
        existing_buckets: Sequence[str] = (),
    ) -> None:
        super().__init__(scope, id)
        self._vpc, self._node_subnet, self._control_plane_subnets = self._subnets(settings, zone)
        self._cluster_group = member_group(
            self, "ClusterGroup", vpc=self.vpc, description="Controller, login nodes and compute nodes"
        )
        # a retained cluster's controller keeps it
        self._cluster_group.apply_removal_policy(RemovalPolicy.RETAIN)
        self._efa_group = member_group(self, "EfaGroup", vpc=self.vpc, description="Nodes that talk over EFA")
        if settings.create:
            S3Endpoint(
                self,
                "S3",
                vpc=self.vpc,
                subnets=[self.node_subnet, *self.control_plane_subnets],
                other_buckets=existing_buckets,
            )
        if settings.create and settings.create.private_endpoints:
            InterfaceEndpoints(
                self, "Endpoints", vpc=self.vpc, subnets=self.control_plane_subnets, clients=self._cluster_group
            )

    @property
    def vpc(self) -> ec2.IVpc:
        """The VPC."""
        return self._vpc

    @property
    def node_subnet(self) -> ec2.ISubnet:
        """Where nodes and the file system live, in the environment's zone."""
        return self._node_subnet

    @property
    def control_plane_subnets(self) -> tuple[ec2.ISubnet, ...]:
        """Private subnets of the Region's own zones: for the controller and for interface endpoints."""
        return self._control_plane_subnets

    @property
    def efa_security_group(self) -> ec2.ISecurityGroup:
        """For everything that talks over EFA."""
        return self._efa_group

    @property
    def cluster_security_group(self) -> ec2.ISecurityGroup:
        """For the controller, login nodes and compute nodes."""
        return self._cluster_group

    def _subnets(self, settings: Network, zone: str) -> tuple[ec2.IVpc, ec2.ISubnet, tuple[ec2.ISubnet, ...]]:
        if settings.create:
            key = DataKey(self, "LogKey", description="Flow logs of the cluster's network").key
            made = ClusterVpc(self, "Vpc", settings=settings.create, zone=zone, key=key)
            return made.vpc, made.node_subnet, made.control_plane_subnets
        if settings.existing:
            return self._existing(settings.existing, zone)
        raise ValueError("network has neither create nor existing; exactly one is allowed")

    def _existing(self, settings: ExistingNetwork, zone: str) -> tuple[ec2.IVpc, ec2.ISubnet, tuple[ec2.ISubnet, ...]]:
        vpc = ec2.Vpc.from_vpc_attributes(self, "Vpc", vpc_id=settings.vpc_id, availability_zones=[zone])
        nodes = ec2.Subnet.from_subnet_attributes(
            self, "Nodes", subnet_id=settings.node_subnet_id, availability_zone=zone
        )
        control_plane = tuple(
            ec2.Subnet.from_subnet_attributes(self, f"ControlPlane{i}", subnet_id=subnet_id)
            for i, subnet_id in enumerate(settings.control_plane_subnet_ids)
        )
        for subnet in (nodes, *control_plane):
            acknowledge(subnet, {"Annotation::@aws-cdk/aws-ec2:noSubnetRouteTableId": "Its routes are its owner's."})
        return vpc, nodes, control_plane
