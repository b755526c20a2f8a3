"""`<env>-compute` with Kubernetes: the accelerated nodes."""

from constructs import Construct

from ultracluster.config.eks import Eks
from ultracluster.config.environment import Environment
from ultracluster.constructs.network import ClusterNetwork
from ultracluster.kubernetes import labels
from ultracluster.stacks.base import EnvironmentStack, node_tags
from ultracluster.stacks.eks_control_plane import EksControlPlaneStack


class EksComputeStack(EnvironmentStack):
    """A managed node group, with its launch template, for each group of the file and each block of an UltraServer."""

    def __init__(
        self,
        scope: Construct,
        environment: Environment,
        *,
        settings: Eks,
        network: ClusterNetwork,
        control_plane: EksControlPlaneStack,
    ) -> None:
        super().__init__(scope, "compute", environment)
        for group in environment.node_groups:
            for part in group.blocks():
                control_plane.cluster.add_node_group(
                    part,
                    role=control_plane.node_role,
                    subnet=network.node_subnet_id,
                    security_groups=network.node_security_group_ids,
                    lustre=environment.storage.lustre,
                    labels=labels.node_labels(group.name, settings),
                    repair=settings.node_repair,
                    tags=node_tags(environment, part.name),
                    scope=self,
                )
