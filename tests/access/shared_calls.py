"""Rows for what every environment has: links, logs, metrics, endpoints, and the functions of custom resources."""

from tests.access.account import ACCOUNT, Account, Document, Found, Role, aws_role
from tests.access.observability_calls import alerts, assigns_users, fills_grafana
from tests.access.table import ANYBODY, OTHER_ACCOUNT, Call, may, never
from tests.access.throwaway_calls import deletes_file_system, empties, looks_up, quietens
from ultracluster.config.environment import Environment

FSX_ROLE = "fsx.amazonaws.com/AWSServiceRoleForAmazonFSx"
S3_ROLE = "s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_fs-0123456789abcdef0"
KEY_USE = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)

FSX_S3 = "FSx for Lustre User Guide, Using service-linked roles; Working with server-side encrypted Amazon S3 buckets"
LOGS = "CloudWatch Logs User Guide, Encrypt log data using AWS KMS"
CLOUDWATCH_METRICS = (
    *("cloudwatch:DescribeAlarmsForMetric", "cloudwatch:DescribeAlarmHistory", "cloudwatch:DescribeAlarms"),
    *("cloudwatch:ListMetrics", "cloudwatch:GetMetricStatistics", "cloudwatch:GetMetricData"),
    *("cloudwatch:GetInsightRuleReport", "ec2:DescribeTags", "ec2:DescribeInstances", "ec2:DescribeRegions"),
    "tag:GetResources",
)
SOFTWARE = {
    "AWS PCS User Guide, Download AWS PCS software": ("aws-pcs-repo-{}", "aws-pcs-repo-public-keys-{}"),
    "Amazon ECR User Guide, Create the Amazon S3 gateway endpoint": ("prod-{}-starport-layer-bucket",),
    "Systems Manager User Guide, SSM Agent communications with AWS managed S3 buckets": (
        *("aws-ssm-{}", "amazon-ssm-{}", "amazon-ssm-packages-{}", "aws-ssm-document-attachments-{}"),
        *("aws-ssm-distributor-file-{}", "patch-baseline-snapshot-{}", "{}-birdwatcher-prod"),
    ),
    "Amazon Linux 2023 User Guide, Deterministic upgrades": ("al2023-repos-{}-de612dc2",),
    "CloudWatch User Guide, Download the CloudWatch agent package": ("amazoncloudwatch-agent-{}",),
    "FSx for Lustre User Guide, Installing the Lustre client": (
        *("fsx-lustre-client-repo", "fsx-lustre-client-repo-public-keys"),
    ),
    "kubernetes/registry.k8s.io, archeio": (
        *("prod-registry-k8s-io-{}", "767373bbdcb8270361b96548387bf2a9ad0d48758c35-eu-west-2"),
    ),
    "layers of quay.io, not verified at Quay": ("quayio-production-s3",),
}
"""Buckets of others that nodes install software from, by source; {} is the Region."""

OURS = "least privilege"


def shared_calls(account: Account, environment: Environment) -> list[Call]:
    """Rows for every environment."""
    return [
        *keys(account),
        *file_system(account),
        *links(account),
        *log_keys(account),
        *access_logs(account),
        *flow_logs(account),
        *grafana(account),
        *alerts(account),
        *functions(account),
        *endpoint_of_s3(account, environment),
    ]


def created_buckets(account: Account) -> list[Found]:
    """Buckets for data, with their key; the bucket for access logs has none."""
    return [found for found in account.of_type("AWS::S3::Bucket") if key_of(found)]


def name_of(bucket: Found) -> str:
    """Key of a created bucket under storage.buckets, which its access logs name."""
    prefix: str = bucket.properties["LoggingConfiguration"]["LogFilePrefix"]
    return prefix.removeprefix("bucket-").removesuffix("/")


def key_of(bucket: Found) -> str | None:
    """ARN of the key that encrypts a bucket."""
    (rule,) = bucket.properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    return rule["ServerSideEncryptionByDefault"].get("KMSMasterKeyID")


