"""Where metrics are kept and shown: Amazon Managed Prometheus and Grafana workspaces."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from ultracluster.config.fields import cdk_value, text
from ultracluster.config.problems import Problem, rule
from ultracluster.config.settings import Settings


class Grafana(Settings):
    """An Amazon Managed Grafana workspace, or none.

    `identity_center` needs IAM Identity Center, and an Admin assigned after creation. `saml` names the identity
    provider's metadata.
    """

    auth: Literal["identity_center", "saml", "none"] = "identity_center"
    """How people sign in; none creates no Grafana workspace."""
    saml_metadata_url: Annotated[str, text(r"^https://\S+$", "an https:// address"), cdk_value()] | None = None
    """Where the identity provider publishes its metadata."""

    @rule
    def _saml_has_metadata(self) -> Iterator[Problem]:
        if self.auth == "saml" and not self.saml_metadata_url:
            message = "saml needs the identity provider's metadata"
            yield Problem("grafana-saml-metadata", "auth", message, "add saml_metadata_url: https://...")
        if self.auth != "saml" and self.saml_metadata_url:
            message = f"auth is {self.auth}, so the metadata would be ignored"
            yield Problem("grafana-saml-metadata", "saml_metadata_url", message, "remove it, or set auth: saml")


class Observability(Settings):
    """Metrics are kept for `retention_days` (Amazon Managed Prometheus quotas: at most 1095)."""

    retention_days: Annotated[int, Field(ge=1, le=1095)] = 150
    """How long metrics are kept, in days."""
    grafana: Grafana = Grafana()
    """The workspace that shows the metrics."""
