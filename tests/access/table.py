"""What a row of the table is: an actor, a call, whether it must be allowed, and the source that says so."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from tests.access.account import ACCOUNT, Account, Document, Role
from tests.access.judge import Request, Verdict, judge

OTHER_ACCOUNT = "444455556666"
ANYBODY: Document = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}],
}
"""The policy of a resource that another account opened to everybody: what is denied then is denied by our policies."""

TRUSTS_THE_ACCOUNT: Document = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
            "Action": "kms:*",
            "Resource": "*",
        }
    ],
}
"""KMS's default key policy, which lets IAM policies of the account decide."""


@dataclass(frozen=True)
class Call:
    """A row. `actor` is a role, or the principal of a service. `via` is the VPC endpoint on the way, by service."""

    actor: Role | str
    action: str
    resource: str
    allowed: bool
    source: str
    via: str | None = None
    owner: str = ACCOUNT
    resource_policy: Document | None = None
    context: Mapping[str, str | list[str]] = field(default_factory=dict)
    encryption_context: Mapping[str, str] = field(default_factory=dict)

    @property
    def who(self) -> str:
        """Name of the actor."""
        return self.actor if isinstance(self.actor, str) else self.actor.name

    def __str__(self) -> str:
        verb = "must be able to" if self.allowed else "must not be able to"
        return f"{self.who} {verb} {self.action} on {self.resource} ({self.source})"


def may(
    actor: Role | str, actions: str | Iterable[str], resources: str | Iterable[str], source: str, **more: Any
) -> list[Call]:
    """Rows that must be allowed: each action on each resource."""
    return [Call(actor, action, resource, True, source, **more) for action, resource in _each(actions, resources)]


def never(
    actor: Role | str, actions: str | Iterable[str], resources: str | Iterable[str], source: str, **more: Any
) -> list[Call]:
    """Rows that must be denied: each action on each resource."""
    return [Call(actor, action, resource, False, source, **more) for action, resource in _each(actions, resources)]


def _each(actions: str | Iterable[str], resources: str | Iterable[str]) -> Iterable[tuple[str, str]]:
    return product(*([each] if isinstance(each, str) else each for each in (actions, resources)))


def request(call: Call, account: Account) -> Request:
    """The request of a row, with the policies that decide on it in an account. KeyError without the endpoint."""
    role = call.actor if isinstance(call.actor, Role) else None
    owned = account.resource_policies.get(policy_holder(call.resource))
    return Request(
        principal=role.arn if role else str(call.actor),
        action=call.action,
        resource=call.resource,
        identity=role.policies if role else (),
        boundary=role.boundary if role else None,
        resource_policy=call.resource_policy or owned,
        endpoint=account.endpoints[call.via] if call.via else None,
        owner=call.owner,
        context={"aws:RequestedRegion": account.region, **call.context},
        encryption_context=call.encryption_context,
    )


def wrong(calls: Sequence[Call], account: Account) -> list[str]:
    """Rows whose verdict is not the one that they state, with the judge's reasons."""
    verdicts = verdicts_of(calls, account)
    return [
        f"{call}: {verdict.why}"
        for call, verdict in zip(calls, verdicts, strict=True)
        if call.allowed != verdict.allowed
    ]


def verdicts_of(calls: Sequence[Call], account: Account) -> list[Verdict]:
    """The judge's verdict on each row."""
    return judge([request(call, account) for call in calls])


def policy_holder(resource: str) -> str:
    """ARN of the resource whose policy decides: the bucket of an object."""
    return resource.partition("/")[0] if resource.startswith("arn:aws:s3:::") else resource