def through_s3(account: Account, bucket_arn: str) -> dict[str, dict[str, str]]:
    """What S3 passes to KMS with S3 Bucket Keys (S3 User Guide, "Using Amazon S3 Bucket Keys with SSE-KMS", 2026)."""
    return {
        "context": {"kms:ViaService": f"s3.{account.region}.amazonaws.com"},
        "encryption_context": {"aws:s3:arn": bucket_arn},
    }


def keys(account: Account) -> list[Call]:
    """Administrators on the keys: services such as FSx, AMP and EKS use a key by a grant of who creates a resource."""
    source = "KMS Developer Guide, Default key policy; FSx, AMP and EKS User Guides on encryption with KMS"
    everything: Document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    admin = Role("administrator", f"arn:aws:iam::{ACCOUNT}:role/administrator", "", {}, (("all", everything),))
    outsider = Role("outsider", f"arn:aws:iam::{OTHER_ACCOUNT}:role/administrator", "", {}, (("all", everything),))
    bystander = Role("bystander", f"arn:aws:iam::{ACCOUNT}:role/bystander", "", {}, ())
    calls = []
    for key in account.of_type("AWS::KMS::Key"):
        calls += may(admin, ("kms:CreateGrant", "kms:DescribeKey", "kms:PutKeyPolicy", "kms:Decrypt"), key.arn, source)
        calls += never((bystander), ("kms:Decrypt", "kms:CreateGrant"), key.arn, "IAM policies of the account decide")
        calls += never(outsider, ("kms:Decrypt", "kms:CreateGrant"), key.arn, "keys of this account")
    for bucket in account.of_type("AWS::S3::Bucket"):
        calls += never(outsider, ("s3:GetObject", "s3:PutObject"), f"{bucket.arn}/a", "buckets of this account")
        calls += may(admin, "s3:GetObject", f"{bucket.arn}/a", "IAM policies of the account decide")
        for old in ({"aws:SecureTransport": "false"}, {"s3:TlsVersion": "1.1"}):
            calls += never(admin, "s3:GetObject", f"{bucket.arn}/a", "TLS 1.2 or newer", context=old)
            calls += never(admin, "s3:ListBucket", bucket.arn, "TLS 1.2 or newer", context=old)
    return calls


def file_system(account: Account) -> list[Call]:
    """FSx's service-linked role: network interfaces and logs; the key of the file system is used by grant."""
    role, source = aws_role(FSX_ROLE, "AmazonFSxServiceRolePolicy"), "AmazonFSxServiceRolePolicy"
    subnet = f"arn:aws:ec2:{account.region}:{ACCOUNT}:subnet/subnet-1"
    calls = []
    for found in account.of_type("AWS::FSx::FileSystem"):
        calls += may(role, "ec2:CreateNetworkInterface", subnet, source)
        if lustre := found.properties.get("LustreConfiguration"):
            group = lustre["LogConfiguration"]["Destination"]
            calls += may(role, "logs:PutLogEvents", f"{group}:log-stream:a", "FSx accepts log groups under /aws/fsx/")
        if key := found.properties.get("KmsKeyId"):
            calls += never(role, ("kms:Decrypt", "kms:CreateGrant"), key, "FSx uses a grant of who creates it")
    return calls


