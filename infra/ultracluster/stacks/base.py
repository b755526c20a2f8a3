"""What every stack of an environment has: name, account, Region, tags and permissions boundary."""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultracluster.config.environment import Environment

PLACEMENT_GROUP = "AWS::EC2::PlacementGroup"
"""CloudFormation replaces a placement group whose tags change (its schema in the CloudFormation registry, 2026)."""


class EnvironmentStack(cdk.Stack):
    """A stack named `<environment>-<part>`, in the environment's Region and, where the file names one, its account.

    `holds` is what the stack's description names, by default the part. `stateful` stacks have termination protection
    with `protect: true`. The CDK CLI switches it on before it executes the first change set, and off with
    `protect: false`. In stacks with `nodes` the tags of the file are on each resource but placement groups, instead of
    on the stack, which would pass them on: another tag would replace the placement group, and with it the nodes.
    """

    def __init__(
        self,
        scope: Construct,
        part: str,
        environment: Environment,
        *,
        holds: str = "",
        stateful: bool = False,
        nodes: bool = False,
    ) -> None:
        super().__init__(
            scope,
            f"{environment.name}-{part}",
            env=cdk.Environment(account=environment.account, region=environment.region),
            description=f"{holds or part.capitalize()} of the {environment.name} UltraCluster",
            termination_protection=stateful and environment.protect,
            tags={**({} if nodes else environment.tags), "ultracluster:environment": environment.name},
        )
        if nodes:
            for key, value in environment.tags.items():
                cdk.Tags.of(self).add(key, value, exclude_resource_types=[PLACEMENT_GROUP])
        if environment.permissions_boundary:
            boundary = iam.ManagedPolicy.from_managed_policy_arn(self, "Boundary", environment.permissions_boundary)
            iam.PermissionsBoundary.of(self).apply(boundary)


def node_tags(environment: Environment, group: str) -> dict[str, str]:
    """Tags of the nodes of a group, and of their volumes.

    `environment.tags` are not among them: these tags are part of the launch template, whose changes replace nodes.
    """
    return {
        "Name": f"{environment.name}-{group}",
        **environment.node_tags,
        "ultracluster:environment": environment.name,
        "ultracluster:node-group": group,
    }
