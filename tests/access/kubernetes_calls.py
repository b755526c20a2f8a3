"""Rows for EKS: nodes, the cluster's role, add-ons, pods of teams, the kubectl provider and Karpenter."""

import json
from collections.abc import Iterator

from tests.access.account import ACCOUNT, Account, Found, Role, aws_role
from tests.access.karpenter_calls import karpenter
from tests.access.shared_calls import OURS, assumed_by, writes_log
from tests.access.slurm_calls import _via, data, powerless, pulls, session_manager
from tests.access.table import OTHER_ACCOUNT, Call, may, never
from ultracluster.config.eks import Eks
from ultracluster.config.environment import Environment

SCALING_ROLE = "autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
PODS = "pods.eks.amazonaws.com"
INTERFACES = (
    *("ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface"),
    *("ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"),
)
POD_IDENTITY = "EKS User Guide, EKS Pod Identity"


def kubernetes_calls(account: Account, environment: Environment) -> list[Call]:
    """Rows for an environment on EKS; none for another."""
    if not isinstance(environment.control_plane, Eks):
        return []
    return [
        *nodes(account),
        *cluster(account),
        *kubectl(account),
        *addons(account),
        *team_pods(account, environment),
        *[call for _, name, role in pod_roles(account) if name == "karpenter" for call in karpenter(account, role)],
        *schedules(account),
        *scraper(account),
    ]


def nodes(account: Account) -> list[Call]:
    """Roles of nodes: they join the cluster and pull images; data is for pods."""
    source, calls = "EKS User Guide, Amazon EKS node IAM role", []
    eks = account.one("AWS::EKS::Cluster")
    used = [found.properties["NodeRole"] for found in account.of_type("AWS::EKS::Nodegroup")]
    used += [found.properties["PrincipalArn"] for found in account.all("AWS::EKS::AccessEntry", Type="EC2_LINUX")]
    scaling, passed = (
        aws_role(SCALING_ROLE, "AutoScalingServiceRolePolicy"),
        {"iam:PassedToService": "ec2.amazonaws.com"},
    )
    for role in {role.arn: role for role in map(account.role_of, used)}.values():
        calls += may(role, "ec2:DescribeInstances", "*", source, via=_via(account, "ec2"))
        calls += may(role, "eks:DescribeCluster", eks.arn, source, via=_via(account, "eks"))
        calls += may(role, "eks-auth:AssumeRoleForPodIdentity", eks.arn, POD_IDENTITY, via=_via(account, "eks-auth"))
        calls += [*session_manager(account, role), *powerless(account, role)]
        calls += pulls(account, role)
        buckets = [found.arn for found in account.of_type("AWS::S3::Bucket")]
        calls += never(role, ("s3:GetObject", "s3:PutObject"), [f"{arn}/a" for arn in buckets], "data is for pods")
        calls += never(role, "kms:Decrypt", [key.arn for key in account.of_type("AWS::KMS::Key")], "data is for pods")
        calls += never(role, ("eks:UpdateClusterConfig", "eks:DeleteCluster", "eks:CreateAccessEntry"), eks.arn, OURS)
        calls += may("ec2.amazonaws.com", "sts:AssumeRole", role.arn, source)
        calls += never(PODS, "sts:AssumeRole", role.arn, OURS)
        calls += may(scaling, "iam:PassRole", role.arn, "AutoScalingServiceRolePolicy", context=passed)
    return calls


def cluster(account: Account) -> list[Call]:
    """The role of the cluster, which describes the key of its secrets; EKS decrypts with a grant of its creator."""
    found = account.one("AWS::EKS::Cluster")
    role, source = account.role_of(found.properties["RoleArn"]), "EKS User Guide, Amazon EKS cluster IAM role"
    (provider,) = found.properties["EncryptionConfig"]
    key = provider["Provider"]["KeyArn"]
    return [
        *may("eks.amazonaws.com", "sts:AssumeRole", role.arn, source),
        *may(role, "kms:DescribeKey", key, "EKS User Guide, Encrypt Kubernetes secrets with KMS"),
        *never(role, ("kms:ScheduleKeyDeletion", "kms:PutKeyPolicy"), key, OURS),
    ]


