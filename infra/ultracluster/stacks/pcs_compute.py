"""`<env>-compute` with Slurm: login nodes, node groups and queues."""

from collections.abc import Sequence

from constructs import Construct

from ultracluster.config.environment import Environment
from ultracluster.config.pcs import Pcs
from ultracluster.config.slurm_settings import serves_metrics
from ultracluster.constructs.bucket_access import BucketAccess
from ultracluster.constructs.metrics import PrometheusWorkspace
from ultracluster.constructs.node_telemetry import NodeTelemetry
from ultracluster.nodes.pcs import own_programs
from ultracluster.stacks.base import EnvironmentStack, node_tags
from ultracluster.stacks.network import NetworkStack
from ultracluster.stacks.pcs_control_plane import PcsControlPlaneStack
from ultracluster.stacks.storage import StorageStack


class PcsComputeStack(EnvironmentStack):
    """Login nodes, the accelerated node groups, and the queues over them."""

    def __init__(
        self,
        scope: Construct,
        environment: Environment,
        *,
        settings: Pcs,
        network: NetworkStack,
        storage: StorageStack,
        control_plane: PcsControlPlaneStack,
        metrics: PrometheusWorkspace,
        topics: Sequence[str],
    ) -> None:
        super().__init__(scope, "compute", environment, nodes=True)
        cluster, role = control_plane.cluster, control_plane.node_role
        lustre, place, ssh = environment.storage.lustre, network.network, network.login_security_group_id
        telemetry = NodeTelemetry(
            self,
            "Telemetry",
            settings=environment.observability,
            cluster_name=cluster.cluster_name,
            metrics=metrics,
            log_group=control_plane.node_logs,
            role=role,
            environment=environment.name,
            mirror=settings.image_mirror,
            slurm_metrics=serves_metrics(settings.slurm_settings, settings.slurm_version),
        )
        login = cluster.add_login_nodes(
            settings.login,
            role=role,
            subnet=place.node_subnet_id,
            security_groups=[place.cluster_security_group_id, *([ssh] if ssh else [])],
            file_system=storage.file_system,
            open_folders=[link.path for link in lustre.links if link.export_events] if lustre else [],
            telemetry=telemetry,
            tags=node_tags(environment, "login"),
            scope=self,
        )
        if storage.buckets or environment.storage.read_only_buckets:
            access = BucketAccess(
                self,
                "BucketAccess",
                buckets=list(storage.buckets.values()),
                role=role,
                read_only=environment.storage.read_only_buckets,
            )
            login.node.add_dependency(access)
        groups = {
            group.name: cluster.add_node_group(
                group,
                role=role,
                subnet=place.node_subnet_id,
                security_groups=place.node_security_group_ids,
                file_system=storage.file_system,
                telemetry=telemetry,
                own_programs=own_programs(settings.slurm_settings),
                tags=node_tags(environment, group.name),
                scope=self,
            )
            for group in environment.launched_groups
        }
        for group in (login, *groups.values()):
            group.notify(topics)
        parts = {group.name: [groups[part.name] for part in group.blocks()] for group in environment.node_groups}
        for queue in settings.queues:
            node_groups = [part for name in queue.node_groups for part in parts[name]]
            cluster.add_queue(queue, node_groups=node_groups, scope=self)