def links(account: Account) -> list[Call]:
    """FSx's service-linked role on the buckets of links, and everybody else on their keys."""
    linked = {
        found.properties["DataRepositoryPath"].removeprefix("s3://").partition("/")[0]
        for found in account.of_type("AWS::FSx::DataRepositoryAssociation")
    }
    role, calls = aws_role(S3_ROLE, "AWSServiceRoleForFSxS3Access"), []
    another = aws_role(S3_ROLE.replace("FSxS3Access_fs", "FSxS3Access_fc"), "AWSServiceRoleForFSxS3Access")
    outsider = Role(role.name, role.arn.replace(ACCOUNT, OTHER_ACCOUNT), "", role.trust, role.policies)
    for bucket in created_buckets(account):
        if bucket.ref not in linked:
            continue
        key, use = str(key_of(bucket)), through_s3(account, bucket.arn)
        calls += may(role, ("s3:GetObject", "s3:PutObject", "s3:DeleteObject"), f"{bucket.arn}/raw/a", FSX_S3)
        calls += may(role, ("s3:ListBucket", "s3:PutBucketNotification"), bucket.arn, FSX_S3)
        calls += may(role, KEY_USE, key, FSX_S3, **use)
        # without S3 Bucket Keys, the context names the object
        calls += may(role, "kms:Decrypt", key, FSX_S3, **through_s3(account, f"{bucket.arn}/raw/a"))
        calls += never(role, ("kms:ScheduleKeyDeletion", "kms:PutKeyPolicy", "kms:CreateGrant"), key, OURS, **use)
        calls += never(role, "kms:Decrypt", key, OURS, **through_s3(account, "arn:aws:s3:::somebody-else"))
        calls += never(role, "kms:Decrypt", key, "only through S3", encryption_context=use["encryption_context"])
        elsewhere = {**use["context"], "kms:CallerAccount": OTHER_ACCOUNT}
        calls += never(role, "kms:Decrypt", key, "only this account", **{**use, "context": elsewhere})
        calls += never(another, "kms:Decrypt", key, "only roles of file systems", **use)
        calls += never(outsider, "kms:Decrypt", key, "only roles of this account", **use)
    return calls


def log_keys(account: Account) -> list[Call]:
    """CloudWatch Logs on the keys of log groups: for the group, and for no other."""
    logs, calls = f"logs.{account.region}.amazonaws.com", []
    for group in account.of_type("AWS::Logs::LogGroup"):
        if not (key := group.properties.get("KmsKeyId")):
            continue
        arn = group.arn.removesuffix(":*")
        calls += may(logs, KEY_USE, key, LOGS, encryption_context={"aws:logs:arn": arn})
        for stranger in (arn.replace("log-group:/", "log-group:/other/"), arn.replace(ACCOUNT, OTHER_ACCOUNT)):
            calls += never(logs, "kms:Decrypt", key, OURS, encryption_context={"aws:logs:arn": stranger})
        calls += never(logs, "kms:Decrypt", key, "the condition names the log group")
        calls += never(logs, "kms:CreateGrant", key, OURS, encryption_context={"aws:logs:arn": arn})
        elsewhere = logs.replace(account.region, "eu-west-1")
        calls += never(elsewhere, "kms:Decrypt", key, OURS, encryption_context={"aws:logs:arn": arn})
    return calls


def access_logs(account: Account) -> list[Call]:
    """S3's log delivery on the bucket for access logs (S3 User Guide, "Enabling Amazon S3 server access logging")."""
    service, source, calls = "logging.s3.amazonaws.com", "S3 User Guide, Enabling Amazon S3 server access logging", []
    for bucket in created_buckets(account):
        target = f"arn:aws:s3:::{bucket.properties['LoggingConfiguration']['DestinationBucketName']}/log"
        context = {"aws:SourceAccount": ACCOUNT, "aws:SourceArn": bucket.arn}
        calls += may(service, "s3:PutObject", target, source, context=context)
        calls += never(service, "s3:GetObject", target, OURS, context=context)
        for foreign in ({"aws:SourceAccount": OTHER_ACCOUNT}, {"aws:SourceArn": "arn:aws:s3:::somebody-else"}):
            calls += never(service, "s3:PutObject", target, "confused deputy", context={**context, **foreign})
        calls += never(service, "s3:PutObject", f"{bucket.arn}/log", OURS, context=context)
    return calls


