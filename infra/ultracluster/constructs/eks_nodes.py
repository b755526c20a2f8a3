"""The nodes of an EKS cluster: their role, and managed node groups."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import Aws
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from ultracluster.catalog.eks import KUBERNETES_VERSIONS, REPAIRS, image_type
from ultracluster.config.eks import NodeRepair
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.purchase import PurchaseType
from ultracluster.constructs.compute import (
    SESSION_MANAGER_ACTIONS,
    NodeLaunchTemplate,
    cpu_architecture,
    group_name,
)
from ultracluster.constructs.eks import EksAddon, EksCluster
from ultracluster.constructs.places import Subnet
from ultracluster.constructs.roles import grant, service_role

CAPACITY_TYPES: dict[PurchaseType, str] = {
    "on_demand": "ON_DEMAND",
    "reservation": "ON_DEMAND",
    "spot": "SPOT",
    "capacity_block": "CAPACITY_BLOCK",
}
"""A reservation keeps ON_DEMAND: its launch template names the target (EKS User Guide, capacity reservations, 2026)."""

NETWORK_TAG = "ultracluster:network-addon"
"""Tag of a node group: the add-on that its nodes become ready with. CloudFormation keeps that as long as the group."""

AT_ONCE_PERCENT = 33
"""Nodes of a group that an update takes out of service at the same time, in percent."""


class EksNodeRole(Construct):
    """What nodes may do: join the cluster, pull images, and be reached through Session Manager.

    Pods have roles of their own by EKS Pod Identity; nothing else is granted here.
    """

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        self.role = service_role(
            self,
            "Role",
            service="ec2.amazonaws.com",
            description="Nodes of an EKS cluster",
            aws_policies={
                "AmazonEKSWorkerNodePolicy": "What EKS asks of a node's role; AWS keeps it up to date.",
                "AmazonEC2ContainerRegistryPullOnly": "Pulls images, and nothing else.",
            },
        )
        grant(
            self,
            "Policy",
            roles=[self.role],
            statements=[{"Action": list(SESSION_MANAGER_ACTIONS), "Resource": "*"}],
            accepted={"AwsSolutions-IAM5[Resource::*]": "these actions take no resource"},
        )

    @property
    def role_arn(self) -> str:
        """ARN of the role."""
        return self.role.attr_arn


class EksNodeGroup(Construct):
    """A managed node group of accelerated nodes, tainted so that only pods that ask for GPUs come to them.

    The image is AWS's AL2023 with NVIDIA's driver, in the release that the catalogue pins, unless `group.image` names
    another in its launch template. Updates replace nodes without first asking for more, since a capacity block has no
    more. Nodes of a block are started at once, or at the block's start; EKS itself stops them before its end.

    Source: EKS User Guide, "Managed node groups", "Capacity Blocks", "Node auto repair" (2026).
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        group: NodeGroup,
        cluster: EksCluster,
        kubernetes_version: str,
        launch_template: NodeLaunchTemplate,
        role: EksNodeRole,
        network_addon: EksAddon,
        subnet: Subnet,
        labels: Mapping[str, str],
        taint: Mapping[str, str],
        repair: NodeRepair,
    ) -> None:
        super().__init__(scope, id)
        ami_type = image_type(group.hardware.architecture, accelerated=True) if group.image == "auto" else None
        capacity_type = CAPACITY_TYPES[group.purchase.type]
        name = group_name(group.name, capacity_type, ami_type or "CUSTOM")
        self._group = eks.CfnNodegroup(
            self,
            "Resource",
            cluster_name=cluster.cluster_name,
            nodegroup_name=name,
            ami_type=ami_type,
            release_version=_release(kubernetes_version) if ami_type else None,
            capacity_type=capacity_type,
            labels=dict(labels),
            launch_template={"id": launch_template.launch_template_id, "version": launch_template.latest_version},
            node_repair_config=repair_configuration(repair),
            node_role=role.role_arn,
            scaling_config=scaling(group),
            subnets=[subnet.subnet_id],
            tags={NETWORK_TAG: network_addon.addon_arn},
            taints=[{"key": taint["key"], "value": taint["value"], "effect": "NO_SCHEDULE"}],
            update_config={"maxUnavailablePercentage": AT_ONCE_PERCENT, "updateStrategy": "MINIMAL"},
        )
        if group.purchase.starts:
            self._start_at(group, cluster, name)

    def _start_at(self, group: NodeGroup, cluster: EksCluster, name: str) -> None:
        """Asks EKS for the block's nodes when the block begins: before that, EC2 would refuse each of them."""
        role = service_role(
            self, "StartRole", service="scheduler.amazonaws.com", description=f"Starts the nodes of {group.name}"
        )
        statements = [{"Action": "eks:UpdateNodegroupConfig", "Resource": self._group.attr_arn}]
        policy = grant(self, "StartPolicy", roles=[role], statements=statements)
        # a universal target takes the API's parameters with capital letters at their start
        call = {
            "ClusterName": cluster.cluster_name,
            "NodegroupName": name,
            "ScalingConfig": {"MinSize": 0, "MaxSize": group.max_count, "DesiredSize": group.max_count},
        }
        start = scheduler.CfnSchedule(
            self,
            "Start",
            schedule_expression=f"at({str(group.purchase.starts).removesuffix('Z')})",
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


class SystemNodeGroup(Construct):
    """A managed node group without GPUs for what serves the cluster: DNS, operators, storage controllers."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: EksCluster,
        kubernetes_version: str,
        instance_type: str,
        count: int,
        launch_template: NodeLaunchTemplate,
        role: EksNodeRole,
        network_addon: EksAddon,
        subnets: Sequence[Subnet],
        labels: Mapping[str, str],
    ) -> None:
        super().__init__(scope, id)
        ami_type = image_type(cpu_architecture(instance_type), accelerated=False)
        eks.CfnNodegroup(
            self,
            "Resource",
            cluster_name=cluster.cluster_name,
            nodegroup_name=group_name("system", instance_type),
            ami_type=ami_type,
            release_version=_release(kubernetes_version),
            capacity_type="ON_DEMAND",
            instance_types=[instance_type],
            labels=dict(labels),
            launch_template={"id": launch_template.launch_template_id, "version": launch_template.latest_version},
            node_repair_config={"enabled": True},
            node_role=role.role_arn,
            # one more than there are, so that an update can bring a new node before it takes an old one away
            scaling_config={"minSize": count, "maxSize": count + 1, "desiredSize": count},
            subnets=[subnet.subnet_id for subnet in subnets],
            tags={NETWORK_TAG: network_addon.addon_arn},
            update_config={"maxUnavailable": 1},
        )


def scaling(group: NodeGroup) -> dict[str, int]:
    """Sizes of a group. That of a capacity block may fall to 0, since EKS empties it before the block ends."""
    if group.purchase.type != "capacity_block":
        return {"minSize": group.min_count, "maxSize": group.max_count, "desiredSize": group.min_count}
    return {"minSize": 0, "maxSize": group.max_count, "desiredSize": 0 if group.purchase.starts else group.max_count}


def repair_configuration(repair: NodeRepair) -> dict[str, Any]:
    """Node auto repair, with what to do for each failure that EKS would treat otherwise (`catalog.eks.REPAIRS`)."""
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


def _release(kubernetes_version: str) -> str | None:
    """The pinned image release; none for a version newer than the catalogue, for which EKS takes its newest."""
    known = KUBERNETES_VERSIONS.get(kubernetes_version)
    return known.image_release if known else None