def kubectl(account: Account) -> list[Call]:
    """The function with Helm and kubectl, and the CDK's framework that calls it."""
    eks = account.one("AWS::EKS::Cluster")
    source, other = "CDK, aws_eks_v2.KubectlProvider", eks.arn.replace("cluster/", "cluster/other-")
    function = next(found for found in account.of_type("AWS::Lambda::Function") if found.properties.get("Layers"))
    frameworks = [found for found in account.of_type("AWS::Lambda::Function") if _serves_kubernetes(account, found)]
    role = account.role_of(function.properties["Role"])
    admins = {found.properties["PrincipalArn"] for found in account.of_type("AWS::EKS::AccessEntry")}
    assert role.arn in admins, "the execution role has no access entry"
    token = ("ecr:GetAuthorizationToken", "ecr-public:GetAuthorizationToken", "sts:GetServiceBearerToken")
    repository = f"arn:aws:ecr:{account.region}:{ACCOUNT}:repository/charts"
    interface = f"arn:aws:ec2:{account.region}:{ACCOUNT}:network-interface/eni-1"
    calls = [
        *may(role, "eks:DescribeCluster", eks.arn, source, via=_via(account, "eks")),
        *never(role, "eks:DescribeCluster", other, OURS),
        *never(role, ("eks:UpdateClusterConfig", "eks:DeleteCluster", "eks:CreateAccessEntry"), eks.arn, OURS),
        *may(role, token, "*", "ECR User Guides, private and public registries"),
        *[call for call in pulls(account, role) if call.allowed and call.owner == ACCOUNT],
        *may(
            role, "ecr:BatchCheckLayerAvailability", repository, "AmazonEC2ContainerRegistryReadOnly, as the CDK grants"
        ),
        *may(role, INTERFACES, interface, "Lambda Developer Guide, VPC"),
        *may(role, ("ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"), "*", "Lambda Developer Guide, VPC"),
        *may("lambda.amazonaws.com", "sts:AssumeRole", role.arn, "Lambda Developer Guide, execution role"),
        *writes_log(account, role, function.properties["LoggingConfig"]["LogGroup"], source),
        *powerless(account, role),
    ]
    assert frameworks, "no function serves Kubernetes objects"
    for framework in frameworks:
        caller = account.role_of(framework.properties["Role"])
        others = [found.arn for found in account.of_type("AWS::Lambda::Function") if found.arn != function.arn]
        calls += may(caller, "lambda:InvokeFunction", (function.arn, f"{function.arn}:1"), source)
        calls += may(
            caller, "lambda:GetFunction", function.arn, "CDK, the framework waits until the function is active"
        )
        calls += may("lambda.amazonaws.com", "sts:AssumeRole", caller.arn, "Lambda Developer Guide, execution role")
        calls += never(caller, "lambda:InvokeFunction", others, OURS)
        calls += never(caller, "eks:DescribeCluster", eks.arn, OURS)
    return calls


def _serves_kubernetes(account: Account, function: Found) -> bool:
    return any(found.type.startswith("Custom::AWSCDK-EKS-") for found in account.served_by(function))


def pod_roles(account: Account) -> Iterator[tuple[str, str, Role]]:
    """Namespace or add-on, service account, and role of everything that EKS Pod Identity serves."""
    for found in account.of_type("AWS::EKS::PodIdentityAssociation"):
        properties = found.properties
        yield properties["Namespace"], properties["ServiceAccount"], account.role_of(properties["RoleArn"])
    for found in account.of_type("AWS::EKS::Addon"):
        for entry in found.properties.get("PodIdentityAssociations", []):
            yield found.properties["AddonName"], entry["ServiceAccount"], account.role_of(entry["RoleArn"])


