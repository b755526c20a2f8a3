"""Rows for Slurm on PCS: the nodes, and PCS's service-linked role, which launches them."""

import json
import re
from collections.abc import Sequence

from tests.access.account import ACCOUNT, Account, Document, Found, Role, aws_role
from tests.access.shared_calls import OURS, created_buckets, key_of, name_of, through_s3, writes_log
from tests.access.table import ANYBODY, OTHER_ACCOUNT, TRUSTS_THE_ACCOUNT, Call, may, never
from ultracluster.config.containers import Containers
from ultracluster.config.environment import Environment
from ultracluster.config.pcs import Pcs

PCS_ROLE = "pcs.amazonaws.com/AWSServiceRoleForPCS"
PCS_LAUNCHES = "AWS PCS User Guide, Service-linked roles; AWSPCSServiceRolePolicy"
WRITE = ("s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
SSM = "Systems Manager User Guide, minimal Session Manager permissions"
DEEP_LEARNING_CONTAINERS = "763104351884"
"""AWS's account of Deep Learning Containers (Deep Learning Containers, "Available images", 2026)."""


def slurm_calls(account: Account, environment: Environment) -> list[Call]:
    """Rows for an environment on PCS; none for another."""
    nodes = dict.fromkeys(_node_role(account, group).arn for group in account.of_type("AWS::PCS::ComputeNodeGroup"))
    calls = [call for group in account.of_type("AWS::PCS::ComputeNodeGroup") for call in scripts(account, group)]
    calls += [*drains(account, environment), *accounting(account)]
    calls += delivered_logs(account)
    for arn in nodes:
        role = account.roles[arn]
        (cluster,) = [found.arn for found in account.of_type("AWS::PCS::Cluster")]
        register = "AWS PCS User Guide, IAM instance profiles"
        calls += may(role, "pcs:RegisterComputeNodeGroupInstance", cluster, register, via=_via(account, "pcs"))
        another = f"arn:aws:pcs:{account.region}:{ACCOUNT}:cluster/pcs_another"
        calls += never(role, "pcs:RegisterComputeNodeGroupInstance", another, "its answer is the key of the scheduler")
        calls += never(role, ("pcs:UpdateCluster", "pcs:DeleteCluster", "pcs:CreateQueue"), cluster, OURS)
        calls += [*session_manager(account, role), *pulls(account, role), *data(account, environment, role)]
        calls += telemetry(account, role)
        topology = "EC2 User Guide, Prerequisites for Amazon EC2 instance topology"
        calls += may(role, "ec2:DescribeInstanceTopology", "*", topology)
        calls += never(role, ("ec2:DescribeInstances", "ec2:RunInstances"), "*", OURS)
        calls += container_files(account, environment, role)
        calls += [*powerless(account, role), *launched_by_pcs(account, role), *jobs(account, environment, role)]
    return calls


def _job_roles(account: Account, role: Role) -> list[Role]:
    """The roles that nodes with `role` assume for their users."""
    return [each for each in account.roles.values() if role.arn in str(each.trust)]


def jobs(account: Account, environment: Environment, node_role: Role) -> list[Call]:
    """Users of nodes: they use the buckets and pull images, and cannot act as their node."""
    source, calls = "IAM User Guide, Methods to assume a role", []
    cluster = f"arn:aws:pcs:{account.region}:{ACCOUNT}:cluster/pcs_any"
    instance = f"arn:aws:ec2:{account.region}:{ACCOUNT}:instance/i-0123456789abcdef0"
    for role in _job_roles(account, node_role):
        calls += may(node_role, "sts:AssumeRole", role.arn, source, via=_via(account, "sts"))
        calls += never("ec2.amazonaws.com", "sts:AssumeRole", role.arn, OURS)
        calls += [*pulls(account, role), *data(account, environment, role), *powerless(account, role)]
        calls += never(role, "pcs:RegisterComputeNodeGroupInstance", cluster, "the key of the scheduler")
        calls += never(role, "ec2:DescribeInstanceTopology", "*", OURS)
        calls += never(role, "ssm:UpdateInstanceInformation", instance, OURS)
        parameter = f"arn:aws:ssm:{account.region}:{ACCOUNT}:parameter/ultracluster/users"
        calls += never(role, "ssm:GetParameter", parameter, "the list of users is root's")
        workspaces = [found.arn for found in account.of_type("AWS::APS::Workspace")]
        calls += never(role, "aps:RemoteWrite", workspaces, "jobs forge no metrics")
        groups = [found.arn.removesuffix(":*") for found in account.of_type("AWS::Logs::LogGroup")]
        calls += never(role, "logs:PutLogEvents", [f"{group}:log-stream:x" for group in groups], "jobs forge no logs")
        secret = f"arn:aws:secretsmanager:{account.region}:{ACCOUNT}:secret:directory-a1b2c3"
        calls += never(role, "secretsmanager:GetSecretValue", secret, "the secret of the directory is root's")
    return calls


def container_files(account: Account, environment: Environment, role: Role) -> list[Call]:
    """The folder of Enroot and Pyxis, which nodes read and nobody changes through them."""
    plane = environment.control_plane
    if not isinstance(plane, Pcs) or not isinstance(plane.containers, Containers) or not plane.containers.bucket:
        return []
    file = f"arn:aws:s3:::{plane.containers.files.removeprefix('s3://')}/SHA256SUMS"
    source = "Amazon S3 User Guide, Required permissions: GetObject"
    calls = may(role, "s3:GetObject", file, source, via=_via(account, "s3"))
    return [*calls, *never(role, ("s3:PutObject", "s3:DeleteObject"), file, "nodes install what they find there")]


def delivered_logs(account: Account) -> list[Call]:
    """Log delivery on the log group of the cluster: it writes, and CloudWatch Logs alone uses the key.

    The policy of the log group is the one that AWS adds when a delivery is created.
    """
    source = "CloudWatch Logs User Guide, Enable logging from AWS services, Logs sent to CloudWatch Logs"
    delivery, calls = "delivery.logs.amazonaws.com", []
    for found in account.of_type("AWS::Logs::DeliveryDestination"):
        group = found.properties["DestinationResourceArn"]
        (owner,) = [each for each in account.of_type("AWS::Logs::LogGroup") if each.arn.removesuffix(":*") == group]
        added: Document = {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"Service": [delivery]},
                    "Action": ["logs:CreateLogStream", "logs:PutLogEvents"],
                    "Resource": [f"{group}:log-stream:*"],
                    "Condition": {
                        "StringEquals": {"aws:SourceAccount": [ACCOUNT]},
                        "ArnLike": {"aws:SourceArn": [f"arn:aws:logs:{account.region}:{ACCOUNT}:*"]},
                    },
                }
            ],
        }
        stream = f"{group}:log-stream:AWSLogs/PCS/1"
        origin = f"arn:aws:logs:{account.region}:{ACCOUNT}:delivery-source:scheduler"
        ours = {"aws:SourceAccount": ACCOUNT, "aws:SourceArn": origin}
        theirs = {"aws:SourceAccount": OTHER_ACCOUNT, "aws:SourceArn": origin.replace(ACCOUNT, OTHER_ACCOUNT)}
        write = ("logs:CreateLogStream", "logs:PutLogEvents")
        calls += may(delivery, write, stream, source, resource_policy=added, context=ours)
        calls += never(delivery, write, stream, "deliveries of this account", resource_policy=added, context=theirs)
        calls += never(delivery, "kms:Decrypt", owner.properties["KmsKeyId"], "CloudWatch Logs encrypts")
    return calls


