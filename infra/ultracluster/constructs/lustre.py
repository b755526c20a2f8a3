"""FSx for Lustre, its links to S3, and who may talk to it."""

from typing import Any

from aws_cdk import CfnResource, RemovalPolicy
from aws_cdk import aws_fsx as fsx
from constructs import Construct

from ultracluster.config.storage import Lustre
from ultracluster.constructs.keys import EncryptionKey, log_group, plain_arn
from ultracluster.constructs.places import SecurityGroup, SecurityGroupById, Subnet, Vpc
from ultracluster.constructs.root_squash import RootSquash
from ultracluster.constructs.security_groups import ALL_TRAFFIC, Ports, allow, security_group

LUSTRE_VERSION = "2.15"
"""Every deployment type runs it, and metadata settings and EFA need it (FSx API Reference, CreateFileSystem)."""

LUSTRE_PORTS = {"Lustre": Ports("tcp", 988, 988), "LustreClients": Ports("tcp", 1018, 1023)}
"""What Lustre's own network uses (FSx for Lustre User Guide, "File System Access Control with Amazon VPC")."""


class TrainingFileSystem(Construct):
    """FSx for Lustre with its security group and its log.

    The file system and its security group are retained on delete and on replacement: nothing but a person deletes
    data. `clients` is the group of all that mount it, `efa_clients` the group of those that do so over EFA.
    `settings.links` are made by `S3Links`.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Lustre,
        vpc: Vpc,
        subnet: Subnet,
        clients: SecurityGroup,
        efa_clients: SecurityGroup,
        key: EncryptionKey,
    ) -> None:
        super().__init__(scope, id)
        self._mount_path = settings.mount_path
        self._security_group, rules = self._access(vpc, clients, efa_clients if settings.efa else None)
        self._file_system = self._create(settings, subnet, key)
        # FSx looks at the rules when it creates a file system, and refuses one whose ports are closed
        self._file_system.node.add_dependency(*rules)
        if settings.root_squash:
            RootSquash(
                self, "RootSquash", file_system_id=self.file_system_id, root_squash=settings.root_squash, key=key
            )

    @property
    def file_system_id(self) -> str:
        """Id of the file system, fs-..."""
        return self._file_system.ref

    @property
    def dns_name(self) -> str:
        """Host name that clients mount."""
        return self._file_system.attr_dns_name

    @property
    def mount_name(self) -> str:
        """Lustre's own name of the file system, which follows the host name in a mount."""
        return self._file_system.attr_lustre_mount_name

    @property
    def mount_path(self) -> str:
        """Where nodes mount it."""
        return self._mount_path

    @property
    def security_group(self) -> SecurityGroup:
        """The group of the file servers."""
        return self._security_group

    def _access(
        self, vpc: Vpc, clients: SecurityGroup, efa_clients: SecurityGroup | None
    ) -> tuple[SecurityGroupById, list[CfnResource]]:
        """Source: FSx for Lustre User Guide, "File System Access Control with Amazon VPC" (2026)."""
        group = security_group(self, "Access", vpc=vpc, description="FSx for Lustre", retained=True)
        ways = [(clients, ports, name, "Lustre clients") for name, ports in LUSTRE_PORTS.items()]
        if efa_clients:
            ways.append((efa_clients, ALL_TRAFFIC, "Efa", "EFA clients"))
        rules: list[CfnResource] = []
        for others, ports, name, who in ways:
            rules += allow(self, f"{name}In", source=others, target=group, ports=ports, description=who)
            rules += allow(self, f"{name}Out", source=group, target=others, ports=ports, description=who)
            rules += allow(
                self, f"{name}Servers", source=group, target=group, ports=ports, description="Among file servers"
            )
        return group, rules

    def _create(self, settings: Lustre, subnet: Subnet, key: EncryptionKey) -> fsx.CfnFileSystem:
        properties = _properties(settings)
        destination = plain_arn(log_group(self, "Logs", name="/aws/fsx/lustre", key=key))
        properties["lustre_configuration"]["logConfiguration"] = {"level": "WARN_ERROR", "destination": destination}
        if settings.deployment != "scratch_2":  # scratch is encrypted with a key of the service, and takes no other
            properties["kms_key_id"] = key.key_arn
        file_system = fsx.CfnFileSystem(
            self,
            "FileSystem",
            file_system_type="LUSTRE",
            file_system_type_version=LUSTRE_VERSION,
            subnet_ids=[subnet.subnet_id],
            security_group_ids=[self._security_group.security_group_id],
            **properties,
        )
        file_system.apply_removal_policy(RemovalPolicy.RETAIN)
        return file_system


def _properties(settings: Lustre) -> dict[str, Any]:
    """What the settings say of the file system, as keyword arguments of CfnFileSystem."""
    lustre: dict[str, Any] = {
        "deploymentType": "SCRATCH_2" if settings.deployment == "scratch_2" else "PERSISTENT_2",
        "dataCompressionType": settings.compression.upper(),
    }
    if settings.efa:
        lustre["efaEnabled"] = True
    if settings.deployment != "scratch_2":
        lustre["metadataConfiguration"] = _metadata(settings.metadata_iops)
    if settings.deployment == "persistent_2":
        lustre["perUnitStorageThroughput"] = settings.throughput_mbps_per_tib
    if settings.ssd:
        return {
            "storage_type": "SSD",
            "storage_capacity": settings.capacity_gib,
            "lustre_configuration": lustre,
        }
    lustre["throughputCapacity"] = settings.throughput_capacity_mbps
    lustre["dataReadCacheConfiguration"] = {"sizingMode": "PROPORTIONAL_TO_THROUGHPUT_CAPACITY"}
    return {"storage_type": "INTELLIGENT_TIERING", "lustre_configuration": lustre}


def _metadata(iops: int | str) -> dict[str, Any]:
    return {"mode": "AUTOMATIC"} if iops == "automatic" else {"mode": "USER_PROVISIONED", "iops": iops}
