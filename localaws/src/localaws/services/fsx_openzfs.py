"""FSx for OpenZFS: what it adds to file systems, their root volume, and volumes; and what FSx refuses of them.

Source: FSx API Reference (2026): CreateFileSystem, UpdateFileSystem, CreateFileSystemOpenZFSConfiguration,
CreateVolume, UpdateVolume, DeleteVolume, CreateOpenZFSVolumeConfiguration; FSx for OpenZFS User Guide, managing storage
capacity.
"""

import copy
import secrets
from typing import Any

from localaws.services.fsx_rules import bad, security_groups
from localaws.services.service import Refusal
from localaws.services.store import Call, Item, Kind, Rule

_FIRST = (64, 128, 256, 512, 1024, 2048, 3072, 4096)
_SECOND = (160, 320, 640, 1280, 2560, 3840, 5120, 7680, 10240)
THROUGHPUT_MBPS = {
    "MULTI_AZ_1": _SECOND,
    "SINGLE_AZ_1": _FIRST,
    "SINGLE_AZ_2": _SECOND,
    "SINGLE_AZ_HA_1": _FIRST,
    "SINGLE_AZ_HA_2": _SECOND,
}
SMALLEST_GIB, LARGEST_GIB = 64, 524_288
IOPS_PER_GIB = 3
RECORD_SIZES_KIB = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
DELETE_ALL = "DELETE_CHILD_VOLUMES_AND_SNAPSHOTS"
_MULTI_AZ_ONLY = ("PreferredSubnetId", "EndpointIpAddressRange", "EndpointIpv6AddressRange", "RouteTableIds")
_FILE_SYSTEM = {"AutomaticBackupRetentionDays": 30, "CopyTagsToBackups": False, "CopyTagsToVolumes": False}
_VOLUME = {
    "CopyTagsToSnapshots": False,
    "DataCompressionType": "NONE",
    "NfsExports": [{"ClientConfigurations": [{"Clients": "*", "Options": ["rw", "crossmnt"]}]}],
    "ReadOnly": False,
    "RecordSizeKiB": 128,
    "UserAndGroupQuotas": [],
}


def is_openzfs(call: Call) -> bool:
    """Whether the file system of a call is of this type."""
    return bool((call.item or call.request)["FileSystemType"] == "OPENZFS")


def described(call: Call) -> dict[str, Any]:
    """OpenZFSConfiguration as the API returns it, from the request's."""
    asked = copy.deepcopy(call.request.get("OpenZFSConfiguration") or {})
    asked.pop("RootVolumeConfiguration", None)
    shown = {**_FILE_SYSTEM, "DiskIopsConfiguration": {"Mode": "AUTOMATIC"}, **asked}
    _set_iops(shown, call.request.get("StorageCapacity") or 0)
    return shown


def updated(call: Call) -> dict[str, Any]:
    """The description after the changes of a request."""
    request, new = call.request, copy.deepcopy(call.old)
    changes, capacity = request.get("OpenZFSConfiguration") or {}, request.get("StorageCapacity")
    if not changes and capacity is None:
        raise Refusal("MissingFileSystemConfiguration", "The request changes nothing.")
    if {"StorageType", "NetworkType", "FileSystemTypeVersion"} & request.keys():
        raise Refusal("UnsupportedOperation", "Of a file system's own members, only StorageCapacity can change here.")
    if unsupported := {"AddRouteTableIds", "RemoveRouteTableIds", "ReadCacheConfiguration"} & changes.keys():
        raise Refusal("UnsupportedOperation", f"{', '.join(sorted(unsupported))} cannot change here.")
    if capacity is not None and capacity < 1.1 * call.old["StorageCapacity"]:
        raise bad(f"StorageCapacity grows by at least 10 percent: {capacity} GiB is too little.")
    new["StorageCapacity"] = capacity or call.old["StorageCapacity"]
    configuration = new["OpenZFSConfiguration"] | copy.deepcopy(changes)
    _check_throughput(configuration)
    _check_capacity(new["StorageCapacity"])
    _set_iops(configuration, new["StorageCapacity"])
    return {**new, "OpenZFSConfiguration": configuration}


def _set_iops(configuration: dict[str, Any], capacity: int) -> None:
    iops = configuration["DiskIopsConfiguration"]
    if iops.get("Mode", "AUTOMATIC") == "AUTOMATIC":
        configuration["DiskIopsConfiguration"] = {"Mode": "AUTOMATIC", "Iops": IOPS_PER_GIB * capacity}


