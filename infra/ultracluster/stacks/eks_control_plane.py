"""`<env>-control-plane` with Kubernetes: the cluster, and what its nodes need."""

from aws_cdk import CfnOutput
from constructs import Construct

from ultracluster.config.eks import Eks
from ultracluster.config.environment import Environment
from ultracluster.constructs.eks import EksAddon, EksCluster
from ultracluster.constructs.eks_nodes import EksNodeRole
from ultracluster.constructs.keys import DataKey, LogGroup
from ultracluster.constructs.names import stack_suffix
from ultracluster.constructs.network import ClusterNetwork
from ultracluster.constructs.roles import PODS, service_role
from ultracluster.kubernetes.addons import ClusterAddon, cluster_addons
from ultracluster.stacks.base import EnvironmentStack

POD_ROLES = {
    "vpc-cni": {"AmazonEKS_CNI_Policy": "What EKS asks of the VPC CNI's role: addresses of the nodes' interfaces."},
}
"""AWS's policies for the pods of add-ons, with a reason each."""


class EksControlPlaneStack(EnvironmentStack):
    """The EKS cluster with its logs, the role of its nodes, and the add-ons that nodes need.

    As little as can be: a cluster with deletion protection cannot be rolled back when something beside it fails.
    """

    def __init__(self, scope: Construct, environment: Environment, *, settings: Eks, network: ClusterNetwork) -> None:
        super().__init__(scope, "control-plane", environment, stateful=True)
        self._environment, self._settings, self._network = environment, settings, network
        self.key = DataKey(self, "Key", description=f"Kubernetes secrets and logs of {environment.name}")
        self.cluster = self._cluster()
        self.node_role = EksNodeRole(self, "Nodes")
        needed = [addon for addon in cluster_addons(environment.storage) if addon.before_nodes]
        self._addons = {addon.addon.name: self._addon(addon) for addon in needed}
        CfnOutput(self, "Kubeconfig", value=f"aws eks update-kubeconfig --name {self.cluster.cluster_name}")

    @property
    def network_addon(self) -> EksAddon:
        """The VPC CNI, without which no node becomes ready."""
        return self._addons["vpc-cni"]

    def _cluster(self) -> EksCluster:
        environment, network = self._environment, self._network
        # EKS names the group of its logs after the cluster. With a suffix to both, what a cluster left behind is never
        # in the way of the next.
        name = f"{environment.name}-{stack_suffix()}"
        pattern = f"/aws/eks/{environment.name}-*"
        logs = LogGroup(self, "Logs", name=f"/aws/eks/{name}/cluster", pattern=pattern, key=self.key)
        create = environment.network.create
        cluster = EksCluster(
            self,
            "Cluster",
            name=name,
            settings=self._settings,
            vpc_block=create.block if create else None,
            subnets=network.control_plane_subnets,
            security_group=network.cluster_security_group,
            key=self.key,
        )
        cluster.wait_for(logs)
        return cluster

    def _addon(self, addon: ClusterAddon) -> EksAddon:
        name, account = addon.addon.name, addon.addon.service_account
        roles = {}
        if account and name in POD_ROLES:
            role = service_role(
                self, f"Role-{name}", service=PODS, description=f"Pods of {name}", aws_policies=POD_ROLES[name]
            )
            roles[account] = role.attr_arn
        return EksAddon(
            self,
            f"Addon-{name}",
            cluster=self.cluster,
            addon=addon,
            kubernetes_version=self._settings.kubernetes_version,
            pod_roles=roles,
        )
