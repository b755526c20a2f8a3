"""AWS::FSx::*: Lustre file systems and their data repository associations."""

from collections.abc import Mapping
from typing import Any

from localaws.handlers.common import as_list, tag_changes
from localaws.resources import (
    Context,
    Handler,
    HandlerError,
    NotUpdatable,
    Properties,
    Resource,
    changed,
    handler,
    pick,
    tag_map,
)

# Value of a LustreConfiguration member that the template no longer sets; None keeps the present value.
_DEFAULTS: Mapping[str, Any] = {
    "AutoImportPolicy": "NONE",
    "AutomaticBackupRetentionDays": 0,
    "DailyAutomaticBackupStartTime": None,
    "DataCompressionType": "NONE",
    "LogConfiguration": {"Level": "DISABLED"},
    "WeeklyMaintenanceStartTime": None,
}
_UPDATABLE = {
    *_DEFAULTS,
    *("DataReadCacheConfiguration", "MetadataConfiguration", "PerUnitStorageThroughput", "ThroughputCapacity"),
}
# CloudFormation's reference says "Replacement" for these, though the registry schema does not list them.
_REPLACING = ("DeploymentType", "CopyTagsToBackups")


@handler
class FileSystem(Handler):
    """AWS::FSx::FileSystem of type LUSTRE. CloudFormation has no root squash; an update does not change it."""

    type = "AWS::FSx::FileSystem"
    supported_properties = frozenset(
        {
            *("FileSystemType", "FileSystemTypeVersion", "KmsKeyId", "LustreConfiguration", "SecurityGroupIds"),
            *("StorageCapacity", "StorageType", "SubnetIds", "Tags"),
        }
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the file system. FSx checks its references."""
        if properties["FileSystemType"] != "LUSTRE":
            raise HandlerError(
                f"the embedded AWS supports only LUSTRE file systems, not {properties['FileSystemType']}"
            )
        tags = as_list({**tag_map(properties.get("Tags")), **context.tags})
        answer = context.client("fsx").create_file_system(**{**properties, "Tags": tags})
        return _file_system(answer["FileSystem"])

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Send the changes. Members that the template no longer sets return to their defaults."""
        names = changed(old, new) - {"Tags", "LustreConfiguration"}
        if fixed := (names - {"StorageCapacity", "FileSystemTypeVersion"}) | (names - new.keys()):
            raise NotUpdatable(self.type, fixed)
        parameters = pick(new, *names)
        if lustre := _lustre_changes(old.get("LustreConfiguration") or {}, new.get("LustreConfiguration") or {}):
            parameters["LustreConfiguration"] = lustre
        fsx = context.client("fsx")
        if parameters:
            fsx.update_file_system(FileSystemId=physical_id, **parameters)
        found = fsx.describe_file_systems(FileSystemIds=[physical_id])["FileSystems"][0]
        _retag(fsx, found["ResourceARN"], old, new)
        return _file_system(found)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the file system with its associations, without a final backup."""
        context.client("fsx").delete_file_system(FileSystemId=physical_id)

    def replaces(self, old: Properties, new: Properties) -> bool:
        """Whether the deployment type or CopyTagsToBackups changed."""
        before, after = old.get("LustreConfiguration") or {}, new.get("LustreConfiguration") or {}
        return any(before.get(name) != after.get(name) for name in _REPLACING)


@handler
class DataRepositoryAssociation(Handler):
    """AWS::FSx::DataRepositoryAssociation. Deleting one leaves the data in the file system."""

    type = "AWS::FSx::DataRepositoryAssociation"
    supported_properties = frozenset(
        {
            *("BatchImportMetaDataOnCreate", "DataRepositoryPath", "FileSystemId", "FileSystemPath"),
            *("ImportedFileChunkSize", "S3", "Tags"),
        }
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Link the directory to the bucket."""
        tags = as_list({**tag_map(properties.get("Tags")), **context.tags})
        answer = context.client("fsx").create_data_repository_association(**{**properties, "Tags": tags})
        return _association(answer["Association"])

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Update chunk size and policies. A policy that the template no longer sets is removed."""
        fsx = context.client("fsx")
        nothing: Properties = {"Events": []}
        answer = fsx.update_data_repository_association(
            AssociationId=physical_id,
            ImportedFileChunkSize=new.get("ImportedFileChunkSize", 1024),
            S3={"AutoImportPolicy": nothing, "AutoExportPolicy": nothing, **(new.get("S3") or {})},
        )
        _retag(fsx, answer["Association"]["ResourceARN"], old, new)
        return _association(answer["Association"])

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the association."""
        context.client("fsx").delete_data_repository_association(AssociationId=physical_id)


def _lustre_changes(old: Properties, new: Properties) -> Properties:
    """Changed members for UpdateFileSystem. NotUpdatable for members that FSx cannot change."""
    names = changed(old, new)
    dropped = names - new.keys()
    if fixed := (names - _UPDATABLE) | (dropped - _DEFAULTS.keys()):
        raise NotUpdatable("AWS::FSx::FileSystem", [f"LustreConfiguration.{name}" for name in fixed])
    defaults = {name: _DEFAULTS[name] for name in dropped if _DEFAULTS[name] is not None}
    return {**pick(new, *names), **defaults}


def _file_system(found: dict[str, Any]) -> Resource:
    attributes = {name: found[name] for name in ("DNSName", "ResourceARN")}
    attributes |= {"Id": found["FileSystemId"], "LustreMountName": found["LustreConfiguration"]["MountName"]}
    return Resource(found["FileSystemId"], attributes)


def _association(found: dict[str, Any]) -> Resource:
    return Resource(found["AssociationId"], {name: found[name] for name in ("AssociationId", "ResourceARN")})


def _retag(fsx: Any, arn: str, old: Properties, new: Properties) -> None:
    added, removed = tag_changes(old, new)
    if removed:
        fsx.untag_resource(ResourceARN=arn, TagKeys=removed)
    if added:
        fsx.tag_resource(ResourceARN=arn, Tags=as_list(added))
