"""Environments with `retain: false`: deleting their stacks deletes all resources of the stacks."""

from typing import Any, cast

from aws_cdk import CfnDeletionPolicy, CfnResource, RemovalPolicy, Stack, Tags
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.interfaces.aws_kms import IKeyRef
from constructs import Construct

from ultracluster.constructs.acknowledgements import acknowledge, wildcards
from ultracluster.constructs.functions import ACCEPTED, InlineResource, inline_code, logging_function
from ultracluster.constructs.names import own_arn, stable_name

PENDING_DAYS = 7
"""Days for which KMS keeps a deleted key, the fewest that it allows (KMS API, ScheduleKeyDeletion)."""

BUCKET_ACTIONS = (
    *("s3:GetBucketPolicy", "s3:GetBucketTagging", "s3:ListBucketMultipartUploads", "s3:ListBucketVersions"),
    "s3:PutBucketPolicy",
)
OBJECT_ACTIONS = ("s3:AbortMultipartUpload", "s3:DeleteObject", "s3:DeleteObjectVersion")

IN_THE_CLUSTER = "Custom::AWSCDK-EKS-"
"""Start of the types of objects inside a cluster, which are deleted with the cluster. Deleting a namespace could wait
for its pods without end."""

FILE_SYSTEM = "AWS::FSx::FileSystem"
EKS_CLUSTER = "AWS::EKS::Cluster"
OF_A_CLUSTER = ("AWS::EKS::AccessEntry", "AWS::EKS::Addon", "AWS::EKS::PodIdentityAssociation")

SECONDS = 900
WHOLE_VCPU_MIB = 1769
"""Memory with which a function has one vCPU (AWS Lambda Developer Guide, "Configure Lambda function memory", 2026)."""
TAG = "ultracluster:retain"


def throw_away(stack: Stack, *, key: IKeyRef) -> None:
    """Deletes retained resources with their stack, and empties its buckets before.

    Keys are deleted after a week. `key` encrypts the logs of the functions that prepare the deletion. What the stack
    refers to by name or id is not part of it, and stays.
    """
    buckets = [found for found in _retained_resources(stack) if isinstance(found, s3.CfnBucket)]
    if buckets:
        _Emptying(stack, "EmptyBuckets", buckets=buckets, key=key)
    for system in _of_type(stack, FILE_SYSTEM):
        if isinstance(system, fsx.CfnFileSystem) and system.file_system_type == "OPENZFS":
            _delete_without_backup(stack, system, key)
    for cluster in _of_type(stack, EKS_CLUSTER):
        _disable_logs(stack, cluster, key)
    for resource in _retained_resources(stack):
        resource.apply_removal_policy(RemovalPolicy.DESTROY)
        # a change of the policy alone is none (CloudFormation Template Reference, "DeletionPolicy attribute", 2026)
        Tags.of(resource).add(TAG, "false")
        if isinstance(resource, kms.CfnKey):
            resource.pending_window_in_days = PENDING_DAYS


def _of_type(stack: Stack, *types: str) -> list[CfnResource]:
    resources = [found for found in stack.node.find_all() if isinstance(found, CfnResource)]
    return [found for found in resources if found.cfn_resource_type in types]


def _delete_without_backup(stack: Stack, system: fsx.CfnFileSystem, key: IKeyRef) -> None:
    """A custom resource that CloudFormation deletes before the file system, and whose function deletes that."""
    deletes = {"Action": "fsx:DeleteFileSystem", "Resource": own_arn("fsx", f"file-system/{system.ref}")}
    volumes: dict[str, Any] = {"Action": "fsx:DeleteVolume", "Resource": own_arn("fsx", f"volume/{system.ref}/*")}
    # ARNs of snapshots name volumes, not file systems (CloudFormation Template Reference, AWS::FSx::Snapshot, 2026)
    snapshots: dict[str, Any] = {"Action": "fsx:DeleteSnapshot", "Resource": own_arn("fsx", "snapshot/*/*")}
    resource = InlineResource(
        stack,
        f"Delete{stable_name(stack, system)}",
        handler="delete_file_system",
        resource_type="Custom::DeleteFileSystem",
        properties={"FileSystemId": system.ref},
        statements=[deletes, volumes, snapshots, {"Action": "fsx:DescribeFileSystems", "Resource": "*"}],
        key=key,
        timeout_seconds=SECONDS,
    )
    reason = (
        "IAM lets no policy narrow fsx:DescribeFileSystems, a read-only action; volumes of one file system only. ARNs "
        "of snapshots name volumes, whose ids no template knows where users make them; the function calls "
        "DeleteFileSystem alone, which deletes snapshots with their volumes."
    )
    acknowledge(resource, wildcards(stack, ["*", volumes["Resource"], snapshots["Resource"]], reason))


def _disable_logs(stack: Stack, cluster: CfnResource, key: IKeyRef) -> None:
    """A custom resource that CloudFormation deletes first, while nothing else changes the cluster."""
    Tags.of(cluster).add(TAG, "false")
    arn = own_arn("eks", f"cluster/{cluster.ref}")
    quiet = InlineResource(
        stack,
        "QuietCluster",
        handler="quiet_cluster",
        resource_type="Custom::QuietCluster",
        properties={"ClusterName": cluster.ref},
        statements=[
            {"Action": ["eks:DescribeCluster", "eks:DescribeUpdate", "eks:UpdateClusterConfig"], "Resource": arn}
        ],
        key=key,
        timeout_seconds=SECONDS,
    )
    for part in _of_type(stack, *OF_A_CLUSTER):
        quiet.resource.add_resource_dependency(part)


def _retained_resources(stack: Stack) -> list[CfnResource]:
    policies = (CfnDeletionPolicy.RETAIN, CfnDeletionPolicy.RETAIN_EXCEPT_ON_CREATE)
    resources = [found for found in stack.node.find_all() if isinstance(found, CfnResource)]
    retained = [found for found in resources if found.cfn_options.deletion_policy in policies]
    return [found for found in retained if not found.cfn_resource_type.startswith(IN_THE_CLUSTER)]


class _Emptying(Construct):
    """One function, and for each bucket a resource that CloudFormation deletes before the bucket and its policy."""

    def __init__(self, scope: Construct, id: str, *, buckets: list[s3.CfnBucket], key: IKeyRef) -> None:
        super().__init__(scope, id)
        arns = [bucket.attr_arn for bucket in buckets]
        objects = [f"{arn}/*" for arn in arns]
        function = logging_function(
            self,
            log_group_name="/aws/lambda/empty_bucket",
            description="Empties buckets that are deleted with their stack",
            code={"zipFile": inline_code("empty_bucket")},
            statements=[
                {"Action": list(BUCKET_ACTIONS), "Resource": arns},
                {"Action": list(OBJECT_ACTIONS), "Resource": objects},
            ],
            key=key,
            timeout_seconds=SECONDS,
            memory_mib=WHOLE_VCPU_MIB,
            findings=ACCEPTED,
            accepted=wildcards(self, objects, "all objects of the stack's own buckets"),
        )
        for bucket in buckets:
            resource = CfnResource(
                self,
                f"Empty{stable_name(self, bucket)}",
                type="Custom::EmptyBucket",
                properties={
                    "ServiceToken": function.attr_arn,
                    "ServiceTimeout": str(SECONDS + 60),
                    "BucketName": bucket.ref,
                    "Objects": f"{bucket.attr_arn}/*",
                },
            )
            resource.add_resource_dependency(cast("s3.CfnBucketPolicy", bucket.node.find_child("Policy")))
