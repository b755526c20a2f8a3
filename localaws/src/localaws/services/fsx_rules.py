"""What FSx refuses of Lustre file systems and their data repository associations.

Source: FSx for Lustre User Guide and API Reference (2026): deployment and storage class options, EFA file systems,
metadata performance, managing storage capacity, linking to S3.
"""

from collections.abc import Callable, Mapping
from typing import Any

from localaws.records import records
from localaws.services.service import Refusal
from localaws.services.store import Call, Rule

Parameters = Mapping[str, Any]

_FSX = records("fsx")
_CAPACITY = _FSX["capacity"]
SMALL_CAPACITIES_GIB: tuple[int, ...] = tuple(_CAPACITY["small_gib"])
CAPACITY_STEP_GIB: dict[str, int] = _CAPACITY["step_gib"]
EFA_STEP_GIB: dict[int, int] = {int(tier): step for tier, step in _FSX["efa"]["step_gib"].items()}
THROUGHPUT_CAPACITY_STEP_MBPS: int = _FSX["intelligent_tiering"]["throughput_step_mbps"]
MAXIMUM_LINKS: int = _FSX["associations"]["maximum"]
LESSER_PLACES = _FSX["lesser_places"]
_IOPS = _FSX["metadata"]["iops"]
INTELLIGENT_TIERING_METADATA_IOPS: tuple[int, ...] = tuple(_FSX["intelligent_tiering"]["metadata_iops"])
METADATA_IOPS = (*_IOPS["small"], *range(_IOPS["step"], _IOPS["maximum"] + 1, _IOPS["step"]))

# MB/s/TiB by (deployment type, storage type); scratch and Intelligent-Tiering file systems cannot set one.
UNIT_THROUGHPUT: dict[tuple[str, str], tuple[int, ...]] = {
    (deployment, storage): tuple(_FSX["throughput_mbps_per_tib"][deployment][storage])
    for deployment, storage in (("PERSISTENT_1", "SSD"), ("PERSISTENT_1", "HDD"), ("PERSISTENT_2", "SSD"))
}
STORAGE = {
    "SCRATCH_1": ("SSD",),
    "SCRATCH_2": ("SSD",),
    "PERSISTENT_1": ("SSD", "HDD"),
    "PERSISTENT_2": ("SSD", "INTELLIGENT_TIERING"),
}
HDD_STEP_GIB: dict[int, int] = {int(tier): step for tier, step in _CAPACITY["hdd_step_gib"].items()}
CACHE_GIB_PER_TIER_STEP: tuple[int, int] = tuple(_FSX["intelligent_tiering"]["cache_gib_per_step"])
LNET_PORT = 988
VERSIONS: tuple[str, ...] = ("2.10", "2.12", "2.15")


def bad(message: str) -> Refusal:
    """A BadRequest error."""
    return Refusal("BadRequest", message)


def lustre_of(call: Call) -> Parameters:
    """The request's LustreConfiguration."""
    return call.request.get("LustreConfiguration") or {}


def is_lustre(call: Call) -> None:
    """Only Lustre file systems change and have associations here."""
    found = call.parent or call.target
    if found["FileSystemType"] != "LUSTRE":
        raise Refusal("UnsupportedOperation", f"File system {found.id} is not a Lustre file system.")


def parameters(call: Call) -> None:
    """All rules for the parameters of a Lustre file system."""
    request, lustre, storage = call.request, lustre_of(call), call.new["StorageType"]
    deployment = lustre.get("DeploymentType", "SCRATCH_1")
    if storage not in STORAGE[deployment]:
        raise bad(f"Storage type {storage} is not available for {deployment}; use {' or '.join(STORAGE[deployment])}.")
    if len(request["SubnetIds"]) != 1:
        message = f"A Lustre file system takes exactly one subnet, not {len(request['SubnetIds'])}."
        raise Refusal("InvalidNetworkSettings", message)
    if request.get("KmsKeyId") and not deployment.startswith("PERSISTENT"):
        raise bad(f"{deployment} file systems use the service's key; KmsKeyId is for persistent ones.")
    check_unit_throughput(lustre.get("PerUnitStorageThroughput"), deployment, storage)
    _check_tiering(request, lustre, storage)
    _check_metadata(lustre, deployment, storage)
    if lustre.get("EfaEnabled") and (deployment != "PERSISTENT_2" or not lustre.get("MetadataConfiguration")):
        raise bad("EfaEnabled needs PERSISTENT_2 with a MetadataConfiguration.")
    if storage != "INTELLIGENT_TIERING":
        check_capacity(request.get("StorageCapacity"), lustre, deployment, storage)
    _check_version(request.get("FileSystemTypeVersion"), lustre, deployment)
    _check_rest(lustre, deployment, storage)


