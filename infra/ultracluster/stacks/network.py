"""`<env>-network`: the VPC of the environment."""

from constructs import Construct

from ultracluster.config.eks import Eks
from ultracluster.config.environment import Environment
from ultracluster.constructs.network import ClusterNetwork
from ultracluster.stacks.base import EnvironmentStack


class NetworkStack(EnvironmentStack):
    """VPC, subnets, endpoints and the security groups of the nodes."""

    def __init__(self, scope: Construct, environment: Environment) -> None:
        super().__init__(scope, "network", environment)
        plane, storage = environment.control_plane, environment.storage
        existing = [(bucket.existing, bucket.access) for bucket in storage.buckets.values() if bucket.existing]
        self.network = ClusterNetwork(
            self,
            "Network",
            settings=environment.network,
            zone=environment.availability_zone,
            existing_buckets=[name for name, access in existing if access != "read"],
            read_only_buckets=[*storage.read_only_buckets, *(name for name, access in existing if access == "read")],
            control_plane=plane.type,
            karpenter=isinstance(plane, Eks) and plane.karpenter,
            lustre=storage.lustre is not None,
        )
