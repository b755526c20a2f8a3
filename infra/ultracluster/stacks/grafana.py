"""`<env>-grafana`: dashboards, in a stack that cannot keep metrics from being stored or deleted."""

from constructs import Construct

from ultracluster.config.environment import Environment
from ultracluster.constructs.grafana import GrafanaWorkspace
from ultracluster.constructs.metrics import PrometheusWorkspace
from ultracluster.stacks.base import EnvironmentStack


class GrafanaStack(EnvironmentStack):
    """A Grafana workspace that queries the metrics. Never protected: it can be created again."""

    def __init__(self, scope: Construct, environment: Environment, *, metrics: PrometheusWorkspace) -> None:
        super().__init__(scope, "grafana", environment)
        self.grafana = GrafanaWorkspace(self, "Grafana", settings=environment.observability.grafana, metrics=metrics)