def flow_logs(account: Account) -> list[Call]:
    """The role of VPC flow logs."""
    source, calls = "VPC User Guide, IAM role for publishing flow logs", []
    for found in account.of_type("AWS::EC2::FlowLog"):
        role = account.role_of(found.properties["DeliverLogsPermissionArn"])
        calls += writes_log(account, role, found.properties["LogGroupName"], source, "logs:DescribeLogStreams")
        calls += assumed_by(
            role, "vpc-flow-logs.amazonaws.com", f"arn:aws:ec2:{account.region}:{ACCOUNT}:vpc-flow-log/fl-1", source
        )
    return calls


def writes_log(account: Account, role: Role, group: str, source: str, *more: str) -> list[Call]:
    """A role on its log group and on another."""
    start = f"arn:aws:logs:{account.region}:{ACCOUNT}:log-group:"
    actions = ("logs:CreateLogStream", "logs:PutLogEvents", *more)
    return [
        *may(role, actions, f"{start}{group}:log-stream:a", source),
        *never(role, actions, f"{start}/another/group:log-stream:a", OURS),
        *never(role, "logs:DeleteLogGroup", f"{start}{group}:log-stream:a", OURS),
    ]


def assumed_by(role: Role, service: str, source_arn: str, source: str) -> list[Call]:
    """A service on a trust policy that names what the service acts for, against the confused deputy."""
    context = {"aws:SourceAccount": ACCOUNT, "aws:SourceArn": source_arn}
    foreign = {"aws:SourceAccount": OTHER_ACCOUNT, "aws:SourceArn": source_arn.replace(ACCOUNT, OTHER_ACCOUNT)}
    return [
        *may(service, "sts:AssumeRole", role.arn, source, context=context),
        *(
            call
            for key, value in foreign.items()
            for call in never(service, "sts:AssumeRole", role.arn, "confused deputy", context={**context, key: value})
        ),
        *never("ec2.amazonaws.com", "sts:AssumeRole", role.arn, OURS, context=context),
    ]


def grafana(account: Account) -> list[Call]:
    """The role of Grafana, where there is one."""
    source, calls = "Amazon Managed Grafana User Guide, Permissions and policies for AWS data sources", []
    for workspace in account.of_type("AWS::Grafana::Workspace"):
        role = account.role_of(workspace.properties["RoleArn"])
        query = ("aps:QueryMetrics", "aps:GetLabels", "aps:GetSeries", "aps:GetMetricMetadata", "aps:DescribeWorkspace")
        for metrics in account.of_type("AWS::APS::Workspace"):
            calls += may(role, query, metrics.arn, source)
            calls += never(role, ("aps:RemoteWrite", "aps:DeleteWorkspace"), metrics.arn, OURS)
            key, encrypted = metrics.properties["KmsKeyArn"], "AMP User Guide, Encryption at rest, Step 3"
            through_amp = {"kms:ViaService": f"aps.{account.region}.amazonaws.com"}
            calls += may(role, ("kms:Decrypt", "kms:DescribeKey"), key, encrypted, context=through_amp)
            calls += never(role, "kms:Decrypt", key, OURS)
        calls += may(role, "aps:ListWorkspaces", "*", source)
        calls += may(role, CLOUDWATCH_METRICS, "*", "AWS managed policy AmazonGrafanaCloudWatchAccess, metrics")
        calls += never(role, "aps:QueryMetrics", f"arn:aws:aps:{account.region}:{ACCOUNT}:workspace/ws-other", OURS)
        calls += never(
            role, "logs:GetLogEvents", f"arn:aws:logs:{account.region}:{ACCOUNT}:log-group:a:log-stream:a", OURS
        )
        calls += never(role, ("cloudwatch:PutMetricData", "cloudwatch:ListDashboards"), "*", OURS)
        calls += assumed_by(
            role, "grafana.amazonaws.com", f"arn:aws:grafana:{account.region}:{ACCOUNT}:/workspaces/g-1", source
        )
    return calls


