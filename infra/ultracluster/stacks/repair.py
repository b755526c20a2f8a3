"""`<env>-repair` with Slurm: drains nodes on alerts, in a stack whose failure keeps neither nodes nor alerts out."""

from constructs import Construct

from ultracluster.config.environment import Environment
from ultracluster.constructs.drain import NodeDrain
from ultracluster.constructs.keys import DataKey
from ultracluster.stacks.base import EnvironmentStack


class RepairStack(EnvironmentStack):
    """The function that drains nodes which alerts of `topic_arn` name. Without it, alerts only notify."""

    def __init__(self, scope: Construct, environment: Environment, *, topic_arn: str) -> None:
        super().__init__(scope, "repair", environment, holds="Draining of nodes on alerts")
        key = DataKey(self, "Key", description=f"Audit trail of drained nodes of {environment.name}")
        NodeDrain(self, "Drain", environment=environment.name, topic_arn=topic_arn, key=key)