def scripts(account: Account, group: Found) -> list[Call]:
    """Nodes on the scripts that PCS downloads when they boot, in the CDK's bucket."""
    source, role = "AWS PCS User Guide, Configure node lifecycle actions", _node_role(account, group)
    found = sorted(set(re.findall(r"s3://([^\"]+)", json.dumps(group.properties))))
    objects = [f"arn:aws:s3:::{path}" for path in found]
    other = [f"arn:aws:s3:::{path.partition('/')[0]}/template-of-another-stack.json" for path in found[:1]]
    return [
        *may(role, "s3:GetObject", objects, source, via=_via(account, "s3")),
        *never(role, "s3:GetObject", other, OURS),
        *never(role, "s3:PutObject", objects, "nobody changes what other nodes run"),
    ]


def _node_role(account: Account, group: Found) -> Role:
    """The role in the instance profile of a node group."""
    named = group.properties["IamInstanceProfileArn"]
    (profile,) = [found for found in account.of_type("AWS::IAM::InstanceProfile") if named in (found.arn, found.ref)]
    return account.role_of(profile.properties["Roles"][0])


def _via(account: Account, service: str) -> str | None:
    """The endpoint of a service; None where the network has no endpoints of ours."""
    return service if account.endpoints else None


def session_manager(account: Account, role: Role) -> list[Call]:
    """Nodes that people reach with Session Manager, and no other feature of Systems Manager."""
    instance = f"arn:aws:ec2:{account.region}:{ACCOUNT}:instance/i-0123456789abcdef0"
    channels = ("ssmmessages:CreateControlChannel", "ssmmessages:CreateDataChannel")
    opened = ("ssmmessages:OpenControlChannel", "ssmmessages:OpenDataChannel")
    return [
        *may(role, "ssm:UpdateInstanceInformation", instance, SSM, via=_via(account, "ssm")),
        *may(role, (*channels, *opened), "*", SSM, via=_via(account, "ssmmessages")),
        *never(role, ("ssm:SendCommand", "ssm:StartSession"), instance, OURS),
        *never(role, "ssm:GetParameter", f"arn:aws:ssm:{account.region}:{ACCOUNT}:parameter/secret", OURS),
        *never(role, "ssm:PutParameter", f"arn:aws:ssm:{account.region}:{ACCOUNT}:parameter/a", OURS),
    ]


