"""`<env>-compute-<group>` with Kubernetes: the nodes of one managed node group."""

from collections.abc import Sequence

from constructs import Construct

from ultracluster.config.eks import Eks
from ultracluster.config.eks_nodes import NodeRepair
from ultracluster.config.environment import Environment
from ultracluster.config.node_groups import NodeGroup
from ultracluster.constructs.eks_roles import EksNodeRole
from ultracluster.constructs.network import ClusterNetwork
from ultracluster.kubernetes import labels
from ultracluster.stacks.base import EnvironmentStack, node_tags
from ultracluster.stacks.eks_control_plane import EksControlPlaneStack


class EksNodeGroupStack(EnvironmentStack):
    """One managed node group with its launch template: a group of the file, or one block of its UltraServers.

    A node group that cannot launch ends as CREATE_FAILED, and CloudFormation then rolls back its stack
    (aws/containers-roadmap issue 2204). In a stack of its own it takes no other node group with it. A group with
    `policies` has a role of its own; EKS gives it an access entry.
    """

    def __init__(
        self,
        scope: Construct,
        environment: Environment,
        *,
        group: NodeGroup,
        block: NodeGroup,
        settings: Eks,
        network: ClusterNetwork,
        control_plane: EksControlPlaneStack,
        topics: Sequence[str],
    ) -> None:
        super().__init__(scope, f"compute-{block.name}", environment, holds=f"Node group {block.name}", nodes=True)
        acts = environment.observability.repairs_nodes
        accepted = environment.health.acceptance("eks", group.hardware.gpu_count)
        nodes = control_plane.cluster.add_node_group(
            block,
            role=EksNodeRole(self, "Nodes", policies=block.policies) if block.policies else control_plane.node_role,
            subnet=network.node_subnet_id,
            zone_subnets=[network.zone_subnet_ids[zone] for zone in group.zones],
            security_groups=network.security_group_ids(efa=group.efa),
            lustre=environment.storage.client,
            labels=labels.node_labels(group.name, settings, gpus=group.hardware.gpu_count > 0),
            repair=settings.node_repair if acts else NodeRepair(enabled=False),
            release=settings.image_release,
            startup_taint=labels.NOT_ACCEPTED if accepted else None,
            tags=node_tags(environment, block.name),
            scope=self,
        )
        nodes.notify(topics)
