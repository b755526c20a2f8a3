"""Custom resources of the CDK's own constructs whose functions are written for Node.js: what these functions do.

No Node.js runs here. The calls are those of aws-cdk-lib's custom resource handlers, version 2.275.
"""

import json
from typing import Any

from botocore.exceptions import ClientError

from localaws.handlers.common import function_failed
from localaws.resources import Context, Handler, Properties, Resource, handler
from localaws.rows.existing import known

AUTO_DELETE = {"Key": "aws-cdk:auto-delete-objects", "Value": "true"}


class _Provider(Handler):
    """Base: the function must exist, and its physical id stays."""

    supported_properties = frozenset({"*"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Act on Create."""
        known(context, "function", properties["ServiceToken"])
        self._apply(context, {}, properties)
        return Resource(self._id(context, properties), {})

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Act on Update."""
        self._apply(context, old, new)
        return Resource(self._id(context, new), {})

    def _id(self, context: Context, properties: Properties) -> str:
        return context.logical_id

    def _apply(self, context: Context, old: Properties, new: Properties) -> None:
        """What Create and Update do; `old` is empty for Create."""


@handler
class RestrictDefaultSecurityGroup(_Provider):
    """`Vpc(restrict_default_security_group=True)`: removes the rules of the default security group."""

    type = "Custom::VpcRestrictDefaultSG"

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Restore the rules."""
        ec2 = context.client("ec2")
        inbound, outbound = _default_rules(properties)
        ec2.authorize_security_group_ingress(**inbound)
        ec2.authorize_security_group_egress(**outbound)

    def _apply(self, context: Context, old: Properties, new: Properties) -> None:
        if old.get("DefaultSecurityGroupId") == new["DefaultSecurityGroupId"]:
            return
        if old:
            self.delete(context, "", old)
        ec2 = context.client("ec2")
        inbound, outbound = _default_rules(new)
        _unless(lambda: ec2.revoke_security_group_egress(**outbound), "InvalidPermission.NotFound")
        _unless(lambda: ec2.revoke_security_group_ingress(**inbound), "InvalidPermission.NotFound")


@handler
class AutoDeleteObjects(_Provider):
    """`Bucket(auto_delete_objects=True)`: empties the bucket before CloudFormation deletes it."""

    type = "Custom::S3AutoDeleteObjects"

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete all versions of all objects, if the bucket still has the construct's tag."""
        s3, bucket = context.client("s3"), properties["BucketName"]
        tags = _unless(lambda: s3.get_bucket_tagging(Bucket=bucket), "NoSuchBucket", "NoSuchTagSet")
        if AUTO_DELETE not in (tags or {}).get("TagSet", []):
            return
        _deny_writes(s3, bucket)
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
            versions = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
            keys = [{"Key": each["Key"], "VersionId": each["VersionId"]} for each in versions]
            if keys:
                s3.delete_objects(Bucket=bucket, Delete={"Objects": keys})

    def _id(self, context: Context, properties: Properties) -> str:
        return str(properties["BucketName"])  # another bucket is a replacement


@handler
class LogRetention(_Provider):
    """`Function(log_retention=...)`: creates a log group and sets its retention."""

    type = "Custom::LogRetention"

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the log group if the construct says so."""
        if properties.get("RemovalPolicy") == "destroy":
            logs, name = context.client("logs", properties.get("LogGroupRegion")), properties["LogGroupName"]
            _unless(lambda: logs.delete_log_group(logGroupName=name), "ResourceNotFoundException")

    def _id(self, context: Context, properties: Properties) -> str:
        return str(properties["LogGroupName"])

    def _apply(self, context: Context, old: Properties, new: Properties) -> None:
        logs, name = context.client("logs", new.get("LogGroupRegion")), new["LogGroupName"]
        _unless(lambda: logs.create_log_group(logGroupName=name), "ResourceAlreadyExistsException")
        if days := int(new.get("RetentionInDays") or 0):
            logs.put_retention_policy(logGroupName=name, retentionInDays=days)
        else:
            logs.delete_retention_policy(logGroupName=name)


def _deny_writes(s3: Any, bucket: str) -> None:
    """Nobody writes into a bucket that is being emptied."""
    found = _unless(lambda: s3.get_bucket_policy(Bucket=bucket), "NoSuchBucketPolicy")
    statements = json.loads(found["Policy"])["Statement"] if found else []
    objects = f"arn:aws:s3:::{bucket}/*"
    denied = {"Principal": "*", "Effect": "Deny", "Action": ["s3:PutObject"], "Resource": [objects]}
    policy = {"Version": "2012-10-17", "Statement": [*statements, denied]}
    s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))


def _default_rules(properties: Properties) -> tuple[dict[str, Any], dict[str, Any]]:
    """The rules of a new default security group: all traffic from itself, and all traffic out."""
    group = properties["DefaultSecurityGroupId"]
    itself = {"GroupId": group, "UserId": properties["Account"]}
    return (
        {"GroupId": group, "IpPermissions": [{"IpProtocol": "-1", "UserIdGroupPairs": [itself]}]},
        {"GroupId": group, "IpPermissions": [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]},
    )


def _unless(call: Any, *codes: str) -> Any:
    """The answer of a call; None after one of these errors. Others fail the resource, as the function's response."""
    try:
        return call()
    except ClientError as error:
        if error.response["Error"]["Code"] in codes:
            return None
        raise function_failed(error) from error
