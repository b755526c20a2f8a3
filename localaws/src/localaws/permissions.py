"""Whether policies allow a request, and why not. Pure.

Source: IAM User Guide, "Policy evaluation logic", "IAM JSON policy elements" and "Troubleshoot access denied error
messages"; KMS Developer Guide, "Key policies in AWS KMS" (2026). There are no service and resource control policies.
"""

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

Document = Mapping[str, Any]
Statement = Mapping[str, Any]
Level = Literal["deny", "principal", "account", "none"]

ANONYMOUS = "anonymous"
_NEGATED = re.compile(r"Not(?!Action|Resource|Principal)")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")


class NotEvaluated(Exception):
    """A policy has an element that this module does not evaluate."""


@dataclass(frozen=True)
class Request:
    """A call with all policies that decide on it.

    `principal` is the ARN of a role or user, the name of a service, or ANONYMOUS. A `resource` of None is one of
    unknown name: a statement that allows any resource allows it. `endpoint` is the policy of a VPC endpoint on the way.
    """

    principal: str
    action: str
    resource: str | None
    owner: str  # the account of the resource
    identity: tuple[Document, ...] = ()
    boundary: Document | None = None
    resource_policy: Document | None = None
    endpoint: Document | None = None
    context: Mapping[str, str | list[str]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()  # parts of condition keys, in lower case, that are not evaluated

    @property
    def account(self) -> str | None:
        """The principal's account; None for services and anonymous callers."""
        return self.principal.split(":")[4] if self.principal.startswith("arn:") else None


class Verdict(NamedTuple):
    """Whether a request is allowed. `reason` continues AWS's message after the resource."""

    allowed: bool
    reason: str = ""


ALLOWED = Verdict(allowed=True)


def decide(request: Request) -> Verdict:
    """The verdict on a request. Raises NotEvaluated."""
    if request.action.lower() == "sts:getcalleridentity":  # also with an explicit deny (STS API Reference)
        return ALLOWED
    given = _with_defaults(request)
    identity = _level(request.identity, request, given)
    resource = _level(_some(request.resource_policy), request, given)
    limits = {
        "permissions boundary": _level(_some(request.boundary), request, given) if request.boundary else None,
        "VPC endpoint policy": _level(_some(request.endpoint), request, given) if request.endpoint else None,
    }
    levels = {"identity-based policy": identity, "resource-based policy": resource, **limits}
    for kind, level in levels.items():
        if level == "deny":
            article = "an" if kind.startswith("identity") else "a"
            return Verdict(allowed=False, reason=f"with an explicit deny in {article} {kind}")
    for kind, level in limits.items():
        if level == "none":
            return _unallowed(request, kind)
    if request.account is None:
        return ALLOWED if resource == "principal" else _unallowed(request, "resource-based policy")
    own = request.account == request.owner
    if resource == "principal" and own:
        return ALLOWED
    if resource == "none" and (not own or _resource_policy_decides(request.action)):
        return _unallowed(request, "resource-based policy")
    return _unallowed(request, "identity-based policy") if identity == "none" else ALLOWED


def denial(request: Request, verdict: Verdict, caller: str | None = None) -> str:
    """AWS's message for a denied request; `caller` is the session in place of the principal."""
    on = f" on resource: {request.resource}" if request.resource not in (None, "*") else ""
    return f"User: {caller or request.principal} is not authorized to perform: {request.action}{on} {verdict.reason}"


def _unallowed(request: Request, kind: str) -> Verdict:
    return Verdict(allowed=False, reason=f"because no {kind} allows the {request.action} action")


def _resource_policy_decides(action: str) -> bool:
    """Actions for which the policy of the resource has to allow the account too: those on keys and trust policies."""
    return action.lower().startswith(("kms:", "sts:assumerole", "sts:tagsession", "sts:setsourceidentity"))


def _some(document: Document | None) -> tuple[Document, ...]:
    return (document,) if document else ()


def _with_defaults(request: Request) -> dict[str, list[str]]:
    """The condition keys in lower case, with those that AWS sets on every request."""
    keys: dict[str, str | list[str]] = {"aws:SecureTransport": "true", "aws:ResourceAccount": request.owner}
    if request.action.startswith("s3:"):
        keys["s3:TlsVersion"] = "1.3"
    if request.account:
        keys |= {"aws:PrincipalArn": request.principal, "aws:PrincipalAccount": request.account}
        if request.action.startswith("kms:"):
            keys["kms:CallerAccount"] = request.account
    return {name.lower(): _list(value) for name, value in {**keys, **request.context}.items()}


def _level(documents: Iterable[Document], request: Request, given: Mapping[str, list[str]]) -> Level:
    """The strongest of the statements that apply to a request."""
    found: set[Level] = set()
    for document in documents:
        for statement in _list(document.get("Statement")):
            named = _named(statement, request)
            if named and _covers(statement, request, given) and _conditions_hold(statement, request, given):
                found.add("deny" if statement["Effect"] == "Deny" else named)
    order: tuple[Level, ...] = ("deny", "principal", "account")
    return next((level for level in order if level in found), "none")


def _named(statement: Statement, request: Request) -> Literal["principal", "account"] | None:
    """How a statement names the principal: itself, or its account, which leaves the rest to identity policies."""
    if "NotPrincipal" in statement:
        raise NotEvaluated("NotPrincipal")
    principals = statement.get("Principal")
    if principals is None or principals == "*":
        return "principal"
    if request.account is None:
        services = _list(principals.get("Service"))
        return "principal" if request.principal in services or "*" in _list(principals.get("AWS")) else None
    named = _list(principals.get("AWS"))
    if "*" in named or request.principal in named:
        return "principal"
    root = (request.account, f"arn:{request.principal.split(':')[1]}:iam::{request.account}:root")
    if any(name in named for name in root):
        return "principal" if statement["Effect"] == "Deny" else "account"
    return None


def _covers(statement: Statement, request: Request, given: Mapping[str, list[str]]) -> bool:
    """Whether a statement covers the action and the resource."""
    action = request.action.lower()
    if "NotAction" in statement:
        if any(_like(action, pattern.lower()) for pattern in _list(statement["NotAction"])):
            return False
    elif not any(_like(action, pattern.lower()) for pattern in _list(statement.get("Action"))):
        return False
    if "NotResource" in statement:
        if request.resource is None:
            return bool(statement["Effect"] == "Allow")
        return not any(_names(pattern, request.resource, given) for pattern in _list(statement["NotResource"]))
    patterns = _list(statement.get("Resource", "*"))
    if request.resource is None:
        return statement["Effect"] == "Allow" or "*" in patterns
    return any(_names(pattern, request.resource, given) for pattern in patterns)


def _names(pattern: str, resource: str, given: Mapping[str, list[str]]) -> bool:
    """Whether a pattern in Resource names the resource."""
    substituted = _substitute(pattern, given)
    return substituted is not None and (substituted == "*" or _arn_like(resource, substituted))


def _conditions_hold(statement: Statement, request: Request, given: Mapping[str, list[str]]) -> bool:
    """Whether all condition keys of all operators hold."""
    for key in (key for keys in statement.get("Condition", {}).values() for key in keys):
        if any(part in key.lower() for part in request.unknown):
            raise NotEvaluated(f"the condition key {key}")
    return all(
        _holds(operator, key, _list(wanted), given)
        for operator, keys in statement.get("Condition", {}).items()
        for key, wanted in keys.items()
    )


def _holds(operator: str, key: str, wanted: list[Any], given: Mapping[str, list[str]]) -> bool:
    values = given.get(key.lower())
    if operator == "Null":
        return (values is None) == (str(wanted[0]).lower() == "true")
    qualifier, _, rest = operator.rpartition(":")
    if qualifier not in ("", "ForAllValues", "ForAnyValue"):
        raise NotEvaluated(f"the condition operator {operator}")
    name = rest.removesuffix("IfExists")
    negated = bool(_NEGATED.search(name))
    test = _OPERATORS.get(_NEGATED.sub("", name))
    if test is None:
        raise NotEvaluated(f"the condition operator {operator}")
    if not values:
        return qualifier == "ForAllValues" or (qualifier == "" and (negated or rest.endswith("IfExists")))
    patterns = [found for value in wanted if (found := _substitute(_text(value), given)) is not None]
    matches = [any(test(value, pattern) for pattern in patterns) is not negated for value in values]
    return all(matches) if qualifier == "ForAllValues" or (qualifier == "" and negated) else any(matches)


def _substitute(text: str, given: Mapping[str, list[str]]) -> str | None:
    """The text with policy variables replaced; None when one has no value, so that it matches nothing."""
    missing = False

    def value(match: re.Match[str]) -> str:
        nonlocal missing
        if match[1] in ("*", "?", "$"):
            return match[1]
        name, _, default = match[1].partition(",")
        found = given.get(name.strip().lower())
        if found and len(found) == 1:
            return found[0]
        missing = missing or not default
        return default.strip(" '")

    replaced = _VARIABLE.sub(value, text)
    return None if missing else replaced


def _like(value: str, pattern: str) -> bool:
    """Whether the value matches a pattern with * and ?."""
    parts = (".*" if part == "*" else "." if part == "?" else re.escape(part) for part in re.split(r"([*?])", pattern))
    return re.fullmatch("".join(parts), value, re.DOTALL) is not None


def _arn_like(value: str, pattern: str) -> bool:
    """Each of the six parts of an ARN is compared by itself."""
    values, patterns = value.split(":", 5), pattern.split(":", 5)
    return len(values) == len(patterns) == 6 and all(map(_like, values, patterns))


def _numeric(compare: Callable[[float, float], bool]) -> Callable[[str, str], bool]:
    return lambda value, wanted: compare(float(value), float(wanted))


def _date(compare: Callable[[float, float], bool]) -> Callable[[str, str], bool]:
    return lambda value, wanted: compare(_time(value), _time(wanted))


def _time(value: str) -> float:
    return float(value) if re.fullmatch(r"\d+(\.\d+)?", value) else datetime.fromisoformat(value).timestamp()


def _in_network(value: str, wanted: str) -> bool:
    return ipaddress.ip_address(value) in ipaddress.ip_network(wanted, strict=False)


_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "Equals": lambda value, wanted: value == wanted,
    "LessThan": lambda value, wanted: value < wanted,
    "LessThanEquals": lambda value, wanted: value <= wanted,
    "GreaterThan": lambda value, wanted: value > wanted,
    "GreaterThanEquals": lambda value, wanted: value >= wanted,
}
_OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "ArnEquals": _arn_like,
    "ArnLike": _arn_like,
    "Bool": lambda value, wanted: value.lower() == wanted.lower(),
    "IpAddress": _in_network,
    "StringEquals": lambda value, wanted: value == wanted,
    "StringEqualsIgnoreCase": lambda value, wanted: value.lower() == wanted.lower(),
    "StringLike": _like,
    **{f"Numeric{name}": _numeric(compare) for name, compare in _COMPARISONS.items()},
    **{f"Date{name}": _date(compare) for name, compare in _COMPARISONS.items()},
}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _list(value: Any) -> list[Any]:
    """The value as a list: IAM allows a single value in place of a list."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]
