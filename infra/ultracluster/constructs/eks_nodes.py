"""Managed node groups of an EKS cluster."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from aws_cdk import Aws
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from ultracluster.catalog.eks import KUBERNETES_VERSIONS, REPAIRS, image_type
from ultracluster.config.eks_nodes import CpuNodes, NodeRepair, SystemNodes
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.purchase import PurchaseType
from ultracluster.constructs.alarms import notify
from ultracluster.constructs.boot_alarm import replacement_alarm
from ultracluster.constructs.launch_templates import NodeLaunchTemplate, cpu_architecture, group_name
from ultracluster.constructs.references import Role, Subnet, role_arn, subnet_id
from ultracluster.constructs.roles import managed_policy, service_role
from ultracluster.kubernetes.labels import CPU, GPU_TAINT, NODE_GROUP, SYSTEM, SYSTEM_TAINT

CAPACITY_TYPES: dict[PurchaseType, str] = {
    "on_demand": "ON_DEMAND",
    "reservation": "ON_DEMAND",
    "spot": "SPOT",
    "capacity_block": "CAPACITY_BLOCK",
}
"""A reservation keeps ON_DEMAND: its launch template names the target (EKS User Guide, capacity reservations, 2026)."""

NETWORK_TAG = "ultracluster:network-addon"
"""Tag with the ARN of the VPC CNI add-on: CloudFormation then deletes a node group before the add-on."""

UPDATED_AT_ONCE_PERCENT = 33
"""Share of a group's nodes that an update takes out of service at the same time, in percent."""


class NodeCluster(Protocol):
    """The attributes of a cluster that a node group uses."""

    @property
    def cluster_name(self) -> str:
        """Name of the cluster."""

    @property
    def kubernetes_version(self) -> str:
        """Kubernetes version of the cluster."""

    @property
    def network_addon_arn(self) -> str | None:
        """ARN of the VPC CNI add-on, without which no node becomes ready; None if the app does not manage it."""


class _ManagedNodeGroup(Construct):
    """Attributes of every managed node group."""

    _group: eks.CfnNodegroup

    @property
    def nodegroup_arn(self) -> str:
        """ARN of the node group."""
        return self._group.attr_arn

    @property
    def nodegroup_name(self) -> str:
        """Name of the node group."""
        return self._group.attr_nodegroup_name


