"""Encrypted log groups."""

from functools import cached_property

import jsii
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk.interfaces import ResourceEnvironment
from aws_cdk.interfaces.aws_kms import IKeyRef
from aws_cdk.interfaces.aws_logs import ILogGroupRef, LogGroupReference
from constructs import Construct

from ultracluster.constructs.keys import add_to_key_policy
from ultracluster.constructs.names import REGION, own_arn, stack_label, stack_suffix, unique_in_stack
from ultracluster.constructs.references import key_arn, log_group_name
from ultracluster.constructs.retention import retain

LOGS_ACTIONS = ("kms:Decrypt*", "kms:Describe*", "kms:Encrypt*", "kms:GenerateDataKey*", "kms:ReEncrypt*")
"""What CloudWatch Logs does with a key (CloudWatch Logs User Guide, "Encrypt log data using AWS KMS", 2026)."""

LONGEST_PREFIX = 500
"""Characters of a log group's name before its suffix; 512 are allowed (CloudWatch Logs API, CreateLogGroup)."""

RETENTION_DAYS = 365
"""How long log groups keep events by default."""


@jsii.implements(ILogGroupRef)
class LogGroup(Construct):
    """A log group, encrypted with `key`, that keeps events for `retention_days`, by default a year.

    Retained on delete and on replacement.

    The key policy must let CloudWatch Logs use the key for groups whose names match `pattern`: a wildcard that covers
    `name` and contains no token. A statement is added to the policy of a DataKey or an L2 key of the app; the owner of
    another key must add `key_policy_statements`.
    """

    key_policy_statements: tuple[iam.PolicyStatement, ...]
    """What the owner of `key` must add to the key policy; empty for a key that this app manages."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        pattern: str,
        key: IKeyRef,
        retention_days: int = RETENTION_DAYS,
    ) -> None:
        super().__init__(scope, id)
        arns = own_arn("logs", f"log-group:{pattern}")
        self.key_policy_statements = add_to_key_policy(
            self,
            key,
            {
                "Principal": {"Service": f"logs.{REGION}.amazonaws.com"},
                "Action": list(LOGS_ACTIONS),
                "Resource": "*",
                "Condition": {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": arns}},
            },
        )
        self._group = logs.CfnLogGroup(
            self, "Resource", log_group_name=name, kms_key_id=key_arn(key), retention_in_days=retention_days
        )
        retain(self._group)

    @cached_property
    def log_group_name(self) -> str:
        """Name of the group."""
        return self._group.ref

    @cached_property
    def log_group_arn(self) -> str:
        """ARN of the group, with `:*` at its end."""
        return self._group.attr_arn

    @property
    def log_group_ref(self) -> LogGroupReference:
        """Lets CDK constructs take this as an `ILogGroupRef`."""
        return LogGroupReference(log_group_arn=self.log_group_arn, log_group_name=self.log_group_name)

    @property
    def env(self) -> ResourceEnvironment:
        """Account and Region of the group."""
        return self._group.env

    @cached_property
    def log_group(self) -> logs.ILogGroup:
        """The group as an L2, created on first use."""
        return logs.LogGroup.from_log_group_name(self, "LogGroupView", self.log_group_name)


def log_group(scope: Construct, id: str, *, name: str, key: IKeyRef, retention_days: int = RETENTION_DAYS) -> LogGroup:
    """The log group `name/STACK-XXXXXXXX`.

    The suffix differs each time the stack is created, so a retained group is never in the way of the next stack.
    """
    start = unique_in_stack(scope, f"{name}/{stack_label(scope)}", room=LONGEST_PREFIX)
    return LogGroup(
        scope, id, name=f"{start}-{stack_suffix()}", pattern=f"{start}-*", key=key, retention_days=retention_days
    )


def arn_without_wildcard(group: ILogGroupRef) -> str:
    """ARN of a log group of this account without the `:*` that CloudFormation adds, as FSx and log deliveries take it.

    Raises WrongReference.
    """
    name = group.log_group_name if isinstance(group, LogGroup) else log_group_name(group)
    return own_arn("logs", f"log-group:{name}")
