"""What every EKS cluster has, created or imported: access entries, add-ons and node groups."""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jsii
from aws_cdk import Aws, Duration, Stack, Token
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk.interfaces import ResourceEnvironment
from aws_cdk.interfaces.aws_eks import ClusterReference, IClusterRef
from constructs import Construct

from ultracluster.catalog.eks import access_policy
from ultracluster.catalog.software import addons
from ultracluster.config.eks_nodes import CPU_VOLUME_GIB, SYSTEM_VOLUME_GIB, CpuNodes, NodeRepair, SystemNodes
from ultracluster.config.lustre import Lustre
from ultracluster.config.node_groups import NodeGroup
from ultracluster.constructs.cloudwatch import service_metric
from ultracluster.constructs.eks_bootstrap import EksBootstrap
from ultracluster.constructs.eks_nodes import CpuNodeGroup, EksNodeGroup, SystemNodeGroup
from ultracluster.constructs.launch_templates import AcceleratedLaunchTemplate, CpuLaunchTemplate
from ultracluster.constructs.names import stable_name
from ultracluster.constructs.references import (
    Role,
    SecurityGroup,
    Subnet,
    expect,
    expect_list,
    role_arn,
)
from ultracluster.errors import UltraclusterError
from ultracluster.kubernetes.labels import GPU_TAINT, NODE_GROUP
from ultracluster.nodes.eks import ClusterEndpoint, cpu_node_user_data, group_user_data, system_node_user_data

if TYPE_CHECKING:
    from aws_cdk import aws_cloudwatch as cloudwatch

NETWORK_ADDON = "vpc-cni"


class UnknownAddon(UltraclusterError, ValueError):
    """The catalogue has no such EKS add-on."""


