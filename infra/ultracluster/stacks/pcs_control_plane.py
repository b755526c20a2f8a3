"""`<env>-control-plane` with Slurm: what schedules jobs."""

from constructs import Construct

from ultracluster.config.environment import Environment
from ultracluster.config.pcs import Pcs
from ultracluster.constructs.keys import DataKey, log_group
from ultracluster.constructs.network import ClusterNetwork
from ultracluster.constructs.pcs import PcsCluster, PcsNodeRole
from ultracluster.stacks.base import EnvironmentStack


class PcsControlPlaneStack(EnvironmentStack):
    """The PCS cluster with its logs in CloudWatch, and the role of its nodes, which IAM takes a while to spread."""

    def __init__(self, scope: Construct, environment: Environment, *, settings: Pcs, network: ClusterNetwork) -> None:
        super().__init__(scope, "control-plane", environment, stateful=True)
        self.cluster = PcsCluster(
            self,
            "Cluster",
            name=f"{environment.name}-cluster",
            settings=settings,
            nodes=settings.managed_nodes(environment.nodes),
            subnet=network.control_plane_subnets[0],
            security_group=network.cluster_security_group,
        )
        self.node_role = PcsNodeRole(self, "Nodes")
        key = DataKey(self, "Key", description=f"Scheduler logs of {environment.name}")
        self.cluster.deliver_logs(log_group(self, "Logs", name="/aws/vendedlogs/pcs/cluster", key=key))