def drains(account: Account, environment: Environment) -> list[Call]:
    """The function that has login nodes drain others: one document, on login nodes of the environment."""
    calls: list[Call] = []
    source = "Systems Manager User Guide, Restricting Run Command access based on tags"
    instance = f"arn:aws:ec2:{account.region}:{ACCOUNT}:instance/i-0123456789abcdef0"
    start = f"arn:aws:ssm:{account.region}:{ACCOUNT}:document/"
    tag = "ssm:resourceTag/ultracluster:"
    login = {f"{tag}environment": environment.name, f"{tag}node-group": "login"}
    for function in account.of_type("AWS::Lambda::Function"):
        variables = function.properties.get("Environment", {}).get("Variables", {})
        if "DOCUMENT" not in variables:
            continue
        role = account.role_of(function.properties["Role"])
        calls += may(role, "ssm:SendCommand", start + variables["DOCUMENT"], source)
        calls += may(role, "ssm:SendCommand", instance, source, context=login)
        calls += may(role, ("ssm:DescribeInstanceInformation", "ssm:GetCommandInvocation"), "*", source)
        calls += never(role, "ssm:SendCommand", instance, OURS)
        for other in ({f"{tag}environment": "another"}, {f"{tag}node-group": "train"}):
            calls += never(role, "ssm:SendCommand", instance, OURS, context={**login, **other})
        calls += never(role, "ssm:SendCommand", f"{start}AWS-RunShellScript", OURS)
        calls += never(role, ("ssm:StartSession", "ec2:TerminateInstances"), instance, OURS)
        group = function.properties["LoggingConfig"]["LogGroup"]
        calls += writes_log(account, role, group, "Lambda Developer Guide, Sending function logs to CloudWatch Logs")
        calls += may("lambda.amazonaws.com", "sts:AssumeRole", role.arn, "Lambda Developer Guide, execution role")
    return calls