def _check_throughput(configuration: dict[str, Any]) -> None:
    deployment, throughput = configuration["DeploymentType"], configuration.get("ThroughputCapacity")
    if throughput not in THROUGHPUT_MBPS[deployment]:
        words = ", ".join(map(str, THROUGHPUT_MBPS[deployment]))
        raise bad(f"ThroughputCapacity {throughput} is not valid: for {deployment} it must be one of {words} MBps.")


def _check_capacity(capacity: int | None) -> None:
    if not capacity or not SMALLEST_GIB <= capacity <= LARGEST_GIB:
        raise bad(f"StorageCapacity {capacity} GiB is not valid: it is {SMALLEST_GIB} to {LARGEST_GIB} GiB.")


def parameters(call: Call) -> None:
    """The parameters of a new file system. Storage class Intelligent-Tiering is not supported here."""
    request, asked = call.request, call.request.get("OpenZFSConfiguration")
    if not asked:
        raise Refusal("MissingFileSystemConfiguration", "OpenZFSConfiguration is required.")
    deployment, subnets = asked["DeploymentType"], request["SubnetIds"]
    if call.new["StorageType"] != "SSD" or "ReadCacheConfiguration" in asked:
        raise Refusal("UnsupportedOperation", "The embedded AWS has OpenZFS file systems with SSD storage only.")
    _check_throughput(asked)
    _check_capacity(request.get("StorageCapacity"))
    iops = asked.get("DiskIopsConfiguration") or {}
    if (iops.get("Mode") == "USER_PROVISIONED") != ("Iops" in iops):
        raise bad("DiskIopsConfiguration has Iops with Mode USER_PROVISIONED, and only with it.")
    multi = deployment == "MULTI_AZ_1"
    if len(subnets) != (2 if multi else 1):
        message = f"{deployment} takes {'two subnets' if multi else 'one subnet'}, not {len(subnets)}."
        raise Refusal("InvalidNetworkSettings", message)
    if multi and asked.get("PreferredSubnetId") not in subnets:
        raise bad("PreferredSubnetId is required with MULTI_AZ_1, and one of SubnetIds.")
    if not multi and (wrong := [name for name in _MULTI_AZ_ONLY if name in asked]):
        raise bad(f"{', '.join(wrong)} is for MULTI_AZ_1 only.")
    _check_volume({**_VOLUME, **(asked.get("RootVolumeConfiguration") or {})})


def network(call: Call) -> None:
    """Subnets, in two zones for Multi-AZ, and security groups exist, in one VPC."""
    found = [call.references.subnet(subnet_id) for subnet_id in call.request["SubnetIds"]]
    for subnet_id, subnet in zip(call.request["SubnetIds"], found, strict=True):
        if subnet is None:
            message = f"The subnet {subnet_id} does not exist."
            raise Refusal("InvalidNetworkSettings", message, InvalidSubnetId=subnet_id)
    if len({subnet.vpc_id for subnet in found}) > 1 or len({each.availability_zone for each in found}) < len(found):
        raise Refusal("InvalidNetworkSettings", "The subnets must be in one VPC and in different Availability Zones.")
    security_groups(call, found[0].vpc_id)


def add_root_volume(call: Call) -> None:
    """The volume above all others of a new file system."""
    made = call.target
    asked = (call.request.get("OpenZFSConfiguration") or {}).get("RootVolumeConfiguration") or {}
    root = {"Name": "fsx", "VolumeType": "OPENZFS", "FileSystemId": made.id}
    configuration = {**copy.deepcopy(_VOLUME), **copy.deepcopy(asked), "VolumePath": "/fsx"}
    volume = call.store.add(VOLUME, new_volume_id(), {**root, "OpenZFSConfiguration": configuration}, None)
    made.description["OpenZFSConfiguration"]["RootVolumeId"] = volume.id


def new_volume_id() -> str:
    """The id of a volume."""
    return f"fsvol-{secrets.token_hex(9)[:17]}"


def volumes_of(call: Call) -> list[Item]:
    """The volumes of the file system of a call."""
    return [item for item in call.store.all(VOLUME) if item["FileSystemId"] == call.target.id]


def deletable(call: Call) -> None:
    """A file system with volumes besides the root volume is deleted only with the option."""
    options = (call.request.get("OpenZFSConfiguration") or {}).get("Options") or ()
    if len(volumes_of(call)) > 1 and DELETE_ALL not in options:
        raise bad(f"File system {call.target.id} has volumes; delete them first, or use {DELETE_ALL}.")


# volumes


def _children(call: Call) -> list[Item]:
    return [item for item in call.store.all(VOLUME) if _parent_id(item) == call.target.id]


def _parent_id(item: Item) -> str | None:
    parent: str | None = item["OpenZFSConfiguration"].get("ParentVolumeId")
    return parent


