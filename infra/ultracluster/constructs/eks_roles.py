"""The IAM role of EKS nodes."""

from collections.abc import Sequence

from constructs import Construct

from ultracluster.constructs.launch_templates import SESSION_MANAGER_ACTIONS
from ultracluster.constructs.node_role import NodeRole, accept_policies
from ultracluster.constructs.roles import managed_policy, service_role


class EksNodeRole(NodeRole):
    """Role of EKS nodes: they join the cluster, pull images, and allow Session Manager.

    Pods have roles of their own through EKS Pod Identity, so nothing else is granted here but `policies`, ARNs of
    further policies.
    """

    def __init__(self, scope: Construct, id: str, *, policies: Sequence[str] = ()) -> None:
        super().__init__(scope, id)
        self._role = service_role(
            self,
            "Role",
            service="ec2.amazonaws.com",
            description="Nodes of an EKS cluster",
            aws_policies={
                "AmazonEKSWorkerNodePolicy": "What EKS asks of a node's role; AWS keeps it up to date.",
                "AmazonEC2ContainerRegistryPullOnly": "Pulls images, and nothing else.",
            },
        )
        if policies:
            self._role.managed_policy_arns = [*(self._role.managed_policy_arns or []), *policies]
            accept_policies(self._role, policies)
        managed_policy(
            self,
            "Policy",
            roles=[self._role],
            statements=[{"Action": list(SESSION_MANAGER_ACTIONS), "Resource": "*"}],
            accepted={"AwsSolutions-IAM5[Resource::*]": "these actions take no resource"},
        )
