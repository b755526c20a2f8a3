"""The judge: npm's @cloud-copilot/iam-simulate, run as a program of its own, once for many requests.

It knows no condition keys of the encryption context, which are evaluated here before it sees a statement.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.access.account import ACCOUNT, Document, Policies

SIMULATOR = Path(__file__).parent / "simulator"
NODE = Path(sys.executable).parent / "node"
ABSENT = "the policy simulator is not installed: run `make simulator`"
CONTEXT_KEY = "kms:EncryptionContext:"


def installed() -> bool:
    """Whether `make simulator` has run."""
    return (SIMULATOR / "node_modules").is_dir()


@dataclass(frozen=True)
class Request:
    """A call with all policies that decide on it. `endpoint` is the policy of the VPC endpoint on its way, if any."""

    principal: str
    action: str
    resource: str
    identity: Policies = ()
    resource_policy: Document | None = None
    boundary: Document | None = None
    endpoint: Document | None = None
    owner: str = ACCOUNT
    context: Mapping[str, str | list[str]] = field(default_factory=dict)
    encryption_context: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """Whether a request is allowed, and what decided."""

    allowed: bool
    why: str


class NotJudged(Exception):
    """The simulator could not judge a request: a wrong action, resource, context key or policy."""


def judge(requests: Sequence[Request]) -> list[Verdict]:
    """A verdict for each request. Raises NotJudged."""
    simulations = json.dumps([_simulation(request) for request in requests])
    command = [NODE, SIMULATOR / "simulate.mjs"]
    answer = subprocess.run(command, input=simulations, capture_output=True, text=True, check=True).stdout
    found = list(zip(requests, json.loads(answer), strict=True))
    if refused := [problem for each in found if (problem := _problem(*each))]:
        raise NotJudged("\n".join(refused))
    return [_verdict(answer) for _, answer in found]


def _problem(request: Request, found: Mapping[str, Any]) -> str | None:
    """What is wrong with the request itself; context keys that the action does not have would be ignored."""
    call = f"{request.principal} {request.action} {request.resource}"
    if found["result"] == "Error":
        return f"{call}: {json.dumps(found['errors'])}"
    unknown = [key for key in found["ignored"] if key in request.context]
    return f"{call}: has no context keys {unknown}" if unknown else None


def _verdict(found: Mapping[str, Any]) -> Verdict:
    parts = {key: found[key] for key in ("identity", "resource", "blockedBy")}
    return Verdict(found["result"] == "Allowed", f"{found['result']} {json.dumps(parts)}")


def _simulation(request: Request) -> dict[str, Any]:
    context = request.encryption_context
    owner_policy, endpoint, boundary = request.resource_policy, request.endpoint, request.boundary
    simulation: dict[str, Any] = {
        "request": {
            "principal": {"type": "Anonymous"} if request.principal == "anonymous" else request.principal,
            "action": request.action,
            "resource": {"resource": request.resource, "accountId": request.owner},
            "contextVariables": _defaults(request) | dict(request.context),
        },
        "identityPolicies": [
            {"name": name, "policy": without_context(document, context)} for name, document in request.identity
        ],
        "serviceControlPolicies": [],
        "resourceControlPolicies": [],
    }
    if owner_policy:
        simulation["resourcePolicy"] = without_context(owner_policy, context)
    if boundary:
        simulation["permissionBoundaryPolicies"] = [{"name": "boundary", "policy": boundary}]
    if endpoint:
        simulation["vpcEndpointPolicies"] = [{"name": "endpoint", "policy": endpoint}]
    return simulation


def _defaults(request: Request) -> dict[str, str | list[str]]:
    """Context keys that AWS sets on every request (IAM User Guide, "AWS global condition context keys", 2026)."""
    keys: dict[str, str | list[str]] = {"aws:SecureTransport": "true", "aws:ResourceAccount": request.owner}
    service = request.action.partition(":")[0]
    if service == "s3":
        keys["s3:TlsVersion"] = "1.3"
    if request.principal.startswith("arn:"):
        account = request.principal.split(":")[4]
        keys |= {"aws:PrincipalArn": request.principal, "aws:PrincipalAccount": account}
        if service == "kms":
            keys["kms:CallerAccount"] = account
    return keys


def without_context(document: Document, context: Mapping[str, str]) -> Document:
    """The document as it applies to an encryption context: without statements whose conditions on it do not hold.

    Of the others, the conditions on the encryption context are removed, because they hold.
    """
    statements = [_applied(statement, context) for statement in document["Statement"]]
    return {**document, "Statement": [statement for statement in statements if statement]}


def _applied(statement: Mapping[str, Any], context: Mapping[str, str]) -> dict[str, Any] | None:
    kept: dict[str, Any] = {}
    for operator, keys in statement.get("Condition", {}).items():
        for key, wanted in keys.items():
            if not key.startswith(CONTEXT_KEY):
                kept.setdefault(operator, {})[key] = wanted
            elif not _holds(operator, context.get(key.removeprefix(CONTEXT_KEY)), wanted):
                return None
    rest = {key: value for key, value in statement.items() if key != "Condition"}
    return {**rest, "Condition": kept} if kept else rest


def _holds(operator: str, value: str | None, wanted: str | list[str]) -> bool:
    """Whether a condition holds (IAM User Guide, "IAM JSON policy elements: Condition operators", 2026)."""
    patterns = wanted if isinstance(wanted, list) else [wanted]
    if value is None:
        return False
    if operator == "StringEquals":
        return value in patterns
    if operator == "StringLike":
        return any(_like(value, pattern) for pattern in patterns)
    if operator in ("ArnLike", "ArnEquals"):
        return any(_arn_like(value, pattern) for pattern in patterns)
    raise NotJudged(f"{operator} on an encryption context is not evaluated")


def _like(value: str, pattern: str) -> bool:
    return fnmatchcase(value, pattern.replace("[", "[[]"))


def _arn_like(value: str, pattern: str) -> bool:
    """Each of the six parts of an ARN is compared by itself."""
    values, patterns = value.split(":", 5), pattern.split(":", 5)
    return len(values) == len(patterns) == 6 and all(map(_like, values, patterns))