@jsii.implements(IClusterRef, ec2.IConnectable)
class KubernetesCluster(Construct):
    """Attributes and methods of every EKS cluster, created by this app or imported."""

    cluster_name: str
    """Name of the cluster."""
    cluster_arn: str
    """ARN of the cluster."""
    cluster_endpoint: str
    """URL of the API server."""
    cluster_certificate_authority_data: str
    """CA certificate of the API server, in base64."""
    cluster_security_group_id: str
    """Id of the security group that EKS creates with the cluster."""
    kubernetes_version: str
    """Kubernetes version, for example 1.35."""
    service_network: str
    """CIDR of Kubernetes services."""
    network_addon_arn: str | None = None
    """ARN of the VPC CNI add-on, without which no node becomes ready; None until it is added."""

    @property
    def cluster_ref(self) -> ClusterReference:
        """Lets CDK constructs take this as an `IClusterRef`."""
        return ClusterReference(cluster_arn=self.cluster_arn, cluster_name=self.cluster_name)

    @property
    def env(self) -> ResourceEnvironment:
        """Account and Region of the cluster."""
        return Stack.of(self).env

    @cached_property
    def cluster(self) -> eks.ICluster:
        """The cluster as an L2, created on first use."""
        return eks.Cluster.from_cluster_attributes(
            self,
            "ClusterView",
            cluster_name=self.cluster_name,
            cluster_endpoint=self.cluster_endpoint,
            cluster_certificate_authority_data=self.cluster_certificate_authority_data,
            cluster_security_group_id=self.cluster_security_group_id,
        )

    @property
    def connections(self) -> ec2.Connections:
        """Connections to the API server, on port 443."""
        return self._connections

    @cached_property
    def _connections(self) -> ec2.Connections:
        group = ec2.SecurityGroup.from_security_group_id(self, "ClusterGroupView", self.cluster_security_group_id)
        return ec2.Connections(security_groups=[group], default_port=ec2.Port.tcp(443))

    def grant_admin(self, role: Role, *, scope: Construct | None = None, id: str | None = None) -> eks.CfnAccessEntry:
        """Makes a role administrator of the whole cluster, by an access entry. A role has one entry in a cluster.

        `scope` defaults to the cluster, `id` to `Access-` and the role.
        """
        policy = {"policyArn": access_policy(Aws.PARTITION, "cluster_admin"), "accessScope": {"type": "cluster"}}
        return self._access_entry(role, scope, id, access_policies=[policy])

    def grant_access(
        self, role: Role, *, groups: Sequence[str], scope: Construct | None = None, id: str | None = None
    ) -> eks.CfnAccessEntry:
        """Maps a role to Kubernetes groups, by an access entry; RBAC decides what the groups may do."""
        expect_list(groups, "groups")
        return self._access_entry(role, scope, id, kubernetes_groups=list(groups))

    def add_addon(
        self,
        name: str,
        *,
        configuration: Mapping[str, Any] | None = None,
        pod_roles: Mapping[str, Role] | None = None,
        scope: Construct | None = None,
    ) -> "EksAddon":
        """Installs an EKS add-on of the catalogue. `scope` defaults to the cluster. Raises UnknownAddon."""
        return EksAddon(
            scope or self,
            f"Addon-{name}",
            cluster=self,
            name=name,
            configuration=configuration,
            pod_roles=pod_roles,
        )

    def add_node_group(
        self,
        settings: NodeGroup,
        *,
        role: Role,
        subnet: Subnet,
        security_groups: Sequence[SecurityGroup],
        zone_subnets: Sequence[Subnet] = (),
        lustre: Lustre | None = None,
        labels: Mapping[str, str] | None = None,
        repair: NodeRepair | None = None,
        release: str | None = None,
        startup_taint: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
        scope: Construct | None = None,
    ) -> EksNodeGroup:
        """Adds the nodes of a node group with their launch template, and with GPUs the taint nvidia.com/gpu.

        They are in `subnet`, or in `zone_subnets` if there are any: one for each of the settings' `zones`.

        `security_groups` must reach the API server and the other nodes: EKS adds no group of its own to a launch
        template that names some. UltraServers are launched block by block: add each of `settings.blocks()`. With
        `lustre` the nodes are prepared for the FSx CSI driver to mount that file system. `labels` default to the name
        of the group, `repair` to node auto repair, `release` of AWS's images to the one in the catalogue, `scope` to
        the cluster. `startup_taint` is one more, which something in the cluster removes. With `settings.bootstrap` the
        role is allowed to read the scripts, which nodes download.

        Source: EKS User Guide, "Customize managed nodes with launch templates" (2026).
        """
        scope, labels = scope or self, labels or {NODE_GROUP: settings.name}
        # EKS adds the join command for its own AMIs only
        taints: list[Mapping[str, str]] = [GPU_TAINT] if settings.hardware.gpu_count else []
        taints += [startup_taint] if startup_taint else []
        endpoint = None if settings.image == "auto" else self._endpoint()
        own = EksBootstrap(scope, f"Bootstrap-{settings.name}", settings, role) if settings.bootstrap else None
        template = AcceleratedLaunchTemplate(
            scope,
            f"Template-{settings.name}",
            settings=settings,
            control_plane="eks",
            security_groups=[*security_groups, *settings.security_groups],
            user_data=group_user_data(
                settings,
                labels=labels,
                taints=taints,
                lustre=lustre,
                cluster=endpoint,
                last=own.steps if own else (),
            ),
            tags=tags,
        )
        group = EksNodeGroup(
            scope,
            f"Group-{settings.name}",
            settings=settings,
            cluster=self,
            launch_template=template,
            role=role,
            subnets=zone_subnets or [subnet],
            labels=labels,
            repair=repair,
            release=release,
            startup_taint=startup_taint,
        )
        if own:
            group.node.add_dependency(own)
        return group

    def add_system_nodes(
        self,
        settings: SystemNodes,
        *,
        role: Role,
        subnets: Sequence[Subnet],
        security_groups: Sequence[SecurityGroup],
        lustre: Lustre | None = None,
        release: str | None = None,
        tags: Mapping[str, str] | None = None,
        scope: Construct | None = None,
    ) -> SystemNodeGroup:
        """Adds CPU nodes for the cluster's own software, with a launch template and the taint CriticalAddonsOnly.

        `release` of AWS's images defaults to the one in the catalogue, `scope` to the cluster.
        """
        scope = scope or self
        template = _cpu_template(
            scope, "SystemTemplate", SYSTEM_VOLUME_GIB, security_groups, system_node_user_data(lustre=lustre), tags
        )
        return SystemNodeGroup(
            scope,
            "System",
            settings=settings,
            cluster=self,
            launch_template=template,
            role=role,
            subnets=subnets,
            release=release,
        )

    def add_cpu_nodes(
        self,
        settings: CpuNodes,
        *,
        role: Role,
        subnets: Sequence[Subnet],
        security_groups: Sequence[SecurityGroup],
        lustre: Lustre | None = None,
        release: str | None = None,
        tags: Mapping[str, str] | None = None,
        scope: Construct | None = None,
    ) -> CpuNodeGroup:
        """Adds CPU nodes for pods of teams, with a launch template and no taint.

        `release` of AWS's images defaults to the one in the catalogue, `scope` to the cluster.
        """
        scope = scope or self
        template = _cpu_template(
            scope, "CpuTemplate", CPU_VOLUME_GIB, security_groups, cpu_node_user_data(lustre=lustre), tags
        )
        return CpuNodeGroup(
            scope,
            "Cpu",
            settings=settings,
            cluster=self,
            launch_template=template,
            role=role,
            subnets=subnets,
            release=release,
        )

    def metric(self, name: str, **options: Any) -> "cloudwatch.Metric":
        """A metric that EKS publishes each minute, for example apiserver_request_total or scheduler_pending_pods.

        `options` are further arguments of `cloudwatch.Metric`.

        Source: EKS User Guide, "Monitor cluster data with Amazon CloudWatch" (2026).
        """
        return service_metric("AWS/EKS", name, {"ClusterName": self.cluster_name}, options)

    def metric_pending_pods(self, **options: Any) -> "cloudwatch.Metric":
        """Pods that wait for a node, minute by minute."""
        minute = {"period": Duration.minutes(1), "statistic": "Sum"}
        return self.metric("scheduler_pending_pods", **{**minute, **options})

    def _endpoint(self) -> ClusterEndpoint:
        return ClusterEndpoint(
            self.cluster_name, self.cluster_endpoint, self.cluster_certificate_authority_data, self.service_network
        )

    def _access_entry(
        self, role: Role, scope: Construct | None, id: str | None, **permissions: Any
    ) -> eks.CfnAccessEntry:
        arn = role_arn(role)
        # named after the role, not numbered: a role that leaves a list must not replace the entries of the next ones
        literal = isinstance(role, str) and not Token.is_unresolved(role)
        name = role if literal else stable_name(self, role)
        return eks.CfnAccessEntry(
            scope or self,
            id or f"Access-{name}",
            cluster_name=self.cluster_name,
            principal_arn=arn,
            type="STANDARD",
            **permissions,
        )


