"""Rows for Karpenter, and the events on its interruption queue."""

from tests.access.account import ACCOUNT, Account, Role
from tests.access.shared_calls import OURS
from tests.access.slurm_calls import _via
from tests.access.table import Call, may, never

CLUSTER, POOL = "eks:eks-cluster-name", "karpenter.sh/nodepool"
REGION, CLASS = "topology.kubernetes.io/region", "karpenter.k8s.aws/ec2nodeclass"
SOURCE = "Karpenter, CloudFormation reference"
READS = (
    *("ec2:DescribeCapacityReservations", "ec2:DescribeImages", "ec2:DescribeInstances", "ec2:DescribeInstanceStatus"),
    *("ec2:DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypes", "ec2:DescribeLaunchTemplates"),
    *(
        "ec2:DescribePlacementGroups",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeSpotPriceHistory",
        "ec2:DescribeSubnets",
    ),
)

Context = dict[str, str | list[str]]


def karpenter(account: Account, role: Role) -> list[Call]:
    """Karpenter launches and terminates nodes of its cluster, and no others."""
    return [*launches(account, role), *profiles(account, role), *looks(account, role), *listens(account, role)]


def tied(role: Role, action: str, resource: str, context: Context) -> list[Call]:
    """A call that needs each tag in `context`: allowed with all, denied without any one and for another cluster."""
    tags = [key for key in context if key.startswith(("aws:RequestTag/", "aws:ResourceTag/"))]
    calls = may(role, action, resource, SOURCE, context=context)
    for tag in tags:
        without = {key: value for key, value in context.items() if key != tag}
        calls += never(role, action, resource, f"{tag} ties it to the cluster", context=without)
        if tag.endswith(CLUSTER):
            calls += never(role, action, resource, "another cluster", context={**context, tag: "another"})
    return calls


def launches(account: Account, role: Role) -> list[Call]:
    """Source: EC2's service authorization reference, which lists the resources of RunInstances and CreateFleet."""
    own, ec2 = account.one("AWS::EKS::Cluster").ref, f"arn:aws:ec2:{account.region}:{ACCOUNT}"
    public = f"arn:aws:ec2:{account.region}:"
    wanted: Context = {f"aws:RequestTag/{CLUSTER}": own, f"aws:RequestTag/{POOL}": "gpu"}
    owned: Context = {f"aws:ResourceTag/{CLUSTER}": own, f"aws:ResourceTag/{POOL}": "gpu"}
    made = [f"{ec2}:{kind}/new" for kind in ("instance", "volume", "network-interface", "spot-instances-request")]
    used = [f"{ec2}:{kind}/a" for kind in ("subnet", "security-group", "capacity-reservation", "placement-group")]
    template, instance, fleet = f"{ec2}:launch-template/lt-1", f"{ec2}:instance/i-1", f"{ec2}:fleet/new"
    renamed = {**owned, f"aws:RequestTag/{CLUSTER}": own, "aws:TagKeys": [CLUSTER, "karpenter.sh/nodeclaim", "Name"]}
    calls = [
        *may(role, "ec2:RunInstances", [*used, f"{public}:image/ami-1", f"{public}:snapshot/snap-1"], SOURCE),
        *may(role, "ec2:CreateFleet", f"{public}:image/ami-1", SOURCE),
        *tied(role, "ec2:CreateFleet", fleet, wanted),
        *tied(role, "ec2:CreateLaunchTemplate", template, wanted),
        *may(role, "ec2:CreateTags", instance, SOURCE, context=renamed),
        *never(role, "ec2:CreateTags", instance, OURS, context={**renamed, "aws:TagKeys": ["team"]}),
        *tied(role, "ec2:TerminateInstances", instance, owned),
        *tied(role, "ec2:DeleteLaunchTemplate", template, owned),
    ]
    for action in ("ec2:RunInstances", "ec2:CreateFleet"):
        calls += tied(role, action, template, owned)
    for resource in made:
        calls += tied(role, "ec2:RunInstances", resource, wanted)
    for resource in (*made, fleet, template):
        creates = {**wanted, "ec2:CreateAction": "RunInstances"}
        calls += tied(role, "ec2:CreateTags", resource, creates)
        calls += never(role, "ec2:CreateTags", resource, "only while it creates", context=wanted)
    for tag in owned:
        without = {key: value for key, value in renamed.items() if key != tag}
        calls += never(role, "ec2:CreateTags", instance, "instances of others", context=without)
    foreign = {**renamed, f"aws:RequestTag/{CLUSTER}": "another"}
    return calls + never(role, "ec2:CreateTags", instance, "no move to another cluster", context=foreign)


