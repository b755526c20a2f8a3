"""Mutants of the policies: what a mistake in a statement would look like. A row of the table must notice each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from tests.access.account import Account, Document
from tests.access.judge import Request, judge
from tests.access.table import Call, request


@dataclass(frozen=True)
class Mutant:
    """A changed policy. `wider` says whether it allows more; `actions` are those that it concerns, with wildcards.

    A row with another action sees no difference: the changed statement does not apply to it.
    """

    name: str
    document: Document
    wider: bool
    actions: Sequence[str] = ("*",)


def mutants(document: Document) -> Iterator[Mutant]:
    """Without each statement, action, resource and condition in turn, and with everything allowed."""
    for i, statement in enumerate(document["Statement"]):
        denies, actions = statement["Effect"] == "Deny", _list(statement.get("Action", "*"))
        yield Mutant(f"statement {i} removed", _with(document, i, None), denies, actions)
        for part in ("Action", "Resource"):
            for value in values if len(values := _list(statement.get(part, []))) > 1 else ():
                rest = {**statement, part: [other for other in values if other != value]}
                concerned = [value] if part == "Action" else actions
                yield Mutant(f"{value} removed from statement {i}", _with(document, i, rest), denies, concerned)
        for operator, keys in statement.get("Condition", {}).items():
            for key in keys:
                conditions = {**statement["Condition"], operator: {k: v for k, v in keys.items() if k != key}}
                kept = {name: inner for name, inner in conditions.items() if inner}
                rest = {name: inner for name, inner in statement.items() if name != "Condition"}
                rest |= {"Condition": kept} if kept else {}
                yield Mutant(
                    f"condition {key} removed from statement {i}", _with(document, i, rest), not denies, actions
                )
    principal = {"Principal": "*"} if any("Principal" in each for each in document["Statement"]) else {}
    everything = {"Effect": "Allow", **principal, "Action": "*"}
    # a trust policy has no resource
    everything |= {"Resource": "*"} if any("Resource" in each for each in document["Statement"]) else {}
    added = [*document["Statement"], everything]
    yield Mutant("everything allowed", {**document, "Statement": added}, wider=True)


def survivors(calls: Sequence[Call], account: Account, part: str = "") -> list[str]:
    """Mutants of the environment's own policies, of those whose name contains `part`, that no row notices."""
    requests = [request(call, account) for call in calls]
    own = {id(document): (place, document) for place, document in account.documents() if part in place}
    cases: list[tuple[str, Request, bool]] = []
    born = []
    for place, document in own.values():
        used = [(found, call) for found, call in zip(requests, calls, strict=True) if uses(found, document)]
        for mutant in mutants(document):
            name = f"{place}: {mutant.name}"
            born.append(name)
            cases += [
                (name, mutated(found, document, mutant.document), call.allowed)
                for found, call in used
                if call.allowed is not mutant.wider
                and any(fnmatchcase(call.action, pattern) for pattern in mutant.actions)
            ]
    verdicts = judge([found for _, found, _ in cases])
    noticed = {name for (name, _, allowed), verdict in zip(cases, verdicts, strict=True) if verdict.allowed != allowed}
    return [name for name in born if name not in noticed]


def uses(found: Request, document: Document) -> bool:
    """Whether the policy decides on a request."""
    return any(each is document for each in (found.resource_policy, found.endpoint, *(d for _, d in found.identity)))


def mutated(found: Request, document: Document, mutant: Document) -> Request:
    """The request with a mutant in place of a policy."""

    def swap(each: Document | None) -> Document | None:
        return mutant if each is document else each

    identity = tuple((name, mutant if each is document else each) for name, each in found.identity)
    return replace(found, identity=identity, resource_policy=swap(found.resource_policy), endpoint=swap(found.endpoint))


def _with(document: Document, index: int, statement: Any) -> Document:
    statements = list(document["Statement"])
    statements[index : index + 1] = [statement] if statement else []
    return {**document, "Statement": statements}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
