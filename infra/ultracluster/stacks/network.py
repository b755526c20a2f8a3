"""`<env>-network`: the VPC of the environment."""

from aws_cdk import Token
from constructs import Construct

from ultracluster.config.eks import Eks
from ultracluster.config.environment import Environment
from ultracluster.config.pcs import Pcs
from ultracluster.constructs.network import ClusterNetwork
from ultracluster.constructs.security_groups import security_group
from ultracluster.stacks.base import EnvironmentStack


class NetworkStack(EnvironmentStack):
    """VPC, subnets, endpoints and the security groups of the nodes.

    Login nodes of PCS carry a group of their own, without rules, for `<env>-access` to open: nodes are not replaced
    when people come.
    """

    login_security_group_id: str | None
    """Id of the security group that only login nodes of PCS carry."""

    def __init__(self, scope: Construct, environment: Environment) -> None:
        super().__init__(scope, "network", environment)
        plane, storage = environment.control_plane, environment.storage
        existing = [(bucket.existing, bucket.access) for bucket in storage.buckets.values() if bucket.existing]
        self.network = ClusterNetwork(
            self,
            "Network",
            settings=environment.network,
            zone=environment.availability_zone,
            further_zones=environment.further_zones,
            existing_buckets=[name for name, access in existing if access != "read"],
            read_only_buckets=[*storage.read_only_buckets, *(name for name, access in existing if access == "read")],
            boot_scripts=environment.script_objects,
            control_plane=plane.type,
            karpenter=isinstance(plane, Eks) and bool(plane.karpenter),
            lustre=bool(storage.all_lustre),
            metrics=environment.observability.collects_metrics,
        )
        self.login_security_group_id = (
            security_group(self, "LoginGroup", vpc_id=self.network.vpc_id, description="SSH to login nodes")
            if isinstance(plane, Pcs)
            else None
        )
        # always exported: when <env>-access or the last group with EFA is removed, a stack still imports them
        endpoints = self.network.endpoints
        for value in (
            self.network.vpc_id,
            self.network.efa_security_group_id,
            endpoints.security_group_id if endpoints else "",
            self.login_security_group_id,
        ):
            if value and Token.is_unresolved(value):
                self.export_value(value)
