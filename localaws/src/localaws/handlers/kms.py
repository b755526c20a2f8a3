"""KMS: keys and aliases."""

from collections.abc import Iterator
from typing import Any

from localaws.resources import Context, HandlerError, Properties, pick
from localaws.rows.existing import known
from localaws.rows.handler import register
from localaws.rows.row import Row, Setting


def _check_key(context: Context, old: Properties, new: Properties) -> None:
    """KMS refuses policies with missing principals. AWS creates service-linked roles itself."""
    if "KeyPolicy" in old and "KeyPolicy" not in new:
        raise HandlerError("KeyPolicy cannot be removed from a key")
    for principal in _principals(new.get("KeyPolicy")):
        if f":iam::{context.account}:role/" in principal and "/aws-service-role/" not in principal:
            known(context, "role", principal)


def _set_state(context: Context, _: Properties, new: Properties) -> None:
    """Set rotation, then whether the key is enabled: rotation cannot be set on a disabled key."""
    kms, key_id = context.client("kms"), new["ref"]
    kms.enable_key(KeyId=key_id)
    if new.get("EnableKeyRotation", False):
        kms.enable_key_rotation(KeyId=key_id, **pick(new, "RotationPeriodInDays"))
    else:
        kms.disable_key_rotation(KeyId=key_id)
    if not new.get("Enabled", True):
        kms.disable_key(KeyId=key_id)


def _principals(policy: Any) -> Iterator[str]:
    """ARNs that a policy's statements name as AWS principals."""
    statements = policy.get("Statement", []) if isinstance(policy, dict) else []
    for statement in statements if isinstance(statements, list) else [statements]:
        principal = statement.get("Principal", {})
        named = principal.get("AWS", []) if isinstance(principal, dict) else []
        yield from [named] if isinstance(named, str) else named


register(
    Row(
        type="AWS::KMS::Key",
        service="kms",
        ignored="Origin",
        update="UpdateKeyDescription",
        delete="ScheduleKeyDeletion",
        renames={"KeyPolicy": "Policy"},
        resets={"Description": ""},
        settings=(Setting("KeyPolicy", put="PutKeyPolicy", fixed={"PolicyName": "default"}, at_creation=False),),
        by_hand="EnableKeyRotation Enabled RotationPeriodInDays",
        hook=_set_state,
        arn="{ref}",
        check=_check_key,
    ),
    Row(
        type="AWS::KMS::Alias",
        service="kms",
        tags=None,
        must_exist={"TargetKeyId": "KMS key"},
    ),
)
