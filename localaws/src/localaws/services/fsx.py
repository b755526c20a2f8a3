"""FSx for Lustre: what moto lacks (complete descriptions, updates, data repository associations, validation)."""

import copy
import datetime
import functools
import secrets
from typing import Any, ClassVar, cast

from moto.core.responses import ActionResult
from moto.fsx import urls
from moto.fsx.models import FSxBackend
from moto.fsx.responses import FSxResponse

from localaws.services import fsx_rules as rules
from localaws.services.fsx_network import check_network
from localaws.services.fsx_updates import update
from localaws.services.references import References
from localaws.services.service import CheckedInput, Refusal

_LEGACY = ("ImportPath", "ExportPath", "ImportedFileChunkSize", "AutoImportPolicy")


class LustreFileSystem:
    """A file system in moto's store; `associations` are its data repository associations by id."""

    file_system_type = "LUSTRE"

    def __init__(self, backend: FSxBackend, description: dict[str, Any]) -> None:
        self.backend = backend
        self.description = description
        self.file_system_id: str = description["FileSystemId"]
        self.resource_arn: str = description["ResourceARN"]
        self.associations: dict[str, dict[str, Any]] = {}
        self.changed_at: dict[str, datetime.datetime] = {}

    @property
    def lustre(self) -> dict[str, Any]:
        """The present LustreConfiguration."""
        return cast("dict[str, Any]", self.description["LustreConfiguration"])

    def to_dict(self) -> dict[str, Any]:
        """The description that the API returns."""
        tags = self.backend.list_tags_for_resource(self.resource_arn)
        return copy.deepcopy({**self.description, **({"Tags": tags} if tags else {})})


