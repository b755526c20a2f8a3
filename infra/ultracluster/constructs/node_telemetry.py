"""What the agents of PCS nodes need to send metrics and logs."""

from aws_cdk import aws_iam as iam
from aws_cdk.interfaces.aws_iam import IRoleRef
from constructs import Construct

from ultracluster.config.observability import Observability
from ultracluster.constructs.acknowledgements import wildcards
from ultracluster.constructs.log_groups import LogGroup
from ultracluster.constructs.metrics import PrometheusWorkspace
from ultracluster.constructs.names import REGION
from ultracluster.constructs.references import expect, role_object
from ultracluster.constructs.roles import managed_policy
from ultracluster.nodes.telemetry import Telemetry

LOG_ACTIONS = ("logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents")
"""What the CloudWatch agent calls for a log group that exists (CloudWatch User Guide, CloudWatchAgentServerPolicy)."""


class NodeTelemetry(Construct):
    """Lets PCS nodes with `role` write metrics to the workspace `metrics`, and logs to `log_group`, and nothing else.

    Without `metrics` they run no agent of metrics, and may write logs only.

    Pass it to `add_node_group` and `add_login_nodes` of the cluster, whose nodes then run the agents. `mirror` is the
    registry of their images, an `oci://` prefix. `environment` and `cluster_name` are labels of all metrics. With
    `slurm_metrics` the cluster's controller serves metrics, which login nodes read.
    """

    agents: Telemetry
    """Settings of the agents of nodes."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Observability,
        cluster_name: str,
        metrics: PrometheusWorkspace | None = None,
        log_group: LogGroup,
        role: IRoleRef,
        environment: str,
        mirror: str | None = None,
        slurm_metrics: bool = False,
    ) -> None:
        super().__init__(scope, id)
        expect(settings, Observability, "settings")
        self._metrics, self._log_group = metrics, log_group
        self.grant_write(role, id="Policy")
        self.agents = Telemetry(
            remote_write_url=metrics.remote_write_url if metrics else None,
            log_group=log_group.log_group_name,
            region=REGION,
            cluster=cluster_name,
            environment=environment,
            interval=settings.scrape_interval_seconds,
            mirror=mirror,
            slurm=slurm_metrics and metrics is not None,
            drop=settings.drop,
        )

    def grant_write(self, role: IRoleRef, *, id: str) -> iam.CfnManagedPolicy:
        """Allows nodes with another `role` to write the same; `id` is that of the policy."""
        group, metrics = self._log_group.log_group_arn, self._metrics
        return managed_policy(
            self,
            id,
            roles=[role_object(role)],
            statements=[
                *([{"Action": "aps:RemoteWrite", "Resource": metrics.workspace_arn}] if metrics else []),
                {"Action": list(LOG_ACTIONS), "Resource": group},
            ],
            accepted=wildcards(self, [group], "log streams of nodes, which nobody knows before"),
        )
