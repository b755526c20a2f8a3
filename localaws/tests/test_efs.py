"""What EFS refuses of file systems, mount targets and access points, and the defaults that it chooses."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from handler_parts import Stack
from localaws.resources import HandlerError

FILE_SYSTEM, TARGET, POINT = (f"AWS::EFS::{name}" for name in ("FileSystem", "MountTarget", "AccessPoint"))


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"ThroughputMode": "provisioned"}, "ProvisionedThroughputInMibps is required"),
        ({"ThroughputMode": "elastic", "ProvisionedThroughputInMibps": 9}, "only with it"),
        ({"ThroughputMode": "elastic", "PerformanceMode": "maxIO"}, "generalPurpose"),
        ({"AvailabilityZoneName": "us-east-1a", "PerformanceMode": "maxIO"}, "One Zone"),
        ({"Encrypted": True, "KmsKeyId": "alias/none"}, "KMS key alias/none does not exist"),
    ],
)
def test_a_file_system_that_efs_refuses(stack: Stack, properties: dict[str, Any], said: str) -> None:
    with pytest.raises((ClientError, HandlerError), match=said):
        stack.create(FILE_SYSTEM, **properties)
    assert stack.client("efs").describe_file_systems()["FileSystems"] == []


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


def test_an_access_point_needs_its_file_system(stack: Stack) -> None:
    with pytest.raises(ClientError, match="FileSystemNotFound"):
        stack.create(POINT, FileSystemId="fs-0123456789")
