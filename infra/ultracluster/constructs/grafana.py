"""Dashboards: an Amazon Managed Grafana workspace."""

from collections.abc import Sequence
from typing import Any

import jsii
from aws_cdk import Stack
from aws_cdk import aws_grafana as grafana
from aws_cdk import aws_iam as iam
from aws_cdk.interfaces import ResourceEnvironment
from aws_cdk.interfaces.aws_grafana import IWorkspaceRef, WorkspaceReference
from aws_cdk.interfaces.aws_iam import IRoleRef
from constructs import Construct

from ultracluster.catalog.grafana import VERSION
from ultracluster.config.observability import Grafana
from ultracluster.constructs.metrics import QUERY_ACTIONS, PrometheusWorkspace
from ultracluster.constructs.names import ACCOUNT, REGION, own_arn
from ultracluster.constructs.references import expect
from ultracluster.constructs.roles import managed_policy, service_role
from ultracluster.errors import InvalidArgument

CLOUDWATCH_ACTIONS = (
    "cloudwatch:DescribeAlarmHistory",
    "cloudwatch:DescribeAlarms",
    "cloudwatch:DescribeAlarmsForMetric",
    "cloudwatch:GetInsightRuleReport",
    "cloudwatch:GetMetricData",
    "cloudwatch:GetMetricStatistics",
    "cloudwatch:ListMetrics",
    "ec2:DescribeInstances",
    "ec2:DescribeRegions",
    "ec2:DescribeTags",
    "tag:GetResources",
)
"""What the CloudWatch data source needs for metrics and alarms; AWS's policy allows reading logs too.

Source: Amazon Managed Grafana User Guide, "Permissions and policies for AWS data sources" (2026).
"""

KEY_ACTIONS = ("kms:Decrypt", "kms:DescribeKey")
"""What Grafana needs on the key of encrypted metrics.

Source: AMP User Guide, "Encryption at rest", "Accessing data from other services" (2026).
"""


@jsii.implements(IWorkspaceRef)
class ManagedGrafana(Construct):
    """Attributes and methods of every Grafana workspace, created by this app or imported."""

    workspace_id: str
    """Id of the workspace, g-..."""
    workspace_endpoint: str
    """Host name of the workspace, without https://."""
    read_policy: iam.CfnManagedPolicy
    """Policy of the workspace's role, with which data sources read metrics."""

    @property
    def workspace_arn(self) -> str:
        """ARN of the workspace."""
        return own_arn("grafana", f"/workspaces/{self.workspace_id}")

    @property
    def workspace_ref(self) -> WorkspaceReference:
        """Lets CDK constructs take this as an `IWorkspaceRef`."""
        return WorkspaceReference(workspace_id=self.workspace_id)

    @property
    def env(self) -> ResourceEnvironment:
        """Account and Region of the workspace."""
        return Stack.of(self).env

    def _read_access(self, metrics: PrometheusWorkspace, roles: Sequence[IRoleRef]) -> None:
        own = {"Action": [*QUERY_ACTIONS, "aps:DescribeWorkspace"], "Resource": metrics.workspace_arn}
        every = {"Action": ["aps:ListWorkspaces", *CLOUDWATCH_ACTIONS], "Resource": "*"}
        accepted = {"AwsSolutions-IAM5[Resource::*]": "they only read, and most of them take no resource"}
        statements: list[dict[str, Any]] = [own, every]
        if metrics.key_arn:
            through_amp = {"StringEquals": {"kms:ViaService": f"aps.{REGION}.amazonaws.com"}}
            statements.append({"Action": list(KEY_ACTIONS), "Resource": metrics.key_arn, "Condition": through_amp})
        self.read_policy = managed_policy(self, "Policy", roles=roles, statements=statements, accepted=accepted)


class GrafanaWorkspace(ManagedGrafana):
    """A Grafana workspace that may query `metrics` and read the account's CloudWatch metrics and alarms, but no logs.

    With SAML, values of an attribute make users admins or editors; with Identity Center, `GrafanaUsers` does. Raises
    InvalidArgument for `auth: none`.
    """

    def __init__(self, scope: Construct, id: str, *, settings: Grafana, metrics: PrometheusWorkspace) -> None:
        super().__init__(scope, id)
        expect(settings, Grafana, "settings")
        expect(metrics, PrometheusWorkspace, "metrics")
        role = self._role(metrics)
        self._workspace = grafana.CfnWorkspace(
            self,
            "Workspace",
            name=Stack.of(self).stack_name,
            description="Metrics of the cluster",
            account_access_type="CURRENT_ACCOUNT",
            permission_type="CUSTOMER_MANAGED",
            role_arn=role,
            data_sources=["PROMETHEUS", "CLOUDWATCH"],
            grafana_version=VERSION,
            plugin_admin_enabled=True,  # Grafana 12 needs a plugin to read Prometheus workspaces, see GrafanaContent
            **_authentication(settings),
        )
        self.workspace_id, self.workspace_endpoint = self._workspace.attr_id, self._workspace.attr_endpoint

    @staticmethod
    def from_workspace_id(
        scope: Construct, id: str, workspace_id: str, *, role_arn: str, metrics: PrometheusWorkspace
    ) -> ManagedGrafana:
        """A workspace that exists in the stack's account and Region.

        A policy that may query `metrics` and read CloudWatch metrics is attached to the workspace's role, which is in
        the account too.
        """
        found = ManagedGrafana(scope, id)
        found.workspace_id = workspace_id
        found.workspace_endpoint = f"{workspace_id}.grafana-workspace.{REGION}.amazonaws.com"
        found._read_access(metrics, [])
        found.read_policy.roles = [role_arn.rsplit("/", 1)[-1]]
        return found

    def _role(self, metrics: PrometheusWorkspace) -> IRoleRef:
        """Source: Amazon Managed Grafana User Guide, "Cross-service confused deputy prevention" (2026)."""
        role = service_role(
            self,
            "Role",
            service="grafana.amazonaws.com",
            description="Grafana queries the metrics of the cluster",
            conditions={
                "StringEquals": {"aws:SourceAccount": ACCOUNT},
                "StringLike": {"aws:SourceArn": own_arn("grafana", "/workspaces/*")},
            },
        )
        self._read_access(metrics, [role])
        return role


def _authentication(settings: Grafana) -> dict[str, Any]:
    """Keyword arguments of CfnWorkspace for how people sign in."""
    if settings.auth == "identity_center":
        return {"authentication_providers": ["AWS_SSO"]}
    if settings.auth == "saml":
        saml: dict[str, Any] = {"idpMetadata": {"url": settings.saml_metadata_url}}
        if settings.saml_role_attribute:
            saml["assertionAttributes"] = {"role": settings.saml_role_attribute}
            roles = {"admin": list(settings.admins), "editor": list(settings.editors)}
            saml["roleValues"] = {name: values for name, values in roles.items() if values}
        return {"authentication_providers": ["SAML"], "saml_configuration": saml}
    raise InvalidArgument("auth is none, with which no workspace is created. Set identity_center or saml")
