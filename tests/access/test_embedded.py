"""The embedded AWS decides on every row of the table as the judge does."""

import pytest

from localaws.permissions import Request, decide
from tests.access import judge
from tests.access.environments import ENVIRONMENTS, account_of, table
from tests.access.judge import ABSENT, CONTEXT_KEY, installed
from tests.access.mutants import mutants, mutated, uses
from tests.access.table import request

pytestmark = pytest.mark.skipif(not installed(), reason=ABSENT)


def as_embedded(asked: judge.Request) -> Request:
    """The same request for the embedded AWS, which knows an encryption context as condition keys."""
    encryption = {f"{CONTEXT_KEY}{key}": value for key, value in asked.encryption_context.items()}
    return Request(
        principal=asked.principal,
        action=asked.action,
        resource=asked.resource,
        owner=asked.owner,
        identity=tuple(document for _, document in asked.identity),
        boundary=asked.boundary,
        resource_policy=asked.resource_policy,
        endpoint=asked.endpoint,
        context={**asked.context, **encryption},
    )


def differences(asked: dict[str, judge.Request]) -> list[str]:
    """The requests, by their name, on which the embedded AWS and the judge decide differently."""
    return [
        f"{name}: the judge {theirs}, the embedded AWS {ours}"
        for (name, found), theirs in zip(asked.items(), judge.judge(list(asked.values())), strict=True)
        if (ours := decide(as_embedded(found))).allowed != theirs.allowed
    ]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_verdicts_on_the_table_are_those_of_the_judge(name):
    account = account_of(name)
    asked = {f"{number} {call}": request(call, account) for number, call in enumerate(table(name))}
    assert len(asked) > 300
    assert differences(asked) == []


@pytest.mark.parametrize("name", ["prod"])
def test_verdicts_on_changed_policies_are_those_of_the_judge(name):
    account, asked = account_of(name), {}
    requests = {str(call): request(call, account) for call in table(name)}
    for place, document in account.documents():
        for mutant in mutants(document):
            for call, found in requests.items():
                if uses(found, document):
                    asked[f"{place}: {mutant.name}: {call}"] = mutated(found, document, mutant.document)
    assert len(asked) > 1000
    assert differences(asked) == []