class FsxResponse(CheckedInput, FSxResponse):  # type: ignore[misc]  # moto is untyped
    """The FSx API: moto's class with the actions for Lustre replaced."""

    invalid: ClassVar[str] = "BadRequest"
    paging: ClassVar[tuple[str, str]] = ("NextToken", "MaxResults")

    @property
    def references(self) -> References:
        """Look-ups in the other services of the caller's account and Region."""
        return References(self.current_account, self.region, self.partition)

    def create_file_system(self) -> Any:
        """Validate the request and create the file system with its network interface."""
        request = self.params
        if request["FileSystemType"] != "LUSTRE":
            return super().create_file_system()
        rules.check_file_system(request)
        subnet, groups = check_network(self.references, request)
        rules.check_place(request.get("LustreConfiguration") or {}, subnet.availability_zone)
        lustre = request.get("LustreConfiguration") or {}
        for path in (lustre.get("ImportPath"), lustre.get("ExportPath")):
            self._bucket(path or "")
        self._check_log(lustre)
        key = self._key_arn(request, lustre)
        new_id = f"fs-{secrets.token_hex(9)[:17]}"
        description = {
            "OwnerId": self.current_account,
            "CreationTime": datetime.datetime.now(datetime.UTC).timestamp(),
            "FileSystemId": new_id,
            "FileSystemType": "LUSTRE",
            "FileSystemTypeVersion": request.get("FileSystemTypeVersion") or rules.default_version(lustre),
            "Lifecycle": "AVAILABLE",
            "StorageType": rules.storage_type(request),
            "VpcId": subnet.vpc_id,
            "SubnetIds": request["SubnetIds"],
            # One network interface represents those of all servers.
            "NetworkInterfaceIds": [self._interface(subnet, groups, new_id)],
            "NetworkType": request.get("NetworkType") or "IPV4",
            "DNSName": f"{new_id}.fsx.{self.region}.amazonaws.com",
            "KmsKeyId": key,
            "ResourceARN": f"arn:{self.partition}:fsx:{self.region}:{self.current_account}:file-system/{new_id}",
            "LustreConfiguration": _described(lustre, request.get("StorageCapacity") or 0),
        }
        if "StorageCapacity" in request:
            description["StorageCapacity"] = request["StorageCapacity"]
        made = self.fsx_backend.file_systems[new_id] = LustreFileSystem(self.fsx_backend, description)
        if request.get("Tags"):
            self.fsx_backend.tagger.tag_resource(made.resource_arn, request["Tags"])
        return ActionResult({"FileSystem": made.to_dict()})

    def describe_file_systems(self) -> Any:
        """The file systems in the request, or all. Unknown ids are refused."""
        there = self.fsx_backend.file_systems
        found = [self._file_system(wanted) for wanted in self.params.get("FileSystemIds") or there]
        return self.page("FileSystems", [file_system.to_dict() for file_system in found])

    def update_file_system(self) -> Any:
        """Update a Lustre file system."""
        file_system = self._lustre(self.params["FileSystemId"])
        self._check_log(self.params.get("LustreConfiguration") or {})
        update(file_system, self.params)
        return ActionResult({"FileSystem": file_system.to_dict()})

    def delete_file_system(self) -> Any:
        """Delete a file system with its associations and its network interface."""
        file_system = self._file_system(self.params["FileSystemId"])
        if not isinstance(file_system, LustreFileSystem):
            return super().delete_file_system()
        del self.fsx_backend.file_systems[file_system.file_system_id]
        for interface in file_system.description["NetworkInterfaceIds"]:
            self.references.delete_network_interface(interface)
        return ActionResult({"FileSystemId": file_system.file_system_id, "Lifecycle": "DELETING"})

    # data repository associations

    def create_data_repository_association(self) -> Any:
        """Link a directory of the file system to an S3 prefix."""
        request = self.params
        file_system = self._lustre(request["FileSystemId"])
        self._check_linkable(file_system)
        rules.check_association(request, file_system.associations.values())
        self._check_import_region(request["DataRepositoryPath"], request.get("S3"))
        new_id = f"dra-{secrets.token_hex(9)[:17]}"
        path = f"association/{file_system.file_system_id}/{new_id}"
        association = {
            "AssociationId": new_id,
            "ResourceARN": f"arn:{self.partition}:fsx:{self.region}:{self.current_account}:{path}",
            "FileSystemId": file_system.file_system_id,
            "Lifecycle": "AVAILABLE",
            "FileSystemPath": request.get("FileSystemPath") or "/",
            "DataRepositoryPath": request["DataRepositoryPath"],
            "BatchImportMetaDataOnCreate": request.get("BatchImportMetaDataOnCreate") or False,
            "ImportedFileChunkSize": request.get("ImportedFileChunkSize") or 1024,
            "S3": copy.deepcopy(request.get("S3") or {}),
            "CreationTime": datetime.datetime.now(datetime.UTC),
        }
        file_system.associations[new_id] = association
        if request.get("Tags"):
            self.fsx_backend.tagger.tag_resource(association["ResourceARN"], request["Tags"])
        return ActionResult({"Association": self._association_description(association)})

    def describe_data_repository_associations(self) -> Any:
        """The associations in the request, or all that match the filters. Unknown ids are refused."""
        if wanted := self.params.get("AssociationIds"):
            found = [self._association(association_id) for association_id in wanted]
        else:
            found = list(self._associations().values())
        for condition in self.params.get("Filters") or ():
            if condition["Name"] != "file-system-id":
                raise rules.bad(f"The filter {condition['Name']} is not for associations of Lustre file systems.")
            found = [association for association in found if association["FileSystemId"] in condition["Values"]]
        return self.page("Associations", [self._association_description(association) for association in found])

    def update_data_repository_association(self) -> Any:
        """Change the chunk size or the import and export policies."""
        association = self._association(self.params["AssociationId"])
        self._check_import_region(association["DataRepositoryPath"], self.params.get("S3"))
        association["S3"] = {**association["S3"], **copy.deepcopy(self.params.get("S3") or {})}
        if "ImportedFileChunkSize" in self.params:
            association["ImportedFileChunkSize"] = self.params["ImportedFileChunkSize"]
        return ActionResult({"Association": self._association_description(association)})

    def delete_data_repository_association(self) -> Any:
        """Delete the association. Data in the file system stays unless the request deletes it."""
        association = self._association(self.params["AssociationId"])
        del self._lustre(association["FileSystemId"]).associations[association["AssociationId"]]
        deleted = self.params.get("DeleteDataInFileSystem") or False
        answer = {"AssociationId": association["AssociationId"], "Lifecycle": "DELETING"}
        return ActionResult({**answer, "DeleteDataInFileSystem": deleted})

    # helpers

    def _file_system(self, file_system_id: str) -> Any:
        found = self.fsx_backend.file_systems.get(file_system_id)
        if found is None:
            raise Refusal("FileSystemNotFound", f"File system '{file_system_id}' does not exist.")
        return found

    def _lustre(self, file_system_id: str) -> LustreFileSystem:
        found = self._file_system(file_system_id)
        if not isinstance(found, LustreFileSystem):
            raise Refusal("UnsupportedOperation", f"File system {file_system_id} is not a Lustre file system.")
        return found

    def _associations(self) -> dict[str, dict[str, Any]]:
        file_systems = [
            found for found in self.fsx_backend.file_systems.values() if isinstance(found, LustreFileSystem)
        ]
        return {key: value for file_system in file_systems for key, value in file_system.associations.items()}

    def _association(self, association_id: str) -> dict[str, Any]:
        found = self._associations().get(association_id)
        if found is None:
            message = f"Data repository association '{association_id}' does not exist."
            raise Refusal("DataRepositoryAssociationNotFound", message)
        return found

    def _association_description(self, association: dict[str, Any]) -> dict[str, Any]:
        tags = self.fsx_backend.list_tags_for_resource(association["ResourceARN"])
        return {**association, **({"Tags": tags} if tags else {})}

    def _interface(self, subnet: Any, groups: list[Any], file_system_id: str) -> str:
        ids = [group.id for group in groups]
        made = self.references.network_interface(subnet, ids, f"Created by Amazon FSx for {file_system_id}")
        return str(made.id)

    def _key_arn(self, request: dict[str, Any], lustre: dict[str, Any]) -> str:
        if not request.get("KmsKeyId"):
            return self.references.default_key_arn("alias/aws/fsx")
        key = self.references.key(request["KmsKeyId"])
        if key is None or not key.enabled:
            raise rules.bad(f"KMS key {request['KmsKeyId']} does not exist or is not enabled.")
        return str(key.arn)

    def _check_log(self, lustre: dict[str, Any]) -> None:
        log = lustre.get("LogConfiguration") or {}
        destination = log.get("Destination")
        if destination is None:
            return
        # Whether FSx accepts the ARN with ":*", as CloudFormation returns it, is not documented; this accepts both.
        group = self.references.log_group(destination)
        if group is None:
            raise rules.bad(f"Log destination {destination} is not a log group of this account and Region.")
        if not group.name.startswith("/aws/fsx"):
            raise rules.bad(f"The name of log group {group.name} must begin with /aws/fsx.")

    def _bucket(self, path: str) -> Any:
        if not path:
            return None
        name = path.removeprefix("s3://").split("/")[0]
        bucket = self.references.bucket(name)
        if bucket is None:
            raise rules.bad(f"Bucket {name} does not exist or is not accessible.")
        return bucket

    def _check_linkable(self, file_system: LustreFileSystem) -> None:
        lustre, description = file_system.lustre, file_system.description
        if description["StorageType"] == "INTELLIGENT_TIERING":
            raise rules.bad("Intelligent-Tiering file systems do not take data repository associations.")
        if lustre["DeploymentType"] == "SCRATCH_1" or description["FileSystemTypeVersion"] == "2.10":
            raise rules.bad("Data repository associations need Lustre 2.12 or later, and not SCRATCH_1.")
        if "DataRepositoryConfiguration" in lustre:
            raise rules.bad("The file system is linked to S3 by its ImportPath already.")
        if lustre.get("AutomaticBackupRetentionDays"):
            raise rules.bad("Backups cannot be enabled on S3-linked file systems; turn them off first.")

    def _check_import_region(self, path: str, s3: dict[str, Any] | None) -> None:
        bucket = self._bucket(path)
        if ((s3 or {}).get("AutoImportPolicy") or {}).get("Events") and bucket.region_name != self.region:
            message = f"Automatic import needs a bucket in {self.region}; {bucket.name} is in {bucket.region_name}."
            raise rules.bad(message)


