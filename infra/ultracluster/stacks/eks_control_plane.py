"""`<env>-control-plane` with Kubernetes: the cluster, and what its nodes need."""

from aws_cdk import CfnOutput
from constructs import Construct

from ultracluster.config.eks import Eks
from ultracluster.config.environment import Environment
from ultracluster.constructs.eks_cluster import EksCluster
from ultracluster.constructs.eks_roles import EksNodeRole
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.log_groups import LogGroup
from ultracluster.constructs.names import stack_suffix
from ultracluster.constructs.network import ClusterNetwork
from ultracluster.constructs.references import Role
from ultracluster.constructs.roles import PODS, service_role
from ultracluster.kubernetes.addons import ClusterAddon, cluster_addons
from ultracluster.stacks.base import EnvironmentStack

POD_POLICIES = {
    "vpc-cni": {"AmazonEKS_CNI_Policy": "What EKS asks of the VPC CNI's role: addresses of the nodes' interfaces."},
}
"""AWS managed policies for the pods of add-ons, each with the reason for it."""


class EksControlPlaneStack(EnvironmentStack):
    """The EKS cluster with its logs, the role of its nodes, and the add-ons that nodes need.

    As little as possible: with `protect: true` CloudFormation cannot roll back the cluster when another resource fails.
    """

    def __init__(self, scope: Construct, environment: Environment, *, settings: Eks, network: ClusterNetwork) -> None:
        super().__init__(scope, "control-plane", environment, stateful=True)
        self.key = DataKey(self, "Key", description=f"Kubernetes secrets and logs of {environment.name}")
        # EKS names the log group after the cluster. With a suffix in both names, a retained group is never in the way
        # of the next cluster.
        name = f"{environment.name}-{stack_suffix()}"
        pattern = f"/aws/eks/{environment.name}-*"
        create = environment.network.create
        self.cluster = EksCluster(
            self,
            "Cluster",
            name=name,
            settings=settings,
            subnets=network.control_plane_subnet_ids,
            security_group=network.cluster_security_group_id,
            vpc_cidr=create.cidr if create else None,
            key=self.key,
            deletion_protection=environment.protect,
            log_group=LogGroup(self, "Logs", name=f"/aws/eks/{name}/cluster", pattern=pattern, key=self.key),
        )
        # always exported: when <env>-access is removed from the file, it still imports it
        self.export_value(self.cluster.cluster_security_group_id)
        self.node_role = EksNodeRole(self, "Nodes")
        for addon in cluster_addons(environment.storage, environment=environment.name):
            if addon.before_nodes:
                self._add(addon)
        command = f"aws eks update-kubeconfig --region {self.region} --name {self.cluster.cluster_name}"
        CfnOutput(self, "Kubeconfig", value=command)

    def _add(self, addon: ClusterAddon) -> None:
        name, account = addon.addon.name, addon.addon.service_account
        roles: dict[str, Role] = {}
        if account and name in POD_POLICIES:
            role = service_role(
                self, f"Role-{name}", service=PODS, description=f"Pods of {name}", aws_policies=POD_POLICIES[name]
            )
            roles[account] = role.attr_arn
        self.cluster.add_addon(name, configuration=addon.configuration, pod_roles=roles, scope=self)
