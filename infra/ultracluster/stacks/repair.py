"""`<env>-repair` with Slurm: drains nodes on alerts, in a stack whose failure stops neither nodes nor alerts."""

from collections.abc import Sequence

from constructs import Construct

from ultracluster.config.environment import Environment
from ultracluster.constructs.alarms import Alarms
from ultracluster.constructs.drain import NodeDrain
from ultracluster.constructs.keys import DataKey
from ultracluster.stacks.base import EnvironmentStack


class RepairStack(EnvironmentStack):
    """The function that drains nodes which alerts of `topic_arn` name. Without it, alerts only notify.

    An alarm notifies `topics` when it could not.
    """

    def __init__(self, scope: Construct, environment: Environment, *, topic_arn: str, topics: Sequence[str]) -> None:
        super().__init__(scope, "repair", environment, holds="Draining of nodes on alerts")
        key = DataKey(self, "Key", description=f"Audit trail of drained nodes of {environment.name}")
        drain = NodeDrain(self, "Drain", environment=environment.name, topic_arn=topic_arn, key=key)
        name = f"draining of nodes of {environment.name}"
        Alarms(self, "Alarms", name=name, watches=[drain.failures], topics=topics)
