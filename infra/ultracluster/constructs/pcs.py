"""What every AWS PCS cluster has, created or imported: node groups and queues."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import jsii
from aws_cdk import Annotations, Aws, Stack
from aws_cdk import aws_pcs as pcs
from aws_cdk.interfaces import ResourceEnvironment
from aws_cdk.interfaces.aws_iam import IInstanceProfileRef, IRoleRef
from aws_cdk.interfaces.aws_pcs import ClusterReference, IClusterRef
from constructs import Construct

from ultracluster.catalog.pcs import AGENT_VERSION, IMAGE_PARAMETER, runs_boot_steps
from ultracluster.config.gres import GresRecord
from ultracluster.config.health import NO_CHECKS, Health
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.pcs import Login, Queue
from ultracluster.config.purchase import PurchaseType
from ultracluster.config.slurm_settings import SlurmSettings, without_spaces
from ultracluster.constructs.alarms import notify
from ultracluster.constructs.boot_alarm import boot_alarm
from ultracluster.constructs.launch_templates import (
    AcceleratedLaunchTemplate,
    CpuLaunchTemplate,
    NodeLaunchTemplate,
    ami_reference,
    cpu_architecture,
    group_name,
)
from ultracluster.constructs.lustre import LustreFileSystem
from ultracluster.constructs.nfs import NfsFileSystem
from ultracluster.constructs.node_role import NodeRole
from ultracluster.constructs.node_scripts import OnError, node_scripts
from ultracluster.constructs.node_telemetry import NodeTelemetry
from ultracluster.constructs.references import (
    SecurityGroup,
    Subnet,
    expect,
    instance_profile_arn,
    subnet_id,
)
from ultracluster.errors import InvalidArgument
from ultracluster.nodes.containers import ContainerSource
from ultracluster.nodes.mounts import Mount
from ultracluster.nodes.pcs import (
    JobRole,
    compute_node_steps,
    compute_node_user_data,
    login_node_steps,
    login_node_user_data,
)
from ultracluster.nodes.steps import Step
from ultracluster.nodes.users import DirectorySource, UserSource

PurchaseOption = Literal["ONDEMAND", "SPOT", "CAPACITY_BLOCK", "INTERRUPTIBLE_CAPACITY_RESERVATION"]

PURCHASE_OPTIONS: dict[PurchaseType, PurchaseOption] = {
    "on_demand": "ONDEMAND",
    "reservation": "ONDEMAND",
    "spot": "SPOT",
    "capacity_block": "CAPACITY_BLOCK",
    "interruptible_reservation": "INTERRUPTIBLE_CAPACITY_RESERVATION",
}
"""A reservation keeps ONDEMAND: its launch template names the target (AWS PCS User Guide, ODCR page, 2026)."""


@jsii.implements(IClusterRef)
class SlurmCluster(Construct):
    """Attributes and methods of every PCS cluster, created by this app or imported.

    PCS accepts one change of a cluster at a time, with everything else active: node groups and queues are therefore
    deployed one after the other, in the order in which they are added (AWS PCS User Guide, "Updating a cluster", 2026).
    """

    cluster_id: str
    """Id of the cluster, pcs_..."""
    cluster_arn: str
    """ARN of the cluster."""
    counts_failed_boots: bool = False
    """Whether nodes that fail to boot are counted, so that node groups have an alarm."""
    _last_change: "PcsNodeGroup | PcsQueue | None" = None
    _accounts: Construct | None = None
    """What queues depend on: they may name its QOS."""

    @property
    def cluster_ref(self) -> ClusterReference:
        """Lets CDK constructs take this as an `IClusterRef`."""
        return ClusterReference(cluster_arn=self.cluster_arn)

    @property
    def env(self) -> ResourceEnvironment:
        """Account and Region of the cluster."""
        return Stack.of(self).env

    def add_node_group(
        self,
        settings: NodeGroup,
        *,
        role: IInstanceProfileRef,
        subnet: Subnet,
        security_groups: Sequence[SecurityGroup],
        zone_subnets: Sequence[Subnet] = (),
        file_system: LustreFileSystem | None = None,
        more_file_systems: Sequence[LustreFileSystem | NfsFileSystem] = (),
        telemetry: NodeTelemetry | None = None,
        own_programs: tuple[str, str] = ("", ""),
        record_output: bool = False,
        users: UserSource | DirectorySource | None = None,
        health: Health = NO_CHECKS,
        containers: ContainerSource | None = None,
        job_role: IRoleRef | None = None,
        tags: Mapping[str, str] | None = None,
        scope: Construct | None = None,
    ) -> "PcsNodeGroup":
        """Adds the nodes of a node group with their launch template. At boot they mount the file systems.

        They are in `subnet`, or in `zone_subnets` if there are any: one for each of the settings' `zones`.

        With `telemetry` they send metrics and logs. Jobs run the programs PROLOG and EPILOG of `ultracluster.nodes.pcs`
        if the cluster's settings name them; `own_programs` are your own prolog and epilog, which these run. With
        `record_output` the end of the output of jobs goes to the log group of nodes. With `job_role`, a PcsJobRole,
        users do not reach instance metadata, and act with that role. `users` is where users come from, which `role` may
        read by a UserReader. `health` is when the nodes are checked. With `containers` jobs run containers; `role` must
        be allowed to read the bucket of the files, if there is one.

        UltraServers are launched block by block: add each of `settings.blocks()`. `role` needs an instance profile
        under the path /aws-pcs/, as a PcsNodeRole has. `scope` defaults to the cluster.
        """
        scope = scope or self
        template = AcceleratedLaunchTemplate(
            scope,
            f"Template-{settings.name}",
            settings=settings,
            control_plane="pcs",
            subnet=subnet,
            security_groups=[*security_groups, *settings.security_groups],
            user_data=compute_node_user_data(),
            tags=tags,
        )
        return PcsNodeGroup(
            scope,
            f"Group-{settings.name}",
            name=settings.name,
            cluster=self,
            instance_types=settings.types,
            architecture=settings.hardware.architecture,
            launch_template=template,
            role=role,
            subnets=zone_subnets or [subnet],
            min_count=settings.min_count,
            max_count=settings.max_count,
            purchase=settings.purchase.type,
            image=settings.image,
            steps=compute_node_steps(
                settings,
                _mounts(file_system, more_file_systems),
                telemetry=telemetry.agents if telemetry else None,
                own_programs=own_programs,
                record_output=record_output,
                region=Aws.REGION,
                users=users,
                health=health,
                containers=containers,
                job_role=JobRole(job_role.role_ref.role_arn, Aws.REGION) if job_role else None,
            ),
            slurm_settings=settings.slurm_settings,
            gres_settings=settings.gres_settings,
            idle_seconds=settings.idle_seconds,
        )

    def add_login_nodes(
        self,
        settings: Login,
        *,
        role: IInstanceProfileRef,
        subnet: Subnet,
        security_groups: Sequence[SecurityGroup],
        file_system: LustreFileSystem | None = None,
        more_file_systems: Sequence[LustreFileSystem | NfsFileSystem] = (),
        open_folders: Sequence[str] = (),
        telemetry: NodeTelemetry | None = None,
        users: UserSource | DirectorySource | None = None,
        health: Health = NO_CHECKS,
        containers: ContainerSource | None = None,
        job_role: IRoleRef | None = None,
        tags: Mapping[str, str] | None = None,
        scope: Construct | None = None,
    ) -> "PcsNodeGroup":
        """Adds login nodes with their launch template. At boot they mount the file systems, Lustre over TCP.

        In `file_system` they create a folder for each queue, to which every user may write. `open_folders` are paths of
        nodes, such as those of links that export, that every user may write to as well. With `telemetry` they send
        metrics and logs, and metrics of Slurm. They keep the spare nodes of `health` out of jobs. `scope` defaults to
        the cluster.
        """
        scope = scope or self
        template = CpuLaunchTemplate(
            scope,
            "LoginTemplate",
            control_plane="pcs",
            security_groups=[*security_groups, *settings.security_groups],
            root_volume_gib=settings.root_volume_gib,
            user_data=login_node_user_data(),
            tags=tags,
        )
        return PcsNodeGroup(
            scope,
            "Login",
            name="login",
            cluster=self,
            instance_types=[settings.instance_type],
            architecture=cpu_architecture(settings.instance_type),
            launch_template=template,
            role=role,
            subnets=[subnet],
            min_count=settings.count,
            max_count=settings.count,
            image=settings.image,
            steps=login_node_steps(
                _mounts(file_system, more_file_systems),
                queue_folders=file_system.mount_path if file_system else None,
                open_folders=open_folders,
                instance_type=settings.instance_type,
                telemetry=telemetry.agents if telemetry else None,
                bootstrap=settings.boot_scripts,
                region=Aws.REGION,
                users=users,
                health=health,
                containers=containers,
                job_role=JobRole(job_role.role_ref.role_arn, Aws.REGION) if job_role else None,
            ),
            on_failed_step="CONTINUE",
        )

    def add_queue(
        self, settings: Queue, *, node_groups: Sequence["PcsNodeGroup"], scope: Construct | None = None
    ) -> "PcsQueue":
        """Adds a Slurm partition over `node_groups`. `scope` defaults to the cluster."""
        return PcsQueue(
            scope or self, f"Queue-{settings.name}", settings=settings, cluster=self, node_groups=node_groups
        )

    def _follow(self, change: "PcsNodeGroup | PcsQueue", waits_for: Sequence["PcsNodeGroup"] = ()) -> None:
        """Deploys `change` after the last one; it already waits for `waits_for`, which its properties reference."""
        if self._last_change and self._last_change not in waits_for:
            change.node.add_dependency(self._last_change)
        if self._accounts and isinstance(change, PcsQueue):
            change.node.add_dependency(self._accounts)
        self._last_change = change


class PcsNodeGroup(Construct):
    """A PCS compute node group, deployed after the earlier changes of its cluster.

    Its name contains a hash of the instance types, so other types create a group of another name: PCS replaces a group
    whose types change, and refuses two of one name. `image` is auto for AWS's PCS-ready AMI of the architecture, an AMI
    id, or `ssm:/path`.

    Nodes run `steps` at boot, as node lifecycle actions; `on_failed_step` is what PCS does with a node on which one
    fails. The role of `role` is allowed to read their scripts if `role` is a PcsNodeRole; allow it for any other:
    s3:GetObject on `script_arns`.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        cluster: SlurmCluster,
        instance_types: Sequence[str],
        architecture: str,
        launch_template: NodeLaunchTemplate,
        role: IInstanceProfileRef,
        subnets: Sequence[Subnet],
        min_count: int,
        max_count: int,
        purchase: PurchaseType = "on_demand",
        image: str = "auto",
        steps: Sequence[Step] = (),
        on_failed_step: OnError = "TERMINATE",
        slurm_settings: SlurmSettings | None = None,
        gres_settings: Sequence[GresRecord] = (),
        idle_seconds: int | None = None,
    ) -> None:
        super().__init__(scope, id)
        expect(cluster, SlurmCluster, "cluster")
        if steps and runs_boot_steps(image) is False:
            raise InvalidArgument(f"image {image} has a PCS agent older than {AGENT_VERSION}, which runs no boot steps")
        scripts = node_scripts(scope) if steps else None
        group = pcs.CfnComputeNodeGroup(
            self,
            "Resource",
            cluster_id=cluster.cluster_id,
            name=group_name(name, *instance_types),
            instance_configs=[{"instanceType": instance_type} for instance_type in instance_types],
            ami_id=_ami(image, architecture),
            custom_launch_template={
                "templateId": launch_template.launch_template_id,
                "version": launch_template.latest_version_number,
            },
            iam_instance_profile_arn=instance_profile_arn(role),
            node_lifecycle_actions=scripts.lifecycle_actions(steps, on_failed_step) if scripts else None,
            purchase_option=PURCHASE_OPTIONS[purchase],
            scaling_configuration={"minInstanceCount": min_count, "maxInstanceCount": max_count},
            slurm_configuration=_node_configuration(slurm_settings or {}, gres_settings, idle_seconds) or None,
            subnet_ids=[subnet_id(subnet) for subnet in subnets],
        )
        self._group, self._scripts, self._steps = group, scripts, steps
        if steps and runs_boot_steps(image, architecture) is None:
            message = (
                f"The image of {name} needs PCS agent {AGENT_VERSION} or newer: an older one ignores the boot steps"
            )
            Annotations.of(self).add_warning_v2("ultracluster:pcs-agent", message)
        if scripts and isinstance(role, NodeRole):
            group.add_resource_dependency(scripts.grant_read(role))
            if own := scripts.grant_own(name, role, steps):
                group.add_resource_dependency(own)
        cluster._follow(self)
        self._alarm = (
            boot_alarm(self, name=name, compute_node_group_id=group.attr_id)
            if steps and on_failed_step == "TERMINATE" and cluster.counts_failed_boots
            else None
        )

    @property
    def script_arns(self) -> list[str]:
        """ARNs of the scripts that the nodes download at boot."""
        return self._scripts.arns_of(self._steps) if self._scripts else []

    def notify(self, topics: Sequence[str]) -> None:
        """Has the alarm for nodes that fail to boot, if there is one, notify SNS topics."""
        notify(self._alarm, topics)

    @property
    def compute_node_group_id(self) -> str:
        """Id of the node group."""
        return self._group.attr_id


