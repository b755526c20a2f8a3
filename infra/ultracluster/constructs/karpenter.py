"""What Karpenter needs in AWS: a role, a role for its nodes, and a queue that tells it of interruptions."""

from typing import Any

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from ultracluster.catalog.software import charts
from ultracluster.constructs.acknowledgements import acknowledge, wildcards
from ultracluster.constructs.eks import EksCluster
from ultracluster.constructs.eks_nodes import EksNodeRole
from ultracluster.constructs.names import ACCOUNT, PARTITION, REGION, own_arn
from ultracluster.constructs.roles import PODS, grant, service_role
from ultracluster.kubernetes.karpenter import KARPENTER_ACCOUNT

RETENTION_SECONDS = 300
"""How long a message is kept: what it announces happens within minutes."""

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
"""What Karpenter acts upon before an instance goes."""

LAUNCHED = ("fleet", "instance", "launch-template", "network-interface", "spot-instances-request", "volume")
"""What comes into being with a node, and is tagged as the cluster's."""

LAUNCHED_WITH = ("capacity-reservation", "placement-group", "security-group", "subnet")
"""What a node is launched with, beside images and snapshots."""

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
    """Lets Karpenter launch nodes of `cluster`, and end those that it has launched, known by their tags.

    Its release must wait for `identity`, since pods get their role only when they start.

    Source: Karpenter 1.14, "CloudFormation" reference. Where that asks for a tag whose name has the cluster in it, this
    asks for the tag whose value is the cluster: Karpenter sets both, and names of conditions must be known at synth.
    """

    def __init__(self, scope: Construct, id: str, *, cluster: EksCluster) -> None:
        super().__init__(scope, id)
        self._cluster = cluster
        self._node_role = EksNodeRole(self, "Nodes").role
        eks.CfnAccessEntry(
            self,
            "NodeAccess",
            cluster_name=cluster.cluster_name,
            principal_arn=self._node_role.attr_arn,
            type="EC2_LINUX",
        )
        self._queue_name, self._queue_arn = self._queue()
        self._controller()

    @property
    def interruption_queue(self) -> str:
        """Name of the queue."""
        return self._queue_name

    @property
    def node_role_name(self) -> str:
        """Name of the role of the nodes."""
        return self._node_role.ref

    def _queue(self) -> tuple[str, str]:
        """Name and ARN of the queue, which takes messages from its rule alone."""
        # here, since nothing else of the package needs them and they take 50 ms
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
        launch = self._let(
            role, "Launch", launching(name), "Ids of what it launches are EC2's; tags tie them to the cluster."
        )
        look = self._let(role, "Look", looking(arn), "Prices and types have no resource; these actions change nothing.")
        profiles = [*instance_profiles(name), passing(self._node_role.attr_arn)]
        profile = self._let(
            role, "Profiles", profiles, "Karpenter names instance profiles; tags tie them to the cluster."
        )
        read = ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"]
        listen = grant(self, "Listen", roles=[role], statements=[_allow(read, [self._queue_arn])])
        self.identity: IConstruct = eks.CfnPodIdentityAssociation(
            self,
            "Identity",
            cluster_name=name,
            namespace=charts["karpenter"].namespace,
            service_account=KARPENTER_ACCOUNT,
            role_arn=role.attr_arn,
        )
        # as long as the release is there it has its rights: without them no node that it launched would end
        self.identity.node.add_dependency(launch, look, profile, listen)

    def _let(self, role: iam.CfnRole, id: str, statements: list[Statement], reason: str) -> iam.CfnManagedPolicy:
        resources = {resource for entry in statements for resource in entry["Resource"] if resource.endswith("*")}
        accepted = wildcards(self, sorted(resources), reason)
        return grant(self, id, roles=[role], statements=statements, accepted=accepted)


def launching(cluster: str) -> list[Statement]:
    """Launching and tagging nodes as the cluster's, and ending those that bear its tags."""
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


def instance_profiles(cluster: str) -> list[Statement]:
    """Making the instance profiles of the nodes, and keeping those that bear the cluster's tags."""
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


def passing(role: str) -> Statement:
    """Giving instances the role of the nodes, and no other."""
    to = ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]
    return _allow(["iam:PassRole"], [role], {"StringEquals": {"iam:PassedToService": to}})


def looking(cluster_arn: str) -> list[Statement]:
    """Reading what there is to launch in the Region, what it costs, and where the cluster answers."""
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
    """What another account may own and share: subnets and reservations."""
    return [f"arn:{PARTITION}:ec2:{REGION}:*:{kind}/*" for kind in kinds]


def _public(*kinds: str) -> list[str]:
    """Images and snapshots, whose ARNs name no account."""
    return [f"arn:{PARTITION}:ec2:{REGION}::{kind}/*" for kind in kinds]


def _allow(actions: list[str], resources: list[str], condition: dict[str, Any] | None = None) -> Statement:
    return {"Action": actions, "Resource": resources, **({"Condition": condition} if condition else {})}
