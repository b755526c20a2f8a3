"""File systems that clients mount over NFS: FSx for OpenZFS and EFS, created here or imported."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import jsii
from aws_cdk import CfnResource
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk.interfaces.aws_kms import IKeyRef
from constructs import Construct

from ultracluster.catalog import nfs
from ultracluster.config.backups import Backups, weekly_time
from ultracluster.config.file_systems import HOME, Efs, OpenZfs
from ultracluster.constructs.acknowledgements import acknowledge
from ultracluster.constructs.names import REGION, stable_name
from ultracluster.constructs.references import (
    SecurityGroup,
    Subnet,
    Vpc,
    expect,
    key_arn,
    security_group_id,
    subnet_id,
    vpc_id,
)
from ultracluster.constructs.retention import retain
from ultracluster.constructs.security_groups import Ports, allow, security_group
from ultracluster.errors import InvalidArgument
from ultracluster.nodes.mounts import NfsMount

NFS_PORT = 2049

OPENZFS_PORTS = tuple(Ports(protocol, first, last) for protocol in ("tcp", "udp") for first, last in nfs.OPENZFS_PORTS)
EFS_PORTS = (Ports("tcp", NFS_PORT, NFS_PORT),)

EXPORT_OPTIONS = ("rw", "crossmnt", "no_root_squash")
"""Of a new OpenZFS file system. Root of a node creates the homes of users and the folders of teams."""


ACCEPTED = {
    "NIST.800.53.R5-EFSInBackupPlan": "BackupPolicy decides: AWS Backup adds the file system to its plan for EFS where "
    "the settings ask for backups.",
}


@jsii.implements(ec2.IConnectable)
class NfsFileSystem(Construct):
    """Attributes and methods of every file system that clients mount over NFS, created by this app or imported."""

    file_system_id: str
    """Id of the file system, fs-..."""
    server: str
    """DNS name or address that clients mount."""
    folder: str
    """Folder of the server that clients mount."""
    mount_path: str
    """Where nodes mount the file system."""
    mount_options: tuple[str, ...]
    """Options of the mount."""
    read_only: bool = False
    """Whether nodes mount it read-only."""
    security_group_id: str | None
    """Id of the security group of the file servers; None for that of an imported file system that was not named."""

    _ports: Sequence[Ports]

    @property
    def mount(self) -> NfsMount:
        """What a node mounts."""
        return NfsMount(f"{self.server}:{self.folder}", self.mount_path, self.mount_options, self.read_only)

    @property
    def connections(self) -> ec2.Connections:
        """Connections on port 2049. For all ports of the service, use `grant_mount`."""
        return self._connections

    @cached_property
    def _connections(self) -> ec2.Connections:
        group = ec2.SecurityGroup.from_security_group_id(
            self, "SecurityGroupView", self._group_id, allow_all_outbound=False
        )
        return ec2.Connections(security_groups=[group], default_port=ec2.Port.tcp(NFS_PORT))

    def grant_mount(self, clients: SecurityGroup, *, scope: Construct | None = None) -> list[CfnResource]:
        """Allows instances with the security group `clients` to mount the file system. Returns the rules.

        The rules are created in `scope`, by default in the file system: for a security group of a stack that uses this
        one, pass a construct of that stack. Raises WrongReference, and InvalidArgument where the security group of the
        file servers is not known.
        """
        name = f"Clients-{stable_name(self, clients)}"
        place = Construct(scope, f"{self.node.id}-{name}") if scope else Construct(self, name)
        return _allow_clients(place, self._ports, servers=self._group_id, clients=security_group_id(clients))

    @property
    def _group_id(self) -> str:
        if self.security_group_id is None:
            raise InvalidArgument(f"the security group of {self.file_system_id} is not known. Pass security_group")
        return self.security_group_id

    @staticmethod
    def from_openzfs_attributes(
        scope: Construct,
        id: str,
        *,
        file_system_id: str,
        volume: str = "/fsx",
        mount_path: str = HOME,
        read_only: bool = False,
        security_group: SecurityGroup | None = None,
    ) -> "NfsFileSystem":
        """An FSx for OpenZFS file system that exists. `volume` is the path of the volume that clients mount."""
        found = NfsFileSystem(scope, id)
        found.server, found.folder = f"{file_system_id}.fsx.{REGION}.amazonaws.com", volume
        found._ports, found.mount_options = OPENZFS_PORTS, nfs.OPENZFS_OPTIONS
        return _imported(found, file_system_id, mount_path, security_group, read_only=read_only)

    @staticmethod
    def from_efs_attributes(
        scope: Construct,
        id: str,
        *,
        file_system_id: str,
        mount_path: str = HOME,
        read_only: bool = False,
        security_group: SecurityGroup | None = None,
    ) -> "NfsFileSystem":
        """An EFS file system that exists, with a mount target in each zone of clients.

        Its DNS name resolves in no other zone (EFS User Guide, "Mounting on Amazon EC2 with a DNS name", 2026).
        """
        found = NfsFileSystem(scope, id)
        found.server, found.folder = f"{file_system_id}.efs.{REGION}.amazonaws.com", "/"
        found._ports, found.mount_options = EFS_PORTS, nfs.EFS_OPTIONS
        return _imported(found, file_system_id, mount_path, security_group, read_only=read_only)


class OpenZfsFileSystem(NfsFileSystem):
    """An FSx for OpenZFS file system with its security group, both retained on delete and on replacement.

    `clients` is the security group of instances that mount it; `grant_mount` adds further ones. Clients mount the root
    volume, whose files are compressed, and where root of a client stays root. `maintenance_window` is a time of the
    week in UTC such as sun:06:00. Without `backups` there are none.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: OpenZfs,
        vpc: Vpc,
        subnet: Subnet,
        key: IKeyRef,
        clients: SecurityGroup | None = None,
        mount_path: str = HOME,
        backups: Backups | None = None,
        maintenance_window: str | None = None,
    ) -> None:
        super().__init__(scope, id)
        expect(settings, OpenZfs, "settings")
        _expect_new(settings)
        self.mount_path, self.mount_options, self._ports = mount_path, nfs.OPENZFS_OPTIONS, OPENZFS_PORTS
        self.folder = "/fsx"
        group = security_group(self, "Access", vpc_id=vpc_id(vpc), description="FSx for OpenZFS", retained=True)
        self.security_group_id = group
        if clients:
            _allow_clients(self, self._ports, servers=group, clients=security_group_id(clients))
        file_system = fsx.CfnFileSystem(
            self,
            "FileSystem",
            file_system_type="OPENZFS",
            subnet_ids=[subnet_id(subnet)],
            security_group_ids=[group],
            kms_key_id=key_arn(key),
            storage_type="SSD",
            storage_capacity=settings.capacity_gib,
            open_zfs_configuration=_configuration(settings, backups, maintenance_window),
        )
        retain(file_system)
        self.file_system_id, self.server = file_system.ref, file_system.attr_dns_name


