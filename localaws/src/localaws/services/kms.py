"""KMS: the rotation period of a key, which moto drops, and symmetric keys without an RSA key of their own."""

import functools
import json
from typing import Any

from moto.kms import models
from moto.kms.exceptions import ValidationException
from moto.kms.responses import KmsResponse
from moto.kms.utils import RSAPrivateKey

from localaws.services.patching import patch_method

DEFAULT_ROTATION_DAYS = 365  # KMS API Reference, EnableKeyRotation


def activate() -> None:
    """Store and return the rotation period of EnableKeyRotation; make symmetric keys quickly."""
    models.generate_private_key = functools.partial(_private_key, models.generate_private_key)
    patch_method(KmsResponse, "enable_key_rotation", _enable_key_rotation)
    patch_method(KmsResponse, "get_key_rotation_status", _get_key_rotation_status)


def _private_key(original: Any, key_spec: str) -> Any:
    # moto makes an RSA key for each symmetric key too, which takes a tenth of a second, and does not use it
    return _unused_key() if key_spec == "SYMMETRIC_DEFAULT" else original(key_spec)


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
