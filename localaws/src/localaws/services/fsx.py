"""FSx in place of moto's: file systems of Lustre and OpenZFS, associations with S3, volumes and backups."""

import copy
import functools
import secrets
from typing import Any

from moto.core.responses import ActionResult

from localaws.services import fsx_openzfs as openzfs
from localaws.services import fsx_rules as rules
from localaws.services.access import objects_refusal, service_role
from localaws.services.actions import Actions, add_service
from localaws.services.fsx_updates import updated
from localaws.services.store import Call, Item, Kind

LINK_ACTIONS = ("s3:ListBucket", "s3:GetObject", "s3:PutObject")
"""What the role of an association needs (User Guide, "Using service-linked roles for Amazon FSx")."""
_LEGACY = ("ImportPath", "ExportPath", "ImportedFileChunkSize", "AutoImportPolicy")


def _new_id(prefix: str) -> str:
    return f"{prefix}-{secrets.token_hex(9)[:17]}"


def _describe(call: Call) -> None:
    """What the description adds to the request, or changes by an update."""
    if call.item:
        call.new = openzfs.updated(call) if openzfs.is_openzfs(call) else updated(call)
        return
    call.new["OwnerId"] = call.store.account_id
    if call.request["FileSystemType"] == "LUSTRE":
        asked = call.request.get("LustreConfiguration") or {}
        call.new.setdefault("FileSystemTypeVersion", rules.default_version(asked))
        call.new["LustreConfiguration"] = _described(asked, call.new.get("StorageCapacity") or 0)
    if openzfs.is_openzfs(call):
        openzfs.parameters(call)
        openzfs.network(call)
        call.new["OpenZFSConfiguration"] = openzfs.described(call)


def _described(asked: dict[str, Any], capacity: int) -> dict[str, Any]:
    """LustreConfiguration as the API returns it, from the request's."""
    shown: dict[str, Any] = {
        "DeploymentType": "SCRATCH_1",
        "WeeklyMaintenanceStartTime": "7:07:00",
        "DataCompressionType": "NONE",
        "LogConfiguration": {"Level": "DISABLED"},
        "EfaEnabled": False,
        **{name: copy.deepcopy(value) for name, value in asked.items() if name not in _LEGACY},
    }
    shown["MountName"] = "fsx" if shown["DeploymentType"] == "SCRATCH_1" else secrets.token_hex(4)
    if shown["DeploymentType"].startswith("PERSISTENT"):
        shown = {"AutomaticBackupRetentionDays": 0, "CopyTagsToBackups": False, **shown}
    if shown.get("MetadataConfiguration", {}).get("Mode") == "AUTOMATIC":
        shown["MetadataConfiguration"]["Iops"] = rules.automatic_iops(capacity)
    if "ImportPath" in asked:
        linked = {name: asked[name] for name in _LEGACY if name in asked}
        defaults = {"Lifecycle": "AVAILABLE", "ImportedFileChunkSize": 1024, "AutoImportPolicy": "NONE"}
        shown["DataRepositoryConfiguration"] = {**defaults, **linked}
    return shown


def _connect(call: Call) -> None:
    """Encrypt the file system, and create one network interface, which represents those of all servers."""
    made, references = call.target, call.references
    given = call.request.get("KmsKeyId")
    key = references.key(given).arn if given else references.default_key_arn("alias/aws/fsx")
    subnet = references.subnet(made["SubnetIds"][0])
    made.description |= {"DNSName": f"{made.id}.fsx.{call.store.region_name}.amazonaws.com", "KmsKeyId": str(key)}
    if subnet is not None:
        groups = [group.id for group in rules.security_groups(call, subnet.vpc_id)]
        interface = references.network_interface(subnet, groups, f"Created by Amazon FSx for {made.id}")
        made.description |= {"VpcId": subnet.vpc_id, "NetworkInterfaceIds": [interface.id]}
    if openzfs.is_openzfs(call):
        openzfs.add_root_volume(call)