class ElasticFileSystem(NfsFileSystem):
    """An EFS file system with a mount target in a subnet. It is retained on delete and on replacement.

    Clients mount the address of the mount target, so that those of other zones can mount it too. The mount target and
    its security group are deleted with the stack: without clients nothing uses them. With `backups`, AWS Backup backs
    the file system up each day. `clients` is the security group of instances that mount it.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Efs,
        vpc: Vpc,
        subnet: Subnet,
        key: IKeyRef,
        clients: SecurityGroup | None = None,
        mount_path: str = HOME,
        backups: bool = False,
    ) -> None:
        super().__init__(scope, id)
        # imported here: most environments have no EFS
        from aws_cdk import aws_efs as efs

        expect(settings, Efs, "settings")
        _expect_new(settings)
        self.mount_path, self.mount_options, self._ports = mount_path, nfs.EFS_OPTIONS, EFS_PORTS
        self.folder = "/"
        group = security_group(self, "Access", vpc_id=vpc_id(vpc), description="EFS")
        self.security_group_id = group
        rules = _allow_clients(self, self._ports, servers=group, clients=security_group_id(clients)) if clients else []
        file_system = efs.CfnFileSystem(
            self,
            "FileSystem",
            encrypted=True,
            kms_key_id=key_arn(key),
            performance_mode="generalPurpose",
            throughput_mode="elastic",
            backup_policy={"status": "ENABLED" if backups else "DISABLED"},
        )
        retain(file_system)
        acknowledge(file_system, ACCEPTED)
        target = efs.CfnMountTarget(
            self, "Target", file_system_id=file_system.ref, subnet_id=subnet_id(subnet), security_groups=[group]
        )
        target.node.add_dependency(*rules)
        self.file_system_id, self.server = file_system.ref, target.attr_ip_address


def existing_nfs(
    scope: Construct, id: str, *, settings: OpenZfs | Efs, mount_path: str, read_only: bool = False
) -> NfsFileSystem:
    """The existing file system that `settings` name."""
    given: dict[str, Any] = {
        "file_system_id": settings.existing,
        "mount_path": mount_path,
        "read_only": read_only,
        "security_group": settings.security_group,
    }
    if isinstance(settings, OpenZfs):
        return NfsFileSystem.from_openzfs_attributes(scope, id, volume=settings.volume, **given)
    return NfsFileSystem.from_efs_attributes(scope, id, **given)


def _imported(
    found: NfsFileSystem, file_system_id: str, mount_path: str, group: SecurityGroup | None, *, read_only: bool
) -> NfsFileSystem:
    found.file_system_id, found.mount_path, found.read_only = file_system_id, mount_path, read_only
    found.security_group_id = security_group_id(group) if group else None
    return found


def _expect_new(settings: OpenZfs | Efs) -> None:
    if settings.existing:
        raise InvalidArgument(f"{settings.existing} exists. Use NfsFileSystem.from_{settings.type}_attributes")


def _allow_clients(scope: Construct, ports: Sequence[Ports], *, servers: str, clients: str) -> list[CfnResource]:
    """Rules from clients to file servers, which open no connection themselves.

    Source: FSx for OpenZFS User Guide, "Managing file system access with Amazon VPC"; EFS User Guide, "Using VPC
    security groups" (2026).
    """
    return [
        rule
        for each in ports
        for rule in allow(
            scope,
            f"{each.protocol.capitalize()}{each.start}",
            source=clients,
            target=servers,
            ports=each,
            description="NFS clients",
        )
    ]


def _configuration(settings: OpenZfs, backups: Backups | None, maintenance_window: str | None) -> dict[str, Any]:
    """OpenZFSConfiguration. Without a retention, FSx would keep daily backups for 30 days."""
    export = {"clientConfigurations": [{"clients": "*", "options": list(EXPORT_OPTIONS)}]}
    configuration: dict[str, Any] = {
        "deploymentType": settings.deployment.upper(),
        "throughputCapacity": settings.throughput_mbps,
        "automaticBackupRetentionDays": backups.retention_days if backups else 0,
        "rootVolumeConfiguration": {"dataCompressionType": "LZ4", "nfsExports": [export]},
    }
    if backups and backups.window:
        configuration["dailyAutomaticBackupStartTime"] = backups.window
    if maintenance_window:
        configuration["weeklyMaintenanceStartTime"] = weekly_time(maintenance_window)
    return configuration