def accounting(account: Account) -> list[Call]:
    """Login nodes on the document that gives Slurm the teams, which nobody changes through them."""
    source, calls = "AmazonSSMManagedInstanceCore; Systems Manager User Guide, State Manager", []
    start, node = f"arn:aws:ssm:{account.region}:{ACCOUNT}", "instance/i-0123456789abcdef0"
    for found in account.of_type("AWS::SSM::Association"):
        ids = found.properties["Targets"][0]["Values"]
        (group,) = [each for each in account.of_type("AWS::PCS::ComputeNodeGroup") if f"{each.ref}.Id" in ids]
        role, via = _node_role(account, group), _via(account, "ssm")
        document, asked = f"{start}:document/{found.properties['Name']}", f"{start}:association/1"
        instance = f"arn:aws:ec2:{account.region}:{ACCOUNT}:{node}"
        calls += may(role, "ssm:GetDocument", document, source, via=via)
        calls += may(role, "ssm:DescribeAssociation", asked, source, via=via)
        status = ("ssm:ListInstanceAssociations", "ssm:UpdateInstanceAssociationStatus")
        calls += may(role, status, instance, source, via=via)
        calls += never(role, "ssm:GetDocument", f"{start}:document/another", OURS)
        calls += never(role, ("ssm:UpdateDocument", "ssm:DeleteDocument"), document, "root on every login node")
        calls += never(role, ("ssm:CreateAssociation", "ssm:UpdateAssociation"), asked, OURS)
    return calls


def telemetry(account: Account, role: Role) -> list[Call]:
    """Nodes that write metrics to the workspace, if there is one, and logs to their group, and read neither."""
    source = "AMP User Guide, Set up ingestion; CloudWatch User Guide, IAM for the CloudWatch agent"
    workspaces = [found.arn for found in account.of_type("AWS::APS::Workspace")]
    other = f"arn:aws:aps:{account.region}:{ACCOUNT}:workspace/ws-of-another-environment"
    groups = [found.properties["LogGroupName"] for found in account.of_type("AWS::Logs::LogGroup")]
    [nodes] = [name for name in groups if name.startswith("/ultracluster/nodes/")]
    [scheduler] = [name for name in groups if name.startswith("/aws/vendedlogs/pcs/")]
    logs = f"arn:aws:logs:{account.region}:{ACCOUNT}:log-group:"
    stream = f"{logs}{nodes}:log-stream:train-1/kernel"
    via = _via(account, "logs")
    reads = (
        "aps:QueryMetrics",
        "aps:GetSeries",
        "aps:GetLabels",
        "aps:DescribeWorkspace",
        "aps:PutAlertManagerDefinition",
    )
    return [
        *may(role, "aps:RemoteWrite", workspaces, source, via=_via(account, "aps-workspaces") if workspaces else None),
        *never(role, "aps:RemoteWrite", other, OURS),
        *never(role, reads, workspaces or other, OURS),
        *may(role, ("logs:CreateLogStream", "logs:PutLogEvents"), stream, source, via=via),
        *may(role, "logs:DescribeLogStreams", f"{logs}{nodes}:*", source, via=via),
        *never(role, ("logs:GetLogEvents", "logs:DeleteLogStream"), stream, OURS),
        *never(role, "logs:PutLogEvents", f"{logs}{scheduler}:log-stream:x", OURS),
        *never(role, ("logs:DeleteLogGroup", "logs:PutRetentionPolicy"), f"{logs}{nodes}:*", OURS),
    ]