def addons(account: Account) -> list[Call]:
    """Pods of add-ons, and the trust policies of all roles of pods."""
    ec2 = f"arn:aws:ec2:{account.region}:{ACCOUNT}"
    calls = []
    for name, service_account, role in pod_roles(account):
        tags = session_tags(account, name, service_account, of="Request")
        calls += may(PODS, ("sts:AssumeRole", "sts:TagSession"), role.arn, POD_IDENTITY, context=tags)
        calls += never("ec2.amazonaws.com", "sts:AssumeRole", role.arn, OURS)
        if name == "vpc-cni":
            source = "EKS User Guide, Configure Amazon VPC CNI plugin to use IAM"
            actions = ("ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses", "ec2:DeleteNetworkInterface")
            calls += may(role, actions, f"{ec2}:network-interface/eni-1", source, via=_via(account, "ec2"))
            calls += may(role, "ec2:CreateNetworkInterface", f"{ec2}:subnet/subnet-1", source)
        if name == "aws-fsx-csi-driver":
            via, system = _via(account, "fsx"), f"arn:aws:fsx:{account.region}:{ACCOUNT}:file-system/fs-1"
            calls += may(role, "fsx:DescribeFileSystems", "*", "mounts of existing file systems", via=via)
            calls += never(role, ("fsx:DeleteFileSystem", "fsx:UpdateFileSystem"), system, OURS)
        if name == "aws-ebs-csi-driver":
            source, volume = "AWS managed policy AmazonEBSCSIDriverPolicyV2", f"{ec2}:volume/vol-1"
            created = {"aws:RequestTag/ebs.csi.aws.com/cluster": "true"}
            owned = {"ec2:ResourceTag/ebs.csi.aws.com/cluster": "true"}
            calls += may(role, "ec2:CreateVolume", volume, source, context=created)
            calls += never(role, "ec2:CreateVolume", volume, "volumes carry the driver's tag")
            calls += may(role, ("ec2:AttachVolume", "ec2:DeleteVolume"), volume, source, context=owned)
            calls += never(role, ("ec2:AttachVolume", "ec2:DeleteVolume"), volume, "volumes of others")
        if service_account == "fluent-bit":
            calls += fluent_bit(account, role)
        if name in ("vpc-cni", "aws-fsx-csi-driver", "aws-ebs-csi-driver") or service_account == "fluent-bit":
            buckets = [f"{found.arn}/a" for found in account.of_type("AWS::S3::Bucket")]
            calls += never(role, "s3:GetObject", buckets, OURS)
            calls += never(role, "ec2:TerminateInstances", f"{ec2}:instance/i-1", OURS)
        calls += may(
            role, "sts:GetCallerIdentity", "*", "STS API Reference, GetCallerIdentity", via=_via(account, "sts")
        )
    return calls


def fluent_bit(account: Account, role: Role) -> list[Call]:
    """Fluent Bit on the log groups of pods and nodes, and on no other."""
    source, calls = "Fluent Bit, Amazon CloudWatch output", []
    for group in account.of_type("AWS::Logs::LogGroup"):
        name, stream = group.properties["LogGroupName"], f"{group.arn.removesuffix(':*')}:log-stream:a"
        actions = ("logs:CreateLogStream", "logs:PutLogEvents")
        if name.startswith("/ultracluster/"):
            calls += may(role, actions, stream, source, via=_via(account, "logs"))
            calls += never(role, ("logs:DeleteLogStream", "logs:GetLogEvents"), stream, OURS)
        else:
            calls += never(role, actions, stream, OURS)
    return calls


