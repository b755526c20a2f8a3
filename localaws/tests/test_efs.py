"""What EFS refuses of mount targets, and the defaults that it chooses."""

import pytest
from botocore.exceptions import ClientError

from handler_parts import Stack

FILE_SYSTEM, TARGET = "AWS::EFS::FileSystem", "AWS::EFS::MountTarget"


def test_an_encrypted_file_system_has_the_key_of_efs(stack: Stack) -> None:
    made = stack.make(FILE_SYSTEM, Encrypted=True)
    found = stack.client("efs").describe_file_systems(FileSystemId=made)["FileSystems"][0]
    assert (
        found["KmsKeyId"] == stack.client("kms").describe_key(KeyId="alias/aws/elasticfilesystem")["KeyMetadata"]["Arn"]
    )


def test_mount_targets_are_in_one_vpc_and_hold_the_file_system(stack: Stack) -> None:
    ec2, home = stack.client("ec2"), stack.make(FILE_SYSTEM)
    subnet = ec2.describe_subnets()["Subnets"][0]
    other = stack.make("AWS::EC2::VPC", CidrBlock="10.9.0.0/16")
    group = stack.make("AWS::EC2::SecurityGroup", GroupDescription="elsewhere", VpcId=other)
    place = {"FileSystemId": home, "SubnetId": subnet["SubnetId"]}
    with pytest.raises(ClientError, match="not in the VPC"):
        stack.create(TARGET, **place, SecurityGroups=[group])
    default = ec2.describe_security_groups(Filters=[{"Name": "vpc-id", "Values": [subnet["VpcId"]]}])
    target = stack.make(TARGET, **place, SecurityGroups=[])
    groups = stack.client("efs").describe_mount_target_security_groups(MountTargetId=target)["SecurityGroups"]
    assert groups == [default["SecurityGroups"][0]["GroupId"]]
    with pytest.raises(ClientError, match="already exists in this AZ"):
        stack.create(TARGET, **place, SecurityGroups=groups)
    with pytest.raises(ClientError, match="delete all mount targets"):
        stack.delete(FILE_SYSTEM, home)


def test_a_backup_outlives_its_file_system_and_nobody_may_delete_it(stack: Stack) -> None:
    backup, vault = stack.client("backup"), "aws/efs/automatic-backup-vault"
    tags = [{"Key": "team", "Value": "one"}]
    home = stack.make(FILE_SYSTEM, BackupPolicy={"Status": "ENABLED"}, FileSystemTags=tags)
    stack.make(FILE_SYSTEM, BackupPolicy={"Status": "DISABLED"})
    stack.delete(FILE_SYSTEM, home)
    (point,) = backup.list_recovery_points_by_backup_vault(BackupVaultName=vault)["RecoveryPoints"]
    assert point["ResourceArn"].endswith(f"file-system/{home}")
    assert point["Lifecycle"]["DeleteAfterDays"] == 35
    assert backup.list_tags(ResourceArn=point["RecoveryPointArn"])["Tags"] == {"team": "one"}
    with pytest.raises(ClientError, match="AccessDenied"):
        backup.delete_recovery_point(BackupVaultName=vault, RecoveryPointArn=point["RecoveryPointArn"])
    assert (
        backup.list_recovery_points_by_backup_vault(BackupVaultName=vault, ByResourceType="FSx")["RecoveryPoints"] == []
    )
    with pytest.raises(ClientError, match="not found"):
        backup.list_recovery_points_by_backup_vault(BackupVaultName="other")
