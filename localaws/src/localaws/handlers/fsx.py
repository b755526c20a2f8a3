"""FSx: file systems of Lustre and OpenZFS, data repository associations and volumes.

CloudFormation has no root squash.
"""

from localaws.resources import Context, HandlerError, NotUpdatable, Properties
from localaws.rows.handler import register
from localaws.rows.row import Row


def _check_file_system(_: Context, old: Properties, new: Properties) -> None:
    if new["FileSystemType"] not in ("LUSTRE", "OPENZFS"):
        raise HandlerError(
            f"the embedded AWS supports only LUSTRE and OPENZFS file systems, not {new['FileSystemType']}"
        )
    if old and old.get("StorageType") != new.get("StorageType"):  # the API changes that of other types only
        raise NotUpdatable("AWS::FSx::FileSystem", ["StorageType"])


_EVERYONE = {"ClientConfigurations": [{"Clients": "*", "Options": ["rw", "crossmnt"]}]}
_VOLUME = {
    "OpenZFSConfiguration.DataCompressionType": "NONE",
    "OpenZFSConfiguration.NfsExports": [_EVERYONE],
    "OpenZFSConfiguration.ReadOnly": False,
    "OpenZFSConfiguration.RecordSizeKiB": 128,
    "OpenZFSConfiguration.StorageCapacityQuotaGiB": -1,
    "OpenZFSConfiguration.StorageCapacityReservationGiB": -1,
    "OpenZFSConfiguration.UserAndGroupQuotas": [],
}
"""What the members of a volume return to (FSx API Reference, UpdateOpenZFSVolumeConfiguration, 2026)."""


register(
    Row(
        type="AWS::FSx::FileSystem",
        service="fsx",
        ignored="NetworkType OntapConfiguration WindowsConfiguration",
        by_member="LustreConfiguration OpenZFSConfiguration",
        resets={
            "LustreConfiguration.AutoImportPolicy": "NONE",
            "LustreConfiguration.AutomaticBackupRetentionDays": 0,
            "LustreConfiguration.DailyAutomaticBackupStartTime": None,
            "LustreConfiguration.DataCompressionType": "NONE",
            "LustreConfiguration.LogConfiguration": {"Level": "DISABLED"},
            "LustreConfiguration.WeeklyMaintenanceStartTime": None,
            "OpenZFSConfiguration.AutomaticBackupRetentionDays": 30,
            "OpenZFSConfiguration.CopyTagsToBackups": False,
            "OpenZFSConfiguration.CopyTagsToVolumes": False,
            "OpenZFSConfiguration.DailyAutomaticBackupStartTime": None,
            "OpenZFSConfiguration.DiskIopsConfiguration": {"Mode": "AUTOMATIC"},
            "OpenZFSConfiguration.WeeklyMaintenanceStartTime": None,
        },
        # "Replacement" in CloudFormation's reference, though the registry schema does not list them
        replacing="LustreConfiguration.DeploymentType LustreConfiguration.CopyTagsToBackups "
        "OpenZFSConfiguration.DeploymentType OpenZFSConfiguration.EndpointIpAddressRange "
        "OpenZFSConfiguration.PreferredSubnetId",
        attributes={
            "LustreMountName": "LustreConfiguration.MountName",
            "RootVolumeId": "OpenZFSConfiguration.RootVolumeId",
        },
        arn="{ResourceARN}",
        system_tags=True,
        check=_check_file_system,
    ),
    Row(
        type="AWS::FSx::DataRepositoryAssociation",
        service="fsx",
        ready="AVAILABLE",
        by_member="S3",
        resets={
            "ImportedFileChunkSize": 1024,
            "S3.AutoExportPolicy": {"Events": []},
            "S3.AutoImportPolicy": {"Events": []},
        },
        arn="{ResourceARN}",
    ),
    Row(
        type="AWS::FSx::Volume",
        service="fsx",
        ignored="OntapConfiguration OpenZFSConfiguration.Options OpenZFSConfiguration.OriginSnapshot",
        by_member="OpenZFSConfiguration",
        resets=_VOLUME,
        attributes={"UUID": "OntapConfiguration.UUID|"},
        arn="{ResourceARN}",
    ),
)
