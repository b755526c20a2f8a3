"""KMS: the rotation period of a key, which moto drops, AWS managed keys, and symmetric keys without an RSA key."""

import functools
import json
import uuid
from typing import Any

from moto.kms import models
from moto.kms.exceptions import ValidationException
from moto.kms.responses import KmsResponse
from moto.kms.utils import RESERVED_ALIASE_TARGET_KEY_IDS, RESERVED_ALIASES, RSAPrivateKey

from localaws.services.patching import patch_method

DEFAULT_ROTATION_DAYS = 365  # KMS API Reference, EnableKeyRotation
MANAGED = ("backup", "codecommit", "dms", "fsx", "kafka", "kinesis", "sns", "sqs", "workspaces")
"""Services with an AWS managed key `alias/aws/...`, besides those that moto knows (KMS Developer Guide, 2026)."""


def activate() -> None:
    """Store and return the rotation period of EnableKeyRotation; AWS managed keys; make symmetric keys quickly."""
    for alias in (f"alias/aws/{service}" for service in MANAGED):
        RESERVED_ALIASES.append(alias)
        RESERVED_ALIASE_TARGET_KEY_IDS[alias] = str(uuid.uuid5(uuid.NAMESPACE_URL, alias))
    patch_method(models.KmsBackend, "_generate_default_keys", _generate_managed_key)
    models.generate_private_key = functools.partial(_private_key, models.generate_private_key)
    patch_method(KmsResponse, "enable_key_rotation", _enable_key_rotation)
    patch_method(KmsResponse, "get_key_rotation_status", _get_key_rotation_status)


def _private_key(original: Any, key_spec: str) -> Any:
    # moto makes an RSA key for each symmetric key too, which takes a tenth of a second, and does not use it
    return _unused_key() if key_spec == "SYMMETRIC_DEFAULT" else original(key_spec)


def _generate_managed_key(original: Any, self: Any, alias_name: str) -> Any:
    """A predefined alias gets its key on first use (KMS API Reference, DescribeKey)."""
    key_id = original(self, alias_name)
    self.keys[key_id].key_manager = "AWS"
    return key_id


@functools.cache
def _unused_key() -> Any:
    return RSAPrivateKey(2048)


def _enable_key_rotation(original: Any, self: Any) -> Any:
    period = self._get_param("RotationPeriodInDays") or DEFAULT_ROTATION_DAYS
    if not 90 <= period <= 2560:
        raise ValidationException(f"RotationPeriodInDays {period} is not between 90 and 2560")
    answer = original(self)
    _key(self).rotation_period = period
    return answer


def _get_key_rotation_status(original: Any, self: Any) -> str:
    answer = json.loads(original(self))
    if answer["KeyRotationEnabled"]:
        answer["RotationPeriodInDays"] = getattr(_key(self), "rotation_period", DEFAULT_ROTATION_DAYS)
    return json.dumps({"KeyId": _key(self).id, **answer})


def _key(self: Any) -> Any:
    backend = self.kms_backend
    return backend.keys[backend.get_key_id(self._get_param("KeyId"))]
