"""Whom the trust policy of an IAM role lets assume it."""

import json
from collections.abc import Iterable
from typing import Any


def trusts(role: Any, service: str, *actions: str) -> bool:
    """Whether moto's `role` lets the service principal do each of the actions, sts:AssumeRole when none is named.

    Conditions are not weighed: they hang on the request that the service makes later.
    """
    text = role.assume_role_policy_document
    document = json.loads(text) if isinstance(text, str) else text
    granted = {
        action.lower()
        for statement in _list(document.get("Statement"))
        if statement.get("Effect") == "Allow" and service in _services(statement)
        for action in _list(statement.get("Action"))
    }
    wanted = {action.lower() for action in actions or ("sts:AssumeRole",)}
    return bool(granted & {"*", "sts:*"}) or wanted <= granted


def _services(statement: dict[str, Any]) -> Iterable[str]:
    principal = statement.get("Principal")
    return _list(principal.get("Service")) if isinstance(principal, dict) else ()


def _list(value: Any) -> list[Any]:
    """IAM writes a list of one as the one."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
