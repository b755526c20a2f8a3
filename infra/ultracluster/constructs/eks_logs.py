"""Log groups of the pods and nodes of an EKS cluster, and the role of Fluent Bit, which writes to them."""

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk.interfaces.aws_kms import IKeyRef
from constructs import Construct

from ultracluster.constructs.eks import KubernetesCluster
from ultracluster.constructs.log_groups import LogGroup, log_group
from ultracluster.constructs.references import expect
from ultracluster.constructs.roles import PODS, managed_policy, service_role
from ultracluster.kubernetes.logs import LOGS_ACCOUNT
from ultracluster.kubernetes.scrape import MONITORING

ACTIONS = ("logs:CreateLogStream", "logs:PutLogEvents")
"""What Fluent Bit calls when the log group exists (Fluent Bit 5, "Amazon CloudWatch")."""


class ClusterLogs(Construct):
    """Log groups for pods and for nodes, encrypted with `key` and retained, and a role for Fluent Bit.

    Events are kept for `retention_days`. The role is bound to the service account of Fluent Bit; install the release of
    `ultracluster.kubernetes.logs` after `pod_identity_association`.
    """

    pods: LogGroup
    """The log group of pods."""
    nodes: LogGroup
    """The log group of nodes."""
    pod_identity_association: eks.CfnPodIdentityAssociation
    """Gives Fluent Bit its role."""
    key_policy_statements: tuple[iam.PolicyStatement, ...]
    """What the owner of `key` must add to the key policy; empty for a key that this app manages."""

    def __init__(
        self, scope: Construct, id: str, *, cluster: KubernetesCluster, retention_days: int, key: IKeyRef
    ) -> None:
        super().__init__(scope, id)
        expect(cluster, KubernetesCluster, "cluster")
        self.pods = log_group(self, "Pods", name="/ultracluster/pods", key=key, retention_days=retention_days)
        self.nodes = log_group(self, "Nodes", name="/ultracluster/nodes", key=key, retention_days=retention_days)
        self.key_policy_statements = (*self.pods.key_policy_statements, *self.nodes.key_policy_statements)
        role = service_role(self, "Role", service=PODS, description="Fluent Bit")
        arns = [self.pods.log_group_arn, self.nodes.log_group_arn]
        policy = managed_policy(self, "Policy", roles=[role], statements=[{"Action": list(ACTIONS), "Resource": arns}])
        self.pod_identity_association = eks.CfnPodIdentityAssociation(
            self,
            "Association",
            cluster_name=cluster.cluster_name,
            namespace=MONITORING,
            service_account=LOGS_ACCOUNT,
            role_arn=role.attr_arn,
        )
        self.pod_identity_association.node.add_dependency(policy)
