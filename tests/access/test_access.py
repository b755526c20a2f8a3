"""Every actor of the shipped environments can make the calls that it needs, and none that it must not make."""

import pytest

from tests.access.account import Role
from tests.access.environments import CHANGED, ENVIRONMENTS, account_of, table
from tests.access.judge import ABSENT, installed
from tests.access.table import policy_holder, wrong
from tests.synthesis import FILES

pytestmark = pytest.mark.skipif(not installed(), reason=ABSENT)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_judge_agrees_with_every_row(name):
    assert wrong(table(name), account_of(name)) == []


@pytest.mark.parametrize("name", [*FILES, *CHANGED])
def test_every_role_is_an_actor_and_every_policy_of_a_resource_decides_a_row(name):
    account, calls = account_of(name), table(name)
    assert set(account.roles) <= {call.actor.arn for call in calls if isinstance(call.actor, Role)}
    assert set(account.resource_policies) <= {policy_holder(call.resource) for call in calls}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_endpoint_has_somebody_who_may_call_through_it(name):
    used = {call.via for call in table(name) if call.allowed and call.via}
    assert used == set(account_of(name).endpoints)
