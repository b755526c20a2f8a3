"""AWS PCS: the cluster with its logs, its node groups and its queues."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

from aws_cdk import RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_pcs as pcs
from aws_cdk.interfaces.aws_iam import IRoleRef
from constructs import Construct

from ultracluster.catalog.pcs import IMAGE_PARAMETER, smallest_size
from ultracluster.config.pcs import Pcs, Queue, SlurmSettings
from ultracluster.config.purchase import PurchaseType
from ultracluster.constructs.compute import SESSION_MANAGER_ACTIONS, NodeLaunchTemplate, ami_reference, group_name
from ultracluster.constructs.keys import LogGroup, plain_arn
from ultracluster.constructs.places import SecurityGroup, Subnet
from ultracluster.constructs.roles import grant, trust

PurchaseOption = Literal["ONDEMAND", "SPOT", "CAPACITY_BLOCK", "INTERRUPTIBLE_CAPACITY_RESERVATION"]

PURCHASE_OPTIONS: dict[PurchaseType, PurchaseOption] = {
    "on_demand": "ONDEMAND",
    "reservation": "ONDEMAND",
    "spot": "SPOT",
    "capacity_block": "CAPACITY_BLOCK",
    "interruptible_reservation": "INTERRUPTIBLE_CAPACITY_RESERVATION",
}
"""A reservation keeps ONDEMAND: its launch template names the target (AWS PCS User Guide, ODCR page, 2026)."""

ROLE_PATH = "/aws-pcs/"
"""PCS takes only instance profiles whose role has this path (AWS PCS User Guide, "Instance profiles", 2026)."""


class PcsCluster(Construct):
    """A PCS cluster: Slurm's controller, and its accounting, run by AWS.

    `nodes` is the most that it must manage; with size auto it decides the size. Name, size, subnet and security group
    never change on a cluster, so an update of theirs stops at the name that is taken. With accounting, the cluster is
    retained when its stack is deleted, since the job history is in it.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        settings: Pcs,
        nodes: int,
        subnet: Subnet,
        security_group: SecurityGroup,
    ) -> None:
        super().__init__(scope, id)
        self.name = name
        self.slurm_version = settings.slurm_version
        self._cluster = pcs.CfnCluster(
            self,
            "Resource",
            name=name,
            size=_size(settings, nodes),
            scheduler={"type": "SLURM", "version": settings.slurm_version},
            networking={"subnetIds": [subnet.subnet_id], "securityGroupIds": [security_group.security_group_id]},
            slurm_configuration=_cluster_configuration(settings),
        )
        if settings.accounting:
            self._cluster.apply_removal_policy(RemovalPolicy.RETAIN)

    @property
    def cluster_id(self) -> str:
        """Id of the cluster, pcs_..."""
        return self._cluster.attr_id

    @property
    def cluster_arn(self) -> str:
        """ARN of the cluster."""
        return self._cluster.attr_arn

    def deliver_logs(self, log_group: LogGroup | logs.ILogGroup) -> None:
        """Delivers the scheduler's, the job completion and, from Slurm 25.11 on, the audit logs to `log_group`.

        Its name has to start with /aws/vendedlogs/. Source: AWS PCS User Guide, "Monitoring" (2026).
        """
        kinds = {"Scheduler": "PCS_SCHEDULER_LOGS", "JobCompletion": "PCS_JOBCOMP_LOGS"}
        if self.slurm_version >= "25.11":
            kinds["Audit"] = "PCS_SCHEDULER_AUDIT_LOGS"
        destination = logs.CfnDeliveryDestination(
            self, "LogDestination", name=f"{self.name}-logs", destination_resource_arn=plain_arn(log_group)
        )
        for kind, log_type in kinds.items():
            source = logs.CfnDeliverySource(
                self,
                f"{kind}Source",
                name=f"{self.name}-{kind.lower()}",
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


class PcsNodeRole(Construct):
    """What nodes may do: register with their cluster, and be reached through Session Manager. Grant more on `role`."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        actions = ["pcs:RegisterComputeNodeGroupInstance", *SESSION_MANAGER_ACTIONS]
        own = grant(
            self,
            "Policy",
            roles=[],  # the role names it, so that what waits for the role waits for its rights
            statements=[{"Action": actions, "Resource": "*"}],
            accepted={"AwsSolutions-IAM5[Resource::*]": "these actions take no resource"},
        )
        self._role = iam.CfnRole(
            self,
            "Role",
            assume_role_policy_document=trust("ec2.amazonaws.com"),
            path=ROLE_PATH,
            description="Nodes of a PCS cluster",
            managed_policy_arns=[own.ref],
        )
        self._profile = iam.CfnInstanceProfile(self, "Profile", roles=[self._role.ref], path=ROLE_PATH)

    @property
    def role(self) -> IRoleRef:
        """The role."""
        return self._role

    @property
    def instance_profile_arn(self) -> str:
        """ARN of the instance profile."""
        return self._profile.attr_arn


class PcsNodeGroup(Construct):
    """A PCS compute node group. Its name carries its instance type, so that another type makes another group.

    PCS replaces a group whose type changes and refuses two of one name. `image` is auto for AWS's PCS-ready image of
    the architecture, an AMI id, or `ssm:/path`.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        cluster: PcsCluster,
        instance_type: str,
        architecture: str,
        launch_template: NodeLaunchTemplate,
        role: PcsNodeRole,
        subnet: Subnet,
        min_count: int,
        max_count: int,
        purchase: PurchaseType = "on_demand",
        image: str = "auto",
    ) -> None:
        super().__init__(scope, id)
        self._group = pcs.CfnComputeNodeGroup(
            self,
            "Resource",
            cluster_id=cluster.cluster_id,
            name=group_name(name, instance_type),
            instance_configs=[{"instanceType": instance_type}],
            ami_id=_ami(image, architecture),
            custom_launch_template={
                "templateId": launch_template.launch_template_id,
                "version": launch_template.latest_version,
            },
            iam_instance_profile_arn=role.instance_profile_arn,
            purchase_option=PURCHASE_OPTIONS[purchase],
            scaling_configuration={"minInstanceCount": min_count, "maxInstanceCount": max_count},
            subnet_ids=[subnet.subnet_id],
        )

    @property
    def node_group_id(self) -> str:
        """Id of the node group."""
        return self._group.attr_id


