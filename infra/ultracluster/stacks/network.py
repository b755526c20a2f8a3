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
        plane, buckets = environment.control_plane, environment.storage.buckets.values()
        self.network = ClusterNetwork(
            self,
            "Network",
            settings=environment.network,
            zone=environment.availability_zone,
            existing_buckets=[bucket.existing for bucket in buckets if bucket.existing],
            read_only_buckets=environment.storage.read_only_buckets,
            control_plane=plane.type,
            karpenter=isinstance(plane, Eks) and plane.karpenter,
            lustre=environment.storage.lustre is not None,
        )
