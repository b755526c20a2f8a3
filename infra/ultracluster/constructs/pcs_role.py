"""The IAM role of PCS nodes."""

from collections.abc import Sequence
from functools import cached_property

import jsii
from aws_cdk import aws_iam as iam
from aws_cdk.interfaces.aws_iam import IInstanceProfileRef, InstanceProfileReference, IRoleRef
from constructs import Construct

from ultracluster.constructs.acknowledgements import wildcards
from ultracluster.constructs.launch_templates import SESSION_MANAGER_ACTIONS
from ultracluster.constructs.names import PARTITION, REGION
from ultracluster.constructs.node_role import NodeRole, accept_policies
from ultracluster.constructs.roles import managed_policy, policy_document, trust_policy

PULL_ACTIONS = ("ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer")
"""What pulling an image takes beside a token (AWS managed policy AmazonEC2ContainerRegistryPullOnly, 2026)."""

REPOSITORIES = f"arn:{PARTITION}:ecr:{REGION}:*:repository/*"
"""Images may be in any account, as AWS's Deep Learning Containers."""

ROLE_PATH = "/aws-pcs/"
"""PCS accepts only instance profiles whose role has this path (AWS PCS User Guide, "Instance profiles", 2026)."""


def _accepted(scope: Construct) -> dict[str, str]:
    """Why policies of these roles have wildcards."""
    reason = "jobs choose their image; pulling changes nothing"
    return {
        "AwsSolutions-IAM5[Resource::*]": "these actions take no resource",
        **wildcards(scope, [REPOSITORIES], reason),
    }


class PcsJobRole(NodeRole):
    """Role of jobs and sessions on nodes with `node_role`, whose root assumes it for them: it pulls images.

    Grant more by its BucketAccess, with `policies`, ARNs of further policies, or with `grant_*` methods.
    """

    def __init__(self, scope: Construct, id: str, *, node_role: IRoleRef, policies: Sequence[str] = ()) -> None:
        super().__init__(scope, id)
        own = managed_policy(
            self,
            "Policy",
            roles=[],
            statements=[
                {"Action": "ecr:GetAuthorizationToken", "Resource": "*"},
                {"Action": list(PULL_ACTIONS), "Resource": REPOSITORIES},
            ],
            accepted=_accepted(self),
        )
        trusted = {"Principal": {"AWS": node_role.role_ref.role_arn}, "Action": "sts:AssumeRole"}
        self._role = iam.CfnRole(
            self,
            "Role",
            assume_role_policy_document=policy_document([trusted]),
            description="Jobs of a PCS cluster",
            managed_policy_arns=[own.ref, *policies],
        )
        accept_policies(self._role, policies)


@jsii.implements(IInstanceProfileRef)
class PcsNodeRole(NodeRole):
    """Role and instance profile of PCS nodes: they register with their cluster, allow Session Manager, and pull images.

    They may ask EC2 where they are in the network.

    Images may be in any account of the Region whose repository policy allows it, as AWS's Deep Learning Containers.

    `policies` are ARNs of further policies. Grant more with the `grant_*` methods of other constructs: the role is an
    `iam.IGrantable`.
    `cluster_arn` limits registration to one cluster: whoever registers learns the key of its scheduler.
    """

    def __init__(
        self, scope: Construct, id: str, *, policies: Sequence[str] = (), cluster_arn: str | None = None
    ) -> None:
        super().__init__(scope, id)
        actions = ["ec2:DescribeInstanceTopology", *SESSION_MANAGER_ACTIONS]
        own = managed_policy(
            self,
            "Policy",
            roles=[],  # the role names the policy, so that whatever depends on the role depends on its permissions
            statements=[
                {"Action": "pcs:RegisterComputeNodeGroupInstance", "Resource": cluster_arn or "*"},
                {"Action": [*actions, "ecr:GetAuthorizationToken"], "Resource": "*"},
                {"Action": list(PULL_ACTIONS), "Resource": REPOSITORIES},
            ],
            accepted=_accepted(self),
        )
        self._role = iam.CfnRole(
            self,
            "Role",
            assume_role_policy_document=trust_policy("ec2.amazonaws.com"),
            path=ROLE_PATH,
            description="Nodes of a PCS cluster",
            managed_policy_arns=[own.ref, *policies],
        )
        accept_policies(self._role, policies)
        self._profile = iam.CfnInstanceProfile(self, "Profile", roles=[self._role.ref], path=ROLE_PATH)

    @cached_property
    def instance_profile_arn(self) -> str:
        """ARN of the instance profile."""
        return self._profile.attr_arn

    @cached_property
    def instance_profile_name(self) -> str:
        """Name of the instance profile."""
        return self._profile.ref

    @property
    def instance_profile_ref(self) -> InstanceProfileReference:
        """Lets CDK constructs take this as an `IInstanceProfileRef`."""
        return InstanceProfileReference(
            instance_profile_arn=self.instance_profile_arn, instance_profile_name=self.instance_profile_name
        )
