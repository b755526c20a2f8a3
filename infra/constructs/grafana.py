"""Where metrics are looked at: an Amazon Managed Grafana workspace."""

from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_grafana as grafana
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.catalog.grafana import VERSION
from infra.config.observability import Grafana
from infra.constructs.metrics import MetricsWorkspace


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
            role_arn=role.role_arn,
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

    def _role(self, metrics: MetricsWorkspace) -> iam.Role:
        """Source: Amazon Managed Grafana User Guide, "Cross-service confused deputy prevention" (2026)."""
        stack = Stack.of(self)
        workspaces = f"arn:{stack.partition}:grafana:{stack.region}:{stack.account}:/workspaces/*"
        role = iam.Role(
            self,
            "Role",
            description="Grafana queries the metrics of the cluster",
            assumed_by=iam.ServicePrincipal(
                "grafana.amazonaws.com",
                conditions={
                    "StringEquals": {"aws:SourceAccount": stack.account},
                    "StringLike": {"aws:SourceArn": workspaces},
                },
            ),
        )
        metrics.grant_query(iam.ManagedPolicy(self, "Policy", description="Reads metrics", roles=[role]))
        return role


def _authentication(settings: Grafana) -> dict[str, Any]:
    """Keyword arguments of CfnWorkspace for how people sign in."""
    if settings.auth == "identity_center":
        return {"authentication_providers": ["AWS_SSO"]}
    if settings.auth == "saml":
        saml = {"idpMetadata": {"url": settings.saml_metadata_url}}
        return {"authentication_providers": ["SAML"], "saml_configuration": saml}
    raise ValueError("auth is none, which asks for no workspace; allowed are identity_center and saml")
