"""The judge can fail: a row of the table notices each statement, action, resource or condition that goes missing."""

import re

import pytest

from tests.access.environments import account_of, table
from tests.access.judge import ABSENT, installed
from tests.access.mutants import survivors

pytestmark = pytest.mark.skipif(not installed(), reason=ABSENT)

UNJUDGED = (
    # ssm:GetParameter: the judge takes no ARN without an account, and that of a public parameter has none
    r"KarpenterLook\w+: statement 1 removed",
    # scripts of steps that no node group of the environment has
    r"ScriptsRead\w+: \S+\.sh removed from statement 0",
)


PARTS = (
    ("prod", ""),
    ("eks-volcano", "Karpenter"),
    ("staging-existing", ""),
    ("dev-thrown-away", "-storage"),
    ("dev-thrown-away", "UserReader"),
    ("dev-thrown-away", "ReadBootstrap"),
    ("dev-directory", "UserReader"),
    ("staging-thrown-away", "QuietCluster"),
    ("staging-thrown-away", "-access"),
    ("staging-thrown-away", "-compute-train"),
)
"""Environments, and the part of the name of their policies that no environment before has."""


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_a_row_notices_every_mutant_of_every_policy(name, part):
    assert any(part in place for place, _ in account_of(name).documents())
    found = survivors(table(name), account_of(name), part)
    assert [mutant for mutant in found if not any(re.search(pattern, mutant) for pattern in UNJUDGED)] == []
