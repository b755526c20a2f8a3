"""FSx for Lustre as boto3 sees it: what is made is read back, and what AWS refuses is refused."""

import datetime
from collections.abc import Iterator
from typing import Any, NamedTuple

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.backends import get_backend

from localaws.services import fsx_rules, fsx_updates

REGION = "us-east-1"


class Account(NamedTuple):
    fsx: Any
    ec2: Any
    subnet: str
    group: str
    efa_group: str
    key: str


@pytest.fixture(scope="module")
def one_account(aws: None) -> Account:
    ec2 = boto3.client("ec2", REGION)
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    group, efa = (
        ec2.create_security_group(GroupName=name, Description=name, VpcId=vpc)["GroupId"] for name in ("tcp", "efa")
    )
    lnet = {"IpProtocol": "tcp", "FromPort": 988, "ToPort": 988, "IpRanges": [{"CidrIp": "10.0.0.0/16"}]}
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[lnet])
    itself = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": efa}]}
    ec2.authorize_security_group_ingress(GroupId=efa, IpPermissions=[itself])
    ec2.authorize_security_group_egress(GroupId=efa, IpPermissions=[itself])
    key = boto3.client("kms", REGION).create_key()["KeyMetadata"]["Arn"]
    boto3.client("s3", REGION).create_bucket(Bucket="datasets")
    boto3.client("s3", "us-west-2").create_bucket(
        Bucket="far-away", CreateBucketConfiguration={"LocationConstraint": "us-west-2"}
    )
    logs = boto3.client("logs", REGION)
    for name in ("/aws/fsx/lustre", "/other"):
        logs.create_log_group(logGroupName=name)
    return Account(boto3.client("fsx", REGION), ec2, subnet, group, efa, key)


@pytest.fixture
def account(one_account: Account) -> Iterator[Account]:
    yield one_account
    get_backend("fsx")["123456789012"][REGION].reset()
    get_backend("ec2")["123456789012"][REGION].enis.clear()


def persistent(account: Account, capacity: int | None = 4800, *, efa: bool = False, **changes: Any) -> dict[str, Any]:
    """A PERSISTENT_2 SSD request; `changes` with None leave out, `Top` changes the request itself."""
    top = changes.pop("Top", {})
    lustre = {
        "DeploymentType": "PERSISTENT_2",
        "PerUnitStorageThroughput": 1000,
        "MetadataConfiguration": {"Mode": "AUTOMATIC"},
        **({"EfaEnabled": True} if efa else {}),
        **changes,
    }
    request = {
        "FileSystemType": "LUSTRE",
        "StorageCapacity": capacity,
        "SubnetIds": [account.subnet],
        "SecurityGroupIds": [account.efa_group if efa else account.group],
        "LustreConfiguration": {name: value for name, value in lustre.items() if value is not None},
        **top,
    }
    return {name: value for name, value in request.items() if value is not None}


def make(account: Account, *args: Any, **changes: Any) -> dict[str, Any]:
    return dict(account.fsx.create_file_system(**persistent(account, *args, **changes))["FileSystem"])


def refused(code: str, text: str, call: Any, **request: Any) -> None:
    with pytest.raises(ClientError, match=text) as caught:
        call(**request)
    assert caught.value.response["Error"]["Code"] == code, caught.value


def test_all_members_of_a_file_system_are_read_back(account: Account) -> None:
    request = persistent(
        account,
        9600,
        efa=True,
        DataCompressionType="LZ4",
        LogConfiguration={
            "Level": "WARN_ERROR",
            "Destination": "arn:aws:logs:us-east-1:123456789012:log-group:/aws/fsx/lustre:*",
        },
        RootSquashConfiguration={"RootSquash": "65534:65534", "NoSquashNids": ["10.0.0.1@tcp"]},
        WeeklyMaintenanceStartTime="1:05:00",
        Top={"KmsKeyId": account.key, "Tags": [{"Key": "a", "Value": "b"}]},
    )
    made = account.fsx.create_file_system(**request)["FileSystem"]
    found = account.fsx.describe_file_systems(FileSystemIds=[made["FileSystemId"]])["FileSystems"][0]
    assert found == made
    lustre = found["LustreConfiguration"]
    for name in request["LustreConfiguration"].keys() - {"MetadataConfiguration"}:
        assert lustre[name] == request["LustreConfiguration"][name], name
    assert lustre["MetadataConfiguration"] == {"Mode": "AUTOMATIC", "Iops": 6000}
    assert 1 <= len(lustre["MountName"]) <= 8
    assert found["DNSName"] == f"{found['FileSystemId']}.fsx.us-east-1.amazonaws.com"
    assert (found["KmsKeyId"], found["StorageCapacity"], found["StorageType"]) == (account.key, 9600, "SSD")
    assert (found["FileSystemTypeVersion"], found["Lifecycle"]) == ("2.15", "AVAILABLE")
    assert found["Tags"] == [{"Key": "a", "Value": "b"}]
    interfaces = account.ec2.describe_network_interfaces(NetworkInterfaceIds=found["NetworkInterfaceIds"])
    assert [group["GroupId"] for group in interfaces["NetworkInterfaces"][0]["Groups"]] == [account.efa_group]
    account.fsx.delete_file_system(FileSystemId=found["FileSystemId"])
    refused(
        "FileSystemNotFound", "does not exist", account.fsx.describe_file_systems, FileSystemIds=[made["FileSystemId"]]
    )
    assert account.ec2.describe_network_interfaces()["NetworkInterfaces"] == []


