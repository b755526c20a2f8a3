"""`<env>-observability`: metrics."""

from constructs import Construct

from ultracluster.config.environment import Environment
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.metrics import MetricsWorkspace
from ultracluster.stacks.base import EnvironmentStack


class ObservabilityStack(EnvironmentStack):
    """A Prometheus workspace."""

    def __init__(self, scope: Construct, environment: Environment) -> None:
        super().__init__(scope, "observability", environment, stateful=True)
        key = DataKey(self, "Key", description=f"Metrics of {environment.name}")
        self.metrics = MetricsWorkspace(self, "Metrics", settings=environment.observability, key=key)
