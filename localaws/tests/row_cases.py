"""The cases of the round trip: values that the registry's schema does not know, and what cannot be tested."""

import json
from base64 import b64encode

from handler_parts import ACCOUNT, Stack
from round_trip import Case
from row_parts import ROOT, allow, nodes, policy

ALARM = "AlarmDescription AlarmName ActionsEnabled AlarmActions InsufficientDataActions OKActions Tags"
METRIC = "Namespace MetricName Statistic Period"
SELECT = "SELECT SUM({}) FROM \"AWS/Prometheus\" WHERE Workspace = 'ws-1'"
ADMIN, VIEW = (f"arn:aws:eks::aws:cluster-access-policy/AmazonEKS{name}Policy" for name in ("ClusterAdmin", "View"))
RULES = "groups:\n- name: {}\n  rules:\n  - record: a\n    expr: up\n"
ALERTS = "alertmanager_config: |\n  route:\n    receiver: {0}\n  receivers:\n  - name: {0}\n"
SCRAPE = (
    "global: {{scrape_interval: {}s}}\nscrape_configs: [{{job_name: a, kubernetes_sd_configs: [{{role: node}}]}}]\n"
)
GPUS = {"Name": "gpu", "Type": "h100", "File": "/dev/nvidia[0-7]", "Count": "8"}
LIFECYCLE = {
    "rulePriority": 1,
    "selection": {"tagStatus": "untagged", "countType": "imageCountMoreThan", "countNumber": 9},
    "action": {"type": "expire"},
}

GROUP = nodes("$(pcs.Id)")[1]


def actions(name: str) -> dict[str, tuple[list[str], list[str]]]:
    return {name: (["$(topic)"], ["$(topic2)", "$(topic)"])}


def insights(name: str) -> list[dict[str, object]]:
    return [{"Id": "a", "Expression": SELECT.format(name), "Period": 300, "ReturnData": True}]


def slurm(**values: str) -> list[dict[str, str]]:
    return [{"ParameterName": name, "ParameterValue": value} for name, value in values.items()]


def widgets(*texts: str) -> str:
    return json.dumps({"widgets": [{"type": "text", "properties": {"markdown": text}} for text in texts]})


def logging(group: str, threshold: int) -> dict[str, object]:
    destination = {"LogGroupArn": f"$({group}.Arn)"}
    return {"Destinations": [{"CloudWatchLogs": destination, "Filters": {"QspThreshold": threshold}}]}


def pod_identities(stack: Stack, addon: str) -> list[dict[str, str]]:
    """The pod identity associations of an add-on."""
    eks, cluster = stack.client("eks"), addon.split("|")[0]
    listed = eks.list_pod_identity_associations(clusterName=cluster)["associations"]
    ids = [each["associationId"] for each in listed]
    return [eks.describe_pod_identity_association(clusterName=cluster, associationId=n)["association"] for n in ids]


def scrape_configuration(stack: Stack, scraper: str) -> dict[str, str]:
    """The configuration of a scraper in base64, as templates have it."""
    found = stack.client("amp").describe_scraper(scraperId=scraper.split("/")[-1])["scraper"]
    return {"ConfigurationBlob": b64encode(found["scrapeConfiguration"]["configurationBlob"]).decode()}


def interface_groups(stack: Stack, file_system: str) -> list[str]:
    """The security groups of a file system's network interface."""
    found = stack.client("fsx").describe_file_systems(FileSystemIds=[file_system])["FileSystems"][0]
    ids = found["NetworkInterfaceIds"]
    interface = stack.client("ec2").describe_network_interfaces(NetworkInterfaceIds=ids)["NetworkInterfaces"][0]
    return [group["GroupId"] for group in interface["Groups"]]


