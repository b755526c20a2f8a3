"""Trust policies of IAM roles."""

import json
from collections.abc import Iterable
from typing import Any


def allows_service(role: Any, service: str, *actions: str) -> bool:
    """Whether the trust policy of moto's `role` allows the service principal all `actions` (default sts:AssumeRole).

    Conditions are ignored, because they depend on a later request of the service.
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
    """The value as a list: IAM allows a single value in place of a list."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
