"""FSx: Lustre file systems and their data repository associations. CloudFormation has no root squash."""

from localaws.resources import Context, HandlerError, NotUpdatable, Properties
from localaws.rows.handler import register
from localaws.rows.row import Row


def _check_file_system(_: Context, old: Properties, new: Properties) -> None:
    if new["FileSystemType"] != "LUSTRE":
        raise HandlerError(f"the embedded AWS supports only LUSTRE file systems, not {new['FileSystemType']}")
    if old and old.get("StorageType") != new.get("StorageType"):  # the API changes that of other types only
        raise NotUpdatable("AWS::FSx::FileSystem", ["StorageType"])


register(
    Row(
        type="AWS::FSx::FileSystem",
        service="fsx",
        ignored="NetworkType OntapConfiguration OpenZFSConfiguration WindowsConfiguration",
        read="DescribeFileSystems",
        update="UpdateFileSystem",
        by_member="LustreConfiguration",
        resets={
            "LustreConfiguration.AutoImportPolicy": "NONE",
            "LustreConfiguration.AutomaticBackupRetentionDays": 0,
            "LustreConfiguration.DailyAutomaticBackupStartTime": None,
            "LustreConfiguration.DataCompressionType": "NONE",
            "LustreConfiguration.LogConfiguration": {"Level": "DISABLED"},
            "LustreConfiguration.WeeklyMaintenanceStartTime": None,
        },
        # "Replacement" in CloudFormation's reference, though the registry schema does not list them
        replacing="LustreConfiguration.DeploymentType LustreConfiguration.CopyTagsToBackups",
        attributes={"LustreMountName": "LustreConfiguration.MountName"},
        arn="{ResourceARN}",
        system_tags=True,
        check=_check_file_system,
    ),
    Row(
        type="AWS::FSx::DataRepositoryAssociation",
        service="fsx",
        read="DescribeDataRepositoryAssociations",
        update="UpdateDataRepositoryAssociation",
        by_member="S3",
        resets={
            "ImportedFileChunkSize": 1024,
            "S3.AutoExportPolicy": {"Events": []},
            "S3.AutoImportPolicy": {"Events": []},
        },
        arn="{ResourceARN}",
    ),
)
