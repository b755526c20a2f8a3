"""S3: bucket settings that moto drops, and checks of moto that AWS does not make."""

import json
from typing import Any

from moto.iam.access_control import PermissionResult
from moto.s3.models import FakeBucket, S3Backend
from moto.s3.responses import S3Response

from localaws.services.patching import patch_method


def activate() -> None:
    """Return complete lifecycle rules and log formats, ignore policies, allow logging before its policy exists."""
    patch_method(FakeBucket, "get_permission", _get_permission)
    patch_method(FakeBucket, "set_lifecycle", _set_lifecycle)
    patch_method(S3Response, "get_bucket_lifecycle", _get_lifecycle)
    patch_method(S3Response, "get_bucket_logging", _get_logging)
    patch_method(S3Backend, "log_incoming_request", _log_request)
    FakeBucket._log_permissions_enabled_policy = staticmethod(_logging_allowed)


def _get_permission(original: Any, self: Any, action: str, resource: str) -> Any:  # noqa: ARG001
    # moto ignores a statement's conditions and principals, so a TLS-only policy would deny everything. The embedded AWS
    # stores policies and does not evaluate them.
    return PermissionResult.NEUTRAL


def _log_request(original: Any, self: Any, request: Any, bucket_name: str) -> None:
    # A bucket policy that denies s3:PutObject to everybody stops access logs too. The CDK uses one to empty a bucket.
    bucket = self.buckets.get(bucket_name)
    target = self.buckets.get((bucket.logging or {}).get("TargetBucket")) if bucket else None
    if target is None or not _denies_writes(target.policy):
        original(self, request, bucket_name)


def _denies_writes(policy: bytes | None) -> bool:
    statements = json.loads(policy)["Statement"] if policy else []
    wanted = {"Effect": "Deny", "Principal": "*"}
    return any(
        wanted.items() <= each.items() and "s3:PutObject" in each.get("Action", ()) and "Condition" not in each
        for each in statements
    )


def _logging_allowed(target_bucket: Any, target_prefix: str | None) -> bool:  # noqa: ARG001
    # The policy of a log bucket refers to the source bucket, so it can only be put after logging is enabled.
    return True


def _set_lifecycle(original: Any, self: Any, rules: list[dict[str, Any]]) -> None:
    original(self, rules)
    for kept, asked in zip(self.rules, rules, strict=True):
        kept.asked = asked


def _get_lifecycle(original: Any, self: Any) -> Any:
    rules = self.backend.get_bucket_lifecycle(self.bucket_name)
    if not rules:
        return original(self)
    serialize = self.serialized

    def with_dropped_members(action: Any) -> Any:
        for found, kept in zip(action.result["Rules"], rules, strict=True):
            _restore_dropped(found, kept.asked)
        return serialize(action)

    self.serialized = with_dropped_members
    return original(self)


def _restore_dropped(found: dict[str, Any], asked: dict[str, Any]) -> None:
    """Restore members that moto drops from a rule: NewerNoncurrentVersions and object size filters."""
    if "NoncurrentVersionExpiration" in found:
        found["NoncurrentVersionExpiration"] |= _sizes(asked["NoncurrentVersionExpiration"], "NewerNoncurrentVersions")
    wanted = asked.get("Filter") or {}
    if "Filter" in found:
        found["Filter"] |= _sizes(wanted, "ObjectSizeGreaterThan", "ObjectSizeLessThan")
    if "And" in found.get("Filter", {}):
        found["Filter"]["And"] |= _sizes(wanted["And"], "ObjectSizeGreaterThan", "ObjectSizeLessThan")


def _sizes(asked: dict[str, Any], *names: str) -> dict[str, int]:
    return {name: int(asked[name]) for name in names if name in asked}


def _get_logging(original: Any, self: Any) -> Any:
    asked = self.backend.get_bucket_logging(self.bucket_name) or {}
    serialize = self.serialized

    def with_dropped_members(action: Any) -> Any:
        if "TargetObjectKeyFormat" in asked:
            # moto's parser reads an empty XML element as None; for boto3 it is a structure without members.
            keys = {name: inner or {} for name, inner in asked["TargetObjectKeyFormat"].items()}
            action.result["LoggingEnabled"]["TargetObjectKeyFormat"] = keys
        return serialize(action)

    self.serialized = with_dropped_members
    return original(self)