CASES = [
    Case(
        "AWS::CloudWatch::Alarm",
        {
            "AlarmName": "a",
            "EvaluationPeriods": (2, 3),
            "DatapointsToAlarm": (1, 2),
            "Dimensions": ([{"Name": "Group", "Value": "a"}], [{"Name": "Group", "Value": "b"}]),
            **{
                k: v
                for name in ("AlarmActions", "InsufficientDataActions", "OKActions")
                for k, v in actions(name).items()
            },
            "ComparisonOperator": ("GreaterThanThreshold", "LessThanThreshold"),
            "Statistic": ("Sum", "Average"),
            "Period": (60, 3600),
            "TreatMissingData": ("notBreaching", "breaching"),
            "Unit": ("Count", "Seconds"),
        },
        base=f"{METRIC} EvaluationPeriods Threshold ComparisonOperator",
        without="Metrics",
        kept="MetricName",
        at={"Tags": "ListTagsForResource.Tags"},
        ident={"ResourceARN": "{Arn}"},
        gives={"Ref": "a", "Arn": f"arn:aws:cloudwatch:us-east-1:{ACCOUNT}:alarm:a"},
    ),
    Case(
        "AWS::CloudWatch::Alarm",
        {
            "EvaluationPeriods": (1, 2),
            "Threshold": 0,
            "ComparisonOperator": "GreaterThanThreshold",
            "Metrics": (insights("a"), insights("b")),
        },
        only="EvaluationPeriods Threshold ComparisonOperator Metrics",
        base="EvaluationPeriods Threshold ComparisonOperator Metrics",
        kept="Metrics",
        label="Metrics",
    ),
    Case(
        "AWS::CloudWatch::CompositeAlarm",
        {
            "AlarmRule": ('ALARM("$(alarm)") AND NOT FALSE', "OK($(alarm2))"),
            **{
                k: v
                for name in ("AlarmActions", "InsufficientDataActions", "OKActions")
                for k, v in actions(name).items()
            },
        },
        at={"Tags": "ListTagsForResource.Tags"},
        ident={"ResourceARN": "{Arn}"},
        gives={"Arn": f"arn:aws:cloudwatch:us-east-1:{ACCOUNT}:alarm:first"},
    ),
    Case(
        "AWS::CloudWatch::Dashboard",
        {"DashboardBody": (widgets("a"), widgets("b", "c"))},
        at={"Tags": "ListTagsForResource.Tags"},
        ident={"ResourceARN": f"arn:aws:cloudwatch::{ACCOUNT}:dashboard/{{ref}}"},
        gives={"Ref": "first"},
    ),
    Case(
        "AWS::ECR::Repository",
        {
            "LifecyclePolicy": tuple(
                {"LifecyclePolicyText": json.dumps({"rules": [{**LIFECYCLE, "rulePriority": n}]})} for n in (1, 2)
            ),
            "RepositoryPolicyText": (
                policy({"Sid": "a", "Effect": "Allow", "Principal": "*", "Action": "ecr:BatchGetImage"}),
                policy({"Sid": "b", "Effect": "Allow", "Principal": "*", "Action": "ecr:BatchGetImage"}),
            ),
            "ImageTagMutability": ("IMMUTABLE", "MUTABLE"),
            "ImageScanningConfiguration": ({"ScanOnPush": True}, {"ScanOnPush": False}),
            "EncryptionConfiguration": {"EncryptionType": "KMS", "KmsKey": "$(key.Arn)"},
        },
        ident={"resourceArn": "{Arn}"},
        at={
            "LifecyclePolicy": "GetLifecyclePolicy",
            "RepositoryPolicyText": "GetRepositoryPolicy.policyText",
            "Tags": "ListTagsForResource.tags",
        },
        gives={"RepositoryUri": rf"{ACCOUNT}\.dkr\.ecr\.us-east-1\.amazonaws\.com/first"},
    ),
    Case(
        "AWS::EKS::Addon",
        {
            "ClusterName": "$(cluster)",
            "AddonName": "aws-fsx-csi-driver",
            "ServiceAccountRoleArn": ("$(role.Arn)", "$(role2.Arn)"),
            "AddonVersion": ("v1.9.0-eksbuild.1", "v1.10.0-eksbuild.1"),
            "ConfigurationValues": ('{"node": {"tolerateAllTaints": true}}', '{"node": {}}'),
            "PodIdentityAssociations": (
                [{"ServiceAccount": "fsx-csi-controller-sa", "RoleArn": "$(pod.Arn)"}],
                [{"ServiceAccount": "fsx-csi-controller-sa", "RoleArn": "$(pod2.Arn)"}],
            ),
        },
        stays="AddonVersion",
        kept="ServiceAccountRoleArn",
        at={"PodIdentityAssociations": pod_identities},
        gives={"Ref": "train\\|aws-fsx-csi-driver"},
    ),
    Case(
        "AWS::EKS::PodIdentityAssociation",
        {
            "ClusterName": "$(cluster)",
            "RoleArn": ("$(pod.Arn)", "$(pod2.Arn)"),
            "TargetRoleArn": ("$(role.Arn)", "$(role2.Arn)"),
            "DisableSessionTags": (True, False),
        },
        without="Policy",
    ),
    Case(
        "AWS::EKS::PodIdentityAssociation",
        {
            "ClusterName": "$(cluster)",
            "RoleArn": "$(pod.Arn)",
            "DisableSessionTags": True,
            "Policy": (json.dumps(allow("s3:GetObject")), json.dumps(allow("s3:PutObject"))),
        },
        only="ClusterName RoleArn Namespace ServiceAccount DisableSessionTags Policy",
        base="DisableSessionTags",
        label="policy",
    ),
    Case(
        "AWS::EKS::Capability",
        {
            "ClusterName": "$(cluster)",
            "Type": "ACK",
            "RoleArn": ("$(capability.Arn)", "$(capability2.Arn)"),
            "DeletePropagationPolicy": "RETAIN",
            "Configuration": ({"Ack": {"DisabledServices": ["ec2"]}}, {"Ack": {"DisabledServices": ["s3"]}}),
        },
        kept="Configuration",
    ),
    Case(
        "AWS::EKS::AccessEntry",
        {
            "ClusterName": "$(cluster)",
            "PrincipalArn": "$(role.Arn)",
            "Type": "STANDARD",
            "AccessPolicies": (
                [
                    {"PolicyArn": ADMIN, "AccessScope": {"Type": "cluster"}},
                    {"PolicyArn": VIEW, "AccessScope": {"Type": "cluster"}},
                ],
                [{"PolicyArn": VIEW, "AccessScope": {"Type": "namespace", "Namespaces": ["team"]}}],
            ),
            "KubernetesGroups": (["a", "b"], ["c"]),
        },
        kept="Username",
        at={"AccessPolicies": "ListAssociatedAccessPolicies.associatedAccessPolicies"},
        gives={"Ref": "$(role.Arn)\\|train"},
    ),
    Case(
        "AWS::SNS::Topic",
        {
            "TracingConfig": ("Active", "PassThrough"),
            "KmsMasterKeyId": ("$(key)", "$(key2)"),
            "SignatureVersion": ("2", "1"),
        },
        read="GetTopicAttributes",
        defaults={"TracingConfig": "PassThrough", "SignatureVersion": "1"},
        at={"Tags": "ListTagsForResource.Tags", "TopicName": ".TopicArn"},
        ident={"ResourceArn": "{ref}"},
        gives={"Ref": f"arn:aws:sns:us-east-1:{ACCOUNT}:first", "TopicName": "first"},
    ),
    Case(
        "AWS::APS::Workspace",
        {
            "KmsKeyArn": "$(key.Arn)",
            "AlertManagerDefinition": (ALERTS.format("a"), ALERTS.format("b")),
            "LoggingConfiguration": ({"LogGroupArn": "$(group.Arn)"}, {"LogGroupArn": "$(group2.Arn)"}),
            "QueryLoggingConfiguration": (logging("group", 100), logging("group2", 200)),
            "WorkspaceConfiguration": tuple(
                {
                    "RetentionPeriodInDays": 200 + n,
                    "OutOfOrderTimeWindowInSeconds": 10 + n,
                    "RuleQueryOffsetInSeconds": 20 + n,
                    "LimitsPerLabelSets": [
                        {"Limits": {"MaxSeries": 10 + n}, "LabelSet": [{"Name": "a", "Value": "b"}]}
                    ],
                }
                for n in (0, 1)
            ),
        },
        at={
            "AlertManagerDefinition": "DescribeAlertManagerDefinition.alertManagerDefinition.data",
            "LoggingConfiguration": "DescribeLoggingConfiguration.loggingConfiguration",
            "QueryLoggingConfiguration": "DescribeQueryLoggingConfiguration.queryLoggingConfiguration",
            "WorkspaceConfiguration": "DescribeWorkspaceConfiguration.workspaceConfiguration",
        },
    ),
    Case(
        "AWS::APS::RuleGroupsNamespace",
        {"Workspace": "$(workspace.Arn)", "Data": (RULES.format("a"), RULES.format("b"))},
        gives={"Ref": f"arn:aws:aps:us-east-1:{ACCOUNT}:rulegroupsnamespace/ws-[^/]+/first"},
    ),
    Case(
        "AWS::APS::Scraper",
        {
            "ScrapeConfiguration": tuple(
                {"ConfigurationBlob": b64encode(SCRAPE.format(n).encode()).decode()} for n in (30, 60)
            ),
            "Source": {"EksConfiguration": {"ClusterArn": "$(cluster.Arn)", "SubnetIds": ["$(subnet)", "$(subnet2)"]}},
            "Destination": (
                {"AmpConfiguration": {"WorkspaceArn": "$(workspace.Arn)"}},
                {"AmpConfiguration": {"WorkspaceArn": "$(workspace2.Arn)"}},
            ),
            "RoleConfiguration": (
                {"SourceRoleArn": "$(scraper.Arn)", "TargetRoleArn": "$(target.Arn)"},
                {"SourceRoleArn": "$(scraper2.Arn)", "TargetRoleArn": "$(target2.Arn)"},
            ),
            "ScraperLoggingConfiguration": tuple(
                {
                    "LoggingDestination": {"CloudWatchLogs": {"LogGroupArn": f"$({group}.Arn)"}},
                    "ScraperComponents": [{"Type": "COLLECTOR"}],
                }
                for group in ("group", "group2")
            ),
        },
        at={
            "ScraperLoggingConfiguration": "DescribeScraperLoggingConfiguration",
            "ScrapeConfiguration": scrape_configuration,
        },
        stays="Alias",
    ),
    Case(
        "AWS::FSx::FileSystem",
        {
            "FileSystemType": "LUSTRE",
            "StorageCapacity": (4800, 9600),
            "StorageType": ("SSD", "HDD"),
            "SubnetIds": ["$(subnet)"],
            "SecurityGroupIds": ["$(efa)"],
            "KmsKeyId": "$(key)",
            "LustreConfiguration": tuple(
                {
                    "DeploymentType": kind,
                    "PerUnitStorageThroughput": throughput,
                    "EfaEnabled": kind == "PERSISTENT_2",
                    "MetadataConfiguration": metadata,
                    "DataCompressionType": compression,
                    "AutomaticBackupRetentionDays": days,
                    "DailyAutomaticBackupStartTime": f"0{days}:00",
                    "WeeklyMaintenanceStartTime": f"{days}:05:00",
                    "LogConfiguration": {"Level": level},
                }
                for kind, throughput, metadata, compression, days, level in (
                    ("PERSISTENT_2", 1000, {"Mode": "AUTOMATIC"}, "LZ4", 6, "ERROR_ONLY"),
                    ("PERSISTENT_1", 1000, {"Mode": "USER_PROVISIONED", "Iops": 12000}, "NONE", 7, "WARN_ERROR"),
                )
            ),
        },
        without="FileSystemTypeVersion",
        base="StorageCapacity SecurityGroupIds LustreConfiguration",
        replaced="LustreConfiguration.DeploymentType",
        each="LustreConfiguration",
        fixed="LustreConfiguration.EfaEnabled StorageType",
        kept="StorageCapacity LustreConfiguration LustreConfiguration.PerUnitStorageThroughput "
        "LustreConfiguration.MetadataConfiguration",
        stays="LustreConfiguration.DailyAutomaticBackupStartTime LustreConfiguration.WeeklyMaintenanceStartTime",
        defaults={
            "LustreConfiguration.DataCompressionType": "NONE",
            "LustreConfiguration.LogConfiguration": {"Level": "DISABLED"},
        },
        at={"SecurityGroupIds": interface_groups},
    ),
    Case(
        "AWS::FSx::FileSystem",
        {
            "FileSystemType": "LUSTRE",
            "FileSystemTypeVersion": ("2.12", "2.15"),
            "StorageCapacity": 1200,
            "SubnetIds": ["$(subnet)"],
            "SecurityGroupIds": ["$(efa)"],
            "LustreConfiguration": tuple(
                {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": n} for n in (125, 250)
            ),
        },
        only="FileSystemType FileSystemTypeVersion StorageCapacity SubnetIds SecurityGroupIds LustreConfiguration",
        base="StorageCapacity SecurityGroupIds LustreConfiguration",
        replaced="LustreConfiguration.DeploymentType",
        each="LustreConfiguration",
        kept="FileSystemTypeVersion LustreConfiguration.PerUnitStorageThroughput",
        at={"SecurityGroupIds": interface_groups},
        label="version",
    ),
    Case(
        "AWS::FSx::DataRepositoryAssociation",
        {
            "FileSystemId": "$(lustre)",
            "FileSystemPath": "/datasets",
            "DataRepositoryPath": "s3://$(bucket)/train/",
            "ImportedFileChunkSize": (2048, 4096),
            "S3": (
                {"AutoImportPolicy": {"Events": ["NEW"]}, "AutoExportPolicy": {"Events": ["NEW", "CHANGED"]}},
                {"AutoImportPolicy": {"Events": ["DELETED"]}, "AutoExportPolicy": {"Events": ["NEW"]}},
            ),
        },
        each="S3",
    ),
    Case(
        "AWS::PCS::Cluster",
        {
            "Size": "SMALL",
            "Scheduler": ({"Type": "SLURM", "Version": "25.11"}, {"Type": "SLURM", "Version": "26.05"}),
            "Networking": {"SubnetIds": ["$(subnet)"], "SecurityGroupIds": ["$(sg)"]},
            "SlurmConfiguration": (
                {
                    "Accounting": {"Mode": "STANDARD", "DefaultPurgeTimeInDays": 30},
                    "ScaleDownIdleTimeInSeconds": 60,
                    "SlurmCustomSettings": slurm(Prolog="/p", Epilog="/e"),
                    "CgroupCustomSettings": slurm(ConstrainCores="yes"),
                    "SlurmdbdCustomSettings": slurm(CommitDelay="1"),
                    "SlurmRest": {"Mode": "STANDARD"},
                },
                {
                    "Accounting": {"Mode": "STANDARD", "DefaultPurgeTimeInDays": 31},
                    "ScaleDownIdleTimeInSeconds": 61,
                    "SlurmCustomSettings": slurm(Prolog="/q"),
                    "CgroupCustomSettings": slurm(ConstrainCores="no"),
                    "SlurmdbdCustomSettings": slurm(CommitDelay="2"),
                    "SlurmRest": {"Mode": "NONE"},
                },
            ),
        },
        each="SlurmConfiguration",
        at={"Tags": "ListTagsForResource.tags"},
        ident={"resourceArn": "{ref}"},
    ),
    Case(
        "AWS::PCS::ComputeNodeGroup",
        {
            "ClusterId": "$(pcs.Id)",
            "InstanceConfigs": [{"InstanceType": "p5.48xlarge"}],
            "SubnetIds": (["$(subnet)"], ["$(subnet2)"]),
            "IamInstanceProfileArn": ("$(pcs_profile.Arn)", "$(pcs_profile2.Arn)"),
            "ScalingConfiguration": (
                {"MinInstanceCount": 0, "MaxInstanceCount": 4},
                {"MinInstanceCount": 1, "MaxInstanceCount": 5},
            ),
            "CustomLaunchTemplate": (
                {"TemplateId": "$(template)", "Version": "1"},
                {"TemplateId": "$(template2)", "Version": "1"},
            ),
            "AmiId": ("ami-0abc", "ami-0def"),
            "PurchaseOption": ("SPOT", "ONDEMAND"),
            "NodeLifecycleActions": tuple(
                {"Stages": {"NodeReady": [{"Name": "a", "ScriptSource": {"ScriptLocation": f"s3://bucket/{n}.sh"}}]}}
                for n in "ab"
            ),
            "SlurmConfiguration": tuple(
                {
                    "ScaleDownIdleTimeInSeconds": 60 + n,
                    "SlurmCustomSettings": slurm(Weight=str(n + 1)),
                    "GresCustomSettings": [{**GPUS, "Count": str(8 - n), "File": f"/dev/nvidia[{n}-7]"}],
                }
                for n in (0, 1)
            ),
        },
        without="SpotOptions",
        base="CustomLaunchTemplate",
        kept="CustomLaunchTemplate",
        each="SlurmConfiguration",
        at={"Tags": "ListTagsForResource.tags"},
        ident={"resourceArn": "{ref}"},
    ),
    Case(
        "AWS::PCS::ComputeNodeGroup",
        {
            **GROUP,
            "PurchaseOption": "SPOT",
            "SpotOptions": tuple(
                {"AllocationStrategy": strategy} for strategy in ("lowest-price", "capacity-optimized")
            ),
        },
        only=f"{' '.join(GROUP)} PurchaseOption SpotOptions",
        base="CustomLaunchTemplate PurchaseOption",
        defaults={"SpotOptions": {"AllocationStrategy": "price-capacity-optimized"}},
        label="spot",
    ),
    Case(
        "AWS::PCS::Queue",
        {
            "ClusterId": "$(pcs.Id)",
            "ComputeNodeGroupConfigurations": (
                [{"ComputeNodeGroupId": "$(nodes.Id)"}],
                [{"ComputeNodeGroupId": "$(nodes2.Id)"}],
            ),
            "SlurmConfiguration": tuple({"SlurmCustomSettings": slurm(Default=n)} for n in ("YES", "NO")),
        },
        at={"Tags": "ListTagsForResource.tags"},
        ident={"resourceArn": "{ref}"},
    ),
    Case(
        "AWS::KMS::Key",
        {
            "KeyPolicy": (policy(ROOT), policy(ROOT, {**ROOT, "Sid": "again"})),
            "KeySpec": ("SYMMETRIC_DEFAULT", "RSA_2048"),
            "KeyUsage": ("ENCRYPT_DECRYPT", "SIGN_VERIFY"),
            "EnableKeyRotation": (True, False),
            "Enabled": (False, True),
            "PendingWindowInDays": (7, 8),
        },
        without="RotationPeriodInDays",
        fixed="KeySpec KeyUsage MultiRegion BypassPolicyLockoutSafetyCheck",
        kept="KeyPolicy",
        at={
            "KeyPolicy": "GetKeyPolicy(PolicyName=default).Policy",
            "EnableKeyRotation": "GetKeyRotationStatus.KeyRotationEnabled",
            "RotationPeriodInDays": "GetKeyRotationStatus.RotationPeriodInDays",
            "Tags": "ListResourceTags.Tags",
        },
        gone=("KeyState", "PendingDeletion"),
    ),
    Case(
        "AWS::KMS::Key",
        {"EnableKeyRotation": True, "RotationPeriodInDays": (180, 200)},
        only="EnableKeyRotation RotationPeriodInDays",
        base="EnableKeyRotation",
        at={
            "EnableKeyRotation": "GetKeyRotationStatus.KeyRotationEnabled",
            "RotationPeriodInDays": "GetKeyRotationStatus.RotationPeriodInDays",
        },
        gone=("KeyState", "PendingDeletion"),
        label="rotation",
    ),
    Case(
        "AWS::KMS::Alias",
        {"AliasName": "alias/train", "TargetKeyId": ("$(key)", "$(key2)")},
        read="DescribeKey(KeyId={ref})",
        ident={"KeyId": "{ref}"},
        at={"TargetKeyId": ".KeyId", "AliasName": "ListAliases(KeyId={TargetKeyId}).Aliases.0.AliasName"},
        gives={"Ref": "alias/train"},
    ),
    Case(
        "AWS::Scheduler::Schedule",
        {
            "ScheduleExpression": ("rate(1 day)", "cron(0 12 * * ? *)"),
            "ScheduleExpressionTimezone": ("Europe/Berlin", "Asia/Tokyo"),
            "FlexibleTimeWindow": ({"Mode": "OFF"}, {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 5}),
            "State": ("DISABLED", "ENABLED"),
            "StartDate": ("2030-01-01T00:00:00+00:00", "2030-01-02T00:00:00+00:00"),
            "EndDate": ("2031-01-01T00:00:00+00:00", "2031-01-02T00:00:00+00:00"),
            "KmsKeyArn": ("$(key.Arn)", "$(key2.Arn)"),
            "Target": (
                {"Arn": "$(queue.Arn)", "RoleArn": "$(scheduler.Arn)", "Input": "{}"},
                {
                    "Arn": "arn:aws:scheduler:::aws-sdk:eks:updateNodegroupConfig",
                    "RoleArn": "$(scheduler.Arn)",
                    "Input": '{"ClusterName": "train"}',
                    "DeadLetterConfig": {"Arn": "$(queue.Arn)"},
                },
            ),
        },
        gives={"Ref": "first"},
    ),
    Case(
        "AWS::Events::Rule",
        {
            "EventPattern": ({"source": ["aws.ec2"]}, {"source": ["aws.eks"], "detail-type": ["a"]}),
            "ScheduleExpression": ("rate(1 day)", "rate(2 days)"),
            "State": ("DISABLED", "ENABLED"),
            "Targets": (
                [{"Id": "1", "Arn": "$(queue.Arn)"}, {"Id": "2", "Arn": "$(queue2.Arn)", "Input": "{}"}],
                [{"Id": "1", "Arn": "$(queue2.Arn)", "RoleArn": "$(role.Arn)"}],
            ),
        },
        base="EventPattern",
        at={"Targets": "ListTargetsByRule(Rule={ref}).Targets", "Tags": "ListTagsForResource.Tags"},
        ident={"ResourceARN": "{Arn}"},
        gives={"Ref": "first", "Arn": f"arn:aws:events:us-east-1:{ACCOUNT}:rule/first", "RuleName": "first"},
    ),
    Case(
        "AWS::SQS::Queue",
        {
            "KmsMasterKeyId": ("$(key)", "$(key2)"),
            "KmsDataKeyReusePeriodSeconds": (60, 61),
            "MaximumMessageSize": (1024, 1025),
            "MessageRetentionPeriod": (300, 301),
            "RedrivePolicy": (
                {"deadLetterTargetArn": "$(queue.Arn)", "maxReceiveCount": 3},
                {"deadLetterTargetArn": "$(queue2.Arn)", "maxReceiveCount": 4},
            ),
        },
        without="SqsManagedSseEnabled",
        defaults={"KmsDataKeyReusePeriodSeconds": "300"},
        at={"Tags": "ListQueueTags.Tags", "QueueName": ".QueueArn"},
        gives={"QueueName": "first", "Arn": f"arn:aws:sqs:us-east-1:{ACCOUNT}:first"},
    ),
    Case("AWS::SQS::Queue", {"SqsManagedSseEnabled": (False, True)}, only="SqsManagedSseEnabled", label="SSE of SQS"),
    Case(
        "AWS::Logs::LogGroup",
        {
            "LogGroupName": "/train",
            "KmsKeyId": ("$(key.Arn)", "$(key2.Arn)"),
            "RetentionInDays": (30, 90),
            "DeletionProtectionEnabled": (True, False),
        },
        at={"Tags": "ListTagsForResource.tags"},
        ident={"resourceArn": f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:{{ref}}"},
        fixed="LogGroupClass",
        gives={"Ref": "/train", "Arn": f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:/train:\\*"},
    ),
    Case(
        "AWS::Logs::ResourcePolicy",
        {"PolicyDocument": ('{"Version": "1"}', '{"Version": "2"}')},
        read="DescribeResourcePolicies",
        gives={"Ref": "first"},
    ),
    Case(
        "AWS::Logs::DeliverySource",
        {
            "ResourceArn": tuple(f"arn:aws:bedrock:us-east-1:{ACCOUNT}:knowledge-base/{n}" for n in "ab"),
            "LogType": ("APPLICATION_LOGS", "USAGE_LOGS"),
        },
        base="ResourceArn LogType",
        fixed="ResourceArn LogType",
        at={"ResourceArn": "GetDeliverySource.deliverySource.resourceArns.0"},
        gives={"Service": "bedrock", "Arn": ".*:delivery-source:first"},
    ),
    Case(
        "AWS::Logs::DeliveryDestination",
        {"DestinationResourceArn": ("$(group.Arn)", "$(group2.Arn)"), "OutputFormat": "json"},
        base="DestinationResourceArn",
        gives={"Ref": "first"},
    ),
    Case(
        "AWS::Logs::Delivery",
        {
            "DeliverySourceName": "$(source)",
            "DeliveryDestinationArn": "$(destination.Arn)",
            "RecordFields": (["event_timestamp"], ["event_timestamp", "event"]),
            "S3SuffixPath": ("a/{yyyy}/", "b/{yyyy}/"),
            "FieldDelimiter": (",", ";"),
        },
        kept="RecordFields S3SuffixPath FieldDelimiter S3EnableHiveCompatiblePath",
    ),
    Case(
        "AWS::Logs::MetricFilter",
        {
            "LogGroupName": "$(group)",
            "FilterPattern": ('{ $.reason = "X" }', '{ $.reason = "Y" }'),
            "MetricTransformations": tuple(
                [
                    {
                        "MetricNamespace": "PCS",
                        "MetricName": name,
                        "MetricValue": "1",
                        "Dimensions": [{"Key": "G", "Value": "$.g"}],
                    }
                ]
                for name in ("a", "b")
            ),
        },
        read="DescribeMetricFilters.metricFilters.0",
    ),
    Case(
        "AWS::Logs::QueryDefinition",
        {"LogGroupNames": (["$(group)"], ["$(group2)"]), "QueryString": ("fields @message", "fields @timestamp")},
        read="DescribeQueryDefinitions.queryDefinitions.0",
    ),
]

UNTESTED: dict[str, dict[str, str]] = {
    "AWS::APS::RuleGroupsNamespace": {"Workspace create": "each call takes it, none returns it"},
    "AWS::ECR::Repository": {"EmptyOnDelete create": "only DeleteRepository takes it"},
    "AWS::EKS::Addon": {
        "PreserveOnDelete create": "only DeleteAddon takes it",
        "ResolveConflicts create": "it is for the call and not returned",
    },
    "AWS::EKS::Capability": {"DeletePropagationPolicy update": "RETAIN is the only value"},
    "AWS::FSx::FileSystem": {"LustreConfiguration remove": "without a deployment type the file system is replaced"},
    "AWS::FSx::FileSystem version": {"LustreConfiguration remove": "without a deployment type it is replaced"},
    "AWS::KMS::Key": {
        "BypassPolicyLockoutSafetyCheck create": "it is for the call and not returned",
        "PendingWindowInDays create": "only ScheduleKeyDeletion takes it",
    },
}
"""`Property step` of a type that the round trip cannot test, and why. A test fails if one of them can be tested."""
