"""`<env>-platform`: the software in the cluster, the system nodes, and who may use the cluster."""

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct, IDependable

from ultracluster.config.eks import Eks
from ultracluster.config.environment import Environment
from ultracluster.constructs.bucket_access import BucketAccess
from ultracluster.constructs.eks import EksAddon
from ultracluster.constructs.eks_logs import ClusterLogs
from ultracluster.constructs.karpenter import Karpenter
from ultracluster.constructs.kubectl import HelmRelease, KubectlProvider, KubernetesJobEnd, KubernetesObjects
from ultracluster.constructs.lustre import LustreFileSystem
from ultracluster.constructs.names import REGION
from ultracluster.constructs.network import ClusterNetwork
from ultracluster.constructs.nfs import NfsFileSystem
from ultracluster.constructs.references import Role
from ultracluster.constructs.roles import PODS, managed_policy, service_role
from ultracluster.constructs.saved_queries import SavedQueries
from ultracluster.kubernetes import labels
from ultracluster.kubernetes.addons import ClusterAddon, cluster_addons
from ultracluster.kubernetes.deployed import DeployedResources, FileSystem, KarpenterResources, LogGroups, NfsExport
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.folders import team_prefix
from ultracluster.kubernetes.logs import RELEASE as LOG_RELEASE
from ultracluster.kubernetes.order import ordered_parts
from ultracluster.kubernetes.parts import JobEnd, Part, Release
from ultracluster.stacks.base import EnvironmentStack, node_tags
from ultracluster.stacks.eks_control_plane import EksControlPlaneStack
from ultracluster.stacks.storage import StorageStack
from ultracluster.telemetry.log_queries import kubernetes_queries

DNS_ADDON = "coredns"
FILE_SYSTEM_ADDON = "aws-fsx-csi-driver"
VOLUMES_ADDON = "aws-ebs-csi-driver"

JOB_ACCOUNT = "default"
"""Service account of a team's namespace whose pods have the team's role."""