class PcsQueue(Construct):
    """A Slurm partition over node groups."""

    def __init__(
        self, scope: Construct, id: str, *, settings: Queue, cluster: PcsCluster, node_groups: Sequence[PcsNodeGroup]
    ) -> None:
        super().__init__(scope, id)
        self.node_groups = tuple(node_groups)
        parameters = _custom_settings(settings.slurm_settings)
        pcs.CfnQueue(
            self,
            "Resource",
            cluster_id=cluster.cluster_id,
            name=settings.name,
            compute_node_group_configurations=[{"computeNodeGroupId": group.node_group_id} for group in node_groups],
            slurm_configuration={"slurmCustomSettings": parameters} if parameters else None,
        )


def one_after_another(changes: Sequence[PcsNodeGroup | PcsQueue]) -> None:
    """Orders node groups, then queues: PCS takes one change of a cluster at a time, with everything else active.

    Source: AWS PCS User Guide, "Updating a cluster" (2026).
    """
    for earlier, later in pairwise(changes):
        # a queue waits for the groups that it names without being told
        if not (isinstance(later, PcsQueue) and earlier in later.node_groups):
            later.node.add_dependency(earlier)


def _size(settings: Pcs, nodes: int) -> str:
    size = smallest_size(nodes) if settings.size == "auto" else settings.size
    if size is None:
        raise ValueError(f"no PCS cluster manages {nodes} nodes")
    return size.upper()


def _cluster_configuration(settings: Pcs) -> dict[str, Any]:
    configuration: dict[str, Any] = {"accounting": {"mode": "STANDARD" if settings.accounting else "NONE"}}
    # an empty list is refused, so the key stands only with something in it
    if parameters := _custom_settings(settings.slurm_settings):
        configuration["slurmCustomSettings"] = parameters
    return configuration


def _custom_settings(settings: SlurmSettings) -> list[dict[str, str]]:
    return [{"parameterName": name, "parameterValue": str(value)} for name, value in settings.items()]


def _ami(image: str, architecture: str) -> str:
    """An AMI id, or a dynamic reference that CloudFormation resolves at each deployment."""
    if image == "auto":
        image = "ssm:" + IMAGE_PARAMETER.format(architecture=architecture)
    return ami_reference(image)