def pulls(account: Account, role: Role) -> list[Call]:
    """Nodes that pull images from ECR, of this account and of AWS's, and push none."""
    source = "Amazon ECR User Guide, Repository policy examples"
    calls = may(role, "ecr:GetAuthorizationToken", "*", source, via=_via(account, "ecr.api"))
    for owner in (ACCOUNT, DEEP_LEARNING_CONTAINERS):
        repository = f"arn:aws:ecr:{account.region}:{owner}:repository/training"
        allowed = None if owner == ACCOUNT else ANYBODY
        layers = ("ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer")
        opened = {"owner": owner, "resource_policy": allowed}
        calls += may(role, layers, repository, source, via=_via(account, "ecr.dkr"), **opened)
        calls += never(role, ("ecr:PutImage", "ecr:InitiateLayerUpload"), repository, OURS, **opened)
    return calls


def data(
    account: Account,
    environment: Environment,
    role: Role,
    *,
    folder: str = "raw",
    others: Sequence[str] = (),
    **more: object,
) -> list[Call]:
    """Jobs on buckets: they do what `access` says, and reach no bucket that the file does not name.

    They write in `folder`, and only read `others`.
    """
    source, via, calls = "storage.buckets", _via(account, "s3"), []
    settings = environment.storage.buckets
    owned = [(bucket.arn, key_of(bucket), settings[name_of(bucket)].access) for bucket in created_buckets(account)]
    existing = [bucket for bucket in settings.values() if bucket.existing]
    theirs = {bucket.key_arn for bucket in existing if bucket.key_arn}
    others_arns = [(f"arn:aws:s3:::{bucket.existing}", bucket.key_arn, bucket.access) for bucket in existing]
    for arn, key, access in [*owned, *others_arns]:
        path = f"{arn}/{folder}/a"
        listing = {"context": {"s3:prefix": f"{folder}/", **more.get("context", {})}}  # type: ignore[dict-item]
        calls += may(role, "s3:ListBucket", arn, source, via=via, **(more | listing))
        calls += may(role, "s3:GetObject", path, source, via=via, **more)
        calls += may(role, "s3:GetObject", [f"{arn}/{other}/a" for other in others], source, via=via, **more)
        changes = {"write": WRITE, "write_and_delete": (*WRITE, "s3:DeleteObject")}.get(access, ())
        if changes:
            calls += may(role, changes, path, f"{source}.access", via=via, **more)
        refused = [action for action in (*WRITE, "s3:DeleteObject", "s3:DeleteObjectVersion") if action not in changes]
        calls += never(role, refused, path, "data outlives jobs", **more)
        elsewhere = [f"{arn}/{other}/a" for other in others]
        calls += never(role, (*WRITE, "s3:DeleteObject"), elsewhere, "folders of other teams", **more)
        calls += never(role, ("s3:PutBucketPolicy", "s3:PutLifecycleConfiguration", "s3:DeleteBucket"), arn, OURS)
        if key:
            trusted = {"resource_policy": TRUSTS_THE_ACCOUNT if key in theirs else None}
            use = {**through_s3(account, arn), **trusted}
            used = {"kms:Decrypt"} | ({"kms:GenerateDataKey"} if changes else set())
            calls += may(role, sorted(used), key, "SSE-KMS, S3 User Guide", **use)
            if key in theirs and not changes:
                calls += never(role, "kms:GenerateDataKey", key, "reading takes no data keys", **use)
            calls += never(role, ("kms:ScheduleKeyDeletion", "kms:PutKeyPolicy", "kms:CreateGrant"), key, OURS, **use)
            calls += never(role, ("kms:Decrypt", "kms:GenerateDataKey"), key, "only through S3", **trusted)
            if key in theirs:
                continue
            insecure = {"aws:SecureTransport": "false", **more.get("context", {})}  # type: ignore[dict-item]
            calls += never(role, "s3:GetObject", path, "TLS only", context=insecure)
    for name in environment.storage.read_only_buckets:
        arn, opened = f"arn:aws:s3:::{name}", {"owner": OTHER_ACCOUNT, "resource_policy": ANYBODY}
        calls += may(role, "s3:ListBucket", arn, "storage.read_only_buckets", via=via, **opened)
        calls += may(role, "s3:GetObject", f"{arn}/a", "storage.read_only_buckets", via=via, **opened)
        calls += never(role, ("s3:PutObject", "s3:DeleteObject"), f"{arn}/a", "storage.read_only_buckets", **opened)
    stranger = {"owner": OTHER_ACCOUNT, "resource_policy": ANYBODY}
    calls += never(role, ("s3:GetObject", "s3:PutObject"), "arn:aws:s3:::somebody-else/a", OURS, **stranger)
    others = {found.arn for found in account.of_type("AWS::KMS::Key")} - {key for _, key, _ in owned}
    calls += never(role, ("kms:Decrypt", "kms:GenerateDataKey"), sorted(others), "keys of logs and metrics")
    return calls


