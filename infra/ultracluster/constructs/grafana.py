"""Dashboards: an Amazon Managed Grafana workspace."""

from typing import Any

import jsii
from aws_cdk import Stack
from aws_cdk import aws_grafana as grafana
from aws_cdk.interfaces import ResourceEnvironment
from aws_cdk.interfaces.aws_grafana import IWorkspaceRef, WorkspaceReference
from aws_cdk.interfaces.aws_iam import IRoleRef
from constructs import Construct

from ultracluster.catalog.grafana import VERSION
from ultracluster.config.observability import Grafana
from ultracluster.constructs.metrics import QUERY_ACTIONS, PrometheusWorkspace
from ultracluster.constructs.names import ACCOUNT, own_arn
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


@jsii.implements(IWorkspaceRef)
class GrafanaWorkspace(Construct):
    """A Grafana workspace that may query `metrics` and read the account's CloudWatch metrics and alarms, but no logs.

    With `identity_center`, assign an Admin user after creation, which CloudFormation cannot do. Raises InvalidArgument
    for `auth: none`.
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
            plugin_admin_enabled=True,  # Grafana 12 needs a plugin to read Prometheus workspaces, which is added later
            **_authentication(settings),
        )

    @property
    def workspace_id(self) -> str:
        """Id of the workspace, g-..."""
        return self._workspace.attr_id

    @property
    def workspace_endpoint(self) -> str:
        """Host name of the workspace, without https://."""
        return self._workspace.attr_endpoint

    @property
    def workspace_ref(self) -> WorkspaceReference:
        """Lets CDK constructs take this as an `IWorkspaceRef`."""
        return WorkspaceReference(workspace_id=self.workspace_id)

    @property
    def env(self) -> ResourceEnvironment:
        """Account and Region of the workspace."""
        return self._workspace.env

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
        own = {"Action": [*QUERY_ACTIONS, "aps:DescribeWorkspace"], "Resource": metrics.workspace_arn}
        every = {"Action": ["aps:ListWorkspaces", *CLOUDWATCH_ACTIONS], "Resource": "*"}
        accepted = {"AwsSolutions-IAM5[Resource::*]": "they only read, and most of them take no resource"}
        managed_policy(self, "Policy", roles=[role], statements=[own, every], accepted=accepted)
        return role


def _authentication(settings: Grafana) -> dict[str, Any]:
    """Keyword arguments of CfnWorkspace for how people sign in."""
    if settings.auth == "identity_center":
        return {"authentication_providers": ["AWS_SSO"]}
    if settings.auth == "saml":
        saml = {"idpMetadata": {"url": settings.saml_metadata_url}}
        return {"authentication_providers": ["SAML"], "saml_configuration": saml}
    raise InvalidArgument("auth is none, with which no workspace is created. Set identity_center or saml")
