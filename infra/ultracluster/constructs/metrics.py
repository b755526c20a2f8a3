"""Where metrics are kept: an Amazon Managed Service for Prometheus workspace."""

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_aps as aps
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultracluster.config.observability import Observability
from ultracluster.constructs.keys import EncryptionKey, log_group

QUERY_ACTIONS = ("aps:GetLabels", "aps:GetMetricMetadata", "aps:GetSeries", "aps:QueryMetrics")
"""What reads metrics and changes nothing (Amazon Managed Service for Prometheus User Guide, IAM permissions)."""


class MetricsWorkspace(Construct):
    """A Prometheus workspace, encrypted with `key`, that keeps metrics for `settings.retention_days`.

    Retained on delete and on replacement. Its own errors, of rules and alerts, are logged.
    """

    def __init__(self, scope: Construct, id: str, *, settings: Observability, key: EncryptionKey) -> None:
        super().__init__(scope, id)
        errors = log_group(self, "Logs", name="/aws/vendedlogs/prometheus", key=key)
        self._workspace = aps.CfnWorkspace(
            self,
            "Workspace",
            alias=Stack.of(self).stack_name,
            kms_key_arn=key.key_arn,
            logging_configuration={"logGroupArn": errors.log_group_arn},
            workspace_configuration={"retentionPeriodInDays": settings.retention_days},
        )
        self._workspace.apply_removal_policy(RemovalPolicy.RETAIN)

    @property
    def workspace_arn(self) -> str:
        """ARN of the workspace."""
        return self._workspace.attr_arn

    @property
    def prometheus_endpoint(self) -> str:
        """Address of the workspace, with a slash at its end; remote write goes to `api/v1/remote_write` below it."""
        return self._workspace.attr_prometheus_endpoint

    def grant_remote_write(self, grantee: iam.IGrantable) -> iam.Grant:
        """Lets `grantee` send metrics, and nothing else."""
        return self._grant(grantee, "aps:RemoteWrite")

    def grant_query(self, grantee: iam.IGrantable) -> iam.Grant:
        """Lets `grantee` read metrics."""
        return self._grant(grantee, *QUERY_ACTIONS)

    def _grant(self, grantee: iam.IGrantable, *actions: str) -> iam.Grant:
        return iam.Grant.add_to_principal(grantee=grantee, actions=list(actions), resource_arns=[self.workspace_arn])
