"""Evaluation of policies. tests/access of ultracluster compares it with a simulator, on thousands of requests."""

from dataclasses import replace
from typing import Any

import pytest

from localaws.permissions import ANONYMOUS, NotEvaluated, Request, decide, denial

ACCOUNT, OTHER = "123456789012", "444455556666"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/worker"
KEY = f"arn:aws:kms:us-east-2:{ACCOUNT}:key/1"
GET = Request(ROLE, "s3:GetObject", "arn:aws:s3:::data/a", ACCOUNT)


def document(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def allow(action: Any = "*", resource: Any = "*", effect: str = "Allow", **more: Any) -> dict[str, Any]:
    return {"Effect": effect, "Action": action, "Resource": resource, **more}


def allowed(request: Request, **changes: Any) -> bool:
    return decide(replace(request, **changes)).allowed


def test_nothing_is_allowed_by_default():
    verdict = decide(GET)
    assert not verdict.allowed
    session = f"arn:aws:sts::{ACCOUNT}:assumed-role/worker/me"
    assert denial(GET, verdict, session) == (
        f"User: {session} is not authorized to perform: s3:GetObject on resource: arn:aws:s3:::data/a because no "
        "identity-based policy allows the s3:GetObject action"
    )


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (allow("s3:Get*"), True),
        (allow("S3:getobject"), True),
        (allow(["s3:PutObject"]), False),
        (allow(resource="arn:aws:s3:::data/*"), True),
        (allow(resource="arn:aws:s3:::DATA/*"), False),
        (allow(resource="arn:aws:s3:::other/*"), False),
        ({"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}, True),
        ({"Effect": "Allow", "NotAction": "s3:*", "Resource": "*"}, False),
        ({"Effect": "Allow", "Action": "*", "NotResource": "arn:aws:s3:::data/*"}, False),
        ({"Effect": "Allow", "Action": "*", "NotResource": "arn:aws:s3:::other/*"}, True),
    ],
)
def test_actions_and_resources(statement: dict[str, Any], expected: bool):
    assert allowed(GET, identity=(document(statement),)) is expected


def test_a_deny_wins_wherever_it_stands():
    everything, nothing = document(allow()), document(allow(effect="Deny", Principal="*"))
    assert "explicit deny in an identity-based policy" in decide(replace(GET, identity=(everything, nothing))).reason
    verdict = decide(replace(GET, identity=(everything,), resource_policy=nothing))
    assert verdict.reason == "with an explicit deny in a resource-based policy"


def test_boundary_and_endpoint_limit_what_policies_allow():
    everything, listing = document(allow()), document(allow("s3:List*"))
    for limit in ("boundary", "endpoint"):
        assert allowed(GET, identity=(everything,), **{limit: everything})
        assert not allowed(GET, identity=(everything,), **{limit: listing})


def test_a_resource_policy_that_names_the_role_is_enough_in_its_account():
    named = document(allow(Principal={"AWS": ROLE}))
    assert allowed(GET, resource_policy=named)
    assert not allowed(GET, resource_policy=named, owner=OTHER)
    assert allowed(GET, resource_policy=named, owner=OTHER, identity=(document(allow("s3:*")),))


def test_a_key_policy_decides_alone_or_leaves_it_to_the_account():
    use = Request(ROLE, "kms:Decrypt", KEY, ACCOUNT, identity=(document(allow("kms:*")),))
    root = document(allow("kms:*", Principal={"AWS": f"arn:aws:iam::{ACCOUNT}:root"}))
    assert not allowed(use)
    assert decide(use).reason == "because no resource-based policy allows the kms:Decrypt action"
    assert allowed(use, resource_policy=root)
    assert not allowed(use, resource_policy=root, identity=())
    assert allowed(use, resource_policy=document(allow("kms:*", Principal={"AWS": ROLE})), identity=())


def test_services_and_anonymous_callers_need_the_resource_policy():
    logs = Request("logs.amazonaws.com", "kms:Decrypt", KEY, ACCOUNT)
    assert allowed(logs, resource_policy=document(allow(Principal={"Service": "logs.amazonaws.com"})))
    assert not allowed(logs, resource_policy=document(allow(Principal={"Service": "sns.amazonaws.com"})))
    assert allowed(GET, principal=ANONYMOUS, resource_policy=document(allow(Principal="*")))
    assert not allowed(GET, principal=ANONYMOUS, resource_policy=document(allow(Principal={"AWS": ROLE})))


@pytest.mark.parametrize(
    ("operator", "wanted", "value", "expected"),
    [
        ("StringEquals", "a", "a", True),
        ("StringEquals", ["b", "a"], "a", True),
        ("StringEquals", "A", "a", False),
        ("StringEqualsIgnoreCase", "A", "a", True),
        ("StringNotEquals", "a", "a", False),
        ("StringNotEquals", ["b", "a"], "a", False),
        ("StringNotEquals", "b", None, True),
        ("StringLike", "a*c?", "abbcd", True),
        ("StringNotLike", "a*", "abc", False),
        ("StringEquals", "a", None, False),
        ("StringEqualsIfExists", "a", None, True),
        ("ArnLike", "arn:aws:s3:::*", "arn:aws:s3:::x", True),
        ("ArnLike", "arn:aws:*", "arn:aws:s3:::x", False),
        ("ArnNotLike", "arn:aws:s3:::*", "arn:aws:s3:::x", False),
        ("Bool", True, "true", True),
        ("Bool", "false", "true", False),
        ("NumericLessThan", "1.2", "1.1", True),
        ("NumericGreaterThanEquals", 3, "3", True),
        ("DateLessThan", "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z", True),
        ("IpAddress", "10.0.0.0/8", "10.1.2.3", True),
        ("NotIpAddress", "10.0.0.0/8", "10.1.2.3", False),
        ("Null", "true", None, True),
        ("Null", "true", "a", False),
        ("ForAnyValue:StringEquals", "a", ["a", "b"], True),
        ("ForAllValues:StringEquals", "a", ["a", "b"], False),
        ("ForAllValues:StringEquals", "a", None, True),
        ("ForAnyValue:StringEquals", "a", None, False),
        ("StringEquals", "${aws:PrincipalAccount}", ACCOUNT, True),
        ("StringEquals", "${aws:username}", "", False),
    ],
)
def test_conditions(operator: str, wanted: Any, value: Any, expected: bool):
    statement = allow(Condition={operator: {"Test:Key": wanted}})
    context = {} if value is None else {"test:key": value}
    assert allowed(GET, identity=(document(statement),), context=context) is expected


@pytest.mark.parametrize("operator", ["BinaryEquals", "StringEqual", "ForSomeValues:StringEquals"])
def test_unknown_operators_are_not_guessed(operator: str):
    with pytest.raises(NotEvaluated, match=operator):
        decide(replace(GET, identity=(document(allow(Condition={operator: {"a:b": "c"}})),), context={"a:b": "c"}))


def test_an_unknown_resource_is_allowed_where_any_is():
    assert allowed(GET, resource=None, identity=(document(allow("s3:*", "arn:aws:s3:::other/*")),))
    denied = document(allow("s3:*"), allow("s3:*", "arn:aws:s3:::other/*", effect="Deny"))
    assert allowed(GET, resource=None, identity=(denied,))


def test_everybody_may_ask_who_they_are():
    assert allowed(Request(ROLE, "sts:GetCallerIdentity", "*", ACCOUNT, identity=(document(allow(effect="Deny")),)))
