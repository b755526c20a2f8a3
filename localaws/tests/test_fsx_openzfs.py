"""What FSx refuses of OpenZFS file systems and volumes, and what it deletes with them."""

from typing import Any, NamedTuple

import pytest
from botocore.exceptions import ClientError

from handler_parts import Stack


class Place(NamedTuple):
    fsx: Any
    subnets: list[str]


@pytest.fixture
def place(stack: Stack) -> Place:
    found = stack.client("ec2").describe_subnets()["Subnets"]
    return Place(stack.client("fsx"), [subnet["SubnetId"] for subnet in found[:2]])


def request(place: Place, capacity: int = 64, subnets: int = 1, **openzfs: Any) -> dict[str, Any]:
    configuration = {"DeploymentType": "SINGLE_AZ_1", "ThroughputCapacity": 64, **openzfs}
    chosen = place.subnets[:subnets]
    return {
        "FileSystemType": "OPENZFS",
        "StorageCapacity": capacity,
        "SubnetIds": chosen,
        "OpenZFSConfiguration": configuration,
    }


def made(place: Place) -> dict[str, Any]:
    answer: dict[str, Any] = place.fsx.create_file_system(**request(place))["FileSystem"]
    return answer


def volume(place: Place, parent: str, name: str, **openzfs: Any) -> dict[str, Any]:
    configuration = {"ParentVolumeId": parent, **openzfs}
    asked = {"VolumeType": "OPENZFS", "Name": name, "OpenZFSConfiguration": configuration}
    answer: dict[str, Any] = place.fsx.create_volume(**asked)["Volume"]
    return answer


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"ThroughputCapacity": 160}, "for SINGLE_AZ_1 it must be one of 64, 128"),
        ({"DeploymentType": "SINGLE_AZ_HA_2"}, "one of 160, 320"),
        ({"capacity": 32}, "64 to 524288 GiB"),
        ({"subnets": 2}, "SINGLE_AZ_1 takes one subnet, not 2"),
        ({"DeploymentType": "MULTI_AZ_1", "ThroughputCapacity": 160}, "takes two subnets, not 1"),
        ({"DeploymentType": "MULTI_AZ_1", "ThroughputCapacity": 160, "subnets": 2}, "PreferredSubnetId is required"),
        ({"RouteTableIds": ["rtb-12345678"]}, "RouteTableIds is for MULTI_AZ_1 only"),
        ({"DiskIopsConfiguration": {"Mode": "AUTOMATIC", "Iops": 9}}, "has Iops with Mode USER_PROVISIONED"),
        ({"RootVolumeConfiguration": {"RecordSizeKiB": 100}}, "RecordSizeKiB 100 is not valid"),
        ({"ReadCacheConfiguration": {"SizingMode": "NO_CACHE"}}, "SSD storage only"),
    ],
)
def test_a_file_system_that_fsx_refuses(place: Place, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ClientError, match=said):
        place.fsx.create_file_system(**request(place, **changes))
    assert place.fsx.describe_file_systems()["FileSystems"] == place.fsx.describe_volumes()["Volumes"] == []


def test_a_subnet_that_does_not_exist_is_refused(place: Place) -> None:
    with pytest.raises(ClientError, match="subnet-0123456789abcdef0 does not exist"):
        place.fsx.create_file_system(**{**request(place), "SubnetIds": ["subnet-0123456789abcdef0"]})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"StorageCapacity": 65}, "at least 10 percent"),
        ({"OpenZFSConfiguration": {"ThroughputCapacity": 100}}, "ThroughputCapacity 100"),
        ({}, "changes nothing"),
        ({"StorageType": "SSD", "StorageCapacity": 128}, "only StorageCapacity can change"),
        ({"OpenZFSConfiguration": {"AddRouteTableIds": ["rtb-12345678"]}}, "AddRouteTableIds cannot change"),
    ],
)
def test_a_change_that_fsx_refuses(place: Place, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ClientError, match=said):
        place.fsx.update_file_system(FileSystemId=made(place)["FileSystemId"], **changes)


def test_a_file_system_has_three_iops_per_gib_and_a_root_volume(place: Place) -> None:
    found = made(place)
    place.fsx.update_file_system(FileSystemId=found["FileSystemId"], StorageCapacity=128)
    shown = place.fsx.describe_file_systems()["FileSystems"][0]["OpenZFSConfiguration"]
    assert shown["DiskIopsConfiguration"] == {"Mode": "AUTOMATIC", "Iops": 384}
    chosen = [{"Name": "file-system-id", "Values": [found["FileSystemId"]]}]
    (root,) = place.fsx.describe_volumes(Filters=chosen)["Volumes"]
    assert (root["VolumeId"], root["OpenZFSConfiguration"]["VolumePath"]) == (shown["RootVolumeId"], "/fsx")
    with pytest.raises(ClientError, match="is the root volume"):
        place.fsx.delete_volume(VolumeId=root["VolumeId"])


def test_volumes_are_within_others_and_deleted_with_them(place: Place) -> None:
    found = made(place)
    root = found["OpenZFSConfiguration"]["RootVolumeId"]
    data = volume(place, root, "data", StorageCapacityReservationGiB=10)
    inner = volume(place, data["VolumeId"], "inner")
    assert inner["OpenZFSConfiguration"]["VolumePath"] == "/fsx/data/inner"
    for name, parent, more, said in (
        ("data", root, {}, "named data exists"),
        ("a", data["VolumeId"], {"StorageCapacityReservationGiB": 11}, "more than the 10 GiB of the parent"),
        (
            "a",
            root,
            {"StorageCapacityQuotaGiB": 5, "StorageCapacityReservationGiB": 6},
            "more than StorageCapacityQuota",
        ),
        ("a", "fsvol-0123456789abcdef0", {}, "does not exist"),
    ):
        with pytest.raises(ClientError, match=said):
            volume(place, parent, name, **more)
    with pytest.raises(ClientError, match="has child volumes"):
        place.fsx.delete_volume(VolumeId=data["VolumeId"])
    with pytest.raises(ClientError, match="has volumes"):
        place.fsx.delete_file_system(FileSystemId=found["FileSystemId"])
    options: dict[str, Any] = {"Options": ["DELETE_CHILD_VOLUMES_AND_SNAPSHOTS"]}
    place.fsx.delete_volume(VolumeId=data["VolumeId"], OpenZFSConfiguration=options)
    assert [each["VolumeId"] for each in place.fsx.describe_volumes()["Volumes"]] == [root]
    volume(place, root, "again")
    place.fsx.delete_file_system(FileSystemId=found["FileSystemId"], OpenZFSConfiguration=options)
    assert place.fsx.describe_volumes()["Volumes"] == []
    (backup,) = place.fsx.describe_backups()["Backups"]
    assert backup["FileSystem"]["FileSystemId"] == found["FileSystemId"]
    place.fsx.delete_backup(BackupId=backup["BackupId"])
    other = made(place)
    options["SkipFinalBackup"] = True
    place.fsx.delete_file_system(FileSystemId=other["FileSystemId"], OpenZFSConfiguration=options)
    assert place.fsx.describe_backups()["Backups"] == []
