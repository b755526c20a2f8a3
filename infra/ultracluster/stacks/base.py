"""What every stack of an environment has: name, account, Region, tags and permissions boundary."""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultracluster.config.environment import Environment


class EnvironmentStack(cdk.Stack):
    """A stack named `<environment>-<part>`, in the environment's Region and, where the file names one, its account.

    `stateful` stacks have termination protection with `protect: true`. The CDK CLI switches it on before it executes
    the first change set, and off with `protect: false`.
    """

    def __init__(self, scope: Construct, part: str, environment: Environment, *, stateful: bool = False) -> None:
        super().__init__(
            scope,
            f"{environment.name}-{part}",
            env=cdk.Environment(account=environment.account, region=environment.region),
            description=f"{part.capitalize()} of the {environment.name} UltraCluster",
            termination_protection=stateful and environment.protect,
            tags={**environment.tags, "ultracluster:environment": environment.name},
        )
        if environment.permissions_boundary:
            boundary = iam.ManagedPolicy.from_managed_policy_arn(self, "Boundary", environment.permissions_boundary)
            iam.PermissionsBoundary.of(self).apply(boundary)


def node_tags(environment: Environment, group: str) -> dict[str, str]:
    """Tags of the nodes of a group, and of their volumes."""
    return {
        "Name": f"{environment.name}-{group}",
        **environment.tags,
        "ultracluster:environment": environment.name,
        "ultracluster:node-group": group,
    }
