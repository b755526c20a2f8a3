"""A new AWS PCS cluster, with its logs."""

from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_logs as logs
from aws_cdk import aws_pcs as pcs
from aws_cdk.interfaces.aws_kms import IKeyRef
from aws_cdk.interfaces.aws_logs import ILogGroupRef
from constructs import Construct

from ultracluster.catalog.pcs import SIZES, smallest_size
from ultracluster.config.pcs import IDLE_SECONDS, PcsControlPlane
from ultracluster.constructs.boot_alarm import count_failed_boots
from ultracluster.constructs.log_groups import arn_without_wildcard
from ultracluster.constructs.log_groups import log_group as create_log_group
from ultracluster.constructs.pcs import SlurmCluster, custom_settings
from ultracluster.constructs.references import (
    SecurityGroup,
    Subnet,
    expect,
    log_group_name,
    security_group_id,
    subnet_id,
)
from ultracluster.constructs.retention import retain
from ultracluster.errors import InvalidArgument


class PcsCluster(SlurmCluster):
    """A PCS cluster: Slurm's controller and its accounting, run by AWS, with their logs in CloudWatch.

    `nodes` is the largest number of nodes that the cluster must manage; with size auto it decides the size. Name, size,
    subnet and security group of a cluster never change: a deployment that changes them fails because the name is taken.
    With accounting, the cluster is retained when its stack is deleted, since it contains the job history. The name
    defaults to that of the stack. Logs go to `log_group`, whose name must start with /aws/vendedlogs/; without one, a
    log group encrypted with `key` is created; without either, logs are not delivered.
    """

    cluster_name: str
    """Name of the cluster."""
    slurm_version: str
    """Version of Slurm, for example 25.11."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: PcsControlPlane,
        nodes: int,
        subnet: Subnet,
        security_group: SecurityGroup,
        key: IKeyRef | None = None,
        log_group: ILogGroupRef | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(scope, id)
        expect(settings, PcsControlPlane, "settings")
        self.cluster_name = name or Stack.of(self).stack_name
        self.slurm_version = settings.slurm_version
        cluster = pcs.CfnCluster(
            self,
            "Resource",
            name=self.cluster_name,
            size=_size(settings, nodes),
            scheduler={"type": "SLURM", "version": settings.slurm_version},
            networking={
                "subnetIds": [subnet_id(subnet)],
                "securityGroupIds": [security_group_id(security_group)],
            },
            slurm_configuration=_cluster_configuration(settings),
        )
        if settings.accounting:
            retain(cluster)
        self.cluster_id, self.cluster_arn = cluster.attr_id, cluster.attr_arn
        if log_group is None and key:
            log_group = create_log_group(self, "Logs", name="/aws/vendedlogs/pcs/cluster", key=key)
        if log_group:
            self._deliver_logs(log_group)
            self.counts_failed_boots = True
            count_failed_boots(self, log_group_name(log_group))

    @staticmethod
    def from_cluster_attributes(scope: Construct, id: str, *, cluster_id: str, cluster_arn: str) -> SlurmCluster:
        """A cluster that exists. Node groups and queues that are added to it are ordered among each other."""
        found = SlurmCluster(scope, id)
        found.cluster_id, found.cluster_arn = cluster_id, cluster_arn
        return found

    def _deliver_logs(self, log_group: ILogGroupRef) -> None:
        """Delivers the scheduler's, the job completion, the scaling and, from Slurm 25.11 on, the audit logs.

        One delivery after another: CloudWatch Logs refuses a delivery to a destination that another one is changing.

        Source: AWS PCS User Guide, "Monitoring" (2026).
        """
        kinds = {
            "Scheduler": "PCS_SCHEDULER_LOGS",
            "JobCompletion": "PCS_JOBCOMP_LOGS",
            "Scaling": "PCS_SCALING_LOGS",
        }
        if self.slurm_version >= "25.11":
            kinds["Audit"] = "PCS_SCHEDULER_AUDIT_LOGS"
        destination = logs.CfnDeliveryDestination(
            self,
            "LogDestination",
            name=f"{self.cluster_name}-logs",
            destination_resource_arn=arn_without_wildcard(log_group),
        )
        last: logs.CfnDelivery | None = None
        for kind, log_type in kinds.items():
            source = logs.CfnDeliverySource(
                self,
                f"{kind}Source",
                name=f"{self.cluster_name}-{kind.lower()}",
                log_type=log_type,
                resource_arn=self.cluster_arn,
            )
            delivery = logs.CfnDelivery(
                self,
                f"{kind}Delivery",
                delivery_source_name=source.name,
                delivery_destination_arn=destination.attr_arn,
            )
            delivery.add_resource_dependency(source)
            if last:
                delivery.add_resource_dependency(last)
            last = delivery


def _size(settings: PcsControlPlane, nodes: int) -> str:
    if settings.size != "auto" and SIZES[settings.size] < nodes:
        raise InvalidArgument(f"a {settings.size} PCS cluster manages {SIZES[settings.size]} nodes, not {nodes}")
    size = smallest_size(nodes) if settings.size == "auto" else settings.size
    if size is None:
        raise InvalidArgument(
            f"nodes is {nodes}. Pass at most {max(SIZES.values())}, the limit of the largest PCS cluster"
        )
    return size.upper()


def _cluster_configuration(settings: PcsControlPlane) -> dict[str, Any]:
    configuration: dict[str, Any] = {"accounting": {"mode": "STANDARD" if settings.accounting else "NONE"}}
    lists = {
        "slurmCustomSettings": settings.slurm_settings,
        "cgroupCustomSettings": settings.cgroup_settings,
        "slurmdbdCustomSettings": settings.slurmdbd_settings,
    }
    # PCS refuses an empty list
    configuration |= {name: custom_settings(values) for name, values in lists.items() if values}
    if settings.idle_seconds != IDLE_SECONDS:
        configuration["scaleDownIdleTimeInSeconds"] = settings.idle_seconds
    if settings.rest_api:
        configuration["slurmRest"] = {"mode": "STANDARD"}
    return configuration
