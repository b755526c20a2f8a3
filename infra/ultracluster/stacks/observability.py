"""`<env>-observability`: metrics and dashboards."""

from constructs import Construct

from ultracluster.config.environment import Environment
from ultracluster.constructs.grafana import GrafanaWorkspace
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.metrics import MetricsWorkspace
from ultracluster.stacks.base import EnvironmentStack


class ObservabilityStack(EnvironmentStack):
    """A Prometheus workspace and, unless `auth` is none, a Grafana workspace that queries it."""

    def __init__(self, scope: Construct, environment: Environment) -> None:
        super().__init__(scope, "observability", environment, stateful=True)
        settings = environment.observability
        key = DataKey(self, "Key", description=f"Metrics of {environment.name}")
        self.metrics = MetricsWorkspace(self, "Metrics", settings=settings, key=key)
        if settings.grafana.auth != "none":
            self.grafana = GrafanaWorkspace(self, "Grafana", settings=settings.grafana, metrics=self.metrics)
