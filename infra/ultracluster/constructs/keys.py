"""Encryption keys, and log groups that are encrypted with them."""

from collections.abc import Mapping
from typing import Any

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from ultracluster.constructs.names import ACCOUNT, PARTITION, REGION, own_arn, stack_suffix
from ultracluster.constructs.roles import policy_document

LOGS_ACTIONS = ("kms:Decrypt*", "kms:Describe*", "kms:Encrypt*", "kms:GenerateDataKey*", "kms:ReEncrypt*")
"""What CloudWatch Logs does with a key (CloudWatch Logs User Guide, "Encrypt log data using AWS KMS", 2026)."""

RETENTION_DAYS = 365
"""How long log groups keep events."""


class DataKey(Construct):
    """A customer managed KMS key that rotates every year. Retained on delete and on replacement.

    IAM policies of the account decide who uses it, as with every key whose policy trusts the account.
    """

    def __init__(self, scope: Construct, id: str, *, description: str) -> None:
        super().__init__(scope, id)
        root = {"AWS": f"arn:{PARTITION}:iam::{ACCOUNT}:root"}
        self._statements: list[Mapping[str, Any]] = [{"Principal": root, "Action": "kms:*", "Resource": "*"}]
        self._key = kms.CfnKey(
            Construct(self, "Resource"),
            "Resource",
            description=description,
            enable_key_rotation=True,
            key_policy=policy_document(self._statements),
        )
        self._key.apply_removal_policy(RemovalPolicy.RETAIN)
        self._arn = self._key.attr_arn

    @property
    def key_arn(self) -> str:
        """ARN of the key."""
        return self._arn

    def allow(self, statement: Mapping[str, Any]) -> None:
        """Adds a statement to the key's policy: a mapping with Principal, Action, Resource and, maybe, Condition."""
        if statement not in self._statements:
            self._statements.append(statement)
            self._key.key_policy = policy_document(self._statements)


EncryptionKey = DataKey | kms.IKey
"""A key of this package, or one of CDK's own."""


def let_use(key: EncryptionKey, statement: Mapping[str, Any]) -> None:
    """Has `statement` in the policy of `key`. The policy of an imported key is its owner's, and stays as it is."""
    if isinstance(key, DataKey):
        key.allow(statement)
    else:
        key.add_to_resource_policy(iam.PolicyStatement.from_json({"Effect": "Allow", **statement}))


class LogGroup(Construct):
    """A log group, encrypted with `key`, that keeps events for a year and outlives its stack.

    `key` is told to serve groups whose names follow `pattern`, which covers `name` without being a token.
    """

    def __init__(self, scope: Construct, id: str, *, name: str, pattern: str, key: EncryptionKey) -> None:
        super().__init__(scope, id)
        let_use(
            key,
            {
                "Principal": {"Service": f"logs.{REGION}.amazonaws.com"},
                "Action": list(LOGS_ACTIONS),
                "Resource": "*",
                "Condition": {
                    "ArnLike": {"kms:EncryptionContext:aws:logs:arn": own_arn("logs", f"log-group:{pattern}")}
                },
            },
        )
        self._group = logs.CfnLogGroup(
            self, "Resource", log_group_name=name, kms_key_id=key.key_arn, retention_in_days=RETENTION_DAYS
        )
        self._group.apply_removal_policy(RemovalPolicy.RETAIN)

    @property
    def log_group_name(self) -> str:
        """Name of the group."""
        return self._group.ref

    @property
    def log_group_arn(self) -> str:
        """ARN of the group, with `:*` at its end."""
        return self._group.attr_arn


def log_group(scope: Construct, id: str, *, name: str, key: EncryptionKey) -> LogGroup:
    """The log group `name/STACK-XXXXXXXX`.

    Its name differs each time the stack is created, so what is left of one is never in the way of the next.
    """
    start = f"{name}/{Stack.of(scope).stack_name}"
    return LogGroup(scope, id, name=f"{start}-{stack_suffix()}", pattern=f"{start}-*", key=key)


def plain_arn(group: LogGroup | logs.ILogGroup) -> str:
    """ARN of a log group of this account without the `:*` that CloudFormation gives it, as FSx and deliveries want."""
    return own_arn("logs", f"log-group:{group.log_group_name}")
