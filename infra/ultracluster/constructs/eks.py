"""The EKS cluster, who may enter it, and its add-ons."""

import json
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network

from aws_cdk import Aws
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct, IConstruct

from ultracluster.catalog.eks import LOG_TYPES, access_policy
from ultracluster.config.eks import Eks
from ultracluster.constructs.keys import EncryptionKey
from ultracluster.constructs.places import SecurityGroup, Subnet
from ultracluster.constructs.roles import service_role
from ultracluster.kubernetes.addons import ClusterAddon

SERVICE_NETWORKS = ("172.20.0.0/16", "10.100.0.0/16")
"""Where EKS takes addresses of Kubernetes services from; the VPC must not overlap it (CreateCluster, API Reference)."""

SCORING = {
    "type": "MostAllocated",
    "resources": [{"name": "nvidia.com/gpu", "weight": 100}, {"name": "cpu", "weight": 1}],
}
"""Fills nodes that have GPUs in use before it opens others, so that whole nodes stay free for large jobs."""


class EksCluster(Construct):
    """An EKS cluster that only access entries let anybody into, with deletion protection.

    Secrets are encrypted with `key`, the control plane logs everything, and the kube-scheduler packs GPUs. Its endpoint
    answers in the VPC, and to `settings.allowed_cidrs` where the settings make it public too. Logs
    go to /aws/eks/NAME/cluster, a log group that must exist before.

    Source: EKS User Guide (2026); AWS::EKS::Cluster.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        settings: Eks,
        vpc_block: IPv4Network | None,
        subnets: Sequence[Subnet],
        security_group: SecurityGroup,
        key: EncryptionKey,
    ) -> None:
        super().__init__(scope, id)
        policy = {"AmazonEKSClusterPolicy": "What EKS itself asks of the role of a cluster; AWS keeps it up to date."}
        role = service_role(
            self, "Role", service="eks.amazonaws.com", description="Control plane of a cluster", aws_policies=policy
        )
        public = settings.endpoint == "public_and_private"
        self.service_network = service_network(vpc_block)
        self._cluster = eks.CfnCluster(
            self,
            "Resource",
            name=name,
            version=settings.kubernetes_version,
            role_arn=role.attr_arn,
            access_config={"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": False},
            bootstrap_self_managed_addons=False,
            control_plane_scaling_config={"tier": settings.control_plane_tier},
            deletion_protection=True,
            encryption_config=[{"provider": {"keyArn": key.key_arn}, "resources": ["secrets"]}],
            kube_scheduler_config={"nodeResourcesFit": {"scoringStrategy": SCORING}},
            kubernetes_network_config={"ipFamily": "ipv4", "serviceIpv4Cidr": self.service_network},
            logging={"clusterLogging": {"enabledTypes": [{"type": kind} for kind in LOG_TYPES]}},
            resources_vpc_config={
                "subnetIds": [subnet.subnet_id for subnet in subnets],
                "securityGroupIds": [security_group.security_group_id],
                "endpointPrivateAccess": True,
                "endpointPublicAccess": public,
                **({"publicAccessCidrs": list(settings.allowed_cidrs)} if public else {}),
            },
            # under STANDARD, EKS upgrades the cluster by itself when standard support ends, whatever runs on it
            upgrade_policy={"supportType": "EXTENDED"},
        )
        self._name = self._cluster.ref

    @property
    def cluster_name(self) -> str:
        """Name of the cluster."""
        return self._name

    @property
    def cluster_arn(self) -> str:
        """ARN of the cluster."""
        return self._cluster.attr_arn

    @property
    def endpoint(self) -> str:
        """Address of the API server."""
        return self._cluster.attr_endpoint

    @property
    def certificate_authority(self) -> str:
        """Certificate of the API server's authority, in base64."""
        return self._cluster.attr_certificate_authority_data

    def wait_for(self, *before: IConstruct) -> None:
        """Has the cluster made only after `before`."""
        self._cluster.node.add_dependency(*before)


def administrator(scope: Construct, id: str, *, cluster: EksCluster, role_arn: str) -> eks.CfnAccessEntry:
    """Lets a role do everything in the cluster."""
    policy = {"policyArn": access_policy(Aws.PARTITION, "cluster_admin"), "accessScope": {"type": "cluster"}}
    return eks.CfnAccessEntry(
        scope,
        id,
        cluster_name=cluster.cluster_name,
        principal_arn=role_arn,
        type="STANDARD",
        access_policies=[policy],
    )


def member(
    scope: Construct, id: str, *, cluster: EksCluster, role_arn: str, groups: Sequence[str]
) -> eks.CfnAccessEntry:
    """Lets a role into the cluster as a member of Kubernetes groups; what these may do, RBAC says."""
    return eks.CfnAccessEntry(
        scope,
        id,
        cluster_name=cluster.cluster_name,
        principal_arn=role_arn,
        type="STANDARD",
        kubernetes_groups=list(groups),
    )


class EksAddon(Construct):
    """An add-on that EKS installs and that CloudFormation keeps at the catalogue's version for `kubernetes_version`.

    Where the catalogue has none, EKS installs its default once, and never moves it by itself. `pod_roles` are ARNs of
    roles by the name of the service account whose pods take them on.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: EksCluster,
        addon: ClusterAddon,
        kubernetes_version: str,
        pod_roles: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(scope, id)
        roles = [{"serviceAccount": account, "roleArn": role} for account, role in (pod_roles or {}).items()]
        self._addon = eks.CfnAddon(
            self,
            "Resource",
            cluster_name=cluster.cluster_name,
            addon_name=addon.addon.name,
            addon_version=addon.addon.versions.get(kubernetes_version),
            configuration_values=json.dumps(addon.configuration, sort_keys=True) if addon.configuration else None,
            pod_identity_associations=roles or None,
            resolve_conflicts="OVERWRITE",
        )

    @property
    def addon_arn(self) -> str:
        """ARN of the add-on."""
        return self._addon.attr_arn


def service_network(vpc_block: IPv4Network | None) -> str:
    """The first of SERVICE_NETWORKS that the VPC does not overlap; the first for a VPC whose network is not known."""
    return next(network for network in SERVICE_NETWORKS if not (vpc_block and IPv4Network(network).overlaps(vpc_block)))