def test_defaults_are_those_of_fsx(account: Account) -> None:
    scratch = account.fsx.create_file_system(
        FileSystemType="LUSTRE",
        StorageCapacity=1200,
        SubnetIds=[account.subnet],
        SecurityGroupIds=[account.group],
        LustreConfiguration={"DeploymentType": "SCRATCH_2"},
    )["FileSystem"]
    assert scratch["FileSystemTypeVersion"] == "2.10"
    assert scratch["LustreConfiguration"]["DataCompressionType"] == "NONE"
    plain = make(account, MetadataConfiguration=None, PerUnitStorageThroughput=125)
    assert plain["FileSystemTypeVersion"] == "2.12"
    aliases = boto3.client("kms", REGION).list_aliases(KeyId=plain["KmsKeyId"])["Aliases"]
    assert [alias["AliasName"] for alias in aliases] == ["alias/aws/fsx"]
    assert plain["KmsKeyId"] == make(account)["KmsKeyId"]
    tiered = make(
        account,
        None,
        PerUnitStorageThroughput=None,
        ThroughputCapacity=8000,
        DataReadCacheConfiguration={"SizingMode": "USER_PROVISIONED", "SizeGiB": 64},
        MetadataConfiguration={"Mode": "USER_PROVISIONED", "Iops": 12000},
        Top={"StorageType": "INTELLIGENT_TIERING"},
    )
    assert tiered["LustreConfiguration"]["ThroughputCapacity"] == 8000


def test_pages_have_the_requested_size(account: Account) -> None:
    ids = [make(account)["FileSystemId"] for _ in range(3)]
    pages = account.fsx.get_paginator("describe_file_systems").paginate(PaginationConfig={"PageSize": 2})
    assert [[item["FileSystemId"] for item in page["FileSystems"]] for page in pages] == [ids[:2], ids[2:]]


TIERED = {"Top": {"StorageType": "INTELLIGENT_TIERING"}, "PerUnitStorageThroughput": None}


def test_security_groups_must_allow_lnet_and_efa(account: Account) -> None:
    vpc = account.ec2.describe_subnets(SubnetIds=[account.subnet])["Subnets"][0]["VpcId"]
    closed = account.ec2.create_security_group(GroupName="closed", Description="closed", VpcId=vpc)["GroupId"]
    request = persistent(account, Top={"SecurityGroupIds": [closed]})
    refused("InvalidNetworkSettings", "do not permit Lustre LNET.*port 988", account.fsx.create_file_system, **request)
    efa = persistent(account, efa=True, Top={"SecurityGroupIds": [account.group]})
    refused("InvalidNetworkSettings", "to and from itself by its id", account.fsx.create_file_system, **efa)
    wide = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    account.ec2.authorize_security_group_ingress(GroupId=closed, IpPermissions=[wide])
    efa["SecurityGroupIds"] = [closed]
    refused("InvalidNetworkSettings", "to and from itself by its id", account.fsx.create_file_system, **efa)


