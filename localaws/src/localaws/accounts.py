"""The access key names the account of a caller, so one embedded AWS serves environments of several accounts."""

import functools
import re

PREFIX = "LOCALAWS"
SECRET = "local"  # noqa: S105 - for clients in this process, where nothing checks it; each server has its own
DEFAULT = "123456789012"


def access_key(account: str) -> str:
    """The access key of an account: 20 characters, like AWS's. ValueError unless the account has 12 digits."""
    if not re.fullmatch(r"\d{12}", account):
        raise ValueError(f"an AWS account has 12 digits, not {account!r}")
    return PREFIX + account


def is_access_key(key: str) -> bool:
    """Whether `access_key` made this key."""
    return re.fullmatch(PREFIX + r"\d{12}", key) is not None


def activate() -> None:
    """Let moto read the account from such a key. All other keys keep their meaning in moto."""
    from moto.iam import models

    original = models.get_account_id_from

    @functools.wraps(original)
    def account_of(key: str) -> str:
        return key.removeprefix(PREFIX) if key.startswith(PREFIX) else str(original(key))

    models.get_account_id_from = account_of
