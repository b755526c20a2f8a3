"""`<env>-platform`: the software in the cluster, the nodes that it runs on, and who may use it."""

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from ultracluster.config.eks import Eks
from ultracluster.config.environment import Environment
from ultracluster.constructs.bucket_access import BucketAccess
from ultracluster.constructs.compute import EKS_IMAGE, CpuLaunchTemplate
from ultracluster.constructs.eks import EksAddon, administrator, member
from ultracluster.constructs.eks_nodes import SystemNodeGroup
from ultracluster.constructs.karpenter import Karpenter
from ultracluster.constructs.kubectl import HelmRelease, KubectlProvider, KubernetesObjects
from ultracluster.constructs.network import ClusterNetwork
from ultracluster.constructs.roles import PODS, grant, service_role
from ultracluster.kubernetes import labels
from ultracluster.kubernetes.addons import ClusterAddon, cluster_addons
from ultracluster.kubernetes.deployed import DeployedResources, FileSystem, KarpenterResources
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.order import ordered_parts
from ultracluster.kubernetes.parts import Objects, Release
from ultracluster.nodes.eks import system_node_user_data
from ultracluster.stacks.base import EnvironmentStack, node_tags
from ultracluster.stacks.eks_control_plane import EksControlPlaneStack
from ultracluster.stacks.storage import StorageStack

SYSTEM_VOLUME_GIB = 100
"""Root volume of a system node."""

DNS_ADDON = "coredns"
FILE_SYSTEM_ADDON = "aws-fsx-csi-driver"
BUCKETS_ADDON = "aws-mountpoint-s3-csi-driver"

JOB_ACCOUNT = "default"
"""Service account of a team's namespace whose pods may use the buckets."""