def _disconnect(call: Call) -> None:
    if openzfs.is_openzfs(call):
        openzfs.deletable(call)
        _back_up_finally(call)
        call.store.remove(*openzfs.volumes_of(call))
    for interface in call.target.description.get("NetworkInterfaceIds", ()):
        call.references.delete_network_interface(interface)


def _back_up_finally(call: Call) -> None:
    """FSx backs an OpenZFS file system up before it deletes it (API, DeleteFileSystemOpenZFSConfiguration, 2026)."""
    if not (call.request.get("OpenZFSConfiguration") or {}).get("SkipFinalBackup"):
        about = {"FileSystem": call.target.view(), "OwnerId": call.store.account_id}
        call.store.add(BACKUP, _new_id("backup"), {**BACKUP.defaults, **about}, None, None)


def _matches(call: Call, item: Item) -> bool:
    for condition in call.request.get("Filters") or ():
        if condition["Name"] != "file-system-id":
            raise rules.bad(f"The filter {condition['Name']} is not for associations of Lustre file systems.")
        if item["FileSystemId"] not in condition["Values"]:
            return False
    return True


def _reach(call: Call) -> None:
    """An association whose bucket or key refuses FSx's role is MISCONFIGURED (User Guide, association lifecycle)."""
    made, references = call.target, call.references
    role = service_role(references, "AWSServiceRoleForFSxS3Access", f"_{made['FileSystemId']}")
    path = made["DataRepositoryPath"].removeprefix("s3://").rstrip("/")
    made.description.pop("FailureDetails", None)
    if message := objects_refusal(references, role, f"{path}/object", LINK_ACTIONS):
        made.description["FailureDetails"] = {"Message": f"Amazon FSx cannot access s3://{path}. {message}"}
        made.status = "MISCONFIGURED"


def _back_up(call: Call) -> None:
    source = call.store.get(FILE_SYSTEM, str(call.request.get("FileSystemId")))
    call.new |= {"FileSystem": source.view(), "OwnerId": call.store.account_id}


FILE_SYSTEM = Kind(
    noun="FileSystem",
    address="FileSystemId",
    new_id=lambda _: _new_id("fs"),
    arn="file-system/{FileSystemId}",
    missing="File system '{id}' does not exist.",
    defaults={"StorageType": "SSD", "NetworkType": "IPV4"},
    describe=_describe,
    made=_connect,
    removed=_disconnect,
)
ASSOCIATION = Kind(
    noun="DataRepositoryAssociation",
    address="AssociationId",
    new_id=lambda _: _new_id("dra"),
    arn="association/{FileSystemId}/{AssociationId}",
    parent=FILE_SYSTEM,
    missing="Data repository association '{id}' does not exist.",
    quota=rules.MAXIMUM_LINKS,
    full="A file system has at most {limit} data repository associations.",
    defaults={"FileSystemPath": "/", "BatchImportMetaDataOnCreate": False, "ImportedFileChunkSize": 1024, "S3": {}},
    merged="S3",
    made=_reach,
    changed=_reach,
    listed=_matches,
)
BACKUP = Kind(
    noun="Backup",
    address="BackupId",
    new_id=lambda _: _new_id("backup"),
    arn="backup/{BackupId}",
    missing="Backup '{id}' does not exist.",
    defaults={"Type": "USER_INITIATED"},
    describe=_back_up,
)


class FsxActions(Actions):
    """The actions of the FSx API."""

    service = "fsx"
    kinds = (FILE_SYSTEM, ASSOCIATION, BACKUP, openzfs.VOLUME)
    rules = (*rules.RULES, *openzfs.RULES)
    invalid = "BadRequest"

    def delete_data_repository_association(self) -> ActionResult:
        """Delete the association. Data in the file system stays unless the request deletes it."""
        answer = self.delete(ASSOCIATION)
        answer.result["DeleteDataInFileSystem"] = self.params.get("DeleteDataInFileSystem") or False
        return answer


@functools.cache
def activate() -> Any:
    """Add FSx to moto. Returns the stores by account and Region."""
    return add_service("FSx", FsxActions, "/")
