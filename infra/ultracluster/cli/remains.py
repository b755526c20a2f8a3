"""Resources that an environment left in an account and Region, found by the environment's tag.

Names narrow a search; only the tag decides. Resources that the environment file names as existing are left out.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

TAG = "ultracluster:environment"
PENDING_DAYS = 7
"""Waiting period before KMS deletes a key, the minimum (KMS API, ScheduleKeyDeletion)."""
POLL_SECONDS, DEADLINE_SECONDS = 10, 30 * 60
"""Deletion of file systems and clusters takes minutes, and they use the network until then."""

EFS_VAULT = "aws/efs/automatic-backup-vault"
"""Vault of the automatic backups of EFS."""

NOT_TERMINATED = ("pending", "running", "shutting-down", "stopping", "stopped")
"""States of instances that are not terminated."""

Client = Callable[[str], Any]
"""boto3's client of a service, in the Region of the environment."""
Tags = Mapping[str, str] | Iterable[Mapping[str, str]] | None


@dataclass(frozen=True)
class Leftover:
    """A resource with the environment's tag. `deletable` is False for kinds that this module does not delete."""

    kind: str
    id: str
    details: str = ""
    deletable: bool = True


@dataclass(frozen=True)
class Survey:
    """Leftovers in the order of deletion, and the number of KMS keys whose tags the caller may not read."""

    found: list[Leftover]
    unread_keys: int


@dataclass(frozen=True)
class Kind:
    """How to find and delete resources of one kind. `slow`: deletion takes minutes after the call.

    `find` yields ids and details; None for details of a resource whose tags the caller may not read.
    """

    name: str
    find: Callable[[Client, str], Iterator[tuple[str, str | None]]]
    delete: Callable[[Client, str], object]
    slow: bool = False


def leftovers(client: Client, environment: str, named: Iterable[str] = ()) -> Survey:
    """All leftovers of an environment, without `named`, the resources that the file names."""
    excluded, found, unread = set(named), list[Leftover](), 0
    for kind in KINDS:
        for name, details in kind.find(client, environment):
            if details is None:
                unread += 1
            elif name not in excluded:
                found.append(Leftover(kind.name, name, details))
    known = {each.id for each in found} | excluded
    backups = [*_backups_of_efs(client, environment)]
    listed = known.union(*(points for _, points in backups))
    others = (*_others(client, environment, listed), *_logs_of_clusters(client, environment, known))
    return Survey([*found, *(each for each, _ in backups), *others], unread)


def delete(client: Client, environment: str, found: Iterable[Leftover], say: Callable[[str], object]) -> list[str]:
    """Deletes the deletable leftovers, and waits for slow kinds. Returns the failures; `say` logs progress."""
    found, failed = list(found), list[str]()
    for kind in KINDS:
        ids = [each.id for each in found if each.kind == kind.name]
        # two attempts: security groups that refer to each other can be deleted once none of them has rules
        again = [each for each in ids if _try_delete(kind, client, each, say)]
        failed += [f"{kind.name} {each}: {error}" for each in again if (error := _try_delete(kind, client, each, say))]
        if kind.slow and ids:
            _wait(lambda kind=kind: list(kind.find(client, environment)), kind.name, say)  # type: ignore[misc]
    return failed


def _try_delete(kind: Kind, client: Client, each: str, say: Callable[[str], object]) -> str | None:
    """Deletes a resource. Returns the error, None if there is none."""
    try:
        kind.delete(client, each)
    except (BotoCoreError, ClientError) as error:
        return str(error)
    say(f"deleted {kind.name} {each}")
    return None


def named_in(value: Any) -> Iterator[str]:
    """Every text in the values of an environment file, and the last part of every ARN."""
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from named_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from named_in(inner)
    elif isinstance(value, str):
        yield value
        yield value.rpartition("/")[2]


