"""`<env>-compute` with Slurm: login nodes, node groups and queues."""

from collections.abc import Sequence

from constructs import Construct, IDependable

from ultracluster.config.environment import Environment
from ultracluster.config.pcs import Pcs
from ultracluster.config.slurm_settings import serves_metrics
from ultracluster.constructs.bucket_access import BucketAccess
from ultracluster.constructs.buckets import TrainingBucket
from ultracluster.constructs.metrics import PrometheusWorkspace
from ultracluster.constructs.node_telemetry import NodeTelemetry
from ultracluster.constructs.pcs_role import PcsJobRole, PcsNodeRole
from ultracluster.constructs.slurm_accounts import SlurmAccounts
from ultracluster.constructs.users import UserReader
from ultracluster.nodes.containers import container_source
from ultracluster.nodes.pcs import own_programs
from ultracluster.nodes.slurm_policy import queue_settings
from ultracluster.nodes.users import DirectorySource, UserSource
from ultracluster.stacks.base import EnvironmentStack, node_tags
from ultracluster.stacks.network import NetworkStack
from ultracluster.stacks.pcs_control_plane import PcsControlPlaneStack
from ultracluster.stacks.storage import StorageStack


class PcsComputeStack(EnvironmentStack):
    """Login nodes, the node groups, and the queues over them. Without `metrics` nodes send logs only."""

    def __init__(
        self,
        scope: Construct,
        environment: Environment,
        *,
        settings: Pcs,
        network: NetworkStack,
        storage: StorageStack,
        control_plane: PcsControlPlaneStack,
        metrics: PrometheusWorkspace | None,
        topics: Sequence[str],
        users: UserSource | DirectorySource | None,
    ) -> None:
        super().__init__(scope, "compute", environment, nodes=True)
        cluster, role = control_plane.cluster, control_plane.node_role
        place, ssh = network.network, network.login_security_group_id
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
        buckets = list(storage.buckets.values())
        jobs = settings.metadata_access == "root"
        roles = _Roles(
            self,
            role,
            telemetry,
            buckets,
            environment.storage.read_only_buckets,
            users,
            cluster_arn=cluster.cluster_arn,
            jobs=jobs,
        )
        containers = container_source(settings)
        login_role, login_job_role, login_access = roles.of("login", settings.login.policies)
        login = cluster.add_login_nodes(
            settings.login,
            role=login_role,
            job_role=login_job_role,
            subnet=place.node_subnet_id,
            security_groups=[place.cluster_security_group_id, *([ssh] if ssh else [])],
            file_system=storage.file_system,
            more_file_systems=storage.more_file_systems,
            open_folders=environment.storage.open_folders,
            telemetry=telemetry,
            users=users,
            health=environment.health,
            containers=containers,
            tags=node_tags(environment, "login"),
            scope=self,
        )
        login.node.add_dependency(*login_access)
        groups = {}
        for group in environment.launched_groups:
            group_role, job_role, access = roles.of(group.name, group.policies)
            groups[group.name] = cluster.add_node_group(
                group,
                role=group_role,
                job_role=job_role,
                subnet=place.node_subnet_id,
                security_groups=place.security_group_ids(efa=group.efa),
                zone_subnets=[place.zone_subnet_ids[zone] for zone in group.zones],
                file_system=storage.file_system,
                more_file_systems=storage.more_file_systems,
                telemetry=telemetry,
                own_programs=own_programs(settings.slurm_settings),
                record_output=settings.record_output,
                health=environment.health,
                users=users,
                containers=containers,
                tags=node_tags(environment, group.name),
                scope=self,
            )
            groups[group.name].node.add_dependency(*access)
        for nodes in (login, *groups.values()):
            nodes.notify(topics)
        parts = {group.name: [groups[part.name] for part in group.blocks()] for group in environment.node_groups}
        if settings.teams:
            SlurmAccounts(self, "Accounts", teams=settings.teams, cluster=cluster, login=login, role=login_role)
        named = {group.name: group for group in environment.node_groups}
        for queue in settings.queues:
            over = [named[name] for name in queue.node_groups]
            values = queue_settings(queue, over, settings.teams, settings.slurm_version)
            node_groups = [part for name in queue.node_groups for part in parts[name]]
            queue = queue.model_copy(update={"slurm_settings": values})
            cluster.add_queue(queue, node_groups=node_groups, scope=self)


class _Roles:
    """The roles of the node groups: one that they share, and one for each group with policies of its own.

    With `jobs` each has a role of jobs beside it, which uses the same buckets.
    """

    def __init__(
        self,
        scope: Construct,
        shared: PcsNodeRole,
        telemetry: NodeTelemetry,
        buckets: Sequence[TrainingBucket],
        read_only: Sequence[str],
        users: UserSource | DirectorySource | None,
        *,
        cluster_arn: str,
        jobs: bool,
    ) -> None:
        self._scope, self._telemetry, self._buckets, self._read_only = scope, telemetry, buckets, read_only
        self._shared, self._users = shared, users
        self._shared_access = self._access("BucketAccess", shared)
        self._cluster_arn, self._jobs = cluster_arn, jobs
        self._shared_jobs = self._job_role("Jobs", shared, ())

    def of(self, name: str, policies: Sequence[str]) -> tuple[PcsNodeRole, PcsJobRole | None, list[IDependable]]:
        """The role of the group `name`, the role of its jobs, and what the group must wait for."""
        if not policies:
            # groups are deployed one after the other, so only the first waits
            access, self._shared_access = self._shared_access, []
            return self._shared, self._shared_jobs, access
        role = PcsNodeRole(self._scope, f"Nodes-{name}", policies=policies, cluster_arn=self._cluster_arn)
        own_access = self._access(f"BucketAccess-{name}", role)
        jobs = self._job_role(f"Jobs-{name}", role, policies)
        return role, jobs, [*own_access, self._telemetry.grant_write(role, id=f"Policy-{name}")]

    def _job_role(self, id: str, node_role: PcsNodeRole, policies: Sequence[str]) -> PcsJobRole | None:
        if not self._jobs:
            return None
        role = PcsJobRole(self._scope, id, node_role=node_role, policies=policies)
        if self._buckets or self._read_only:
            BucketAccess(role, "BucketAccess", buckets=self._buckets, role=role, read_only=self._read_only)
        return role

    def _access(self, id: str, role: PcsNodeRole) -> list[IDependable]:
        access: list[IDependable] = []
        if self._buckets or self._read_only:
            access.append(BucketAccess(self._scope, id, buckets=self._buckets, role=role, read_only=self._read_only))
        if self._users:
            users = id.replace("BucketAccess", "UserReader")
            access.append(UserReader(self._scope, users, source=self._users, role=role))
        return access