def _cpu_template(
    scope: Construct,
    id: str,
    volume_gib: int,
    security_groups: Sequence[SecurityGroup],
    user_data: str,
    tags: Mapping[str, str] | None,
) -> CpuLaunchTemplate:
    return CpuLaunchTemplate(
        scope,
        id,
        control_plane="eks",
        security_groups=security_groups,
        root_volume_gib=volume_gib,
        user_data=user_data,
        tags=tags,
    )


class EksAddon(Construct):
    """An EKS add-on of the catalogue, in the version that is pinned for the cluster's Kubernetes version.

    Where the catalogue pins none, EKS installs its default version and keeps it. `pod_roles` maps names of service
    accounts to the roles that their pods assume through EKS Pod Identity. Raises UnknownAddon.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: KubernetesCluster,
        name: str,
        configuration: Mapping[str, Any] | None = None,
        pod_roles: Mapping[str, Role] | None = None,
    ) -> None:
        super().__init__(scope, id)
        expect(cluster, KubernetesCluster, "cluster")
        if name not in addons:
            raise UnknownAddon(f"the catalogue has no EKS add-on {name}. Pass one of {', '.join(addons)}")
        roles = [{"serviceAccount": account, "roleArn": role_arn(role)} for account, role in (pod_roles or {}).items()]
        self._addon = eks.CfnAddon(
            self,
            "Resource",
            cluster_name=cluster.cluster_name,
            addon_name=name,
            addon_version=addons[name].versions.get(cluster.kubernetes_version),
            configuration_values=json.dumps(configuration, sort_keys=True) if configuration else None,
            pod_identity_associations=roles or None,
            resolve_conflicts="OVERWRITE",
        )
        if name == NETWORK_ADDON:
            cluster.network_addon_arn = self.addon_arn

    @cached_property
    def addon_arn(self) -> str:
        """ARN of the add-on."""
        return self._addon.attr_arn
