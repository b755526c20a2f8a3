"""Alert delivery: the SNS topic that AMP and CloudWatch publish to, and the rule files of a Prometheus workspace."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import jsii
from aws_cdk import aws_aps as aps
from aws_cdk import aws_sns as sns
from aws_cdk.interfaces import ResourceEnvironment
from aws_cdk.interfaces.aws_kms import IKeyRef
from aws_cdk.interfaces.aws_sns import ITopicRef, TopicReference
from constructs import Construct

from ultracluster.constructs.keys import add_to_key_policy
from ultracluster.constructs.metrics import PrometheusWorkspace
from ultracluster.constructs.names import ACCOUNT, own_arn
from ultracluster.constructs.references import expect, expect_list, key_arn
from ultracluster.constructs.roles import policy_document
from ultracluster.errors import InvalidArgument

AMP = "aps.amazonaws.com"
"""Principal of AMP for topics in the Region of the workspace. Opt-in Regions have others for topics elsewhere.

Source: AMP User Guide, "Giving Amazon Managed Service for Prometheus permission to send alert messages" (2026).
"""

RULE_FILE_BYTES = 1_000_000
"""Largest rule file of a workspace (AMP User Guide, "Service quotas", 2026: 1 MB)."""

KEY_ACTIONS = ("kms:Decrypt", "kms:GenerateDataKey*")
"""What a service does with the key of an encrypted topic (SNS Developer Guide, "Key management", 2026)."""


@jsii.implements(ITopicRef)
class AlertTopic(Construct):
    """A standard SNS topic, encrypted with `key`, that CloudWatch alarms of the account may publish to.

    SNS asks each address in `email` to confirm its subscription; until then it gets nothing. AMP may publish after
    `grant_publish_alerts`. Without a `name`, CloudFormation chooses one. A key that this app does not manage needs the
    statements that a warning shows at synth.
    """

    def __init__(
        self, scope: Construct, id: str, *, key: IKeyRef, email: Sequence[str] = (), name: str | None = None
    ) -> None:
        super().__init__(scope, id)
        expect_list(email, "email")
        alarms = _from_source(own_arn("cloudwatch", "alarm:*"))
        # whether AMP names its workspace to KMS, beside the account, is not documented
        for principal, condition in ((AMP, _from_account()), ("cloudwatch.amazonaws.com", alarms)):
            add_to_key_policy(
                self,
                key,
                {
                    "Principal": {"Service": principal},
                    "Action": list(KEY_ACTIONS),
                    "Resource": "*",
                    "Condition": condition,
                },
            )
        self._topic = sns.CfnTopic(
            self, "Topic", topic_name=name, kms_master_key_id=key_arn(key), display_name="UltraCluster alerts"
        )
        self._arn = self._topic.ref
        self._statements: list[Mapping[str, Any]] = [
            {
                "Sid": "OnlyTls",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "sns:Publish",
                "Resource": self._arn,
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            },
            {
                "Sid": "Alarms",
                "Principal": {"Service": "cloudwatch.amazonaws.com"},
                "Action": "sns:Publish",
                "Resource": self._arn,
                "Condition": alarms,
            },
        ]
        self._policy = sns.CfnTopicPolicy(
            self, "Policy", topics=[self._arn], policy_document=policy_document(self._statements)
        )
        for address in email:
            # named for its address: SNS returns the subscription that an address already has, so a list that moved
            # within its logical ids would replace subscriptions by themselves and then delete them
            own = f"Email{hashlib.sha256(address.encode()).hexdigest()[:8]}"
            sns.CfnSubscription(self, own, topic_arn=self._arn, protocol="email", endpoint=address)

    @property
    def topic_arn(self) -> str:
        """ARN of the topic."""
        return self._arn

    @property
    def topic_ref(self) -> TopicReference:
        """Lets CDK constructs take this as an `ITopicRef`."""
        return TopicReference(topic_arn=self._arn)

    @property
    def env(self) -> ResourceEnvironment:
        """Account and Region of the topic."""
        return self._topic.env

    def grant_publish_alerts(self, metrics: PrometheusWorkspace) -> None:
        """Lets the alert manager of a workspace publish to the topic.

        Source: AMP User Guide, "Giving Amazon Managed Service for Prometheus permission to send alert messages" (2026).
        """
        expect(metrics, PrometheusWorkspace, "metrics")
        statement = {
            "Sid": "AlertManager",
            "Principal": {"Service": AMP},
            "Action": ["sns:Publish", "sns:GetTopicAttributes"],
            "Resource": self._arn,
            "Condition": _from_source(metrics.workspace_arn),
        }
        if statement not in self._statements:
            self._statements.append(statement)
            self._policy.policy_document = policy_document(self._statements)


class RuleFiles(Construct):
    """Rule files of a workspace, each a rule groups namespace: recording and alert rules as YAML text, by name.

    Raises InvalidArgument for a file that AMP would refuse for its size.
    """

    def __init__(self, scope: Construct, id: str, *, metrics: PrometheusWorkspace, files: Mapping[str, str]) -> None:
        super().__init__(scope, id)
        expect(metrics, PrometheusWorkspace, "metrics")
        for name, text in files.items():
            if (size := len(text.encode())) > RULE_FILE_BYTES:
                message = f"the rule file {name} has {size} bytes; AMP takes at most {RULE_FILE_BYTES}. Split the file"
                raise InvalidArgument(message)
            aps.CfnRuleGroupsNamespace(self, name, name=name, data=text, workspace=metrics.workspace_arn)


def _from_source(arn: str) -> dict[str, Any]:
    """Condition: the service acts for a resource of this account (confused deputy)."""
    return {"ArnLike": {"aws:SourceArn": arn}, **_from_account()}


def _from_account() -> dict[str, Any]:
    return {"StringEquals": {"aws:SourceAccount": ACCOUNT}}
