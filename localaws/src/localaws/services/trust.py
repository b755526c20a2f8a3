"""Trust policies of IAM roles."""

import json
from collections.abc import Iterable
from typing import Any


def allows_service(role: Any, service: str, *actions: str) -> bool:
    """Whether the trust policy of moto's `role` allows the service principal all `actions` (default sts:AssumeRole).

    Conditions are ignored, because they depend on a later request of the service.
    """
    granted = {
        action.lower()
        for statement in _allowing(role)
        if service in _principals(statement, "Service")
        for action in _list(statement.get("Action"))
    }
    wanted = {action.lower() for action in actions or ("sts:AssumeRole",)}
    return bool(granted & {"*", "sts:*"}) or wanted <= granted


def allows_principal(role: Any, arn: str) -> bool:
    """Whether the trust policy of moto's `role` allows the principal of this ARN. Conditions are ignored."""
    return any(arn in _principals(statement, "AWS") for statement in _allowing(role))


def _allowing(role: Any) -> list[dict[str, Any]]:
    text = role.assume_role_policy_document
    document = json.loads(text) if isinstance(text, str) else text
    return [statement for statement in _list(document.get("Statement")) if statement.get("Effect") == "Allow"]


def _principals(statement: dict[str, Any], kind: str) -> Iterable[str]:
    principal = statement.get("Principal")
    return _list(principal.get(kind)) if isinstance(principal, dict) else ()


def _list(value: Any) -> list[Any]:
    """The value as a list: IAM allows a single value in place of a list."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