@functools.cache
def activate() -> None:
    """Replace moto's actions by these."""
    urls.url_paths["{0}/$"] = FsxResponse.dispatch


def _described(lustre: dict[str, Any], capacity: int) -> dict[str, Any]:
    """LustreConfiguration as the API returns it, from the request's."""
    shown = {name: copy.deepcopy(value) for name, value in lustre.items() if name not in _LEGACY}
    shown.setdefault("DeploymentType", "SCRATCH_1")
    shown.setdefault("WeeklyMaintenanceStartTime", "7:07:00")
    shown.setdefault("DataCompressionType", "NONE")
    shown.setdefault("LogConfiguration", {"Level": "DISABLED"})
    shown["EfaEnabled"] = lustre.get("EfaEnabled") or False
    shown["MountName"] = "fsx" if shown["DeploymentType"] == "SCRATCH_1" else secrets.token_hex(4)
    if shown["DeploymentType"].startswith("PERSISTENT"):
        shown["AutomaticBackupRetentionDays"] = lustre.get("AutomaticBackupRetentionDays") or 0
        shown["CopyTagsToBackups"] = lustre.get("CopyTagsToBackups") or False
    if lustre.get("MetadataConfiguration", {}).get("Mode") == "AUTOMATIC":
        shown["MetadataConfiguration"]["Iops"] = rules.automatic_iops(capacity)
    if "ImportPath" in lustre:
        linked = {name: lustre[name] for name in _LEGACY if name in lustre}
        defaults = {"Lifecycle": "AVAILABLE", "ImportedFileChunkSize": 1024, "AutoImportPolicy": "NONE"}
        shown["DataRepositoryConfiguration"] = {**defaults, **linked}
    return shown
