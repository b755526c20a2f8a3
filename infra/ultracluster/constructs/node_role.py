"""What the IAM roles of PCS and EKS nodes share."""

from collections.abc import Sequence
from functools import cached_property

import jsii
from aws_cdk import aws_iam as iam
from aws_cdk.interfaces import ResourceEnvironment
from aws_cdk.interfaces.aws_iam import IRoleRef, RoleReference
from constructs import Construct

from ultracluster.constructs.acknowledgements import acknowledge


def accept_policies(role: iam.CfnRole, policies: Sequence[str]) -> None:
    """Records for security scanners why a role has AWS managed policies: the environment file names them."""
    named = [arn.rpartition("/")[2] for arn in policies if ":iam::aws:policy/" in arn]
    finding = "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{}]"
    acknowledge(role, {finding.format(name): "The environment file names it for this node group." for name in named})


@jsii.implements(IRoleRef, iam.IGrantable)
class NodeRole(Construct):
    """Attributes and methods of every role of nodes."""

    _role: iam.CfnRole

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
        # by name: the CDK takes the path for the name when it imports an ARN that is a token
        return iam.Role.from_role_name(self, "RoleView", self.role_name)

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The role, for `grant_*` methods."""
        return self.role
