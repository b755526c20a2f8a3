"""AWS::ECR::Repository."""

from typing import Any

from ultracluster.localaws.handlers.common import json_text, tag_changes, undo_on_failure
from ultracluster.localaws.resources import (
    Context,
    Handler,
    HandlerError,
    Properties,
    Resource,
    handler,
    lower_first,
)


@handler
class Repository(Handler):
    """A repository of container images."""

    type = "AWS::ECR::Repository"
    supported_properties = frozenset(
        {
            "EmptyOnDelete",
            "EncryptionConfiguration",
            "ImageScanningConfiguration",
            "ImageTagMutability",
            "LifecyclePolicy",
            "RepositoryName",
            "RepositoryPolicyText",
            "Tags",
        }
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the repository, then its policies."""
        name = properties.get("RepositoryName") or context.physical_name().lower()
        ecr = context.client("ecr")
        settings = {
            key[0].lower() + key[1:]: lower_first(properties[key])
            for key in ("EncryptionConfiguration", "ImageScanningConfiguration", "ImageTagMutability")
            if key in properties
        }
        made = ecr.create_repository(repositoryName=name, tags=properties.get("Tags", []), **settings)["repository"]
        with undo_on_failure(lambda: ecr.delete_repository(repositoryName=name, force=True)):
            _put_policies(ecr, name, {}, properties)
        return Resource(name, {"Arn": made["repositoryArn"], "RepositoryUri": made["repositoryUri"]})

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Set all properties again."""
        ecr = context.client("ecr")
        found = ecr.describe_repositories(repositoryNames=[physical_id])["repositories"][0]
        ecr.put_image_tag_mutability(
            repositoryName=physical_id, imageTagMutability=new.get("ImageTagMutability", "MUTABLE")
        )
        ecr.put_image_scanning_configuration(
            repositoryName=physical_id,
            imageScanningConfiguration=lower_first(new.get("ImageScanningConfiguration", {"ScanOnPush": False})),
        )
        _put_policies(ecr, physical_id, old, new)
        _, removed = tag_changes(old, new)
        ecr.untag_resource(resourceArn=found["repositoryArn"], tagKeys=removed)
        ecr.tag_resource(resourceArn=found["repositoryArn"], tags=new.get("Tags", []))
        return Resource(physical_id, {"Arn": found["repositoryArn"], "RepositoryUri": found["repositoryUri"]})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the repository; one with images only if EmptyOnDelete says so."""
        force = bool(properties.get("EmptyOnDelete"))
        context.client("ecr").delete_repository(repositoryName=physical_id, force=force)


def _put_policies(ecr: Any, name: str, old: Properties, new: Properties) -> None:
    lifecycle = new.get("LifecyclePolicy", {})
    if "RegistryId" in lifecycle:
        raise HandlerError("the embedded AWS has one registry. Remove LifecyclePolicy.RegistryId")
    if lifecycle:
        ecr.put_lifecycle_policy(repositoryName=name, lifecyclePolicyText=lifecycle["LifecyclePolicyText"])
    elif "LifecyclePolicy" in old:
        ecr.delete_lifecycle_policy(repositoryName=name)
    if "RepositoryPolicyText" in new:
        ecr.set_repository_policy(repositoryName=name, policyText=json_text(new["RepositoryPolicyText"]))
    elif "RepositoryPolicyText" in old:
        ecr.delete_repository_policy(repositoryName=name)