def profiles(account: Account, role: Role) -> list[Call]:
    """Instance profiles of Karpenter's node classes, with the role of its nodes and no other."""
    own, profile = account.one("AWS::EKS::Cluster").ref, f"arn:aws:iam::{ACCOUNT}:instance-profile/a"
    values = {CLUSTER: own, REGION: account.region, CLASS: "gpu"}
    wanted: Context = {f"aws:RequestTag/{key}": value for key, value in values.items()}
    owned: Context = {f"aws:ResourceTag/{key}": value for key, value in values.items()}
    (entry,) = account.all("AWS::EKS::AccessEntry", Type="EC2_LINUX")
    node_role = account.role_of(entry.properties["PrincipalArn"]).arn
    to_ec2, to_lambda = ({"iam:PassedToService": f"{service}.amazonaws.com"} for service in ("ec2", "lambda"))
    calls = [
        *tied(role, "iam:CreateInstanceProfile", profile, wanted),
        *tied(role, "iam:TagInstanceProfile", profile, {**wanted, **owned}),
        *may(role, "iam:GetInstanceProfile", profile, SOURCE),
        *may(role, "iam:ListInstanceProfiles", "*", SOURCE),
        *may(role, "iam:PassRole", node_role, SOURCE, context=to_ec2),
        *never(role, "iam:PassRole", node_role, "to EC2 only", context=to_lambda),
        *never(role, "iam:PassRole", sorted(set(account.roles) - {node_role}), OURS, context=to_ec2),
    ]
    for action in ("AddRoleToInstanceProfile", "RemoveRoleFromInstanceProfile", "DeleteInstanceProfile"):
        calls += tied(role, f"iam:{action}", profile, owned)
    return calls


def looks(account: Account, role: Role) -> list[Call]:
    """What Karpenter reads. Not judged: ssm:GetParameter, since the ARN of a public parameter names no account."""
    eks, elsewhere = account.one("AWS::EKS::Cluster"), {"aws:RequestedRegion": "eu-west-1"}
    shifted, other = ({"arc-zonal-shift:ResourceIdentifier": arn} for arn in (eks.arn, f"{eks.arn}-other"))
    return [
        *may(role, READS, "*", SOURCE, via=_via(account, "ec2")),
        *never(role, "ec2:DescribeInstances", "*", "its own Region", context=elsewhere),
        *may(role, "pricing:GetProducts", "*", SOURCE),
        *may(role, "eks:DescribeCluster", eks.arn, SOURCE, via=_via(account, "eks")),
        *may(role, "arc-zonal-shift:GetManagedResource", "*", SOURCE, context=shifted),
        *never(role, "arc-zonal-shift:GetManagedResource", "*", OURS, context=other),
        *never(role, "s3:GetObject", [f"{found.arn}/a" for found in account.of_type("AWS::S3::Bucket")], OURS),
    ]


def listens(account: Account, role: Role) -> list[Call]:
    """The interruption queue: EventBridge's rule writes, Karpenter reads."""
    queue = account.one("AWS::SQS::Queue")
    (rule,) = [found for found in account.of_type("AWS::Events::Rule") if "Targets" in found.properties]
    source, events = "EventBridge User Guide, resource-based policies for Amazon SQS", "events.amazonaws.com"
    read = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueUrl")
    other = {"aws:SourceArn": rule.arn.replace("rule/", "rule/other-")}
    plain = {"aws:SecureTransport": "false"}
    return [
        *may(role, read, queue.arn, "Karpenter, interruption handling", via=_via(account, "sqs")),
        *never(role, ("sqs:SendMessage", "sqs:DeleteQueue"), queue.arn, OURS),
        *never(role, "sqs:ReceiveMessage", queue.arn, "TLS only", context=plain),
        *may(events, "sqs:SendMessage", queue.arn, source, context={"aws:SourceArn": rule.arn}),
        *never(events, "sqs:SendMessage", queue.arn, "confused deputy", context=other),
        *never(events, "sqs:ReceiveMessage", queue.arn, OURS, context={"aws:SourceArn": rule.arn}),
    ]
