"""The IAM role of PCS nodes."""

from collections.abc import Sequence
from functools import cached_property

import jsii
from aws_cdk import aws_iam as iam
from aws_cdk.interfaces.aws_iam import IInstanceProfileRef, InstanceProfileReference
from constructs import Construct

from ultracluster.constructs.acknowledgements import wildcards
from ultracluster.constructs.launch_templates import SESSION_MANAGER_ACTIONS
from ultracluster.constructs.names import PARTITION, REGION
from ultracluster.constructs.node_role import NodeRole, accept_policies
from ultracluster.constructs.roles import managed_policy, trust_policy

PULL_ACTIONS = ("ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer")
"""What pulling an image takes beside a token (AWS managed policy AmazonEC2ContainerRegistryPullOnly, 2026)."""

ROLE_PATH = "/aws-pcs/"
"""PCS accepts only instance profiles whose role has this path (AWS PCS User Guide, "Instance profiles", 2026)."""


@jsii.implements(IInstanceProfileRef)
class PcsNodeRole(NodeRole):
    """Role and instance profile of PCS nodes: they register with their cluster, allow Session Manager, and pull images.

    They may ask EC2 where they are in the network.

    Images may be in any account of the Region whose repository policy allows it, as AWS's Deep Learning Containers.

    `policies` are ARNs of further policies. Grant more with the `grant_*` methods of other constructs: the role is an
    `iam.IGrantable`.
    """

    def __init__(self, scope: Construct, id: str, *, policies: Sequence[str] = ()) -> None:
        super().__init__(scope, id)
        repositories = f"arn:{PARTITION}:ecr:{REGION}:*:repository/*"
        actions = ["pcs:RegisterComputeNodeGroupInstance", "ec2:DescribeInstanceTopology", *SESSION_MANAGER_ACTIONS]
        own = managed_policy(
            self,
            "Policy",
            roles=[],  # the role names the policy, so that whatever depends on the role depends on its permissions
            statements=[
                {"Action": [*actions, "ecr:GetAuthorizationToken"], "Resource": "*"},
                {"Action": list(PULL_ACTIONS), "Resource": repositories},
            ],
            accepted={
                "AwsSolutions-IAM5[Resource::*]": "these actions take no resource",
                **wildcards(self, [repositories], "jobs choose their image; pulling changes nothing"),
            },
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
