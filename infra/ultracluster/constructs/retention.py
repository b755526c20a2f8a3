"""What CloudFormation keeps of a resource that leaves its stack."""

from aws_cdk import CfnResource, RemovalPolicy


def retain(*resources: CfnResource) -> None:
    """Retains resources on delete and on replacement, and deletes them when their own creation is rolled back.

    A failed creation can then be tried again: no name is taken, and nothing that is empty costs money.

    Source: CloudFormation Template Reference, "DeletionPolicy attribute", RetainExceptOnCreate (2026).
    """
    for resource in resources:
        resource.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)


def retain_always(*resources: CfnResource) -> None:
    """Retains resources even when their creation is rolled back.

    For what may hold something by then: CloudFormation cannot delete it, or must not.
    """
    for resource in resources:
        resource.apply_removal_policy(RemovalPolicy.RETAIN)
