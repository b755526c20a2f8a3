"""`<env>-compute` with Slurm: the nodes."""

from constructs import Construct

from ultracluster.config.environment import Environment
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.pcs import Login, Pcs
from ultracluster.constructs import user_data as boot
from ultracluster.constructs.bucket_access import BucketAccess
from ultracluster.constructs.compute import AcceleratedLaunchTemplate, CpuLaunchTemplate, cpu_architecture
from ultracluster.constructs.network import ClusterNetwork
from ultracluster.constructs.pcs import PcsNodeGroup, PcsQueue, one_after_another
from ultracluster.stacks.base import EnvironmentStack, node_tags
from ultracluster.stacks.pcs_control_plane import PcsControlPlaneStack
from ultracluster.stacks.storage import StorageStack

LOGIN_VOLUME_GIB = 100
"""Root volume of a login node."""


class PcsComputeStack(EnvironmentStack):
    """Login nodes, the accelerated node groups, and the queues over them."""

    def __init__(
        self,
        scope: Construct,
        environment: Environment,
        *,
        settings: Pcs,
        network: ClusterNetwork,
        storage: StorageStack,
        control_plane: PcsControlPlaneStack,
    ) -> None:
        super().__init__(scope, "compute", environment)
        self._environment, self._network, self._storage = environment, network, storage
        self._cluster, self._role = control_plane.cluster, control_plane.node_role
        login = self._login_group(settings.login)
        if storage.buckets:
            access = BucketAccess(self, "BucketAccess", buckets=list(storage.buckets.values()), role=self._role.role)
            login.node.add_dependency(access)
        groups = {group.name: self._node_group(group) for group in environment.launched_groups}
        parts = {group.name: [groups[part.name] for part in group.blocks()] for group in environment.node_groups}
        queues = [
            PcsQueue(
                self,
                f"Queue-{queue.name}",
                settings=queue,
                cluster=self._cluster,
                node_groups=[part for name in queue.node_groups for part in parts[name]],
            )
            for queue in settings.queues
        ]
        one_after_another([login, *groups.values(), *queues])

    def _login_group(self, settings: Login) -> PcsNodeGroup:
        template = CpuLaunchTemplate(
            self,
            "LoginTemplate",
            security_groups=[self._network.cluster_security_group],
            root_volume_gib=LOGIN_VOLUME_GIB,
            user_data=boot.user_data([boot.protect_slurmd(), *self._mounts(None)]),
            tags=node_tags(self._environment, "login"),
        )
        return PcsNodeGroup(
            self,
            "Login",
            name="login",
            cluster=self._cluster,
            instance_type=settings.instance_type,
            architecture=cpu_architecture(settings.instance_type),
            launch_template=template,
            role=self._role,
            subnet=self._network.node_subnet,
            min_count=settings.count,
            max_count=settings.count,
            image=settings.image,
        )

    def _node_group(self, group: NodeGroup) -> PcsNodeGroup:
        scratch = [boot.raid0_instance_store()] if group.local_storage == "raid0" else []
        template = AcceleratedLaunchTemplate(
            self,
            f"Template-{group.name}",
            instance_type=group.instance_type,
            launch=group.launch,
            layout=group.layout("pcs"),
            subnet=self._network.node_subnet,
            security_groups=[self._network.efa_security_group, self._network.cluster_security_group],
            root_volume_gib=group.root_volume_gib,
            user_data=boot.user_data([boot.protect_slurmd(), *scratch, *self._mounts(group)]),
            tags=node_tags(self._environment, group.name),
        )
        return PcsNodeGroup(
            self,
            f"Group-{group.name}",
            name=group.name,
            cluster=self._cluster,
            instance_type=group.instance_type,
            architecture=group.hardware.architecture,
            launch_template=template,
            role=self._role,
            subnet=self._network.node_subnet,
            min_count=group.min_count,
            max_count=group.max_count,
            purchase=group.purchase.type,
            image=group.image,
        )

    def _mounts(self, group: NodeGroup | None) -> list[str]:
        settings, file_system = self._environment.storage.lustre, self._storage.file_system
        if settings is None or file_system is None:
            return []
        mount = boot.LustreMount(file_system.dns_name, file_system.mount_name, settings.mount_path, settings.efa)
        return [boot.mount_lustre(mount, group.hardware if group else None)]
