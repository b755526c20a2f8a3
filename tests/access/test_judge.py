"""What the judge decides by itself: encryption contexts, endpoints, boundaries, and requests that make no sense."""

from dataclasses import replace

import pytest

from tests.access.account import AWS_POLICIES, aws_role
from tests.access.environments import EVERYTHING, account_of, table
from tests.access.judge import ABSENT, NotJudged, Request, installed, judge, without_context
from tests.access.shared_calls import S3_ROLE
from tests.access.table import wrong

ROLE, KEY = "arn:aws:iam::111122223333:role/x", "arn:aws:kms:us-east-2:111122223333:key/1"

needs_simulator = pytest.mark.skipif(not installed(), reason=ABSENT)


def policy(**statement):
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "kms:Decrypt", **statement}]}


@pytest.mark.parametrize(
    ("operator", "pattern", "value", "holds"),
    [
        ("StringLike", "arn:aws:s3:::a-*", "arn:aws:s3:::a-b", True),
        ("StringLike", ["x", "arn:aws:s3:::a/*"], "arn:aws:s3:::a/b/c", True),
        ("StringLike", "arn:aws:s3:::a-*", "arn:aws:s3:::b", False),
        ("StringLike", "*", None, False),
        ("StringEquals", "arn:aws:s3:::a", "arn:aws:s3:::a", True),
        ("StringEquals", "arn:aws:s3:::a*", "arn:aws:s3:::ab", False),
        ("ArnLike", "arn:aws:logs:us-east-2:1:log-group:/a/*", "arn:aws:logs:us-east-2:1:log-group:/a/b", True),
        # a wildcard does not reach over the colons of an ARN's first parts
        ("ArnLike", "arn:aws:logs:*:log-group:/a/*", "arn:aws:logs:us-east-2:1:log-group:/a/b", False),
    ],
)
def test_a_condition_on_the_encryption_context_keeps_or_removes_its_statement(operator, pattern, value, holds):
    other = {"StringEquals": {"kms:CallerAccount": "1"}}
    condition = {operator: {"kms:EncryptionContext:aws:x:arn": pattern}, "Bool": {"kms:GrantIsForAWSResource": "true"}}
    context = {"aws:x:arn": value} if value else {}
    found = without_context(policy(Condition=condition), context)["Statement"]
    assert [each.get("Condition") for each in found] == ([{"Bool": condition["Bool"]}] if holds else [])
    kept = without_context(policy(Condition=other), context)["Statement"]
    assert [each["Condition"] for each in kept] == [other]


def test_an_operator_that_is_not_evaluated_is_refused():
    condition = {"StringNotLike": {"kms:EncryptionContext:aws:x:arn": "*"}}
    with pytest.raises(NotJudged, match="StringNotLike"):
        without_context(policy(Condition=condition), {"aws:x:arn": "a"})


@needs_simulator
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"action": "kms:Decypt"}, "invalid.action"),
        ({"resource": "arn:aws:s3:::bucket"}, "no.resource.types"),
        ({"context": {"s3:prefix": "a"}}, "has no context keys"),
        ({"identity": (("p", policy(Effect="Permit", Resource="*")),)}, "policy.errors"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(change, reason):
    with pytest.raises(NotJudged, match=reason):
        judge([replace(Request(ROLE, "kms:Decrypt", KEY), **change)])


@needs_simulator
def test_a_statement_for_the_account_does_not_let_the_role_of_fsx_use_a_key():
    """The fault that this table was built for: IAM policies decide, and the role's has S3 actions alone."""
    role = aws_role(S3_ROLE, "AWSServiceRoleForFSxS3Access")
    account, everybody = ({"AWS": who} for who in ("arn:aws:iam::111122223333:root", "*"))
    asked = Request(role.arn, "kms:Decrypt", KEY, identity=role.policies)
    policies = [policy(Resource="*", Principal=principal) for principal in (account, everybody)]
    found = judge([replace(asked, resource_policy=document) for document in policies])
    assert [verdict.allowed for verdict in found] == [False, True]


@needs_simulator
def test_an_endpoint_policy_and_a_boundary_limit_what_a_role_may_do():
    asked = Request(ROLE, "s3:GetObject", "arn:aws:s3:::a/b", identity=(("all", EVERYTHING),))
    s3 = policy(Action="s3:*", Resource="arn:aws:s3:::other/*")
    found = judge(
        [
            asked,
            replace(asked, endpoint=s3 | {"Statement": [{**s3["Statement"][0], "Principal": "*"}]}),
            replace(asked, boundary=s3),
        ]
    )
    assert [verdict.allowed for verdict in found] == [True, False, False]


@needs_simulator
def test_the_table_goes_red_when_a_boundary_takes_a_service_away():
    """Every role has the boundary of the file, and the judge heeds it."""
    account = account_of("staging-bounded")
    assert all(role.boundary for role in account.roles.values())
    rows = table("staging-bounded")
    assert wrong(rows, account) == []
    without_kms = {
        **EVERYTHING,
        "Statement": [*EVERYTHING["Statement"], {"Effect": "Deny", "Action": "kms:*", "Resource": "*"}],
    }
    denied = [
        replace(call, actor=replace(call.actor, boundary=without_kms))
        for call in rows
        if getattr(call.actor, "boundary", None)
    ]
    failing = wrong(denied, account)
    assert failing
    assert all(" kms:" in line for line in failing)


def test_the_policies_of_aws_are_documents():
    assert all(entry["document"]["Statement"] for entry in AWS_POLICIES.values())
