"""UpdateFileSystem for Lustre: which members can change, within which limits, and how often."""

import copy
import datetime
from collections.abc import Mapping
from typing import Any

from localaws.services import fsx_rules as rules
from localaws.services.service import Refusal
from localaws.services.store import Call

# Minimum time between two changes of capacity, and of metadata IOPS.
PAUSE = datetime.timedelta(hours=6)
PLAIN = frozenset(
    {
        *("AutomaticBackupRetentionDays", "DailyAutomaticBackupStartTime", "DataCompressionType", "LogConfiguration"),
        *("RootSquashConfiguration", "WeeklyMaintenanceStartTime"),
    }
)


def updated(call: Call) -> dict[str, Any]:
    """The description after all changes of the request; Refusal when one of them is not possible."""
    rules.is_lustre(call)
    rules.log_group(call)
    item, request, changes = call.target, call.request, rules.lustre_of(call)
    new, changed_at = copy.deepcopy(item.description), dict(item.owned.get("changed_at", {}))
    if not changes and not {"StorageCapacity", "FileSystemTypeVersion"} & request.keys():
        raise Refusal("MissingFileSystemConfiguration", "The request changes nothing.")
    if "StorageType" in request or "NetworkType" in request:
        raise Refusal("UnsupportedOperation", "StorageType and NetworkType of a Lustre file system cannot change.")
    lustre = new["LustreConfiguration"]
    _check_backups(call, changes)
    if "PerUnitStorageThroughput" in changes:
        _set_unit_throughput(new, changes["PerUnitStorageThroughput"])
    if "StorageCapacity" in request and request["StorageCapacity"] != new.get("StorageCapacity"):
        _check_interval(changed_at, "StorageCapacity")
        _increase_capacity(new, request["StorageCapacity"])
    if "ThroughputCapacity" in changes:
        _raise_tier_throughput(new, changes["ThroughputCapacity"])
    if "DataReadCacheConfiguration" in changes:
        _set_read_cache(new, changes["DataReadCacheConfiguration"])
    if "MetadataConfiguration" in changes and _set_metadata(new, changes["MetadataConfiguration"]):
        _check_interval(changed_at, "MetadataConfiguration")
    if "AutoImportPolicy" in changes:
        if "DataRepositoryConfiguration" not in lustre:
            raise rules.bad("AutoImportPolicy requires a file system that was created with an ImportPath.")
        lustre["DataRepositoryConfiguration"]["AutoImportPolicy"] = changes["AutoImportPolicy"]
    if "FileSystemTypeVersion" in request:
        _upgrade(new, request["FileSystemTypeVersion"])
    rules.check_squash_and_log(changes)
    lustre.update({name: copy.deepcopy(changes[name]) for name in PLAIN if name in changes})
    item.owned["changed_at"] = changed_at
    return new


def now() -> datetime.datetime:
    """The current time."""
    return datetime.datetime.now(datetime.UTC)


def _check_interval(changed_at: dict[str, datetime.datetime], what: str) -> None:
    last = changed_at.get(what)
    if last is not None and now() - last < PAUSE:
        ready = (last + PAUSE).strftime("%H:%M UTC")
        raise rules.bad(f"{what} was changed less than 6 hours ago and can change again at {ready}.")
    changed_at[what] = now()


def _increase_capacity(new: dict[str, Any], capacity: int) -> None:
    lustre, current = new["LustreConfiguration"], new.get("StorageCapacity")
    if current is None or lustre["DeploymentType"] == "SCRATCH_1":
        raise rules.bad("The capacity of SCRATCH_1 and of Intelligent-Tiering file systems cannot be set.")
    if capacity <= current:
        raise rules.bad(f"StorageCapacity can only grow: {capacity} GiB is not more than {current} GiB.")
    rules.check_capacity(capacity, lustre, lustre["DeploymentType"], new["StorageType"])
    new["StorageCapacity"] = capacity
    if lustre.get("MetadataConfiguration", {}).get("Mode") == "AUTOMATIC":
        lustre["MetadataConfiguration"]["Iops"] = rules.automatic_iops(capacity)


def _set_unit_throughput(new: dict[str, Any], unit: int) -> None:
    lustre = new["LustreConfiguration"]
    if unit == lustre.get("PerUnitStorageThroughput"):
        return
    if new["StorageType"] != "SSD" or lustre["EfaEnabled"]:
        raise rules.bad("PerUnitStorageThroughput changes on persistent SSD file systems without EFA only.")
    rules.check_unit_throughput(unit, lustre["DeploymentType"], "SSD")
    lustre["PerUnitStorageThroughput"] = unit


def _raise_tier_throughput(new: dict[str, Any], throughput: int) -> None:
    current = new["LustreConfiguration"].get("ThroughputCapacity")
    if current is None:
        raise rules.bad("ThroughputCapacity is for INTELLIGENT_TIERING storage only.")
    rules.check_tier_throughput(throughput)
    if throughput < current:
        raise rules.bad(f"ThroughputCapacity can only grow: {throughput} MBps is less than {current} MBps.")
    new["LustreConfiguration"]["ThroughputCapacity"] = throughput


def _set_read_cache(new: dict[str, Any], cache: dict[str, Any]) -> None:
    lustre = new["LustreConfiguration"]
    if new["StorageType"] != "INTELLIGENT_TIERING":
        raise rules.bad("DataReadCacheConfiguration is for INTELLIGENT_TIERING storage only.")
    rules.check_read_cache(cache, lustre["ThroughputCapacity"])
    lustre["DataReadCacheConfiguration"] = copy.deepcopy(cache)


def _set_metadata(new: dict[str, Any], change: dict[str, Any]) -> bool:
    """Whether metadata settings change. IOPS cannot decrease; a file system created without them cannot get them."""
    current = new["LustreConfiguration"].get("MetadataConfiguration")
    if current is None:
        raise rules.bad("MetadataConfiguration cannot be added to a file system that was made without one.")
    mode = change.get("Mode", current["Mode"])
    wanted = {"Mode": mode, **({"Iops": change["Iops"]} if "Iops" in change else {})}
    if mode == "USER_PROVISIONED":
        wanted.setdefault("Iops", current["Iops"])
    rules.check_metadata_iops(wanted, new["StorageType"])
    wanted.setdefault("Iops", rules.automatic_iops(new.get("StorageCapacity", 0)))
    if wanted["Iops"] < current["Iops"]:
        raise rules.bad(f"Metadata IOPS can only grow: {wanted['Iops']} is less than {current['Iops']}.")
    new["LustreConfiguration"]["MetadataConfiguration"] = wanted
    return bool(wanted != current)


def _upgrade(new: dict[str, Any], version: str) -> None:
    current = new["FileSystemTypeVersion"]
    if version not in rules.VERSIONS or rules.VERSIONS.index(version) < rules.VERSIONS.index(current):
        raise rules.bad(f"FileSystemTypeVersion must be newer than {current}, not {version}.")
    new["FileSystemTypeVersion"] = version


def _check_backups(call: Call, changes: Mapping[str, Any]) -> None:
    if not changes.get("AutomaticBackupRetentionDays"):
        return
    lustre = call.target["LustreConfiguration"]
    if call.children or "DataRepositoryConfiguration" in lustre:
        raise rules.bad("Backups cannot be enabled on S3-linked file systems.")
    if lustre["DeploymentType"].startswith("SCRATCH"):
        raise rules.bad("Backups are for persistent file systems only.")
