"""`<env>-compute` with Kubernetes: the accelerated nodes."""

from constructs import Construct

from ultracluster.config.eks import Eks
from ultracluster.config.environment import Environment
from ultracluster.config.node_groups import NodeGroup
from ultracluster.constructs.compute import EKS_IMAGE, AcceleratedLaunchTemplate, ami_reference
from ultracluster.constructs.eks_nodes import EksNodeGroup
from ultracluster.constructs.network import ClusterNetwork
from ultracluster.kubernetes import labels
from ultracluster.kubernetes.node_config import ClusterEndpoint, gpu_node_user_data
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
        self._environment, self._settings, self._network = environment, settings, network
        self._control_plane = control_plane
        for group in environment.node_groups:
            for part in group.blocks():
                self._node_group(part, group.name)

    def _node_group(self, group: NodeGroup, name_in_file: str) -> None:
        environment, settings, network = self._environment, self._settings, self._network
        template = AcceleratedLaunchTemplate(
            self,
            f"Template-{group.name}",
            instance_type=group.instance_type,
            launch=group.launch,
            layout=group.layout("eks"),
            subnet=None,
            security_groups=[network.efa_security_group, network.cluster_security_group],
            root_volume_gib=group.root_volume_gib,
            user_data=gpu_node_user_data(
                group,
                labels.node_labels(name_in_file, settings),
                lustre=environment.storage.lustre,
                cluster=self._joins(group),
            ),
            tags=node_tags(environment, group.name),
            image=EKS_IMAGE,
            ami_id=None if group.image == "auto" else ami_reference(group.image),
        )
        EksNodeGroup(
            self,
            f"Group-{group.name}",
            group=group,
            cluster=self._control_plane.cluster,
            kubernetes_version=settings.kubernetes_version,
            launch_template=template,
            role=self._control_plane.node_role,
            network_addon=self._control_plane.network_addon,
            subnet=network.node_subnet,
            labels=labels.node_labels(name_in_file, settings),
            taint=labels.GPU_TAINT,
            repair=settings.node_repair,
        )

    def _joins(self, group: NodeGroup) -> ClusterEndpoint | None:
        """What an image of one's own has to be told to join; EKS tells it to its own."""
        if group.image == "auto":
            return None
        cluster = self._control_plane.cluster
        return ClusterEndpoint(
            cluster.cluster_name, cluster.endpoint, cluster.certificate_authority, cluster.service_network
        )
