"""Metrics and dashboards: Amazon Managed Service for Prometheus and Amazon Managed Grafana workspaces."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from ultracluster.config.fields import cdk_value, text
from ultracluster.config.problems import Problem, rule
from ultracluster.config.settings import Settings


class Grafana(Settings):
    """An Amazon Managed Grafana workspace, or none.

    `identity_center` requires IAM Identity Center, and assigning an Admin user afterwards. `saml` requires
    `saml_metadata_url`.
    """

    auth: Literal["identity_center", "saml", "none"] = "none"
    """How users sign in. none: no Grafana workspace. Otherwise the workspace has a stack of its own."""
    saml_metadata_url: (
        Annotated[str, text(r"^https://\S+$", "an https:// URL", max_length=2048), cdk_value()] | None
    ) = None
    """URL of the identity provider's SAML metadata."""

    @rule
    def _saml_has_metadata(self) -> Iterator[Problem]:
        if self.auth == "saml" and not self.saml_metadata_url:
            message = "saml requires saml_metadata_url"
            yield Problem("grafana-saml-metadata", "auth", message, "add saml_metadata_url: https://...")
        if self.auth != "saml" and self.saml_metadata_url:
            message = f"auth is {self.auth}, so saml_metadata_url would be ignored"
            yield Problem(
                "grafana-saml-metadata", "saml_metadata_url", message, "remove saml_metadata_url, or set auth: saml"
            )


class Observability(Settings):
    """Metrics and their dashboards. AMP retains metrics for at most 1095 days by default (AMP User Guide, quotas)."""

    retention_days: Annotated[int, Field(ge=1, le=1095)] = 150
    """How long AMP retains metrics, in days."""
    grafana: Grafana = Grafana()
    """The Grafana workspace."""