class PlatformStack(EnvironmentStack):
    """Access entries, system nodes, add-ons, Helm releases and Kubernetes objects, each after what it depends on.

    The system nodes are in this stack, so that the software and the accelerated nodes do not wait for each other.
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
        self._access_entries()
        self._create_team_roles()
        nodes = self._cluster.add_system_nodes(
            settings.system_nodes,
            role=control_plane.node_role,
            subnets=network.control_plane_subnet_ids,
            security_groups=[network.cluster_security_group_id],
            lustre=environment.storage.client,
            release=settings.image_release,
            tags=node_tags(environment, labels.SYSTEM),
            scope=self,
        )
        addons = {
            found.addon.name: self._addon(found)
            for found in cluster_addons(environment.storage, environment=environment.name)
            if not found.before_nodes
        }
        for addon in addons.values():
            addon.node.add_dependency(nodes)
        self._provider = KubectlProvider(
            self,
            "Kubectl",
            cluster=self._cluster,
            vpc=network.vpc_id,
            subnets=network.control_plane_subnet_ids,
            security_group=network.cluster_security_group_id,
            key=control_plane.key,
        )
        self._karpenter = Karpenter(self, "Karpenter", cluster=self._cluster) if settings.karpenter else None
        self.logs = ClusterLogs(
            self,
            "Logs",
            cluster=self._cluster,
            retention_days=environment.observability.logs.retention_days,
            key=control_plane.key,
        )
        SavedQueries(
            self,
            "Queries",
            name=environment.name,
            queries=kubernetes_queries(),
            log_groups={"pods": self.logs.pods.log_group_name, "nodes": self.logs.nodes.log_group_name},
        )
        made: dict[str, HelmRelease | KubernetesObjects | KubernetesJobEnd] = {}
        for part in ordered_parts(EksEnvironment.from_environment(environment), self._deployed()):
            before: list[IDependable] = [made[name].resource for name in part.after]
            made[part.name] = self._deploy(part, before or [self._provider.access, addons[DNS_ADDON]])
        if self._karpenter:
            # pods assume their role when they start, so the association comes first
            made["karpenter"].resource.node.add_dependency(self._karpenter.pod_identity_association)
        made[LOG_RELEASE].resource.node.add_dependency(self.logs.pod_identity_association)

    def _access_entries(self) -> None:
        for role in self._settings.admins:
            self._cluster.grant_admin(role, scope=self)
        for team in self._settings.teams:
            for role in team.members:
                self._cluster.grant_access(role, groups=[labels.team_group(team.name)], scope=self)

    def _deploy(self, part: Part, after: list[IDependable]) -> HelmRelease | KubernetesObjects | KubernetesJobEnd:
        if isinstance(part, JobEnd):
            return KubernetesJobEnd(
                self,
                f"Wait-{part.name}",
                provider=self._provider,
                job=part.job,
                namespace=part.namespace,
                seconds=part.seconds,
                after=after,
            )
        if isinstance(part, Release):
            return HelmRelease(
                self,
                f"Release-{part.name}",
                provider=self._provider,
                chart=part.chart.name,
                name=part.name,
                values=part.values,
                wait=part.waits,
                mirror=self._settings.chart_mirror,
                after=after,
            )
        return KubernetesObjects(
            self,
            f"Objects-{part.name}",
            provider=self._provider,
            objects=part.items,
            retained=part.retained,
            after=after,
        )

    def _deployed(self) -> DeployedResources:
        storage = self._storage
        file_system = _file_system(storage.file_system) if storage.file_system else None
        return DeployedResources(
            cluster_name=self._cluster.cluster_name,
            file_system=file_system,
            buckets={name: bucket.bucket_name for name, bucket in storage.buckets.items()},
            karpenter=self._karpenter_resources(self._karpenter) if self._karpenter else None,
            logs=LogGroups(self.logs.pods.log_group_name, self.logs.nodes.log_group_name, REGION),
            home=_export(storage.home) if storage.home else None,
            more={
                name: _export(each) if isinstance(each, NfsFileSystem) else _file_system(each)
                for name, each in storage.more.items()
            },
        )

    def _karpenter_resources(self, karpenter: Karpenter) -> KarpenterResources:
        network = self._network
        return KarpenterResources(
            interruption_queue=karpenter.interruption_queue_name,
            node_role_name=karpenter.node_role_name,
            node_subnet_id=network.node_subnet_id,
            cpu_subnet_ids=network.control_plane_subnet_ids,
            efa_security_group_id=network.efa_security_group_id,
            cluster_security_group_id=network.cluster_security_group_id,
            zone_subnet_ids=network.zone_subnet_ids,
        )

    def _create_team_roles(self) -> None:
        """A role for the jobs of each team, in a cluster with buckets.

        Only pods of the team's namespace may assume it, as the tags say that EKS Pod Identity adds to each session.
        Mountpoint uses it too, because it mounts a bucket for the pod that asks for it.

        Source: EKS User Guide, "Create IAM role with trust policy required by EKS Pod Identity" (2026).
        """
        buckets, read_only = list(self._storage.buckets.values()), self._environment.storage.read_only_buckets
        if not buckets and not read_only:
            return
        for team in self._settings.teams:
            tags = {
                "eks-cluster-arn": self._cluster.cluster_arn,
                "kubernetes-namespace": team.name,
                "kubernetes-service-account": JOB_ACCOUNT,
            }
            role = service_role(
                self,
                f"TeamRole-{team.name}",
                service=PODS,
                description=f"Pods of team {team.name}",
                conditions={"StringEquals": {f"aws:RequestTag/{tag}": value for tag, value in tags.items()}},
            )
            access = BucketAccess(
                self,
                f"TeamAccess-{team.name}",
                buckets=buckets,
                role=role,
                read_only=read_only,
                prefix=team_prefix(team.name),
            )
            association = eks.CfnPodIdentityAssociation(
                self,
                f"Jobs-{team.name}",
                cluster_name=self._cluster.cluster_name,
                namespace=team.name,
                service_account=JOB_ACCOUNT,
                role_arn=role.attr_arn,
            )
            association.node.add_dependency(access)

    def _addon(self, addon: ClusterAddon) -> EksAddon:
        name, account = addon.addon.name, addon.addon.service_account
        roles: dict[str, Role] = {}
        if account and name == FILE_SYSTEM_ADDON:
            roles[account] = self._fsx_csi_role()
        if account and name == VOLUMES_ADDON:
            roles[account] = self._ebs_csi_role()
        return self._cluster.add_addon(name, configuration=addon.configuration, pod_roles=roles, scope=self)

    def _ebs_csi_role(self) -> iam.CfnRole:
        policy = {"AmazonEBSCSIDriverPolicyV2": "What AWS asks of the driver's role: volumes with its own tag."}
        return service_role(self, "VolumesRole", service=PODS, description="EBS CSI driver", aws_policies=policy)

    def _fsx_csi_role(self) -> iam.CfnRole:
        """AWS's policy for the driver allows deleting file systems; mounting one takes a single read-only action."""
        role = service_role(self, "FileSystemRole", service=PODS, description="FSx CSI driver")
        managed_policy(
            self,
            "FileSystemPolicy",
            roles=[role],
            statements=[{"Action": ["fsx:DescribeFileSystems"], "Resource": "*"}],
            accepted={"AwsSolutions-IAM5[Resource::*]": "the action takes no resource"},
        )
        return role


def _file_system(made: LustreFileSystem) -> FileSystem:
    return FileSystem(made.file_system_id, made.dns_name, made.mount_name)


def _export(made: NfsFileSystem) -> NfsExport:
    return NfsExport(made.server, made.folder, made.mount_options)
