"""What Karpenter needs in AWS: its role, a role for its nodes, and the interruption queue."""

from typing import Any

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultracluster.catalog.software import charts
from ultracluster.constructs.acknowledgements import acknowledge, wildcards
from ultracluster.constructs.eks import KubernetesCluster
from ultracluster.constructs.eks_roles import EksNodeRole
from ultracluster.constructs.names import ACCOUNT, PARTITION, REGION, own_arn
from ultracluster.constructs.references import expect
from ultracluster.constructs.roles import PODS, managed_policy, service_role
from ultracluster.kubernetes.karpenter import KARPENTER_ACCOUNT

RETENTION_SECONDS = 300
"""Retention of messages, which announce events of the next minutes."""

EVENTS = {
    "source": ["aws.ec2", "aws.health"],
    "detail-type": [
        "AWS Health Event",
        "EC2 Capacity Reservation Instance Interruption Warning",
        "EC2 Instance Rebalance Recommendation",
        "EC2 Instance State-change Notification",
        "EC2 Spot Instance Interruption Warning",
    ],
}
"""Events that Karpenter handles before an instance terminates."""

LAUNCHED = ("fleet", "instance", "launch-template", "network-interface", "spot-instances-request", "volume")
"""Resources that a launch creates, tagged as the cluster's."""

LAUNCHED_WITH = ("capacity-reservation", "placement-group", "security-group", "subnet")
"""Existing resources that a launch uses, beside AMIs and snapshots."""

CLUSTER_TAG, POOL_TAG, CLASS_TAG = "eks:eks-cluster-name", "karpenter.sh/nodepool", "karpenter.k8s.aws/ec2nodeclass"
REGION_TAG = "topology.kubernetes.io/region"

DESCRIBED = (
    "CapacityReservations",
    "Images",
    "InstanceStatus",
    "InstanceTypeOfferings",
    "InstanceTypes",
    "Instances",
    "LaunchTemplates",
    "PlacementGroups",
    "SecurityGroups",
    "SpotPriceHistory",
    "Subnets",
)

Statement = dict[str, Any]


class Karpenter(Construct):
    """Role and interruption queue of Karpenter, which may launch nodes of `cluster` and terminate those it launched.

    Policies recognise the nodes by their tags. Deploy Karpenter's release after `pod_identity_association`, since pods
    assume their role only when they start.

    Source: Karpenter 1.14, "CloudFormation" reference. That checks a tag whose key contains the cluster's name. Here
    the value of a tag is checked: Karpenter sets both tags, and condition keys must be known at synth.
    """

    pod_identity_association: eks.CfnPodIdentityAssociation
    """Association of Karpenter's service account with its role."""

    def __init__(self, scope: Construct, id: str, *, cluster: KubernetesCluster) -> None:
        super().__init__(scope, id)
        expect(cluster, KubernetesCluster, "cluster")
        self._cluster = cluster
        self._node_role = EksNodeRole(self, "Nodes")
        eks.CfnAccessEntry(
            self,
            "NodeAccess",
            cluster_name=cluster.cluster_name,
            principal_arn=self._node_role.role_arn,
            type="EC2_LINUX",
        )
        self._queue_name, self._queue_arn = self._queue()
        self._controller()

    @property
    def interruption_queue_name(self) -> str:
        """Name of the interruption queue."""
        return self._queue_name

    @property
    def node_role_name(self) -> str:
        """Name of the role of the nodes."""
        return self._node_role.role_name

    def _queue(self) -> tuple[str, str]:
        """Name and ARN of the queue, which accepts messages from its rule alone."""
        # here, since nothing else of the package needs these modules and they take 50 ms to load
        from aws_cdk import aws_events as events
        from aws_cdk import aws_sqs as sqs

        queue = sqs.CfnQueue(self, "Queue", message_retention_period=RETENTION_SECONDS, sqs_managed_sse_enabled=True)
        name, arn = queue.attr_queue_name, queue.attr_arn
        target = {"id": "Queue", "arn": arn}
        rule = events.CfnRule(self, "Interruptions", event_pattern=EVENTS, targets=[target])
        statements = [
            {
                "Effect": "Allow",
                "Principal": {"Service": "events.amazonaws.com"},
                "Action": "sqs:SendMessage",
                "Resource": arn,
                "Condition": {"ArnEquals": {"aws:SourceArn": rule.attr_arn}},
            },
            {
                "Effect": "Deny",
                "Principal": "*",
                "Action": "sqs:*",
                "Resource": arn,
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            },
        ]
        document = {"Version": "2012-10-17", "Statement": statements}
        sqs.CfnQueuePolicy(self, "QueuePolicy", queues=[queue.ref], policy_document=document)
        reason = "Karpenter deletes what it has read; after five minutes an interruption is past, and nobody reads it."
        acknowledge(queue, {"AwsSolutions-SQS3": reason})
        return name, arn

    def _controller(self) -> None:
        role = service_role(self, "Role", service=PODS, description="Karpenter")
        arn, name = self._cluster.cluster_arn, self._cluster.cluster_name
        launch = self._policy(
            role, "Launch", launch_statements(name), "Ids of what it launches are EC2's; tags tie them to the cluster."
        )
        look = self._policy(
            role, "Look", describe_statements(arn), "Prices and types have no resource; these actions change nothing."
        )
        profiles = [*instance_profile_statements(name), pass_role_statement(self._node_role.role_arn)]
        profile = self._policy(
            role, "Profiles", profiles, "Karpenter names instance profiles; tags tie them to the cluster."
        )
        read = ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"]
        listen = managed_policy(self, "Listen", roles=[role], statements=[_allow(read, [self._queue_arn])])
        self.pod_identity_association = eks.CfnPodIdentityAssociation(
            self,
            "Identity",
            cluster_name=name,
            namespace=charts["karpenter"].namespace,
            service_account=KARPENTER_ACCOUNT,
            role_arn=role.attr_arn,
        )
        # the policies are deleted after the release: without them Karpenter could not terminate its nodes
        self.pod_identity_association.node.add_dependency(launch, look, profile, listen)

    def _policy(self, role: iam.CfnRole, id: str, statements: list[Statement], reason: str) -> iam.CfnManagedPolicy:
        resources = {resource for entry in statements for resource in entry["Resource"] if resource.endswith("*")}
        accepted = wildcards(self, sorted(resources), reason)
        return managed_policy(self, id, roles=[role], statements=statements, accepted=accepted)


