"""The IAM role of EKS nodes."""

from functools import cached_property

import jsii
from aws_cdk import aws_iam as iam
from aws_cdk.interfaces import ResourceEnvironment
from aws_cdk.interfaces.aws_iam import IRoleRef, RoleReference
from constructs import Construct

from ultracluster.constructs.launch_templates import SESSION_MANAGER_ACTIONS
from ultracluster.constructs.roles import managed_policy, service_role


@jsii.implements(IRoleRef, iam.IGrantable)
class EksNodeRole(Construct):
    """Role of EKS nodes: they join the cluster, pull images, and allow Session Manager.

    Pods have roles of their own through EKS Pod Identity, so nothing else is granted here.
    """

    def __init__(self, scope: Construct, id: str) -> None:
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
        managed_policy(
            self,
            "Policy",
            roles=[self._role],
            statements=[{"Action": list(SESSION_MANAGER_ACTIONS), "Resource": "*"}],
            accepted={"AwsSolutions-IAM5[Resource::*]": "these actions take no resource"},
        )

    @cached_property
    def role_name(self) -> str:
        """Name of the role."""
        return self._role.ref

    @cached_property
    def role_arn(self) -> str:
        """ARN of the role."""
        return self._role.attr_arn

    @property
    def role_ref(self) -> RoleReference:
        """Lets CDK constructs take this as an `IRoleRef`."""
        return RoleReference(role_arn=self.role_arn, role_name=self.role_name)

    @property
    def env(self) -> ResourceEnvironment:
        """Account and Region of the role."""
        return self._role.env

    @cached_property
    def role(self) -> iam.IRole:
        """The role as an L2, created on first use."""
        return iam.Role.from_role_name(self, "RoleView", self.role_name)

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The role, for `grant_*` methods."""
        return self.role