class PcsQueue(Construct):
    """A Slurm partition over node groups, deployed after the earlier changes of its cluster."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Queue,
        cluster: SlurmCluster,
        node_groups: Sequence[PcsNodeGroup],
    ) -> None:
        super().__init__(scope, id)
        expect(cluster, SlurmCluster, "cluster")
        parameters = custom_settings(settings.slurm_settings)
        pcs.CfnQueue(
            self,
            "Resource",
            cluster_id=cluster.cluster_id,
            name=settings.name,
            compute_node_group_configurations=[
                {"computeNodeGroupId": group.compute_node_group_id} for group in node_groups
            ],
            slurm_configuration={"slurmCustomSettings": parameters} if parameters else None,
        )
        cluster._follow(self, waits_for=node_groups)


def _mounts(first: LustreFileSystem | None, more: Sequence[LustreFileSystem | NfsFileSystem]) -> list[Mount]:
    return [each.mount for each in (*([first] if first else []), *more)]


def _node_configuration(
    settings: SlurmSettings, records: Sequence[GresRecord], idle_seconds: int | None
) -> dict[str, Any]:
    gres = [{name: str(value) for name, value in record.items()} for record in records]
    configuration = {
        "slurmCustomSettings": custom_settings(settings),
        "gresCustomSettings": gres,
        "scaleDownIdleTimeInSeconds": idle_seconds,
    }
    return {name: value for name, value in configuration.items() if value}


def custom_settings(settings: SlurmSettings) -> list[dict[str, str]]:
    """Slurm settings as PCS takes them."""
    return [{"parameterName": name, "parameterValue": without_spaces(str(value))} for name, value in settings.items()]


def _ami(image: str, architecture: str) -> str:
    """An AMI id, or a dynamic reference that CloudFormation resolves at each deployment."""
    if image == "auto":
        image = "ssm:" + IMAGE_PARAMETER.format(architecture=architecture)
    return ami_reference(image)