def test_the_log_group_must_exist_under_aws_fsx(account: Account) -> None:
    def log(name: str, level: str = "WARN_ERROR", region: str = REGION) -> dict[str, Any]:
        arn = f"arn:aws:logs:{region}:123456789012:log-group:{name}"
        return persistent(account, LogConfiguration={"Level": level, "Destination": arn})

    create = account.fsx.create_file_system
    refused("BadRequest", "must begin with /aws/fsx", create, **log("/other"))
    refused("BadRequest", "not a log group of this account", create, **log("/aws/fsx/none"))
    refused("BadRequest", "not a log group of this account", create, **log("/aws/fsx/lustre", region="eu-west-1"))
    refused("BadRequest", "DISABLED takes no Destination", create, **log("/aws/fsx/lustre", "DISABLED"))
    create(**log("/aws/fsx/lustre"))


def test_an_update_changes_allowed_members(account: Account) -> None:
    made = make(account, MetadataConfiguration={"Mode": "USER_PROVISIONED", "Iops": 6000}, PerUnitStorageThroughput=125)
    squash = {"RootSquash": "65534:65534", "NoSquashNids": []}
    account.fsx.update_file_system(
        FileSystemId=made["FileSystemId"],
        StorageCapacity=7200,
        LustreConfiguration={
            "PerUnitStorageThroughput": 500,
            "RootSquashConfiguration": squash,
            "DataCompressionType": "LZ4",
            "MetadataConfiguration": {"Iops": 12000},
            "AutomaticBackupRetentionDays": 7,
            "LogConfiguration": {"Level": "ERROR_ONLY"},
        },
    )
    found = account.fsx.describe_file_systems()["FileSystems"][0]
    lustre = found["LustreConfiguration"]
    assert (found["StorageCapacity"], lustre["PerUnitStorageThroughput"]) == (7200, 500)
    assert lustre["RootSquashConfiguration"] == squash
    assert lustre["MetadataConfiguration"] == {"Mode": "USER_PROVISIONED", "Iops": 12000}
    assert (lustre["DataCompressionType"], lustre["AutomaticBackupRetentionDays"]) == ("LZ4", 7)
    assert lustre["LogConfiguration"] == {"Level": "ERROR_ONLY"}
    assert lustre["MountName"] == made["LustreConfiguration"]["MountName"]


def test_capacity_increases_follow_steps_and_interval(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(account, 9600, efa=True, PerUnitStorageThroughput=500)
    update, named = account.fsx.update_file_system, {"FileSystemId": made["FileSystemId"]}
    refused("BadRequest", "can only grow: 4800 GiB", update, **named, StorageCapacity=4800)
    refused("BadRequest", "multiple of 9600 GiB with EFA at 500", update, **named, StorageCapacity=12000)
    lower = {"PerUnitStorageThroughput": 1000}
    refused("BadRequest", "without EFA only", update, **named, LustreConfiguration=lower)
    update(**named, StorageCapacity=19200)
    found = account.fsx.describe_file_systems()["FileSystems"][0]
    assert found["LustreConfiguration"]["MetadataConfiguration"] == {"Mode": "AUTOMATIC", "Iops": 12000}
    refused("BadRequest", "changed less than 6 hours ago", update, **named, StorageCapacity=28800)
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=7)
    monkeypatch.setattr(fsx_updates, "now", lambda: later)
    update(**named, StorageCapacity=28800)


def squash(nid: str) -> dict[str, Any]:
    return {"RootSquash": "65534:65534", "NoSquashNids": [nid]}


def link(file_system: str, path: str = "/datasets", target: str = "s3://datasets", **changes: Any) -> dict[str, Any]:
    return {"FileSystemId": file_system, "FileSystemPath": path, "DataRepositoryPath": target, **changes}


def test_the_root_excludes_other_paths_and_eight_is_the_limit(account: Account) -> None:
    create = account.fsx.create_data_repository_association
    root = make(account)["FileSystemId"]
    create(**link(root, "/"))
    refused("BadRequest", "overlaps / of", create, **link(root, "/more", "s3://far-away"))
    home = make(account)["FileSystemId"]
    for number in range(8):
        create(**link(home, f"/d{number or ''}", f"s3://datasets/d{number or ''}"))
    refused("ServiceLimitExceeded", "at most 8", create, **link(home, "/nine", "s3://datasets/nine"))
    account.fsx.delete_file_system(FileSystemId=home)
    assert len(account.fsx.describe_data_repository_associations()["Associations"]) == 1


