"""AWS::S3::Bucket and AWS::S3::BucketPolicy."""

from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from localaws.handlers.common import json_text, require_only, undo_on_failure
from localaws.handlers.s3_lifecycle import lifecycle_rules
from localaws.resources import (
    Context,
    Handler,
    HandlerError,
    Properties,
    Resource,
    changed,
    handler,
    pick,
    require_bucket,
    require_key,
)

_PUBLIC_ACCESS = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")


@handler
class Bucket(Handler):
    """AWS::S3::Bucket: encryption, versions, public access, ownership, lifecycle, access logs and tags."""

    type = "AWS::S3::Bucket"
    supported_properties = frozenset(
        {"BucketName", "AccessControl", "BucketEncryption", "VersioningConfiguration", "LifecycleConfiguration"}
        | {"PublicAccessBlockConfiguration", "OwnershipControls", "LoggingConfiguration", "Tags"}
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the bucket, then configure it."""
        s3, name = context.client("s3"), properties.get("BucketName") or context.physical_name(63).lower()
        if _exists(context, name):
            raise HandlerError(f"{name} already exists")
        place = {"CreateBucketConfiguration": {"LocationConstraint": context.region}}
        s3.create_bucket(Bucket=name, **({} if context.region == "us-east-1" else place))
        with undo_on_failure(lambda: s3.delete_bucket(Bucket=name)):
            self._configure(context, name, {}, properties)
        return self._resource(context, name)

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Update everything except the name."""
        self._configure(context, physical_id, old, new)
        return self._resource(context, physical_id)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """S3 refuses while the bucket contains an object, a version or a delete marker."""
        context.client("s3").delete_bucket(Bucket=physical_id)

    def _configure(self, context: Context, name: str, old: Properties, new: Properties) -> None:
        steps: dict[str, Callable[[Context, str, Any], None]] = {
            "AccessControl": _set_acl,
            "BucketEncryption": _set_encryption,
            "VersioningConfiguration": _set_versioning,
            "PublicAccessBlockConfiguration": _set_public_access,
            "OwnershipControls": _set_ownership,
            "LifecycleConfiguration": _set_lifecycle,
            "LoggingConfiguration": _set_logging,
            "Tags": _set_tags,
        }
        for prop, step in steps.items():
            if prop in changed(old, new):
                step(context, name, new.get(prop))

    def _resource(self, context: Context, name: str) -> Resource:
        website = f"http://{name}.s3-website-{context.region}.amazonaws.com"
        attributes = {
            "Arn": f"arn:{context.partition}:s3:::{name}",
            "DomainName": f"{name}.s3.amazonaws.com",
            "DualStackDomainName": f"{name}.s3.dualstack.{context.region}.amazonaws.com",
            "RegionalDomainName": f"{name}.s3.{context.region}.amazonaws.com",
            "WebsiteURL": website,
        }
        return Resource(name, attributes)


def _exists(context: Context, name: str) -> bool:
    try:
        context.client("s3").head_bucket(Bucket=name)
    except ClientError as error:
        return bool(error.response["Error"]["Code"] != "404")
    return True


def _set_acl(context: Context, name: str, acl: str | None) -> None:  # noqa: ARG001 - all steps share this signature
    # Every bucket has this ACL. moto returns one permission of a canned ACL that grants several.
    if acl not in (None, "Private"):
        raise HandlerError(f"the embedded AWS does not support AccessControl {acl}")


def _set_encryption(context: Context, name: str, encryption: Mapping[str, Any] | None) -> None:
    s3 = context.client("s3")
    if not encryption:
        s3.delete_bucket_encryption(Bucket=name)
        return
    rules = []
    for rule in encryption["ServerSideEncryptionConfiguration"]:
        require_only(rule, {"ServerSideEncryptionByDefault", "BucketKeyEnabled"}, "a bucket's encryption")
        default = rule.get("ServerSideEncryptionByDefault")
        if default and "KMSMasterKeyID" in default:
            require_key(context, default["KMSMasterKeyID"])
        given = {"ApplyServerSideEncryptionByDefault": default} if default else {}
        rules.append({**given, **pick(rule, "BucketKeyEnabled")})
    s3.put_bucket_encryption(Bucket=name, ServerSideEncryptionConfiguration={"Rules": rules})


def _set_versioning(context: Context, name: str, versioning: Mapping[str, Any] | None) -> None:
    # S3 cannot remove versioning, only suspend it.
    status = (versioning or {}).get("Status", "Suspended")
    context.client("s3").put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": status})


def _set_public_access(context: Context, name: str, block: Mapping[str, Any] | None) -> None:
    s3 = context.client("s3")
    if block is None:
        s3.delete_public_access_block(Bucket=name)
        return
    settings = {setting: block.get(setting, False) for setting in _PUBLIC_ACCESS}
    s3.put_public_access_block(Bucket=name, PublicAccessBlockConfiguration=settings)


def _set_ownership(context: Context, name: str, ownership: Mapping[str, Any] | None) -> None:
    s3 = context.client("s3")
    if ownership is None:
        s3.delete_bucket_ownership_controls(Bucket=name)
    else:
        s3.put_bucket_ownership_controls(Bucket=name, OwnershipControls=ownership)


def _set_lifecycle(context: Context, name: str, lifecycle: Mapping[str, Any] | None) -> None:
    s3 = context.client("s3")
    if lifecycle is None:
        s3.delete_bucket_lifecycle(Bucket=name)
        return
    require_only(dict(lifecycle), {"Rules"}, "a bucket's life cycle")
    s3.put_bucket_lifecycle_configuration(
        Bucket=name, LifecycleConfiguration={"Rules": lifecycle_rules(lifecycle["Rules"])}
    )


def _set_logging(context: Context, name: str, logging: Mapping[str, Any] | None) -> None:
    status: dict[str, Any] = {}
    if logging is not None:
        target = logging.get("DestinationBucketName", name)
        require_bucket(context, target)
        status["LoggingEnabled"] = {"TargetBucket": target, "TargetPrefix": logging.get("LogFilePrefix", "")}
        status["LoggingEnabled"] |= pick(dict(logging), "TargetObjectKeyFormat")
    context.client("s3").put_bucket_logging(Bucket=name, BucketLoggingStatus=status)


def _set_tags(context: Context, name: str, tags: list[dict[str, str]] | None) -> None:
    s3 = context.client("s3")
    if tags:
        s3.put_bucket_tagging(Bucket=name, Tagging={"TagSet": tags})
    else:
        s3.delete_bucket_tagging(Bucket=name)


@handler
class BucketPolicy(Handler):
    """AWS::S3::BucketPolicy."""

    type = "AWS::S3::BucketPolicy"
    supported_properties = frozenset({"Bucket", "PolicyDocument"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Put the policy. A bucket has at most one."""
        s3, bucket = context.client("s3"), properties["Bucket"]
        require_bucket(context, bucket)
        try:
            s3.get_bucket_policy(Bucket=bucket)
        except ClientError:
            return self._put(context, properties)
        raise HandlerError(f"The bucket policy already exists on bucket {bucket}.")

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Replace the policy."""
        return self._put(context, new)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the policy of the bucket."""
        context.client("s3").delete_bucket_policy(Bucket=physical_id)

    def _put(self, context: Context, properties: Properties) -> Resource:
        document = json_text(properties["PolicyDocument"])
        context.client("s3").put_bucket_policy(Bucket=properties["Bucket"], Policy=document)
        return Resource(properties["Bucket"], {})
