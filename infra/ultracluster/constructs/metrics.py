"""Metrics storage: an Amazon Managed Service for Prometheus workspace."""

from typing import Any

import jsii
from aws_cdk import Stack
from aws_cdk import aws_aps as aps
from aws_cdk import aws_iam as iam
from aws_cdk.interfaces import ResourceEnvironment
from aws_cdk.interfaces.aws_aps import IWorkspaceRef, WorkspaceReference
from aws_cdk.interfaces.aws_kms import IKeyRef
from constructs import Construct

from ultracluster.config.observability import Observability
from ultracluster.constructs.log_groups import log_group
from ultracluster.constructs.names import REGION, own_arn
from ultracluster.constructs.references import expect, key_arn
from ultracluster.constructs.retention import retain

QUERY_ACTIONS = ("aps:GetLabels", "aps:GetMetricMetadata", "aps:GetSeries", "aps:QueryMetrics")
"""Read-only actions (Amazon Managed Service for Prometheus User Guide, IAM permissions)."""


@jsii.implements(IWorkspaceRef)
class PrometheusWorkspace(Construct):
    """Attributes and methods of every Prometheus workspace, created by this app or imported."""

    workspace_id: str
    """Id of the workspace, ws-..."""
    workspace_arn: str
    """ARN of the workspace."""
    prometheus_endpoint: str
    """URL of the workspace, with a slash at its end. Remote write goes to `api/v1/remote_write` below it."""
    key_arn: str | None = None
    """ARN of the KMS key that encrypts the metrics. None for an imported workspace: its owner knows the key."""

    @property
    def remote_write_url(self) -> str:
        """URL that takes remote write requests, signed with SigV4 for the service `aps`."""
        return f"{self.prometheus_endpoint}api/v1/remote_write"

    @property
    def workspace_ref(self) -> WorkspaceReference:
        """Lets CDK constructs take this as an `IWorkspaceRef`."""
        return WorkspaceReference(workspace_arn=self.workspace_arn)

    @property
    def env(self) -> ResourceEnvironment:
        """Account and Region of the workspace."""
        return Stack.of(self).env

    def grant_remote_write(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allows `grantee` to send metrics, and nothing else."""
        return self._grant(grantee, "aps:RemoteWrite")

    def grant_query(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allows `grantee` to read metrics."""
        return self._grant(grantee, *QUERY_ACTIONS)

    def _grant(self, grantee: iam.IGrantable, *actions: str) -> iam.Grant:
        return iam.Grant.add_to_principal(grantee=grantee, actions=list(actions), resource_arns=[self.workspace_arn])


class MetricsWorkspace(PrometheusWorkspace):
    """A Prometheus workspace, encrypted with `key`, that keeps metrics for `settings.retention_days`.

    `alert_manager` is the definition of its alert manager as YAML text. With `settings.max_series`, AMP discards series
    above that number whose label `environment` is `environment`; without `environment`, of all series. Retained on
    delete and on replacement. Errors of rules and alerts go to a log group. A key that this app does not manage needs
    the statements of `key_policy_statements`, which its owner must add.
    """

    key_policy_statements: tuple[iam.PolicyStatement, ...]
    """What the owner of `key` must add to the key policy; empty for a key that this app manages."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Observability,
        key: IKeyRef,
        environment: str | None = None,
        alert_manager: str | None = None,
    ) -> None:
        super().__init__(scope, id)
        expect(settings, Observability, "settings")
        errors = log_group(self, "Logs", name="/aws/vendedlogs/prometheus", key=key)
        self.key_policy_statements = errors.key_policy_statements
        workspace = aps.CfnWorkspace(
            self,
            "Workspace",
            alias=Stack.of(self).stack_name,
            kms_key_arn=key_arn(key),
            logging_configuration={"logGroupArn": errors.log_group_arn},
            alert_manager_definition=alert_manager,
            workspace_configuration=_configuration(settings, environment),
        )
        retain(workspace)
        self.workspace_id, self.workspace_arn = workspace.attr_workspace_id, workspace.attr_arn
        self.prometheus_endpoint = workspace.attr_prometheus_endpoint
        self.key_arn = key_arn(key)

    @staticmethod
    def from_workspace_id(scope: Construct, id: str, workspace_id: str) -> PrometheusWorkspace:
        """A workspace that exists in the stack's account and Region."""
        found = PrometheusWorkspace(scope, id)
        found.workspace_id = workspace_id
        found.workspace_arn = own_arn("aps", f"workspace/{workspace_id}")
        found.prometheus_endpoint = f"https://aps-workspaces.{REGION}.amazonaws.com/workspaces/{workspace_id}/"
        return found


def _configuration(settings: Observability, environment: str | None) -> dict[str, Any]:
    """WorkspaceConfiguration: retention, and the limit of active series.

    A label set without labels takes the series that no other label set takes (AMP API, LimitsPerLabelSet, 2026).
    """
    retention = {"retentionPeriodInDays": settings.retention_days}
    if settings.max_series is None:
        return retention
    labels = [{"name": "environment", "value": environment}] if environment else []
    return {**retention, "limitsPerLabelSets": [{"labelSet": labels, "limits": {"maxSeries": settings.max_series}}]}