def test_automatic_import_stays_in_the_region(account: Account) -> None:
    home = make(account)["FileSystemId"]
    create = account.fsx.create_data_repository_association
    imports = {"AutoImportPolicy": {"Events": ["NEW"]}}
    far = link(home, "/far", "s3://far-away")
    refused("BadRequest", "needs a bucket in us-east-1; far-away is in us-west-2", create, **far, S3=imports)
    made = create(**far, S3={"AutoExportPolicy": {"Events": ["NEW"]}})["Association"]
    update = account.fsx.update_data_repository_association
    refused("BadRequest", "needs a bucket in us-east-1", update, AssociationId=made["AssociationId"], S3=imports)


def test_some_file_systems_refuse_associations(account: Account) -> None:
    create = account.fsx.create_data_repository_association
    tiered = {**TIERED, "ThroughputCapacity": 4000, "DataReadCacheConfiguration": {"SizingMode": "NO_CACHE"}}
    tiered["Top"] = dict(TIERED["Top"] or {})
    home = make(account, None, **{**tiered, "MetadataConfiguration": None})["FileSystemId"]
    refused("BadRequest", "Intelligent-Tiering file systems do not", create, **link(home))
    backed_up = make(account, AutomaticBackupRetentionDays=7)["FileSystemId"]
    refused("BadRequest", "turn them off first", create, **link(backed_up))
    linked = make(account)["FileSystemId"]
    create(**link(linked))
    backups = {"AutomaticBackupRetentionDays": 1}
    update = account.fsx.update_file_system
    refused("BadRequest", "cannot be enabled on S3-linked", update, FileSystemId=linked, LustreConfiguration=backups)
    scratch = {
        "FileSystemType": "LUSTRE",
        "StorageCapacity": 1200,
        "SubnetIds": [account.subnet],
        "SecurityGroupIds": [account.group],
    }
    old = account.fsx.create_file_system(**scratch, LustreConfiguration={"ImportPath": "s3://datasets"})["FileSystem"]
    linked_by = old["LustreConfiguration"]["DataRepositoryConfiguration"]
    assert (linked_by["ImportPath"], linked_by["AutoImportPolicy"]) == ("s3://datasets", "NONE")
    refused("BadRequest", "2.12 or later", create, **link(old["FileSystemId"]))
    unknown = link("fs-0123456789abcdef0")
    refused("FileSystemNotFound", "does not exist", create, **unknown)


def test_other_file_system_types_stay_with_moto(account: Account) -> None:
    made = account.fsx.create_file_system(FileSystemType="WINDOWS", StorageCapacity=32, SubnetIds=[account.subnet])
    windows = made["FileSystem"]["FileSystemId"]
    assert account.fsx.describe_file_systems()["FileSystems"][0]["FileSystemType"] == "WINDOWS"
    create = account.fsx.create_data_repository_association
    refused("UnsupportedOperation", "not a Lustre file system", create, **link(windows))
    account.fsx.delete_file_system(FileSystemId=windows)


def test_automatic_metadata_iops_follow_the_capacity() -> None:
    table = {1200: 1500, 2400: 3000, 4800: 6000, 9600: 6000, 12000: 12000, 45600: 12000, 48000: 24000, 72000: 36000}
    assert {capacity: fsx_rules.automatic_iops(capacity) for capacity in table} == table


@pytest.mark.parametrize("zone", ["us-east-1-dfw-2a", "us-west-2-phx-2a", "il-central-1a"])
def test_some_places_have_only_the_lower_tiers_and_no_efa(zone: str) -> None:
    lower: dict[str, Any] = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250}
    fsx_rules.check_place(lower, zone)
    fsx_rules.check_place({"DeploymentType": "SCRATCH_2"}, zone)
    for wrong in (lower | {"PerUnitStorageThroughput": 500}, lower | {"EfaEnabled": True}):
        fsx_rules.check_place(wrong, "us-east-1a")
        with pytest.raises(fsx_rules.Refusal, match=f"{zone} has PERSISTENT_2 SSD file systems with 125 or 250"):
            fsx_rules.check_place(wrong, zone)


def test_a_file_system_of_a_local_zone_is_held_to_its_tiers(account: Account) -> None:
    vpc = account.ec2.describe_subnets(SubnetIds=[account.subnet])["Subnets"][0]["VpcId"]
    zone = {"AvailabilityZone": "us-east-1-dfw-2a"}
    subnet = account.ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.7.0/24", **zone)["Subnet"]["SubnetId"]
    request = persistent(account) | {"SubnetIds": [subnet]}
    refused("BadRequest", "us-east-1-dfw-2a has PERSISTENT_2", account.fsx.create_file_system, **request)
