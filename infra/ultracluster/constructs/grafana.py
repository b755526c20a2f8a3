"""Where metrics are looked at: an Amazon Managed Grafana workspace."""

from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_grafana as grafana
from aws_cdk.interfaces.aws_iam import IRoleRef
from constructs import Construct

from ultracluster.catalog.grafana import VERSION
from ultracluster.config.observability import Grafana
from ultracluster.constructs.metrics import QUERY_ACTIONS, MetricsWorkspace
from ultracluster.constructs.names import ACCOUNT, own_arn
from ultracluster.constructs.roles import grant, service_role


class GrafanaWorkspace(Construct):
    """A Grafana workspace that may query the metrics of `metrics` and do nothing else in the account.

    With `identity_center` somebody must be made Admin after creation, which CloudFormation cannot do. Raises
    ValueError for `auth: none`, which asks for no workspace.
    """

    def __init__(self, scope: Construct, id: str, *, settings: Grafana, metrics: MetricsWorkspace) -> None:
        super().__init__(scope, id)
        role = self._role(metrics)
        self._workspace = grafana.CfnWorkspace(
            self,
            "Workspace",
            name=Stack.of(self).stack_name,
            description="Metrics of the cluster",
            account_access_type="CURRENT_ACCOUNT",
            permission_type="CUSTOMER_MANAGED",
            role_arn=role,
            data_sources=["PROMETHEUS"],
            grafana_version=VERSION,
            plugin_admin_enabled=True,  # version 12 reads Prometheus workspaces through a plugin that has to be added
            **_authentication(settings),
        )

    @property
    def workspace_id(self) -> str:
        """Id of the workspace, g-..."""
        return self._workspace.attr_id

    @property
    def endpoint(self) -> str:
        """Host name of the workspace, without https://."""
        return self._workspace.attr_endpoint

    def _role(self, metrics: MetricsWorkspace) -> IRoleRef:
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
        reads = {"Action": list(QUERY_ACTIONS), "Resource": metrics.workspace_arn}
        grant(self, "Policy", roles=[role], statements=[reads])
        return role


def _authentication(settings: Grafana) -> dict[str, Any]:
    """Keyword arguments of CfnWorkspace for how people sign in."""
    if settings.auth == "identity_center":
        return {"authentication_providers": ["AWS_SSO"]}
    if settings.auth == "saml":
        saml = {"idpMetadata": {"url": settings.saml_metadata_url}}
        return {"authentication_providers": ["SAML"], "saml_configuration": saml}
    raise ValueError("auth is none, which asks for no workspace; allowed are identity_center and saml")