def launch_statements(cluster: str) -> list[Statement]:
    """Statements for launching and tagging nodes as the cluster's, and terminating those with its tags."""
    owned = {
        "StringEquals": {f"aws:ResourceTag/{CLUSTER_TAG}": cluster},
        "StringLike": {f"aws:ResourceTag/{POOL_TAG}": "*"},
    }
    tagged = {
        "StringEquals": {f"aws:RequestTag/{CLUSTER_TAG}": cluster},
        "StringLike": {f"aws:RequestTag/{POOL_TAG}": "*"},
    }
    creating = {"ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"]}
    renaming = {"ForAllValues:StringEquals": {"aws:TagKeys": [CLUSTER_TAG, "karpenter.sh/nodeclaim", "Name"]}}
    same = {"StringEqualsIfExists": {f"aws:RequestTag/{CLUSTER_TAG}": cluster}}
    launch = ["ec2:RunInstances", "ec2:CreateFleet"]
    made, instances, templates = _ec2(*LAUNCHED), _ec2("instance"), _ec2("launch-template")
    return [
        _allow(launch, [*_public("image", "snapshot"), *_shared(*LAUNCHED_WITH)]),
        _allow(launch, templates, owned),
        _allow([*launch, "ec2:CreateLaunchTemplate"], made, tagged),
        _allow(["ec2:CreateTags"], made, {**tagged, "StringEquals": {**tagged["StringEquals"], **creating}}),
        _allow(["ec2:CreateTags"], instances, {**owned, **same, **renaming}),
        _allow(["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"], [*instances, *templates], owned),
    ]


def instance_profile_statements(cluster: str) -> list[Statement]:
    """Statements for creating instance profiles of the nodes, and managing those with the cluster's tags."""
    every = [f"arn:{PARTITION}:iam::{ACCOUNT}:instance-profile/*"]
    owned = {
        "StringEquals": {f"aws:ResourceTag/{CLUSTER_TAG}": cluster, f"aws:ResourceTag/{REGION_TAG}": REGION},
        "StringLike": {f"aws:ResourceTag/{CLASS_TAG}": "*"},
    }
    tagged = {
        "StringEquals": {f"aws:RequestTag/{CLUSTER_TAG}": cluster, f"aws:RequestTag/{REGION_TAG}": REGION},
        "StringLike": {f"aws:RequestTag/{CLASS_TAG}": "*"},
    }
    both = {operator: {**owned[operator], **tagged[operator]} for operator in owned}
    keep = ["iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile"]
    return [
        _allow(["iam:CreateInstanceProfile"], every, tagged),
        _allow(["iam:TagInstanceProfile"], every, both),
        _allow(keep, every, owned),
        _allow(["iam:GetInstanceProfile"], every),
        _allow(["iam:ListInstanceProfiles"], ["*"]),
    ]


def pass_role_statement(role: str) -> Statement:
    """Statement for passing the role of the nodes to instances, and no other."""
    to = ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]
    return _allow(["iam:PassRole"], [role], {"StringEquals": {"iam:PassedToService": to}})


def describe_statements(cluster_arn: str) -> list[Statement]:
    """Read-only statements: what the Region offers, prices, and the cluster's endpoint."""
    here = {"StringEquals": {"aws:RequestedRegion": REGION}}
    shifted = {"StringEquals": {"arc-zonal-shift:ResourceIdentifier": cluster_arn}}
    images = f"arn:{PARTITION}:ssm:{REGION}::parameter/aws/service/*"
    return [
        _allow([f"ec2:Describe{things}" for things in DESCRIBED], ["*"], here),
        _allow(["ssm:GetParameter"], [images]),
        _allow(["pricing:GetProducts"], ["*"]),
        _allow(["arc-zonal-shift:GetManagedResource"], ["*"], shifted),
        _allow(["eks:DescribeCluster"], [cluster_arn]),
    ]


def _ec2(*kinds: str) -> list[str]:
    return [own_arn("ec2", f"{kind}/*") for kind in kinds]


def _shared(*kinds: str) -> list[str]:
    """ARNs in any account: subnets and reservations can be shared."""
    return [f"arn:{PARTITION}:ec2:{REGION}:*:{kind}/*" for kind in kinds]


def _public(*kinds: str) -> list[str]:
    """ARNs of AMIs and snapshots, which name no account."""
    return [f"arn:{PARTITION}:ec2:{REGION}::{kind}/*" for kind in kinds]


def _allow(actions: list[str], resources: list[str], condition: dict[str, Any] | None = None) -> Statement:
    return {"Action": actions, "Resource": resources, **({"Condition": condition} if condition else {})}
