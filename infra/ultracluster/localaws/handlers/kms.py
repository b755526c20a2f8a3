"""AWS::KMS::Key and AWS::KMS::Alias."""

from collections.abc import Iterator
from typing import Any

from ultracluster.localaws.handlers.common import json_text, tag_changes, undo_on_failure
from ultracluster.localaws.resources import (
    Context,
    Handler,
    HandlerError,
    NotUpdatable,
    Properties,
    Resource,
    changed,
    handler,
    pick,
    require_key,
    require_role,
    tag_map,
)

_FIXED = {"KeySpec", "KeyUsage", "MultiRegion"}


@handler
class Key(Handler):
    """AWS::KMS::Key."""

    type = "AWS::KMS::Key"
    supported_properties = frozenset(
        {"BypassPolicyLockoutSafetyCheck", "Description", "EnableKeyRotation", "Enabled", "KeyPolicy", "Tags"}
        | {"PendingWindowInDays", "RotationPeriodInDays"}
        | _FIXED
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the key. Roles in its policy must exist."""
        kms = context.client("kms")
        policy = self._policy(context, properties)
        made = kms.create_key(
            Tags=_kms_tags(tag_map(properties.get("Tags"))),
            **pick(properties, "Description", "BypassPolicyLockoutSafetyCheck", *_FIXED),
            **policy,
        )["KeyMetadata"]
        with undo_on_failure(lambda: self.delete(context, made["KeyId"], properties)):
            self._set_state(context, made["KeyId"], properties)
        return Resource(made["KeyId"], pick(made, "Arn", "KeyId"))

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Update everything except the kind of key."""
        if fixed := changed(old, new) & _FIXED:
            raise NotUpdatable(self.type, fixed)
        kms = context.client("kms")
        policy = self._policy(context, new)
        if old.get("KeyPolicy") != new.get("KeyPolicy"):
            if not policy:
                raise HandlerError("KeyPolicy cannot be removed from a key")
            kms.put_key_policy(KeyId=physical_id, PolicyName="default", **policy)
        kms.update_key_description(KeyId=physical_id, Description=new.get("Description", ""))
        self._set_state(context, physical_id, new)
        added, removed = tag_changes(old, new)
        if removed:
            kms.untag_resource(KeyId=physical_id, TagKeys=removed)
        if added:
            kms.tag_resource(KeyId=physical_id, Tags=_kms_tags(added))
        return Resource(physical_id, pick(require_key(context, physical_id), "Arn", "KeyId"))

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Schedule the deletion, as KMS does. Until then the key is pending deletion."""
        days = properties.get("PendingWindowInDays", 30)
        context.client("kms").schedule_key_deletion(KeyId=physical_id, PendingWindowInDays=days)

    def _set_state(self, context: Context, key_id: str, properties: Properties) -> None:
        """Set rotation, then whether the key is enabled: rotation cannot be set on a disabled key."""
        kms = context.client("kms")
        kms.enable_key(KeyId=key_id)
        if properties.get("EnableKeyRotation", False):
            kms.enable_key_rotation(KeyId=key_id, **pick(properties, "RotationPeriodInDays"))
        else:
            kms.disable_key_rotation(KeyId=key_id)
        if not properties.get("Enabled", True):
            kms.disable_key(KeyId=key_id)

    def _policy(self, context: Context, properties: Properties) -> dict[str, str]:
        if "KeyPolicy" not in properties:
            return {}
        for principal in _principals(properties["KeyPolicy"]):
            # KMS refuses policies with missing principals. AWS creates service-linked roles itself.
            if f":iam::{context.account}:role/" in principal and "/aws-service-role/" not in principal:
                require_role(context, principal)
        return {"Policy": json_text(properties["KeyPolicy"])}


def _principals(policy: Any) -> Iterator[str]:
    """ARNs that a policy's statements name as AWS principals."""
    statements = policy.get("Statement", []) if isinstance(policy, dict) else []
    for statement in statements if isinstance(statements, list) else [statements]:
        principal = statement.get("Principal", {})
        named = principal.get("AWS", []) if isinstance(principal, dict) else []
        yield from [named] if isinstance(named, str) else named


def _kms_tags(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"TagKey": key, "TagValue": value} for key, value in tags.items()]


@handler
class Alias(Handler):
    """AWS::KMS::Alias."""

    type = "AWS::KMS::Alias"
    supported_properties = frozenset({"AliasName", "TargetKeyId"})

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the alias."""
        require_key(context, properties["TargetKeyId"])
        context.client("kms").create_alias(**properties)
        return Resource(properties["AliasName"], {})

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Set another target key."""
        require_key(context, new["TargetKeyId"])
        context.client("kms").update_alias(**new)
        return Resource(physical_id, {})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the alias."""
        context.client("kms").delete_alias(AliasName=physical_id)