def _describe_volume(call: Call) -> None:
    asked = copy.deepcopy(call.request.get("OpenZFSConfiguration") or {})
    if call.item is None:
        if call.request["VolumeType"] != "OPENZFS" or "OriginSnapshot" in asked:
            raise Refusal("UnsupportedOperation", "The embedded AWS has OpenZFS volumes without an origin only.")
        if not asked:
            raise Refusal("MissingVolumeConfiguration", "OpenZFSConfiguration is required.")
        parent = call.store.find(VOLUME, asked["ParentVolumeId"])
        if parent is None:
            raise bad(f"Parent volume {asked['ParentVolumeId']} does not exist.")
        call.new["FileSystemId"] = parent["FileSystemId"]
        asked = {**copy.deepcopy(_VOLUME), **asked}
    configuration = {**call.old.get("OpenZFSConfiguration", {}), **asked}
    above = call.store.find(VOLUME, configuration.get("ParentVolumeId", ""))
    if above:
        configuration["VolumePath"] = f"{above['OpenZFSConfiguration']['VolumePath']}/{call.new['Name']}"
    unset = [name for name in ("StorageCapacityQuotaGiB", "StorageCapacityReservationGiB") if asked.get(name) == -1]
    call.new["OpenZFSConfiguration"] = {name: value for name, value in configuration.items() if name not in unset}


def volume(call: Call) -> None:
    """The name is unique among the parent's volumes; sizes are valid and within the parent's reservation."""
    configuration = call.new["OpenZFSConfiguration"]
    parent_id = configuration.get("ParentVolumeId")
    siblings = [item for item in call.others if parent_id and _parent_id(item) == parent_id]
    if any(item["Name"] == call.new["Name"] for item in siblings):
        raise bad(f"A volume named {call.new['Name']} exists in {parent_id} already.")
    _check_volume(configuration)
    reserved = configuration.get("StorageCapacityReservationGiB", 0)
    parent = call.store.find(VOLUME, parent_id or "")
    available = parent["OpenZFSConfiguration"].get("StorageCapacityReservationGiB") if parent else None
    if available is not None and reserved > available:
        raise bad(f"StorageCapacityReservationGiB {reserved} is more than the {available} GiB of the parent volume.")


def _check_volume(configuration: dict[str, Any]) -> None:
    size = configuration["RecordSizeKiB"]
    if size not in RECORD_SIZES_KIB:
        raise bad(f"RecordSizeKiB {size} is not valid: it must be one of {', '.join(map(str, RECORD_SIZES_KIB))}.")
    quota, reserved = (configuration.get(f"StorageCapacity{name}GiB") for name in ("Quota", "Reservation"))
    if quota and reserved and reserved > quota:
        raise bad(f"StorageCapacityReservationGiB {reserved} is more than StorageCapacityQuotaGiB {quota}.")


def volume_deletable(call: Call) -> None:
    """The root volume stays with its file system; a volume with child volumes is deleted only with the option."""
    options = (call.request.get("OpenZFSConfiguration") or {}).get("Options") or ()
    if _parent_id(call.target) is None:
        raise bad(f"{call.target.id} is the root volume, which is deleted with its file system.")
    if _children(call) and DELETE_ALL not in options:
        raise bad(f"Volume {call.target.id} has child volumes; delete them first, or use {DELETE_ALL}.")


def _remove_children(call: Call) -> None:
    path = call.target["OpenZFSConfiguration"]["VolumePath"] + "/"
    within = [item for item in call.others if item["OpenZFSConfiguration"]["VolumePath"].startswith(path)]
    call.store.remove(*(item for item in within if item["FileSystemId"] == call.target["FileSystemId"]))


def _matches(call: Call, item: Item) -> bool:
    filters = {each["Name"]: each["Values"] for each in call.request.get("Filters") or ()}
    if unknown := filters.keys() - {"file-system-id"}:
        raise bad(f"The filter {min(unknown)} is not for volumes of OpenZFS.")
    return all(item["FileSystemId"] in values for values in filters.values())


VOLUME = Kind(
    noun="Volume",
    address="VolumeId",
    new_id=lambda _: new_volume_id(),
    arn="volume/{FileSystemId}/{VolumeId}",
    missing="Volume '{id}' does not exist.",
    describe=_describe_volume,
    removed=_remove_children,
    listed=_matches,
)
RULES = (
    Rule("CreateVolume UpdateVolume", volume, "API Reference, CreateOpenZFSVolumeConfiguration"),
    Rule("DeleteVolume", volume_deletable, "API Reference, DeleteVolumeOpenZFSConfiguration"),
)