class EksNodeGroup(_ManagedNodeGroup):
    """A managed node group of the environment file. Nodes with GPUs are tainted for pods that request GPUs alone.

    They are in `subnets`. The AMI is AWS's AL2023, with NVIDIA's driver for GPUs, in the given `release`, by default
    the one that the catalogue pins. The settings may name another AMI, which the launch template then names.

    An update replaces nodes without launching more first, since a capacity block has no spare instances. Nodes of a
    block are launched at once, or when the block starts; EKS stops them before the block ends. `labels` default to the
    name of the group, `repair` to node auto repair. `startup_taint` is another taint, which something in the cluster
    removes.

    Version and release go together: EKS refuses the release of a newer Kubernetes version without that version.

    Source: EKS User Guide, "Managed node groups", "Capacity Blocks", "Node auto repair" (2026); eksctl issue 7976.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: NodeGroup,
        cluster: NodeCluster,
        launch_template: NodeLaunchTemplate,
        role: Role,
        subnets: Sequence[Subnet],
        labels: Mapping[str, str] | None = None,
        repair: NodeRepair | None = None,
        release: str | None = None,
        startup_taint: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(scope, id)
        gpus = settings.hardware.gpu_count > 0
        own_image = settings.image != "auto"
        ami_type = None if own_image else image_type(settings.hardware.architecture, accelerated=gpus)
        capacity_type = CAPACITY_TYPES[settings.purchase.type]
        # several types and zones are fixed too; one type is part of the launch template
        several = () if settings.one_type else settings.types
        # so is the role: a group with policies has one of its own
        fixed = (*several, *settings.zones, *(("own role",) if settings.policies else ()))
        # EKS takes a taint and an image one at a time
        fixed = (*fixed, startup_taint["key"]) if startup_taint else fixed
        taints = [{**taint, "effect": "NO_SCHEDULE"} for taint in ([GPU_TAINT] if gpus else [])]
        taints += [{**startup_taint, "effect": "NO_SCHEDULE"}] if startup_taint else []
        name = group_name(settings.name, capacity_type, ami_type or "CUSTOM", *fixed)
        self._group = eks.CfnNodegroup(
            self,
            "Resource",
            cluster_name=cluster.cluster_name,
            nodegroup_name=name,
            ami_type=ami_type,
            version=cluster.kubernetes_version if ami_type else None,
            release_version=release or _release(cluster.kubernetes_version) if ami_type else None,
            capacity_type=capacity_type,
            labels=dict(labels or {NODE_GROUP: settings.name}),
            instance_types=list(several) or None,
            launch_template=_version(launch_template),
            node_repair_config=repair_configuration(repair or NodeRepair()),
            node_role=role_arn(role),
            scaling_config=scaling(settings),
            subnets=[subnet_id(subnet) for subnet in subnets],
            tags=_tags(cluster),
            taints=taints or None,
            update_config={"maxUnavailablePercentage": UPDATED_AT_ONCE_PERCENT, "updateStrategy": "MINIMAL"},
        )
        self._alarm = replacement_alarm(self, nodegroup_name=name, subnet_ids=[subnet_id(subnet) for subnet in subnets])
        if settings.purchase.starts:
            self._start_at(settings, cluster, name)

    def notify(self, topics: Sequence[str]) -> None:
        """Has the alarm for nodes that stop again and again notify SNS topics."""
        notify(self._alarm, topics)

    def _start_at(self, settings: NodeGroup, cluster: NodeCluster, name: str) -> None:
        """Scales the group up when the block starts: before that, EC2 would refuse each launch."""
        role = service_role(
            self, "StartRole", service="scheduler.amazonaws.com", description=f"Starts the nodes of {settings.name}"
        )
        statements = [{"Action": "eks:UpdateNodegroupConfig", "Resource": self._group.attr_arn}]
        policy = managed_policy(self, "StartPolicy", roles=[role], statements=statements)
        # a universal target takes the API's parameters with an initial capital
        call = {
            "ClusterName": cluster.cluster_name,
            "NodegroupName": name,
            "ScalingConfig": {"MinSize": 0, "MaxSize": settings.max_count, "DesiredSize": settings.max_count},
        }
        start = scheduler.CfnSchedule(
            self,
            "Start",
            schedule_expression=f"at({str(settings.purchase.starts).removesuffix('Z')})",
            schedule_expression_timezone="UTC",
            flexible_time_window={"mode": "OFF"},
            target={
                "arn": f"arn:{Aws.PARTITION}:scheduler:::aws-sdk:eks:updateNodegroupConfig",
                "roleArn": role.attr_arn,
                "input": json.dumps(call),
                "retryPolicy": {"maximumRetryAttempts": 10, "maximumEventAgeInSeconds": 3600},
            },
        )
        start.node.add_dependency(policy)


class _CpuNodeGroup(_ManagedNodeGroup):
    """A managed node group without GPUs. `name` is the start of its name, and the label of its nodes.

    The AMI is AWS's AL2023 in the given `release`, by default the one that the catalogue pins.
    """

    name: str
    taints: tuple[Mapping[str, str], ...] = ()

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: SystemNodes | CpuNodes,
        cluster: NodeCluster,
        launch_template: NodeLaunchTemplate,
        role: Role,
        subnets: Sequence[Subnet],
        release: str | None = None,
    ) -> None:
        super().__init__(scope, id)
        instance_type, count = settings.instance_type, settings.count
        taints = [{**taint, "effect": "NO_SCHEDULE"} for taint in self.taints]
        self._group = eks.CfnNodegroup(
            self,
            "Resource",
            cluster_name=cluster.cluster_name,
            # with a taint in the name, a group that gets one is created anew: EKS takes taints and images one at a time
            nodegroup_name=group_name(self.name, instance_type, *(taint["key"] for taint in self.taints)),
            ami_type=image_type(cpu_architecture(instance_type), accelerated=False),
            version=cluster.kubernetes_version,
            release_version=release or _release(cluster.kubernetes_version),
            capacity_type="ON_DEMAND",
            instance_types=[instance_type],
            labels={NODE_GROUP: self.name},
            launch_template=_version(launch_template),
            node_repair_config={"enabled": True},
            node_role=role_arn(role),
            # one more than the count, so that an update launches a new node before it drains an old one
            scaling_config={"minSize": count, "maxSize": count + 1, "desiredSize": count},
            subnets=[subnet_id(subnet) for subnet in subnets],
            tags=_tags(cluster),
            taints=taints or None,
            update_config={"maxUnavailable": 1},
        )


class SystemNodeGroup(_CpuNodeGroup):
    """A managed node group without GPUs for the cluster's own software: DNS, operators, storage controllers.

    Its taint CriticalAddonsOnly keeps the pods of teams away.
    """

    name, taints = SYSTEM, (SYSTEM_TAINT,)


class CpuNodeGroup(_CpuNodeGroup):
    """A managed node group without GPUs for pods of teams that need none: launchers, Ray heads, data preparation."""

    name = CPU


def scaling(group: NodeGroup) -> dict[str, int]:
    """Sizes of a group. The minimum for a capacity block is 0, since EKS scales it down before the block ends."""
    if group.purchase.type != "capacity_block":
        return {"minSize": group.min_count, "maxSize": group.max_count, "desiredSize": group.min_count}
    return {"minSize": 0, "maxSize": group.max_count, "desiredSize": 0 if group.purchase.starts else group.max_count}


def repair_configuration(repair: NodeRepair) -> dict[str, Any]:
    """Node auto repair, with an override for each failure that EKS would treat otherwise (`catalog.eks.REPAIRS`)."""
    if not repair.enabled:
        return {"enabled": False}
    overrides = [
        {
            "nodeMonitoringCondition": entry.condition,
            "nodeUnhealthyReason": entry.reason,
            "minRepairWaitTimeMins": entry.wait_minutes,
            "repairAction": entry.action,
        }
        for entry in REPAIRS
    ]
    return {
        "enabled": True,
        "maxUnhealthyNodeThresholdPercentage": repair.max_unhealthy_percent,
        "nodeRepairConfigOverrides": overrides,
    }


def _version(template: NodeLaunchTemplate) -> dict[str, str]:
    return {"id": template.launch_template_id, "version": template.latest_version_number}


def _tags(cluster: NodeCluster) -> dict[str, str] | None:
    addon = cluster.network_addon_arn
    return {NETWORK_TAG: addon} if addon else None


def _release(kubernetes_version: str) -> str | None:
    """The pinned AMI release; None for a version newer than the catalogue, for which EKS takes its newest."""
    known = KUBERNETES_VERSIONS.get(kubernetes_version)
    return known.image_release if known else None
