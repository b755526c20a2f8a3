"""Encryption keys, and log groups that are encrypted with them."""

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.constructs.names import stack_suffix

LOGS_ACTIONS = ("kms:Encrypt*", "kms:Decrypt*", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:Describe*")
"""What CloudWatch Logs does with a key (CloudWatch Logs User Guide, "Encrypt log data using AWS KMS", 2026)."""


class DataKey(Construct):
    """A customer managed KMS key that rotates every year. Retained on delete and on replacement.

    IAM policies of the account decide who uses it, as with every key whose policy trusts the account.
    """

    def __init__(self, scope: Construct, id: str, *, description: str) -> None:
        super().__init__(scope, id)
        self._key = kms.Key(
            self, "Resource", description=description, enable_key_rotation=True, removal_policy=RemovalPolicy.RETAIN
        )

    @property
    def key(self) -> kms.IKey:
        """The key."""
        return self._key


def log_group(scope: Construct, id: str, *, name: str, key: kms.IKey) -> logs.LogGroup:
    """A log group `name/STACK-XXXXXXXX`, encrypted with `key`, that keeps events for a year and outlives its stack.

    Its name differs each time the stack is created, so what is left of one is never in the way of the next. `key` is
    told to serve the group; the policy of an imported key cannot be changed, so its owner has to do that.
    """
    start = f"{name}/{Stack.of(scope).stack_name}"
    return named_log_group(scope, id, name=f"{start}-{stack_suffix()}", pattern=f"{start}-*", key=key)


def named_log_group(scope: Construct, id: str, *, name: str, pattern: str, key: kms.IKey) -> logs.LogGroup:
    """As `log_group`, for a service that decides the name: `name`, which `pattern` covers without being a token."""
    _let_logs_use(key, pattern)
    return logs.LogGroup(
        scope,
        id,
        log_group_name=name,
        encryption_key=key,
        retention=logs.RetentionDays.ONE_YEAR,
        removal_policy=RemovalPolicy.RETAIN,
    )


def plain_arn(group: logs.ILogGroup) -> str:
    """ARN of a log group without the `:*` that CloudFormation gives it, as FSx and log deliveries want it."""
    where = group.env
    return f"arn:{Stack.of(group).partition}:logs:{where.region}:{where.account}:log-group:{group.log_group_name}"


def _let_logs_use(key: kms.IKey, pattern: str) -> None:
    """Lets CloudWatch Logs use `key` for log groups of this account whose names follow `pattern`."""
    stack = Stack.of(key)
    region = stack.region
    groups = f"arn:{stack.partition}:logs:{region}:{stack.account}:log-group:{pattern}"
    key.add_to_resource_policy(
        iam.PolicyStatement(
            principals=[iam.ServicePrincipal(f"logs.{region}.amazonaws.com")],
            actions=list(LOGS_ACTIONS),
            resources=["*"],
            conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
        )
    )