def functions(account: Account) -> list[Call]:
    """Functions behind custom resources of ours: the calls in their handlers, and their log."""
    calls = []
    for function in account.of_type("AWS::Lambda::Function"):
        served = [found for found in account.served_by(function) if found.type in HANDLERS]
        if not served:
            continue
        role = account.role_of(function.properties["Role"])
        group = function.properties["LoggingConfig"]["LogGroup"]
        calls += writes_log(account, role, group, "Lambda Developer Guide, Sending function logs to CloudWatch Logs")
        calls += may("lambda.amazonaws.com", "sts:AssumeRole", role.arn, "Lambda Developer Guide, execution role")
        for resource in served:
            calls += HANDLERS[resource.type](account, role, resource)
    return calls


def _closes_group(account: Account, role: Role, resource: Found) -> list[Call]:
    start = f"arn:aws:ec2:{account.region}:{ACCOUNT}:security-group/"
    actions = ("ec2:RevokeSecurityGroupEgress", "ec2:RevokeSecurityGroupIngress")
    return [
        *may(role, actions, start + resource.properties["GroupId"], "handlers/default_security_group.py"),
        *never(role, actions, f"{start}sg-other", OURS),
    ]


def _squashes(account: Account, role: Role, resource: Found) -> list[Call]:
    start = f"arn:aws:fsx:{account.region}:{ACCOUNT}:file-system/"
    own = start + resource.properties["FileSystemId"]
    return [
        *may(role, "fsx:UpdateFileSystem", own, "handlers/root_squash.py"),
        *may(role, "fsx:DescribeFileSystems", "*", "handlers/root_squash.py"),
        *never(role, "fsx:UpdateFileSystem", f"{start}fs-other", OURS),
        *never(role, "fsx:DeleteFileSystem", own, OURS),
    ]


HANDLERS = {
    "Custom::ClosedDefaultSecurityGroup": _closes_group,
    "Custom::DeleteFileSystem": deletes_file_system,
    "Custom::EmptyBucket": empties,
    "Custom::GrafanaContent": fills_grafana,
    "Custom::GrafanaUsers": assigns_users,
    "Custom::LustreLookup": looks_up,
    "Custom::LustreRootSquash": _squashes,
    "Custom::QuietCluster": quietens,
}


def endpoint_of_s3(account: Account, environment: Environment) -> list[Call]:
    """Everybody through the S3 endpoint: the software of AWS, data sets that the file names, and nothing else.

    The buckets are open to everybody here, so that the endpoint policy decides.
    """
    if "s3" not in account.endpoints:
        return []
    calls = []
    opened = {"via": "s3", "owner": OTHER_ACCOUNT, "resource_policy": ANYBODY}
    for source, names in SOFTWARE.items():
        objects = [f"arn:aws:s3:::{name.format(account.region)}/a" for name in names]
        calls += may("anonymous", "s3:GetObject", objects, source, **opened)
        calls += never("anonymous", "s3:PutObject", objects, "no copies to other accounts", **opened)
    for name in environment.storage.read_only_buckets:
        arn = f"arn:aws:s3:::{name}"
        source = "storage.read_only_buckets"
        calls += may("anonymous", "s3:GetObject", f"{arn}/a", source, **opened)
        calls += may("anonymous", "s3:ListBucket", arn, source, **opened)
        calls += never("anonymous", ("s3:PutObject", "s3:DeleteObject"), f"{arn}/a", source, **opened)
    for bucket in environment.storage.buckets.values():
        if bucket.existing:
            arn = f"arn:aws:s3:::{bucket.existing}"
            source = "storage.buckets.existing"
            calls += may("anonymous", "s3:GetObject", f"{arn}/a", source, **opened)
            calls += may("anonymous", "s3:ListBucket", arn, source, **opened)
            judged = never if bucket.access == "read" else may
            calls += judged("anonymous", "s3:PutObject", f"{arn}/a", source, **opened)
    stranger = "arn:aws:s3:::somebody-else"
    calls += never(
        "anonymous", ("s3:GetObject", "s3:PutObject"), f"{stranger}/a", "no copies to other accounts", **opened
    )
    return calls + never("anonymous", "s3:ListBucket", stranger, "no copies to other accounts", **opened)
