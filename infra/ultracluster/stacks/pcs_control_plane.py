"""`<env>-control-plane` with Slurm: the PCS cluster."""

from constructs import Construct

from ultracluster.config.environment import Environment
from ultracluster.config.pcs import Pcs
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.log_groups import log_group
from ultracluster.constructs.network import ClusterNetwork
from ultracluster.constructs.pcs_cluster import PcsCluster
from ultracluster.constructs.pcs_role import PcsNodeRole
from ultracluster.constructs.saved_queries import SavedQueries
from ultracluster.nodes.health import health_settings
from ultracluster.nodes.pcs import job_settings, metrics_settings
from ultracluster.nodes.slurm_policy import cgroup_settings, cluster_settings
from ultracluster.stacks.base import EnvironmentStack
from ultracluster.telemetry.log_queries import slurm_queries


class PcsControlPlaneStack(EnvironmentStack):
    """The PCS cluster with its logs in CloudWatch, and the log group and the role of its nodes.

    The role is here because IAM needs a while to propagate it.
    """

    def __init__(self, scope: Construct, environment: Environment, *, settings: Pcs, network: ClusterNetwork) -> None:
        super().__init__(scope, "control-plane", environment, stateful=True)
        key = DataKey(self, "Key", description=f"Scheduler logs of {environment.name}")
        slurm_settings = cluster_settings(settings, environment.node_groups)
        slurm_settings = job_settings(slurm_settings, environment.node_groups, settings.slurm_version)
        if environment.observability.collects_metrics:
            slurm_settings = metrics_settings(slurm_settings, settings.slurm_version)
        slurm_settings = health_settings(slurm_settings, environment.health)
        scheduler_logs = log_group(self, "Logs", name="/aws/vendedlogs/pcs/cluster", key=key)
        self.cluster = PcsCluster(
            self,
            "Cluster",
            name=f"{environment.name}-cluster",
            settings=settings.model_copy(
                update={"slurm_settings": slurm_settings, "cgroup_settings": cgroup_settings(settings)}
            ),
            nodes=settings.managed_nodes(environment.nodes),
            subnet=network.control_plane_subnet_ids[0],
            security_group=network.cluster_security_group_id,
            log_group=scheduler_logs,
        )
        days = environment.observability.logs.retention_days
        self.node_logs = log_group(self, "NodeLogs", name="/ultracluster/nodes", key=key, retention_days=days)
        SavedQueries(
            self,
            "Queries",
            name=environment.name,
            queries=slurm_queries(),
            log_groups={"nodes": self.node_logs.log_group_name, "scheduler": scheduler_logs.log_group_name},
        )
        self.node_role = PcsNodeRole(self, "Nodes", cluster_arn=self.cluster.cluster_arn)
        # roles of jobs and of groups name them: an export that went with its last reader could not be deleted in time
        self.export_value(self.node_role.role_arn)
        self.export_value(self.cluster.cluster_arn)
