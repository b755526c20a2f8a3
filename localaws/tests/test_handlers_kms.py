"""KMS keys and aliases."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from handler_parts import Stack, tags
from localaws.resources import HANDLERS, HandlerError, NotUpdatable

KEY = "AWS::KMS::Key"
ROOT = {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::123456789012:root"}, "Action": "kms:*", "Resource": "*"}


def policy(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [ROOT, *statements]}


def use_by(principal: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Principal": {"AWS": principal}, "Action": "kms:Decrypt", "Resource": "*"}


def tags_of(stack: Stack, key: str) -> dict[str, str]:
    found = stack.client("kms").list_resource_tags(KeyId=key)["Tags"]
    return {tag["TagKey"]: tag["TagValue"] for tag in found}


def test_key_is_read_back_and_changed_in_place(stack):
    kms = stack.client("kms")
    old = {
        "Description": "data",
        "KeyPolicy": policy(),
        "KeySpec": "SYMMETRIC_DEFAULT",
        "KeyUsage": "ENCRYPT_DECRYPT",
        "EnableKeyRotation": True,
        "RotationPeriodInDays": 180,
        "PendingWindowInDays": 7,
        "Tags": tags(team="a", cost="1"),
    }
    made = stack.create(KEY, **old)
    key = made.physical_id
    found = kms.describe_key(KeyId=key)["KeyMetadata"]
    assert made.attributes == {"Arn": found["Arn"], "KeyId": key}
    assert (found["Description"], found["KeySpec"], found["Enabled"]) == ("data", "SYMMETRIC_DEFAULT", True)
    assert json.loads(kms.get_key_policy(KeyId=key, PolicyName="default")["Policy"]) == policy()
    rotation = kms.get_key_rotation_status(KeyId=key)
    assert (rotation["KeyRotationEnabled"], rotation["RotationPeriodInDays"]) == (True, 180)
    assert tags_of(stack, key) == {"team": "a", "cost": "1"}

    service = {"Effect": "Allow", "Principal": {"Service": "fsx.amazonaws.com"}, "Action": "kms:*", "Resource": "*"}
    kept = {name: old[name] for name in ("KeySpec", "KeyUsage", "PendingWindowInDays")}
    new = {**kept, "KeyPolicy": policy(service), "Enabled": False, "Tags": tags(team="b")}
    stack.update(KEY, key, old, new)
    found = kms.describe_key(KeyId=key)["KeyMetadata"]
    assert (found["Description"], found["KeyState"]) == ("", "Disabled")
    assert json.loads(kms.get_key_policy(KeyId=key, PolicyName="default")["Policy"]) == policy(service)
    assert kms.get_key_rotation_status(KeyId=key)["KeyRotationEnabled"] is False
    assert tags_of(stack, key) == {"team": "b"}
    stack.update(KEY, key, new, old)
    assert kms.describe_key(KeyId=key)["KeyMetadata"]["KeyState"] == "Enabled"

    stack.delete(KEY, key, **old)
    found = kms.describe_key(KeyId=key)["KeyMetadata"]
    assert found["KeyState"] == "PendingDeletion"
    assert round((found["DeletionDate"].timestamp() - found["CreationDate"].timestamp()) / 86400) == 7


def test_key_waits_thirty_days_by_default(stack):
    kms = stack.client("kms")
    key = stack.make(KEY)
    stack.delete(KEY, key)
    found = kms.describe_key(KeyId=key)["KeyMetadata"]
    assert round((found["DeletionDate"].timestamp() - found["CreationDate"].timestamp()) / 86400) == 30


def test_rotation_is_yearly_by_default(stack):
    status = stack.client("kms").get_key_rotation_status(KeyId=stack.make(KEY, EnableKeyRotation=True))
    assert status["RotationPeriodInDays"] == 365


def test_kind_of_key_cannot_change(stack):
    key = stack.make(KEY)
    with pytest.raises(NotUpdatable, match="KeySpec"):
        HANDLERS[KEY].update(stack.context(KEY), key, {}, {"KeySpec": "RSA_2048"})


def test_principals_of_a_key_policy_must_exist(stack):
    trust = {
        "Statement": [{"Effect": "Allow", "Principal": {"Service": "a.amazonaws.com"}, "Action": "sts:AssumeRole"}]
    }
    role = stack.create("AWS::IAM::Role", AssumeRolePolicyDocument=trust).attributes["Arn"]
    linked = "arn:aws:iam::123456789012:role/aws-service-role/fsx.amazonaws.com/AWSServiceRoleForAmazonFSx"
    asked = policy(use_by([role, linked]))
    made = stack.make(KEY, KeyPolicy=asked)
    assert json.loads(stack.client("kms").get_key_policy(KeyId=made, PolicyName="default")["Policy"]) == asked
    with pytest.raises(HandlerError, match="role/nobody does not exist"):
        stack.create(KEY, KeyPolicy=policy(use_by("arn:aws:iam::123456789012:role/nobody")))


def test_alias_is_read_back_and_changes_its_key(stack):
    kms = stack.client("kms")
    first, second = stack.make(KEY), stack.make(KEY)
    old = {"AliasName": "alias/train", "TargetKeyId": first}
    assert stack.create("AWS::KMS::Alias", **old) == ("alias/train", {})
    with pytest.raises(ClientError, match="AlreadyExists"):
        stack.create("AWS::KMS::Alias", **old)
    stack.update("AWS::KMS::Alias", "alias/train", old, {**old, "TargetKeyId": second})
    assert kms.describe_key(KeyId="alias/train")["KeyMetadata"]["KeyId"] == second
    with pytest.raises(HandlerError, match="nokey does not exist"):
        stack.create("AWS::KMS::Alias", AliasName="alias/other", TargetKeyId="nokey")
    stack.delete("AWS::KMS::Alias", "alias/train")
    assert kms.list_aliases(KeyId=second)["Aliases"] == []
