"""`<env>-compute-cpu` with Kubernetes: the CPU nodes for pods of teams."""

from constructs import Construct

from ultracluster.config.eks import Eks
from ultracluster.config.environment import Environment
from ultracluster.constructs.network import ClusterNetwork
from ultracluster.kubernetes import labels
from ultracluster.stacks.base import EnvironmentStack, node_tags
from ultracluster.stacks.eks_control_plane import EksControlPlaneStack


class EksCpuNodesStack(EnvironmentStack):
    """The managed node group of the CPU nodes, in the subnet of the accelerated nodes and next to the file system."""

    def __init__(
        self,
        scope: Construct,
        environment: Environment,
        *,
        settings: Eks,
        network: ClusterNetwork,
        control_plane: EksControlPlaneStack,
    ) -> None:
        super().__init__(scope, f"compute-{labels.CPU}", environment, holds="CPU nodes")
        control_plane.cluster.add_cpu_nodes(
            settings.cpu_nodes,
            role=control_plane.node_role,
            subnets=[network.node_subnet_id],
            security_groups=[network.cluster_security_group_id],
            lustre=environment.storage.client,
            release=settings.image_release,
            tags=node_tags(environment, labels.CPU),
            scope=self,
        )
