"""Rows for functions that prepare the deletion of an environment that is thrown away, and for the lookup of Lustre."""

from tests.access.account import ACCOUNT, Account, Found, Role
from tests.access.table import Call, may, never

OURS = "least privilege"
EMPTIES = "handlers/empty_bucket.py; Amazon S3 API Reference, DeleteObjects"
DELETES = "handlers/delete_file_system.py; Amazon FSx, Identity-based policies, DeleteFileSystem of OpenZFS"


def empties(account: Account, role: Role, resource: Found) -> list[Call]:
    """The function that empties buckets: those of its stack, with all versions, and no other bucket."""
    arn = f"arn:aws:s3:::{resource.properties['BucketName']}"
    objects = ("s3:DeleteObject", "s3:DeleteObjectVersion", "s3:AbortMultipartUpload")
    lists = ("s3:ListBucketVersions", "s3:ListBucketMultipartUploads", "s3:GetBucketTagging")
    policy = ("s3:GetBucketPolicy", "s3:PutBucketPolicy")
    named = [found.arn for found in account.of_type("AWS::S3::Bucket")]
    assert arn in named, "a bucket that the stack does not make would be emptied"
    return [
        *may(role, (*lists, *policy), arn, EMPTIES),
        *may(role, objects, f"{arn}/raw/a", EMPTIES),
        *never(role, objects, "arn:aws:s3:::their-archive/raw/a", "buckets of others stay"),
        *never(role, (*lists, *policy), "arn:aws:s3:::their-archive", "buckets of others stay"),
        *never(role, ("s3:GetObject", "s3:PutObject"), f"{arn}/raw/a", OURS),
        # with the tag it could empty buckets that retain: true keeps
        *never(role, ("s3:PutBucketTagging", "s3:DeleteBucket", "s3:DeleteBucketPolicy"), arn, OURS),
    ]


def deletes_file_system(account: Account, role: Role, resource: Found) -> list[Call]:
    """The function that deletes an OpenZFS file system with its volumes: its own, and no backup."""
    start, own = f"arn:aws:fsx:{account.region}:{ACCOUNT}:", resource.properties["FileSystemId"]
    return [
        *may(role, "fsx:DeleteFileSystem", f"{start}file-system/{own}", DELETES),
        *may(role, "fsx:DeleteVolume", f"{start}volume/{own}/fsvol-1", DELETES),
        *may(role, "fsx:DeleteSnapshot", f"{start}snapshot/fsvol-1/fsvolsnap-1", DELETES),
        *may(role, "fsx:DescribeFileSystems", "*", DELETES),
        *never(role, "fsx:DeleteFileSystem", f"{start}file-system/fs-other", "file systems of others stay"),
        *never(role, "fsx:DeleteVolume", f"{start}volume/fs-other/fsvol-1", "file systems of others stay"),
        *never(role, ("fsx:UpdateFileSystem", "fsx:TagResource"), f"{start}file-system/{own}", OURS),
        *never(role, "fsx:DeleteBackup", f"{start}backup/backup-1", "backups are leftovers, which people delete"),
    ]


def quietens(account: Account, role: Role, resource: Found) -> list[Call]:
    """The function that turns the logs of a cluster off: of its cluster."""
    own = f"arn:aws:eks:{account.region}:{ACCOUNT}:cluster/{resource.properties['ClusterName']}"
    calls = ("eks:DescribeCluster", "eks:DescribeUpdate", "eks:UpdateClusterConfig")
    return [
        *may(role, calls, own, "handlers/quiet_cluster.py"),
        *never(role, calls, f"{own}-other", OURS),
        *never(role, ("eks:DeleteCluster", "eks:CreateAccessEntry", "eks:TagResource"), own, OURS),
    ]


def looks_up(account: Account, role: Role, resource: Found) -> list[Call]:
    """The function that looks the mount name of an existing Lustre file system up, and changes none."""
    arn = f"arn:aws:fsx:{account.region}:{ACCOUNT}:file-system/{resource.properties['FileSystemId']}"
    changes = ("fsx:UpdateFileSystem", "fsx:DeleteFileSystem", "fsx:TagResource")
    return [
        *may(role, "fsx:DescribeFileSystems", "*", "handlers/lustre_lookup.py"),
        *never(role, changes, arn, "file systems of others stay"),
    ]
