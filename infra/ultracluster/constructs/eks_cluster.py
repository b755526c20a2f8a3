"""A new EKS cluster."""

from collections.abc import Sequence
from ipaddress import IPv4Network

from aws_cdk import Token
from aws_cdk import aws_eks_v2 as eks
from aws_cdk.interfaces.aws_kms import IKeyRef
from aws_cdk.interfaces.aws_logs import ILogGroupRef
from constructs import Construct

from ultracluster.catalog.eks import LOG_TYPES
from ultracluster.config.eks import EksControlPlane
from ultracluster.constructs.eks import KubernetesCluster
from ultracluster.constructs.log_groups import LogGroup
from ultracluster.constructs.names import own_arn, stack_label, stack_suffix
from ultracluster.constructs.references import (
    SecurityGroup,
    Subnet,
    expect,
    key_arn,
    log_group_name,
    security_group_id,
    subnet_id,
)
from ultracluster.constructs.roles import service_role
from ultracluster.errors import InvalidArgument

SERVICE_NETWORKS = ("172.20.0.0/16", "10.100.0.0/16")
"""CIDRs that EKS uses for Kubernetes services; no overlap with the VPC is allowed (CreateCluster, API Reference)."""

SCORING = {
    "type": "MostAllocated",
    "resources": [{"name": "nvidia.com/gpu", "weight": 100}, {"name": "cpu", "weight": 1}],
}
"""Packs pods onto nodes with GPUs in use first, so that whole nodes stay free for large jobs."""


class EksCluster(KubernetesCluster):
    """An EKS cluster that authenticates by access entries only (no aws-auth ConfigMap).

    Secrets are encrypted with `key`, the control plane writes every log type, and the kube-scheduler packs GPUs. The
    endpoint is reachable from the VPC, and from `settings.allowed_cidrs` where the settings make it public too.
    `vpc_cidr` is the CIDR of the VPC, which the service network must not overlap: without it the service network is
    172.20.0.0/16. The name defaults to that of the stack with a suffix that differs for each creation. Logs go
    to /aws/eks/NAME/cluster: without a `log_group` of that name, one is created, encrypted with `key` and retained. The
    cluster is created after it, since EKS would create an unencrypted one.

    Set `deletion_protection` after the first deployment: CloudFormation cannot roll back a creation that fails after
    a protected cluster.

    EKS installs no add-on by itself. Nodes become ready with vpc-cni and kube-proxy, pods resolve names with coredns,
    and roles of pods need eks-pod-identity-agent: add them with `add_addon`.

    Source: EKS User Guide (2026); AWS::EKS::Cluster.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: EksControlPlane,
        subnets: Sequence[Subnet],
        security_group: SecurityGroup,
        key: IKeyRef,
        vpc_cidr: str | None = None,
        name: str | None = None,
        log_group: ILogGroupRef | None = None,
        deletion_protection: bool = False,
    ) -> None:
        super().__init__(scope, id)
        expect(settings, EksControlPlane, "settings")
        policy = {"AmazonEKSClusterPolicy": "What EKS itself asks of the role of a cluster; AWS keeps it up to date."}
        role = service_role(
            self, "Role", service="eks.amazonaws.com", description="Control plane of a cluster", aws_policies=policy
        )
        public = settings.endpoint == "public_and_private"
        self.service_network = service_network(vpc_cidr)
        self.kubernetes_version = settings.kubernetes_version
        name = name or f"{stack_label(self)}-{stack_suffix()}"
        cluster = eks.CfnCluster(
            self,
            "Resource",
            name=name,
            version=settings.kubernetes_version,
            role_arn=role.attr_arn,
            access_config={"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": False},
            bootstrap_self_managed_addons=False,
            control_plane_scaling_config={"tier": settings.control_plane_tier},
            deletion_protection=deletion_protection,
            encryption_config=[{"provider": {"keyArn": key_arn(key)}, "resources": ["secrets"]}],
            kube_scheduler_config={"nodeResourcesFit": {"scoringStrategy": SCORING}},
            kubernetes_network_config={"ipFamily": "ipv4", "serviceIpv4Cidr": self.service_network},
            logging={"clusterLogging": {"enabledTypes": [{"type": kind} for kind in LOG_TYPES]}},
            resources_vpc_config={
                "subnetIds": [subnet_id(subnet) for subnet in subnets],
                "securityGroupIds": [security_group_id(security_group)],
                "endpointPrivateAccess": True,
                "endpointPublicAccess": public,
                **({"publicAccessCidrs": list(settings.allowed_cidrs)} if public else {}),
            },
            # under STANDARD, EKS upgrades the cluster by itself when standard support ends, whatever runs on it
            upgrade_policy={"supportType": "EXTENDED"},
        )
        if log_group is None:
            log_group = self._log_group(name, key)
        else:
            log_group_name(log_group)
        # EKS would create an unencrypted log group
        cluster.node.add_dependency(log_group)
        self.cluster_name, self.cluster_arn = cluster.ref, cluster.attr_arn
        self.cluster_endpoint = cluster.attr_endpoint
        self.cluster_certificate_authority_data = cluster.attr_certificate_authority_data
        self.cluster_security_group_id = cluster.attr_cluster_security_group_id

    @staticmethod
    def from_cluster_attributes(
        scope: Construct,
        id: str,
        *,
        cluster_name: str,
        kubernetes_version: str,
        cluster_endpoint: str,
        cluster_certificate_authority_data: str,
        cluster_security_group_id: str,
        service_network: str = SERVICE_NETWORKS[0],
    ) -> KubernetesCluster:
        """A cluster that exists in the stack's account and Region, with the VPC CNI installed."""
        found = KubernetesCluster(scope, id)
        found.cluster_name, found.cluster_arn = cluster_name, own_arn("eks", f"cluster/{cluster_name}")
        found.kubernetes_version, found.service_network = kubernetes_version, service_network
        found.cluster_endpoint = cluster_endpoint
        found.cluster_certificate_authority_data = cluster_certificate_authority_data
        found.cluster_security_group_id = cluster_security_group_id
        return found

    def _log_group(self, name: str, key: IKeyRef) -> LogGroup:
        pattern = "/aws/eks/*" if Token.is_unresolved(name) else f"/aws/eks/{name}/cluster"
        return LogGroup(self, "Logs", name=f"/aws/eks/{name}/cluster", pattern=pattern, key=key)


def service_network(vpc_cidr: str | None) -> str:
    """The first of SERVICE_NETWORKS that does not overlap the VPC; the first for a VPC whose CIDR is not known.

    Raises InvalidArgument for text that is no IPv4 CIDR.
    """
    if vpc_cidr is None or Token.is_unresolved(vpc_cidr):
        return SERVICE_NETWORKS[0]
    try:
        vpc = IPv4Network(vpc_cidr, strict=False)
    except ValueError:
        raise InvalidArgument(f"vpc_cidr is {vpc_cidr!r}. Pass an IPv4 CIDR, for example 10.0.0.0/16") from None
    return next(network for network in SERVICE_NETWORKS if not IPv4Network(network).overlaps(vpc))