class PlatformStack(EnvironmentStack):
    """Access entries, system nodes, add-ons, Helm releases and Kubernetes objects, each after what it needs.

    The system nodes stand here, so that the software and the accelerated nodes do not wait for each other.
    """

    def __init__(
        self,
        scope: Construct,
        environment: Environment,
        *,
        settings: Eks,
        network: ClusterNetwork,
        storage: StorageStack,
        control_plane: EksControlPlaneStack,
    ) -> None:
        super().__init__(scope, "platform", environment)
        self._environment, self._settings, self._network = environment, settings, network
        self._storage, self._cluster = storage, control_plane.cluster
        self._node_role, self._network_addon = control_plane.node_role, control_plane.network_addon
        self._let_people_in()
        self._bucket_role = self._reads_and_writes_buckets()
        nodes = self._system_nodes()
        addons = {
            found.addon.name: self._addon(found)
            for found in cluster_addons(environment.storage)
            if not found.before_nodes
        }
        for addon in addons.values():
            addon.node.add_dependency(nodes)
        provider = KubectlProvider(
            self,
            "Kubectl",
            cluster=self._cluster,
            kubernetes_version=settings.kubernetes_version,
            vpc=network.vpc,
            subnets=network.control_plane_subnets,
            security_group=network.cluster_security_group,
            key=control_plane.key,
        )
        self._karpenter = Karpenter(self, "Karpenter", cluster=self._cluster) if settings.karpenter else None
        made: dict[str, HelmRelease | KubernetesObjects] = {}
        for part in ordered_parts(EksEnvironment.from_environment(environment), self._deployed()):
            made[part.name] = self._make(part, provider)
            before: list[IConstruct] = [made[name].resource for name in part.after]
            made[part.name].resource.node.add_dependency(*(before or [provider.ready, addons[DNS_ADDON]]))
        if self._karpenter:
            # pods get their role when they start, so it has to be theirs before
            made["karpenter"].resource.node.add_dependency(self._karpenter.identity)

    def _let_people_in(self) -> None:
        # named after the role, which has one entry: the next in the list must not take the place of one that goes
        for role in self._settings.admins:
            administrator(self, f"Access-{role}", cluster=self._cluster, role_arn=role)
        for team in self._settings.teams:
            for role in team.members:
                groups = [labels.team_group(team.name)]
                member(self, f"Access-{role}", cluster=self._cluster, role_arn=role, groups=groups)

    def _make(self, part: Release | Objects, provider: KubectlProvider) -> HelmRelease | KubernetesObjects:
        if isinstance(part, Release):
            mirror = self._settings.chart_mirror
            return HelmRelease(self, f"Release-{part.name}", provider=provider, release=part, mirror=mirror)
        return KubernetesObjects(self, f"Objects-{part.name}", provider=provider, objects=part)

    def _deployed(self) -> DeployedResources:
        storage, made = self._storage, self._storage.file_system
        file_system = FileSystem(made.file_system_id, made.dns_name, made.mount_name) if made else None
        return DeployedResources(
            cluster_name=self._cluster.cluster_name,
            file_system=file_system,
            buckets={name: bucket.bucket_name for name, bucket in storage.buckets.items()},
            karpenter=self._karpenter_resources(self._karpenter) if self._karpenter else None,
        )

    def _karpenter_resources(self, karpenter: Karpenter) -> KarpenterResources:
        network = self._network
        return KarpenterResources(
            interruption_queue=karpenter.interruption_queue,
            node_role_name=karpenter.node_role_name,
            node_subnet_id=network.node_subnet.subnet_id,
            cpu_subnet_ids=tuple(subnet.subnet_id for subnet in network.control_plane_subnets),
            efa_security_group_id=network.efa_security_group.security_group_id,
            cluster_security_group_id=network.cluster_security_group.security_group_id,
        )

    def _reads_and_writes_buckets(self) -> iam.Role | None:
        """The role of jobs, and of the driver that mounts buckets for them."""
        if not self._storage.buckets:
            return None
        pods = iam.ServicePrincipal(PODS).with_session_tags()
        role = iam.Role(self, "BucketRole", assumed_by=pods, description="Pods that use the buckets")
        BucketAccess(self, "BucketAccess", buckets=list(self._storage.buckets.values()), role=role)
        for team in self._settings.teams:
            eks.CfnPodIdentityAssociation(
                self,
                f"Jobs-{team.name}",
                cluster_name=self._cluster.cluster_name,
                namespace=team.name,
                service_account=JOB_ACCOUNT,
                role_arn=role.role_arn,
            )
        return role

    def _addon(self, addon: ClusterAddon) -> EksAddon:
        name, account = addon.addon.name, addon.addon.service_account
        roles = {}
        if account and name == BUCKETS_ADDON and self._bucket_role:
            roles[account] = self._bucket_role.role_arn
        if account and name == FILE_SYSTEM_ADDON:
            roles[account] = self._looks_at_file_systems().attr_arn
        return EksAddon(
            self,
            f"Addon-{name}",
            cluster=self._cluster,
            addon=addon,
            kubernetes_version=self._settings.kubernetes_version,
            pod_roles=roles,
        )

    def _looks_at_file_systems(self) -> iam.CfnRole:
        """The driver's own policy would let it delete file systems; volumes that exist take nothing but a look."""
        role = service_role(self, "FileSystemRole", service=PODS, description="FSx CSI driver")
        grant(
            self,
            "FileSystemPolicy",
            roles=[role],
            statements=[{"Action": ["fsx:DescribeFileSystems"], "Resource": "*"}],
            accepted={"AwsSolutions-IAM5[Resource::*]": "the action takes no resource"},
        )
        return role

    def _system_nodes(self) -> SystemNodeGroup:
        environment, settings = self._environment, self._settings.system_nodes
        template = CpuLaunchTemplate(
            self,
            "SystemTemplate",
            security_groups=[self._network.cluster_security_group],
            root_volume_gib=SYSTEM_VOLUME_GIB,
            user_data=system_node_user_data(lustre=environment.storage.lustre),
            tags=node_tags(environment, labels.SYSTEM),
            image=EKS_IMAGE,
        )
        return SystemNodeGroup(
            self,
            "System",
            cluster=self._cluster,
            kubernetes_version=self._settings.kubernetes_version,
            instance_type=settings.instance_type,
            count=settings.count,
            launch_template=template,
            role=self._node_role,
            network_addon=self._network_addon,
            subnets=self._network.control_plane_subnets,
            labels={labels.NODE_GROUP: labels.SYSTEM},
        )