def scraper(account: Account) -> list[Call]:
    """AMP, the role that it assumes for the scraper, and the role that writes to the workspace."""
    source, calls = "AMP User Guide, Set up managed collectors for Amazon EKS", []
    arn = f"arn:aws:aps:{account.region}:{ACCOUNT}:scraper/s-1"
    for found in account.of_type("AWS::APS::Scraper"):
        roles = found.properties["RoleConfiguration"]
        reader, writer = account.role_of(roles["SourceRoleArn"]), account.role_of(roles["TargetRoleArn"])
        workspace = found.properties["Destination"]["AmpConfiguration"]["WorkspaceArn"]
        calls += assumed_by(reader, "scraper.aps.amazonaws.com", arn, source)
        calls += may(reader, "sts:AssumeRole", writer.arn, source, context={"sts:ExternalId": arn})
        foreign = {"sts:ExternalId": arn.replace(ACCOUNT, OTHER_ACCOUNT)}
        calls += never(reader, "sts:AssumeRole", writer.arn, "confused deputy", context=foreign)
        calls += never(reader, "aps:RemoteWrite", workspace, "only with the role that writes")
        calls += may(writer, "aps:RemoteWrite", workspace, source)
        calls += never(writer, "aps:RemoteWrite", f"{workspace}-other", OURS)
        calls += never(writer, ("aps:QueryMetrics", "aps:DeleteWorkspace"), workspace, OURS)
        for service in ("scraper.aps.amazonaws.com", "ec2.amazonaws.com"):
            calls += never(service, "sts:AssumeRole", writer.arn, OURS)
    return calls


def session_tags(account: Account, namespace: str, service_account: str, *, of: str = "Principal") -> dict[str, str]:
    """Tags of a pod's session: `of` its principal, or of the request for it.

    Source: EKS User Guide, "Grant Pods access to AWS resources based on tags" (2026).
    """
    eks = account.one("AWS::EKS::Cluster")
    tags = {
        "eks-cluster-arn": eks.arn,
        "eks-cluster-name": eks.ref,
        "kubernetes-namespace": namespace,
        "kubernetes-service-account": service_account,
    }
    return {f"aws:{of}Tag/{key}": value for key, value in tags.items()}


def assumed_by_team(account: Account, role: Role, namespace: str, service_account: str) -> list[Call]:
    """Only pods of the team's namespace, service account and cluster get a session of the team's role."""
    calls, tags = [], session_tags(account, namespace, service_account, of="Request")
    for tag in ("eks-cluster-arn", "kubernetes-namespace", "kubernetes-service-account"):
        foreign = {**tags, f"aws:RequestTag/{tag}": f"{tags[f'aws:RequestTag/{tag}']}-other"}
        calls += never(PODS, ("sts:AssumeRole", "sts:TagSession"), role.arn, "teams apart", context=foreign)
    return calls


def team_pods(account: Account, environment: Environment) -> list[Call]:
    """Pods of teams on the data, each under its own folder."""
    assert isinstance(environment.control_plane, Eks)
    teams = {team.name for team in environment.control_plane.teams}
    calls = []
    for namespace, service_account, role in pod_roles(account):
        if namespace in teams:
            more = {"context": session_tags(account, namespace, service_account)}
            folders = {team: f"teams/{team}" for team in teams}
            others = ["raw", *(folders[team] for team in sorted(teams - {namespace}))]
            calls += data(account, environment, role, folder=folders[namespace], others=others, **more)
            calls += [*powerless(account, role), *assumed_by_team(account, role, namespace, service_account)]
    if teams and environment.storage.buckets:
        assert calls, "no pod of a team has a role"
    return calls


def schedules(account: Account) -> list[Call]:
    """EventBridge Scheduler, which starts the nodes of a Capacity Block."""
    source, calls = "EventBridge Scheduler User Guide, universal targets", []
    for found in account.of_type("AWS::Scheduler::Schedule"):
        role = account.role_of(found.properties["Target"]["RoleArn"])
        calls += may("scheduler.amazonaws.com", "sts:AssumeRole", role.arn, source)
        named = json.loads(found.properties["Target"]["Input"])["NodegroupName"]
        for group in account.of_type("AWS::EKS::Nodegroup"):
            calls += _scales(role, group.arn, started=group.properties["NodegroupName"] == named)
    return calls


def _scales(role: Role, group: str, *, started: bool) -> list[Call]:
    calls = may if started else never
    return [
        *calls(role, "eks:UpdateNodegroupConfig", group, "node_groups[].purchase.starts"),
        *never(role, "eks:DeleteNodegroup", group, OURS),
    ]
