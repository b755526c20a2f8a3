"""S3 beyond moto's: parts of a bucket's settings that moto drops, and checks that AWS does not make."""

from typing import Any

from moto.iam.access_control import PermissionResult
from moto.s3.models import FakeBucket
from moto.s3.responses import S3Response

from ultracluster.localaws.services.patching import patch_method


def activate() -> None:
    """Keep whole lifecycle rules and log formats, never decide by bucket policies, let logging precede its policy."""
    patch_method(FakeBucket, "get_permission", _get_permission)
    patch_method(FakeBucket, "set_lifecycle", _set_lifecycle)
    patch_method(S3Response, "get_bucket_lifecycle", _get_lifecycle)
    patch_method(S3Response, "get_bucket_logging", _get_logging)
    FakeBucket._log_permissions_enabled_policy = staticmethod(_may_log)


def _get_permission(original: Any, self: Any, action: str, resource: str) -> Any:  # noqa: ARG001
    # moto leaves out a statement's conditions and principals, so a TLS-only policy would deny everything. Nobody's
    # identity is known on loopback: policies are stored, not weighed.
    return PermissionResult.NEUTRAL


def _may_log(target_bucket: Any, target_prefix: str | None) -> bool:  # noqa: ARG001
    # A log bucket's policy names the source bucket, so it can only come after the source's logging is set.
    return True


def _set_lifecycle(original: Any, self: Any, rules: list[dict[str, Any]]) -> None:
    original(self, rules)
    for kept, asked in zip(self.rules, rules, strict=True):
        kept.asked = asked


def _get_lifecycle(original: Any, self: Any) -> Any:
    rules = self.backend.get_bucket_lifecycle(self.bucket_name)
    if not rules:
        return original(self)
    answering = self.serialized

    def whole(answer: Any) -> Any:
        for found, kept in zip(answer.result["Rules"], rules, strict=True):
            _complete(found, kept.asked)
        return answering(answer)

    self.serialized = whole
    return original(self)


def _complete(found: dict[str, Any], asked: dict[str, Any]) -> None:
    """Put back what moto's rule lost: newer versions to keep, and filters by object size."""
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
    answering = self.serialized

    def whole(answer: Any) -> Any:
        if "TargetObjectKeyFormat" in asked:
            # An empty XML element is None to moto's parser and a structure without members to boto3.
            keys = {name: inner or {} for name, inner in asked["TargetObjectKeyFormat"].items()}
            answer.result["LoggingEnabled"]["TargetObjectKeyFormat"] = keys
        return answering(answer)

    self.serialized = whole
    return original(self)