def powerless(account: Account, role: Role) -> list[Call]:
    """What no node and no job may do to the account."""
    ec2 = f"arn:aws:ec2:{account.region}:{ACCOUNT}"
    given = [each.arn for each in _job_roles(account, role)]
    roles = sorted(arn for arn in account.roles if arn not in (role.arn, *given))
    return [
        *never(role, ("ec2:TerminateInstances", "ec2:ModifyInstanceAttribute"), f"{ec2}:instance/i-other", OURS),
        *never(role, "ec2:RunInstances", f"{ec2}:instance/i-other", OURS),
        *never(
            role, "iam:PassRole", [role.arn, *given, *roles], OURS, context={"iam:PassedToService": "ec2.amazonaws.com"}
        ),
        *never(role, "sts:AssumeRole", roles, OURS),
        *never(role, ("iam:AttachRolePolicy", "iam:UpdateAssumeRolePolicy"), role.arn, OURS),
        *never(role, "fsx:DeleteFileSystem", f"arn:aws:fsx:{account.region}:{ACCOUNT}:file-system/fs-1", OURS),
        *never(role, "elasticfilesystem:DeleteFileSystem", _efs(account), OURS),
        *never(
            role,
            "secretsmanager:GetSecretValue",
            f"arn:aws:secretsmanager:{account.region}:{ACCOUNT}:secret:pcs!scheduler",
            "the scheduler's key is PCS's",
        ),
    ]


def _efs(account: Account) -> str:
    return f"arn:aws:elasticfilesystem:{account.region}:{ACCOUNT}:file-system/fs-1"


def launched_by_pcs(account: Account, node_role: Role) -> list[Call]:
    """PCS's service-linked role: AWS's policy lets it pass roles of some paths only."""
    pcs = aws_role(PCS_ROLE, "AWSPCSServiceRolePolicy")
    ec2, passed = f"arn:aws:ec2:{account.region}:{ACCOUNT}", {"iam:PassedToService": "ec2.amazonaws.com"}
    tagged = {"aws:RequestTag/AWSPCSManaged": "true", "aws:TagKeys": ["AWSPCSManaged"]}
    used = [f"{ec2}:{kind}/a" for kind in ("subnet", "security-group", "launch-template", "placement-group", "volume")]
    others = sorted(arn for arn, role in account.roles.items() if not role.trusts("ec2.amazonaws.com"))
    return [
        *may("ec2.amazonaws.com", "sts:AssumeRole", node_role.arn, "EC2 User Guide, IAM roles for Amazon EC2"),
        *never(("pcs.amazonaws.com"), "sts:AssumeRole", node_role.arn, OURS),
        *may(pcs, "iam:PassRole", node_role.arn, PCS_LAUNCHES, context=passed),
        *never(pcs, "iam:PassRole", others, PCS_LAUNCHES, context=passed),
        *may(pcs, "ec2:RunInstances", used, PCS_LAUNCHES),
        *may(pcs, "ec2:CreateFleet", f"{ec2}:launch-template/a", PCS_LAUNCHES),
        *may(pcs, "ec2:RunInstances", f"{ec2}:instance/i-new", PCS_LAUNCHES, context=tagged),
        *never(pcs, "ec2:TerminateInstances", f"{ec2}:instance/i-not-of-pcs", PCS_LAUNCHES),
    ]
