"""EFS: file systems, mount targets and access points."""

from localaws.rows.handler import register
from localaws.rows.row import Row, Setting

register(
    Row(
        type="AWS::EFS::FileSystem",
        service="efs",
        ident={"ResourceId": "{ref}"},
        resets={"ThroughputMode": "bursting", "ProvisionedThroughputInMibps": None},
        settings=(
            Setting("BackupPolicy", put="PutBackupPolicy", reset={"BackupPolicy": {"Status": "DISABLED"}}),
            Setting("FileSystemPolicy", put="PutFileSystemPolicy", remove="DeleteFileSystemPolicy"),
            Setting(
                "FileSystemProtection",
                put="UpdateFileSystemProtection",
                reset={"ReplicationOverwriteProtection": "ENABLED"},
                spread=True,
            ),
            Setting("LifecyclePolicies", put="PutLifecycleConfiguration", reset={"LifecyclePolicies": []}),
        ),
        tags="FileSystemTags",
        must_exist={"KmsKeyId": "KMS key"},
    ),
    Row(
        type="AWS::EFS::MountTarget",
        service="efs",
        ignored="IpAddressType Ipv6Address",
        settings=(Setting("SecurityGroups", put="ModifyMountTargetSecurityGroups", at_creation=False),),
        # an attribute in CloudFormation's reference, though the registry schema does not list it as read-only
        attributes={"IpAddress": "IpAddress"},
        tags=None,
        must_exist={"SecurityGroups": "security group", "SubnetId": "subnet"},
    ),
    Row(
        type="AWS::EFS::AccessPoint",
        service="efs",
        ident={"ResourceId": "{ref}"},
        tags="AccessPointTags",
    ),
)