def check_capacity(capacity: int | None, lustre: Parameters, deployment: str, storage: str) -> None:
    """The capacity is a valid step for deployment type, storage type and throughput."""
    if not capacity:
        raise bad("StorageCapacity is required.")
    unit = lustre.get("PerUnitStorageThroughput", 0)
    if lustre.get("EfaEnabled"):
        step = EFA_STEP_GIB[unit]
        fits, words = capacity % step == 0, f"a multiple of {step} GiB with EFA at {unit} MB/s/TiB"
    elif storage == "HDD":
        step = HDD_STEP_GIB[unit]
        fits, words = capacity % step == 0, f"a multiple of {step} GiB for HDD at {unit} MB/s/TiB"
    else:
        step = CAPACITY_STEP_GIB[deployment]
        fits = capacity in SMALL_CAPACITIES_GIB or capacity % step == 0
        words = f"1200, 2400 or a multiple of {step} GiB for {deployment}"
    if not fits:
        raise bad(f"StorageCapacity {capacity} GiB is not valid: it must be {words}.")


def automatic_iops(capacity: int) -> int:
    """Metadata IOPS that FSx provisions for a capacity in GiB under mode AUTOMATIC."""
    automatic = _FSX["metadata"]["automatic"]
    for limit, iops in automatic["up_to_gib"].items():
        if capacity <= int(limit):
            return int(iops)
    return int(automatic["above"]["iops"] * (capacity // automatic["above"]["per_gib"]))


def default_version(lustre: Parameters) -> str:
    """The default Lustre version."""
    if lustre.get("DeploymentType") != "PERSISTENT_2":
        return "2.10"
    return "2.15" if lustre.get("MetadataConfiguration") else "2.12"


def _overlap(one: str, other: str) -> bool:
    first, second = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return first.startswith(second) or second.startswith(first)


def check_unit_throughput(unit: int | None, deployment: str, storage: str) -> None:
    """Persistent SSD and HDD file systems have one of the allowed throughputs per TiB; others cannot set one."""
    allowed = UNIT_THROUGHPUT.get((deployment, storage), ())
    if unit is None and not allowed:
        return
    if unit not in allowed:
        words = f"one of {', '.join(map(str, allowed))} MB/s/TiB" if allowed else "left out"
        message = f"PerUnitStorageThroughput {unit} is not valid: for {deployment} {storage} it must be {words}."
        raise Refusal("InvalidPerUnitStorageThroughput", message)


def _check_tiering(request: Parameters, lustre: Parameters, storage: str) -> None:
    cache = lustre.get("DataReadCacheConfiguration")
    if storage != "INTELLIGENT_TIERING":
        if lustre.get("ThroughputCapacity") or cache:
            raise bad("ThroughputCapacity and DataReadCacheConfiguration are for INTELLIGENT_TIERING storage only.")
        return
    if request.get("StorageCapacity"):
        raise bad("INTELLIGENT_TIERING storage grows by itself; leave StorageCapacity out.")
    check_tier_throughput(lustre.get("ThroughputCapacity"))
    if not cache:
        raise bad("INTELLIGENT_TIERING storage needs a DataReadCacheConfiguration.")
    check_read_cache(cache, lustre["ThroughputCapacity"])


def check_tier_throughput(throughput: int | None) -> None:
    """Intelligent-Tiering throughput is that of whole file servers."""
    if not throughput or throughput % THROUGHPUT_CAPACITY_STEP_MBPS:
        raise bad(f"ThroughputCapacity {throughput} must be a multiple of {THROUGHPUT_CAPACITY_STEP_MBPS} MBps.")


def check_read_cache(cache: Parameters, throughput: int) -> None:
    """A user-provisioned read cache has a size that its file servers support; other modes have no size."""
    size = cache.get("SizeGiB")
    if cache.get("SizingMode") != "USER_PROVISIONED":
        if size:
            raise bad("SizeGiB is for SizingMode USER_PROVISIONED only.")
        return
    least, most = (limit * throughput // THROUGHPUT_CAPACITY_STEP_MBPS for limit in CACHE_GIB_PER_TIER_STEP)
    if not size or not least <= size <= most:
        raise bad(f"SizeGiB {size} must be between {least} and {most} at {throughput} MBps.")


def _check_metadata(lustre: Parameters, deployment: str, storage: str) -> None:
    metadata = lustre.get("MetadataConfiguration")
    if metadata is None:
        return
    if deployment != "PERSISTENT_2":
        raise bad(f"MetadataConfiguration is for PERSISTENT_2, not {deployment}.")
    check_metadata_iops(metadata, storage)


def check_metadata_iops(metadata: Parameters, storage: str) -> None:
    """AUTOMATIC has no Iops and needs SSD storage; USER_PROVISIONED has one of the storage type's values."""
    mode, iops = metadata.get("Mode"), metadata.get("Iops")
    allowed = INTELLIGENT_TIERING_METADATA_IOPS if storage == "INTELLIGENT_TIERING" else METADATA_IOPS
    if mode == "AUTOMATIC" and storage == "INTELLIGENT_TIERING":
        raise bad("INTELLIGENT_TIERING storage takes metadata mode USER_PROVISIONED only.")
    if mode == "AUTOMATIC" and iops is not None:
        raise bad("Metadata mode AUTOMATIC sets Iops itself; leave it out or choose USER_PROVISIONED.")
    if mode == "USER_PROVISIONED" and iops not in allowed:
        raise bad(f"Metadata Iops {iops} is not valid: it must be one of {', '.join(map(str, allowed))}.")


def _check_version(version: str | None, lustre: Parameters, deployment: str) -> None:
    if version is None:
        return
    allowed = VERSIONS
    if deployment == "PERSISTENT_2":
        allowed = ("2.15",) if lustre.get("MetadataConfiguration") else ("2.12", "2.15")
    if version not in allowed:
        raise bad(f"FileSystemTypeVersion {version} is not valid here: it must be {' or '.join(allowed)}.")


def _check_rest(lustre: Parameters, deployment: str, storage: str) -> None:
    cache = lustre.get("DriveCacheType")
    if (cache is not None) != (storage == "HDD"):
        raise bad("DriveCacheType is required for PERSISTENT_1 HDD file systems and for no other.")
    legacy = {"ImportPath", "ExportPath", "ImportedFileChunkSize", "AutoImportPolicy"} & lustre.keys()
    if legacy and deployment == "PERSISTENT_2":
        raise bad(f"{', '.join(sorted(legacy))}: PERSISTENT_2 links to S3 by data repository associations.")
    if legacy and "ImportPath" not in lustre:
        raise bad(f"{', '.join(sorted(legacy))} needs an ImportPath.")
    if lustre.get("AutomaticBackupRetentionDays") and deployment.startswith("SCRATCH"):
        raise bad("Backups are for persistent file systems only.")
    check_squash_and_log(lustre)


LARGEST_ID = 4_294_967_294


def check_squash_and_log(lustre: Parameters) -> None:
    """The members that creation and updates have in common."""
    if squash := lustre.get("RootSquashConfiguration"):
        _check_root_squash(squash)
    log = lustre.get("LogConfiguration") or {}
    if log.get("Level") == "DISABLED" and log.get("Destination"):
        raise bad("LogConfiguration with Level DISABLED takes no Destination.")


def _check_root_squash(configuration: Parameters) -> None:
    """LustreRootSquashConfiguration: two numbers above 0, or 0:0 (FSx API Reference, 2026)."""
    if "RootSquash" not in configuration:
        raise bad("NoSquashNids requires RootSquash.")
    ids = [int(number) for number in configuration["RootSquash"].split(":")]
    if any(ids) and not all(0 < number <= LARGEST_ID for number in ids):
        raise bad(f"RootSquash {configuration['RootSquash']} must be two non-zero ids up to {LARGEST_ID}, or 0:0.")
    for nid in configuration.get("NoSquashNids", []):
        numbers = [number.strip("[]").split("-") for number in nid.removesuffix("@tcp").split(".")]
        if not all(_is_range(number) for number in numbers):
            raise bad(f"NoSquashNids {nid} is not an IPv4 address or range.")


def _is_range(number: list[str]) -> bool:
    ends = [int(end) if end.isdigit() else 256 for end in number]
    return len(ends) <= 2 and ends == sorted(ends) and ends[-1] <= 255


# what a request refers to


def network(call: Call) -> None:
    """The subnet and the security groups exist, and their rules let Lustre's traffic, and EFA's, through."""
    subnet_id = call.request["SubnetIds"][0]
    subnet, efa = call.references.subnet(subnet_id), lustre_of(call).get("EfaEnabled")
    if subnet is None:
        message = f"The subnet {subnet_id} does not exist."
        raise Refusal("InvalidNetworkSettings", message, InvalidSubnetId=subnet_id)
    groups = security_groups(call, subnet.vpc_id)
    ids, first = ", ".join(group.id for group in groups), groups[0].id
    if not _any_rule(groups, _allows_lnet):
        message = f"The security groups {ids} do not permit Lustre LNET network traffic on port {LNET_PORT}."
        raise Refusal("InvalidNetworkSettings", message, InvalidSecurityGroupId=first)
    if efa and not any(_allows_efa(group) for group in groups):
        message = f"EFA needs a security group that allows all traffic to and from itself by its id; {ids} do not."
        raise Refusal("InvalidNetworkSettings", message, InvalidSecurityGroupId=first)
    check_place(lustre_of(call), subnet.availability_zone)


def check_place(lustre: Parameters, zone: str) -> None:
    """Some Regions and groups of Local Zones have PERSISTENT_2 in the lower tiers only, and without EFA."""
    known = zone[:-1] in LESSER_PLACES["regions"] or zone.rpartition("-")[0] in LESSER_PLACES["zone_groups"]
    if lustre.get("DeploymentType") != "PERSISTENT_2" or not known:
        return
    tiers = LESSER_PLACES["throughput_mbps_per_tib"]
    if lustre.get("EfaEnabled") or lustre.get("PerUnitStorageThroughput") not in tiers:
        words = " or ".join(map(str, tiers))
        raise bad(f"{zone} has PERSISTENT_2 SSD file systems with {words} MB/s/TiB and without EFA only.")


def security_groups(call: Call, vpc_id: str) -> list[Any]:
    """The security groups of the request, or the VPC's default group."""
    found = []
    for group_id in call.request.get("SecurityGroupIds") or ():
        group = call.references.security_group(group_id)
        if group is None or group.vpc_id != vpc_id:
            where = "does not exist" if group is None else f"is not in VPC {vpc_id}"
            message = f"The security group {group_id} {where}."
            raise Refusal("InvalidNetworkSettings", message, InvalidSecurityGroupId=group_id)
        found.append(group)
    return found or [call.references.default_security_group(vpc_id)]


def _any_rule(groups: list[Any], matches: Callable[[Any], bool]) -> bool:
    """Whether a rule matches inbound, and another outbound."""
    inbound = any(matches(rule) for group in groups for rule in group.ingress_rules)
    return inbound and any(matches(rule) for group in groups for rule in group.egress_rules)


def _allows_lnet(rule: Any) -> bool:
    if rule.ip_protocol == "-1":
        return True
    return rule.ip_protocol == "tcp" and int(rule.from_port) <= LNET_PORT <= int(rule.to_port)


def _allows_efa(group: Any) -> bool:
    """Whether a group allows all traffic to and from itself. EFA ignores rules with CIDR blocks, even 0.0.0.0/0."""
    return _any_rule([group], lambda rule: rule.ip_protocol == "-1" and rule.source_group.get("GroupId") == group.id)


def import_paths(call: Call) -> None:
    """The buckets of ImportPath and ExportPath exist."""
    for name in ("ImportPath", "ExportPath"):
        if path := lustre_of(call).get(name):
            _bucket(call, path)


def log_group(call: Call) -> None:
    """Logs go to a log group of this account and Region whose name begins with /aws/fsx."""
    destination = (lustre_of(call).get("LogConfiguration") or {}).get("Destination")
    if destination is None:
        return
    # Whether FSx accepts the ARN with ":*", as CloudFormation returns it, is not documented; this accepts both.
    group = call.references.log_group(destination)
    if group is None:
        raise bad(f"Log destination {destination} is not a log group of this account and Region.")
    if not group.name.startswith("/aws/fsx"):
        raise bad(f"The name of log group {group.name} must begin with /aws/fsx.")


def key(call: Call) -> None:
    """The KMS key exists and is enabled."""
    if given := call.request.get("KmsKeyId"):
        found = call.references.key(given)
        if found is None or not found.enabled:
            raise bad(f"KMS key {given} does not exist or is not enabled.")


def _bucket(call: Call, path: str) -> Any:
    name = path.removeprefix("s3://").split("/")[0]
    bucket = call.references.bucket(name)
    if bucket is None:
        raise bad(f"Bucket {name} does not exist or is not accessible.")
    return bucket


# data repository associations


def linkable(call: Call) -> None:
    """The file system has a storage, a version and no backups or links that exclude associations."""
    lustre, description = call.within["LustreConfiguration"], call.within.description
    if description["StorageType"] == "INTELLIGENT_TIERING":
        raise bad("Intelligent-Tiering file systems do not take data repository associations.")
    if lustre["DeploymentType"] == "SCRATCH_1" or description["FileSystemTypeVersion"] == "2.10":
        raise bad("Data repository associations need Lustre 2.12 or later, and not SCRATCH_1.")
    if "DataRepositoryConfiguration" in lustre:
        raise bad("The file system is linked to S3 by its ImportPath already.")
    if lustre.get("AutomaticBackupRetentionDays"):
        raise bad("Backups cannot be enabled on S3-linked file systems; turn them off first.")


def association(call: Call) -> None:
    """Paths and S3 prefixes do not overlap; "/" excludes all others."""
    path, target = call.new["FileSystemPath"], call.new["DataRepositoryPath"]
    if not path.startswith("/"):
        raise bad(f"FileSystemPath {path} must start with a slash.")
    if not target.startswith("s3://") or not target.removeprefix("s3://").strip("/"):
        raise bad(f"DataRepositoryPath {target} must be s3://bucket or s3://bucket/prefix/.")
    for other in call.others:
        for name, value in (("FileSystemPath", path), ("DataRepositoryPath", target)):
            if _overlap(value, other[name]):
                raise bad(f"{name} {value} overlaps {other[name]} of {other.id}.")


def import_region(call: Call) -> None:
    """The bucket exists, for automatic import in the Region of the file system."""
    bucket, region = _bucket(call, call.new["DataRepositoryPath"]), call.store.region_name
    s3 = call.request.get("S3") or {}
    if (s3.get("AutoImportPolicy") or {}).get("Events") and bucket.region_name != region:
        raise bad(f"Automatic import needs a bucket in {region}; {bucket.name} is in {bucket.region_name}.")


def _of_lustre(check: Callable[[Call], None]) -> Callable[[Call], None]:
    def checked(call: Call) -> None:
        if call.request["FileSystemType"] == "LUSTRE":
            check(call)

    return checked


RULES = (
    Rule("CreateFileSystem", _of_lustre(parameters), "User Guide, deployment and storage class options"),
    Rule("CreateFileSystem", _of_lustre(network), "User Guide, file system access control with Amazon VPC; EFA"),
    Rule("CreateFileSystem", _of_lustre(import_paths), "API Reference, CreateFileSystemLustreConfiguration"),
    Rule("CreateFileSystem", _of_lustre(log_group), "API Reference, LustreLogCreateConfiguration"),
    Rule("CreateFileSystem", key, "API Reference, CreateFileSystem"),
    Rule("CreateDataRepositoryAssociation", is_lustre, "API Reference, CreateDataRepositoryAssociation"),
    Rule("CreateDataRepositoryAssociation", linkable, "User Guide, linking your file system to an S3 bucket"),
    Rule("CreateDataRepositoryAssociation", association, "API Reference, CreateDataRepositoryAssociation"),
    Rule(
        "CreateDataRepositoryAssociation UpdateDataRepositoryAssociation",
        import_region,
        "API Reference, AutoImportPolicy",
    ),
)
