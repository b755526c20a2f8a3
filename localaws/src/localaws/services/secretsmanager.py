"""Secrets Manager: an empty description in UpdateSecret, which moto takes for none."""

from typing import Any

from moto.secretsmanager.models import SecretsManagerBackend

from localaws.services.patching import patch_method


def activate() -> None:
    """Patch moto's secrets."""
    patch_method(SecretsManagerBackend, "update_secret", _update_secret)


def _update_secret(original: Any, self: Any, secret_id: str, *args: Any, **given: Any) -> Any:
    answer = original(self, secret_id, *args, **given)
    if given.get("description") == "":
        self.secrets[secret_id].description = None
    return answer
