"""AWS::FSx::* created from template properties and read back through boto3."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.backends import get_backend

from handler_parts import Stack, own_tags, tags
from localaws.resources import HANDLERS, HandlerError, NotUpdatable
from localaws.services import activate

FILE_SYSTEM, ASSOCIATION = "AWS::FSx::FileSystem", "AWS::FSx::DataRepositoryAssociation"


class Account(NamedTuple):
    stack: Stack
    fsx: Any
    subnet: str
    group: str
    key: str


@pytest.fixture(scope="module")
def one_account() -> Iterator[Account]:
    activate()
    with mock_aws():
        ec2 = boto3.client("ec2", "us-east-1")
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
        group = ec2.create_security_group(GroupName="efa", Description="efa", VpcId=vpc)["GroupId"]
        itself = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[itself])
        ec2.authorize_security_group_egress(GroupId=group, IpPermissions=[itself])
        key = boto3.client("kms", "us-east-1").create_key()["KeyMetadata"]["KeyId"]
        boto3.client("s3", "us-east-1").create_bucket(Bucket="datasets")
        yield Account(Stack(), boto3.client("fsx", "us-east-1"), subnet, group, key)


@pytest.fixture
def account(one_account: Account) -> Iterator[Account]:
    yield one_account
    get_backend("fsx")["123456789012"]["us-east-1"].reset()


def file_system(account: Account, lustre: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    return {
        "FileSystemType": "LUSTRE",
        "StorageCapacity": 4800,
        "SubnetIds": [account.subnet],
        "SecurityGroupIds": [account.group],
        "KmsKeyId": account.key,
        "LustreConfiguration": {
            "DeploymentType": "PERSISTENT_2",
            "PerUnitStorageThroughput": 1000,
            "EfaEnabled": True,
            "MetadataConfiguration": {"Mode": "AUTOMATIC"},
            **(lustre or {}),
        },
        **changes,
    }


def test_a_file_system_is_created_updated_and_deleted(account: Account) -> None:
    old = file_system(
        account,
        {"DataCompressionType": "LZ4", "AutomaticBackupRetentionDays": 7, "LogConfiguration": {"Level": "ERROR_ONLY"}},
        Tags=tags(team="a", old="1"),
    )
    made = account.stack.create(FILE_SYSTEM, **old)
    describe = account.fsx.describe_file_systems
    found = describe(FileSystemIds=[made.physical_id])["FileSystems"][0]
    assert made.attributes == {
        "Id": made.physical_id,
        "DNSName": found["DNSName"],
        "LustreMountName": found["LustreConfiguration"]["MountName"],
        "ResourceARN": found["ResourceARN"],
    }
    assert found["KmsKeyId"].endswith(account.key)
    assert found["LustreConfiguration"].items() >= {"EfaEnabled": True, "DataCompressionType": "LZ4"}.items()
    squash = {"RootSquash": "65534:65534"}
    account.fsx.update_file_system(
        FileSystemId=made.physical_id, LustreConfiguration={"RootSquashConfiguration": squash}
    )

    new = file_system(account, {"WeeklyMaintenanceStartTime": "1:05:00"}, StorageCapacity=9600, Tags=tags(team="b"))
    account.stack.update(FILE_SYSTEM, made.physical_id, old, new)
    found = describe(FileSystemIds=[made.physical_id])["FileSystems"][0]
    lustre = found["LustreConfiguration"]
    assert (found["StorageCapacity"], lustre["WeeklyMaintenanceStartTime"]) == (9600, "1:05:00")
    assert (lustre["DataCompressionType"], lustre["AutomaticBackupRetentionDays"]) == ("NONE", 0)
    assert lustre["LogConfiguration"] == {"Level": "DISABLED"}
    assert lustre["RootSquashConfiguration"] == squash
    assert own_tags(found["Tags"]) == {"team": "b"}
    assert any(tag["Key"] == "aws:cloudformation:logical-id" for tag in found["Tags"])

    account.stack.delete(FILE_SYSTEM, made.physical_id)
    assert describe()["FileSystems"] == []


def test_members_that_fsx_cannot_change_are_named(account: Account) -> None:
    old = file_system(account)
    made = account.stack.make(FILE_SYSTEM, **old)
    for new, text in (
        (file_system(account, {"EfaEnabled": False}), "LustreConfiguration.EfaEnabled"),
        (file_system(account, StorageType="SSD"), "StorageType"),
    ):
        with pytest.raises(NotUpdatable, match=text):
            account.stack.update(FILE_SYSTEM, made, old, new)
    without = file_system(account)
    del without["LustreConfiguration"]["MetadataConfiguration"]
    with pytest.raises(NotUpdatable, match=r"LustreConfiguration\.MetadataConfiguration"):
        account.stack.update(FILE_SYSTEM, made, old, without)
    smaller = file_system(account, StorageCapacity=2400)
    with pytest.raises(ClientError, match="can only grow"):
        account.stack.update(FILE_SYSTEM, made, old, smaller)


def test_changed_deployment_type_replaces_the_file_system(account: Account) -> None:
    old, new = file_system(account), file_system(account, {"DeploymentType": "PERSISTENT_1"})
    assert HANDLERS[FILE_SYSTEM].replaces(old, new)
    assert not HANDLERS[FILE_SYSTEM].replaces(old, file_system(account, {"DataCompressionType": "LZ4"}))


def test_wrong_file_systems_fail(account: Account) -> None:
    with pytest.raises(HandlerError, match="only LUSTRE and OPENZFS file systems, not WINDOWS"):
        account.stack.create(FILE_SYSTEM, FileSystemType="WINDOWS", SubnetIds=[account.subnet])
    with pytest.raises(ClientError, match="multiple of 4800 GiB with EFA"):
        account.stack.create(FILE_SYSTEM, **file_system(account, StorageCapacity=2400))
    with pytest.raises(HandlerError, match="Efa of LustreConfiguration"):
        HANDLERS[FILE_SYSTEM].create(account.stack.context(FILE_SYSTEM), file_system(account, {"Efa": True}))
    assert account.fsx.describe_file_systems()["FileSystems"] == []


def test_an_association_is_created_updated_and_deleted(account: Account) -> None:
    home = account.stack.make(FILE_SYSTEM, **file_system(account))
    base = {"FileSystemId": home, "FileSystemPath": "/datasets", "DataRepositoryPath": "s3://datasets/train/"}
    old = {
        **base,
        "BatchImportMetaDataOnCreate": True,
        "ImportedFileChunkSize": 2048,
        "S3": {"AutoImportPolicy": {"Events": ["NEW"]}, "AutoExportPolicy": {"Events": ["NEW", "CHANGED"]}},
        "Tags": tags(team="a"),
    }
    made = account.stack.create(ASSOCIATION, **old)
    describe = account.fsx.describe_data_repository_associations
    found = describe(AssociationIds=[made.physical_id])["Associations"][0]
    assert made.attributes == {"AssociationId": made.physical_id, "ResourceARN": found["ResourceARN"]}
    assert {name: found[name] for name in old if name != "Tags"} == {k: v for k, v in old.items() if k != "Tags"}
    new = {**base, "BatchImportMetaDataOnCreate": True, "S3": {"AutoExportPolicy": {"Events": ["DELETED"]}}}
    account.stack.update(ASSOCIATION, made.physical_id, old, new)
    found = describe(AssociationIds=[made.physical_id])["Associations"][0]
    assert found["S3"] == {"AutoImportPolicy": {"Events": []}, "AutoExportPolicy": {"Events": ["DELETED"]}}
    assert found["ImportedFileChunkSize"] == 1024
    assert own_tags(found["Tags"]) == {}
    with pytest.raises(ClientError, match="overlaps"):
        account.stack.create(ASSOCIATION, **{**base, "FileSystemPath": "/datasets/deep"})
    account.stack.delete(ASSOCIATION, made.physical_id)
    assert describe()["Associations"] == []