def _wait(remaining: Callable[[], list[Any]], kind: str, say: Callable[[str], object]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while remaining() and time.monotonic() < deadline:
        say(f"waiting for the deletion of every {kind}")
        time.sleep(POLL_SECONDS)


def _has(tags: Tags, environment: str) -> bool:
    """Whether tags, in any of the forms of AWS APIs, contain the environment's tag."""
    if isinstance(tags, Mapping):
        return tags.get(TAG) == environment
    pairs = [(each.get("Key", each.get("TagKey")), each.get("Value", each.get("TagValue"))) for each in tags or ()]
    return (TAG, environment) in pairs


def _pages(client: Any, operation: str, result: str, **arguments: Any) -> Iterator[Any]:
    for page in client.get_paginator(operation).paginate(**arguments):
        yield from page.get(result, ())


def _tagged_ec2(operation: str, result: str, key: str, details: Callable[[Any], str]) -> Callable[..., Any]:
    """A `find` for EC2 resources, which EC2 filters by tag."""

    def find(client: Client, environment: str) -> Iterator[tuple[str, str]]:
        filters = [{"Name": f"tag:{TAG}", "Values": [environment]}]
        for found in _pages(client("ec2"), operation, result, Filters=filters):
            yield found[key], details(found)

    return find


def pcs_clusters(client: Client, environment: str) -> Iterator[tuple[str, str]]:
    """Ids and names of PCS clusters."""
    pcs = client("pcs")
    for cluster in _pages(pcs, "list_clusters", "clusters"):
        if _has(pcs.list_tags_for_resource(resourceArn=cluster["arn"])["tags"], environment):
            yield cluster["id"], cluster["name"]


def _file_systems(client: Client, environment: str) -> Iterator[tuple[str, str]]:
    for system in _pages(client("fsx"), "describe_file_systems", "FileSystems"):
        if _has(system.get("Tags"), environment):
            size = f"{system['StorageCapacity']} GiB" if system.get("StorageCapacity") else "elastic"
            yield system["FileSystemId"], f"{system['FileSystemType'].capitalize()}, {size}, {system['Lifecycle']}"


def _delete_file_system(client: Client, id: str) -> None:
    """Without a final backup."""
    fsx = client("fsx")
    (system,) = fsx.describe_file_systems(FileSystemIds=[id])["FileSystems"]
    options: dict[str, Any] = {}
    if system["FileSystemType"] == "LUSTRE":
        options = {"LustreConfiguration": {"SkipFinalBackup": True}}
    if system["FileSystemType"] == "OPENZFS":
        children = ["DELETE_CHILD_VOLUMES_AND_SNAPSHOTS"]
        options = {"OpenZFSConfiguration": {"SkipFinalBackup": True, "Options": children}}
    fsx.delete_file_system(FileSystemId=id, **options)


def _backups(client: Client, environment: str) -> Iterator[tuple[str, str]]:
    """Backups with the tag, or of file systems that had it."""
    for backup in _pages(client("fsx"), "describe_backups", "Backups"):
        tags = [*backup.get("Tags", ()), *backup.get("FileSystem", {}).get("Tags", ())]
        if _has(tags, environment) and backup["Lifecycle"] != "DELETED":
            yield backup["BackupId"], f"{backup['Type'].lower().replace('_', ' ')}, {backup['CreationTime']:%Y-%m-%d}"


def _elastic_file_systems(client: Client, environment: str) -> Iterator[tuple[str, str]]:
    for system in _pages(client("efs"), "describe_file_systems", "FileSystems"):
        if _has(system.get("Tags"), environment):
            yield system["FileSystemId"], f"{system['SizeInBytes']['Value']} bytes"


def _delete_elastic_file_system(client: Client, id: str) -> None:
    efs = client("efs")
    for point in efs.describe_access_points(FileSystemId=id)["AccessPoints"]:
        efs.delete_access_point(AccessPointId=point["AccessPointId"])
    targets = [each["MountTargetId"] for each in efs.describe_mount_targets(FileSystemId=id)["MountTargets"]]
    for target in targets:
        efs.delete_mount_target(MountTargetId=target)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while efs.describe_mount_targets(FileSystemId=id)["MountTargets"] and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    efs.delete_file_system(FileSystemId=id)


def _backups_of_efs(client: Client, environment: str) -> Iterator[tuple[Leftover, set[str]]]:
    """Automatic backups by EFS file system, and the ARNs of their recovery points, which copy its tags.

    They are not deletable: the access policy of the vault, which all file systems of the account share, denies it.

    Source: AWS Backup Developer Guide, "Copy tags onto backups"; EFS User Guide, "Backing up EFS file systems" (2026).
    """
    backup, systems = client("backup"), dict[str, list[Any]]()
    operation = "list_recovery_points_by_backup_vault"
    try:
        for point in _pages(backup, operation, "RecoveryPoints", BackupVaultName=EFS_VAULT, ByResourceType="EFS"):
            systems.setdefault(point["ResourceArn"], []).append(point)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
    for arn, points in systems.items():
        newest = max(points, key=lambda point: point["CreationDate"])
        if _has(backup.list_tags(ResourceArn=newest["RecoveryPointArn"])["Tags"], environment):
            ends = [point.get("CalculatedLifecycle", {}).get("DeleteAt") for point in points]
            until = f", the last until {max(ends):%Y-%m-%d}" if all(ends) else ""
            counted = f"{len(points)} recovery point{'s' if len(points) > 1 else ''}{until}"
            details = f"{counted}; AWS Backup deletes them, the policy of {EFS_VAULT} denies it to others"
            found = Leftover("backups of EFS", arn.rpartition("/")[2], details, deletable=False)
            yield found, {point["RecoveryPointArn"] for point in points}


def _buckets(client: Client, environment: str) -> Iterator[tuple[str, str]]:
    s3 = client("s3")
    region = s3.meta.region_name
    for bucket in s3.list_buckets()["Buckets"]:
        name = bucket["Name"]
        # names of buckets begin with the name of their environment; reading the tags of all buckets would take long
        if not name.startswith(f"{environment}-"):
            continue
        place = s3.get_bucket_location(Bucket=name)["LocationConstraint"] or "us-east-1"
        if place == region and _has(_bucket_tags(s3, name), environment):
            yield name, f"created {bucket['CreationDate']:%Y-%m-%d}"


def _bucket_tags(s3: Any, name: str) -> Any:
    try:
        return s3.get_bucket_tagging(Bucket=name)["TagSet"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchTagSet":
            raise
        return ()


def _delete_bucket(client: Client, name: str) -> None:
    """Deletes a bucket with all object versions and incomplete multipart uploads."""
    s3 = client("s3")
    s3.put_bucket_logging(Bucket=name, BucketLoggingStatus={})
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=name):
        found = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
        if keys := [{"Key": each["Key"], "VersionId": each["VersionId"]} for each in found]:
            s3.delete_objects(Bucket=name, Delete={"Objects": keys, "Quiet": True})
    for upload in _pages(s3, "list_multipart_uploads", "Uploads", Bucket=name):
        s3.abort_multipart_upload(Bucket=name, Key=upload["Key"], UploadId=upload["UploadId"])
    s3.delete_bucket(Bucket=name)


def _workspaces(client: Client, environment: str) -> Iterator[tuple[str, str]]:
    for workspace in _pages(client("amp"), "list_workspaces", "workspaces"):
        if _has(workspace.get("tags"), environment):
            yield workspace["workspaceId"], workspace.get("alias", "")


def _log_groups(client: Client, environment: str) -> Iterator[tuple[str, str]]:
    logs = client("logs")
    for group in _pages(logs, "describe_log_groups", "logGroups"):
        name = group["logGroupName"]
        # names of log groups contain the name of their stack; see _buckets
        if f"/{environment}-" not in name:
            continue
        if _has(logs.list_tags_for_resource(resourceArn=group["arn"].removesuffix(":*"))["tags"], environment):
            yield name, f"{group.get('storedBytes', 0)} bytes"


def _delete_security_group(client: Client, id: str) -> None:
    """Revokes the rules first: EC2 does not delete groups that refer to each other."""
    ec2 = client("ec2")
    (group,) = ec2.describe_security_groups(GroupIds=[id])["SecurityGroups"]
    if inbound := group["IpPermissions"]:
        ec2.revoke_security_group_ingress(GroupId=id, IpPermissions=inbound)
    if outbound := group["IpPermissionsEgress"]:
        ec2.revoke_security_group_egress(GroupId=id, IpPermissions=outbound)
    ec2.delete_security_group(GroupId=id)


def _keys(client: Client, environment: str) -> Iterator[tuple[str, str | None]]:
    """Customer managed keys. A key policy may deny describing a key to all but its administrators."""
    kms = client("kms")
    for key in _pages(kms, "list_keys", "Keys"):
        try:
            about = kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"]
            if about["KeyManager"] != "CUSTOMER" or about["KeyState"] == "PendingDeletion":
                continue
            tags = kms.list_resource_tags(KeyId=key["KeyId"])["Tags"]
        except ClientError as error:
            if error.response["Error"]["Code"] != "AccessDeniedException":
                raise
            yield key["KeyId"], None
            continue
        if _has(tags, environment):
            yield key["KeyId"], about.get("Description", "")


def _others(client: Client, environment: str, known: set[str]) -> Iterator[Leftover]:
    """Tagged resources of other kinds. The Resource Groups Tagging API lists some of them after their deletion."""
    wanted = [{"Key": TAG, "Values": [environment]}]
    tagging = client("resourcegroupstaggingapi")
    for found in _pages(tagging, "get_resources", "ResourceTagMappingList", TagFilters=wanted):
        arn = found["ResourceARN"]
        names = {
            arn,
            arn.rpartition("/")[2],
            arn.rpartition(":")[2],
            arn.partition(":log-group:")[2].removesuffix(":*"),
        }
        if not (names - {""}) & known and not _is_deleted(client, arn):
            service = arn.split(":", 5)[2]
            yield Leftover(f"other, {service}", arn, "delete it by hand, if it still exists", deletable=False)


def _is_deleted(client: Client, arn: str) -> bool:
    """Whether a listed resource is deleted: KMS keys, NAT gateways and instances stay visible for some time."""
    last = arn.rpartition("/")[2]
    if ":key/" in arn:
        try:
            return bool(client("kms").describe_key(KeyId=last)["KeyMetadata"]["KeyState"] == "PendingDeletion")
        except ClientError as error:
            if error.response["Error"]["Code"] != "AccessDeniedException":
                raise
            return False
    if ":natgateway/" in arn:
        gateways = client("ec2").describe_nat_gateways(NatGatewayIds=[last])["NatGateways"]
        return all(gateway["State"] == "deleted" for gateway in gateways)
    if ":instance/" in arn:
        wanted = [
            {"Name": "instance-id", "Values": [last]},
            {"Name": "instance-state-name", "Values": list(NOT_TERMINATED)},
        ]
        return not client("ec2").describe_instances(Filters=wanted)["Reservations"]
    return False


def _logs_of_clusters(client: Client, environment: str, known: set[str]) -> Iterator[Leftover]:
    """Log groups that EKS created again after its cluster was deleted. They have no tag, so they are not deletable."""
    logs, pattern = client("logs"), re.compile(rf"/aws/eks/{re.escape(environment)}-[0-9a-f]{{8}}/cluster")
    for group in _pages(logs, "describe_log_groups", "logGroups", logGroupNamePrefix=f"/aws/eks/{environment}-"):
        name = group["logGroupName"]
        if pattern.fullmatch(name) and name not in known:
            yield Leftover("log group", name, "has no tag: EKS made it; delete it by hand", deletable=False)


KINDS = (
    Kind("PCS cluster", pcs_clusters, lambda c, each: c("pcs").delete_cluster(clusterIdentifier=each), slow=True),
    Kind("file system", _file_systems, _delete_file_system, slow=True),
    Kind("backup", _backups, lambda c, each: c("fsx").delete_backup(BackupId=each)),
    Kind("EFS file system", _elastic_file_systems, _delete_elastic_file_system, slow=True),
    Kind(
        "volume",
        _tagged_ec2("describe_volumes", "Volumes", "VolumeId", lambda found: f"{found['Size']} GiB, {found['State']}"),
        lambda c, each: c("ec2").delete_volume(VolumeId=each),
    ),
    Kind("bucket", _buckets, _delete_bucket),
    Kind("Prometheus workspace", _workspaces, lambda c, each: c("amp").delete_workspace(workspaceId=each), slow=True),
    Kind("log group", _log_groups, lambda c, each: c("logs").delete_log_group(logGroupName=each)),
    Kind(
        "security group",
        _tagged_ec2("describe_security_groups", "SecurityGroups", "GroupId", lambda found: str(found["Description"])),
        _delete_security_group,
    ),
    Kind(
        "subnet",
        _tagged_ec2("describe_subnets", "Subnets", "SubnetId", lambda found: str(found["CidrBlock"])),
        lambda c, each: c("ec2").delete_subnet(SubnetId=each),
    ),
    Kind(
        "VPC",
        _tagged_ec2("describe_vpcs", "Vpcs", "VpcId", lambda found: str(found["CidrBlock"])),
        lambda c, each: c("ec2").delete_vpc(VpcId=each),
    ),
    Kind(
        "KMS key",
        _keys,
        lambda c, each: c("kms").schedule_key_deletion(KeyId=each, PendingWindowInDays=PENDING_DAYS),
    ),
)
"""In the order of deletion: resources in a network before the network, data before keys."""
