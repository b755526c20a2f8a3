"""The network a cluster runs in: a VPC of its own or one that exists, and the security groups of its members."""

from collections.abc import Sequence
from typing import NamedTuple

from constructs import Construct

from ultracluster.config.network import CreateNetwork, Network
from ultracluster.constructs.endpoints import (
    INTERFACE_SERVICES,
    KARPENTER_SERVICES,
    ControlPlane,
    InterfaceEndpoints,
    S3Endpoint,
)
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.places import SecurityGroupById, SubnetById, VpcById
from ultracluster.constructs.security_groups import member_group
from ultracluster.constructs.vpc import ClusterVpc


class ClusterNetwork(Construct):
    """VPC, subnets and security groups of a cluster.

    With `settings.create` everything is made, with the endpoints that keep nodes off the internet; `existing_buckets`
    are names of buckets that the S3 endpoint must reach although another account may own them; which services the
    nodes call, `control_plane` and `karpenter` decide. With `settings.existing` only the security groups are made.
    Nodes carry both groups; the controller and login nodes carry the cluster group.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Network,
        zone: str,
        existing_buckets: Sequence[str] = (),
        control_plane: ControlPlane = "pcs",
        karpenter: bool = False,
    ) -> None:
        super().__init__(scope, id)
        made = self._create(settings.create, zone) if settings.create else None
        self._place = made or _existing(settings)
        self._cluster_group = member_group(
            self,
            "ClusterGroup",
            vpc=self.vpc,
            description="Controller, login nodes and compute nodes",
            retained=True,  # a retained cluster's controller keeps it
        )
        self._efa_group = member_group(self, "EfaGroup", vpc=self.vpc, description="Nodes that talk over EFA")
        if made:
            S3Endpoint(self, "S3", vpc=made.vpc, route_tables=made.private_route_tables, other_buckets=existing_buckets)
        if settings.create and settings.create.private_endpoints:
            InterfaceEndpoints(
                self,
                "Endpoints",
                vpc=self.vpc,
                subnets=self.control_plane_subnets,
                clients=self._cluster_group,
                services=INTERFACE_SERVICES[control_plane] | (KARPENTER_SERVICES if karpenter else {}),
            )

    @property
    def vpc(self) -> VpcById:
        """The VPC."""
        return self._place.vpc

    @property
    def node_subnet(self) -> SubnetById:
        """Where nodes and the file system live, in the environment's zone."""
        return self._place.node_subnet

    @property
    def control_plane_subnets(self) -> tuple[SubnetById, ...]:
        """Private subnets of the Region's own zones: for the controller and for interface endpoints."""
        return self._place.control_plane_subnets

    @property
    def efa_security_group(self) -> SecurityGroupById:
        """For everything that talks over EFA."""
        return self._efa_group

    @property
    def cluster_security_group(self) -> SecurityGroupById:
        """For the controller, login nodes and compute nodes."""
        return self._cluster_group

    def _create(self, settings: CreateNetwork, zone: str) -> ClusterVpc:
        key = DataKey(self, "LogKey", description="Flow logs of the cluster's network")
        return ClusterVpc(self, "Vpc", settings=settings, zone=zone, key=key)


class _Existing(NamedTuple):
    """What is used of a network that exists."""

    vpc: VpcById
    node_subnet: SubnetById
    control_plane_subnets: tuple[SubnetById, ...]


def _existing(settings: Network) -> _Existing:
    if not settings.existing:
        raise ValueError("network has neither create nor existing; exactly one is allowed")
    existing = settings.existing
    return _Existing(
        VpcById(existing.vpc_id),
        SubnetById(existing.node_subnet_id),
        tuple(SubnetById(subnet_id) for subnet_id in existing.control_plane_subnet_ids),
    )
