"""FSx for Lustre file systems, and the clients that may mount them."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

import jsii
from aws_cdk import CfnResource, Duration, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_iam as iam
from aws_cdk.interfaces import ResourceEnvironment
from aws_cdk.interfaces.aws_fsx import FileSystemReference, IFileSystemRef
from aws_cdk.interfaces.aws_kms import IKeyRef
from constructs import Construct

from ultracluster.config.backups import Backups, weekly_time
from ultracluster.config.lustre import Lustre
from ultracluster.constructs.cloudwatch import service_metric
from ultracluster.constructs.log_groups import arn_without_wildcard, log_group
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
from ultracluster.constructs.root_squash import RootSquash
from ultracluster.constructs.security_groups import ALL_TRAFFIC, Ports, allow, security_group
from ultracluster.errors import InvalidArgument
from ultracluster.nodes.lustre import LustreMount

if TYPE_CHECKING:
    from aws_cdk import aws_cloudwatch as cloudwatch

LUSTRE_VERSION = "2.15"
"""Every deployment type runs it, and metadata settings and EFA need it (FSx API Reference, CreateFileSystem)."""

LUSTRE_PORTS = {"Lustre": Ports("tcp", 988, 988), "LustreClients": Ports("tcp", 1018, 1023)}
"""Ports of Lustre's own network (FSx for Lustre User Guide, "File System Access Control with Amazon VPC")."""


@jsii.implements(IFileSystemRef, ec2.IConnectable)
class LustreFileSystem(Construct):
    """Attributes and methods of every FSx for Lustre file system, created by this app or imported."""

    file_system_id: str
    """Id of the file system, fs-..."""
    dns_name: str
    """DNS name that clients mount."""
    mount_name: str
    """Lustre's own name of the file system, which follows the DNS name in a mount command."""
    mount_path: str
    """Where nodes mount the file system."""
    efa: bool
    """Whether clients may mount over EFA."""
    read_only: bool = False
    """Whether nodes mount it read-only."""
    security_group_id: str | None
    """Id of the security group of the file servers; None for that of an imported file system that was not named."""

    @property
    def mount(self) -> LustreMount:
        """What a node mounts."""
        return LustreMount(self.dns_name, self.mount_name, self.mount_path, self.efa, self.read_only)

    @property
    def file_system_ref(self) -> FileSystemReference:
        """Lets CDK constructs take this as an `IFileSystemRef`."""
        return FileSystemReference(file_system_id=self.file_system_id)

    @property
    def env(self) -> ResourceEnvironment:
        """Account and Region of the file system."""
        return Stack.of(self).env

    @cached_property
    def security_group(self) -> ec2.ISecurityGroup:
        """Security group of the file servers as an L2, created on first use."""
        # without egress to any address, as `security_group` creates it: CDK adds no egress rules to a group that has it
        return ec2.SecurityGroup.from_security_group_id(
            self, "SecurityGroupView", self._group_id, allow_all_outbound=False
        )

    @property
    def connections(self) -> ec2.Connections:
        """Connections on Lustre's ports, in one direction only. For clients that mount, use `grant_mount`."""
        return self._connections

    @cached_property
    def _connections(self) -> ec2.Connections:
        ports = ec2.Port.tcp_range(LUSTRE_PORTS["Lustre"].start or 0, LUSTRE_PORTS["LustreClients"].end or 0)
        return ec2.Connections(security_groups=[self.security_group], default_port=ports)

    def grant_mount(
        self, clients: SecurityGroup, *, over_efa: bool = False, scope: Construct | None = None
    ) -> list[CfnResource]:
        """Allows instances with the security group `clients` to mount the file system, over EFA too with `over_efa`.

        Opens Lustre's ports in both directions. With `over_efa` all traffic is allowed between the groups, as EFA
        requires. The rules are created in `scope`, by default in the file system: for a security group of a stack that
        uses this one, pass a construct of that stack. Returns the rules. Raises WrongReference, and InvalidArgument for
        EFA on a file system without it, or where the security group of the file servers is not known.
        """
        if over_efa and not self.efa:
            raise InvalidArgument("over_efa is True, but the file system has no EFA. Set efa: true in its settings")
        group_id = security_group_id(clients)
        name = f"Clients-{stable_name(self, clients)}"
        place = Construct(scope, f"{self.node.id}-{name}") if scope else Construct(self, name)
        ways = [(name, ports, "Lustre clients") for name, ports in LUSTRE_PORTS.items()]
        if over_efa:
            ways.append(("Efa", ALL_TRAFFIC, "EFA clients"))
        return [
            rule
            for name, ports, who in ways
            for rule in _allow_clients(place, name, ports, servers=self._group_id, clients=group_id, who=who)
        ]

    @property
    def _group_id(self) -> str:
        if self.security_group_id is None:
            raise InvalidArgument(f"the security group of {self.file_system_id} is not known. Pass security_group")
        return self.security_group_id

    def metric(self, name: str, **options: Any) -> "cloudwatch.Metric":
        """A metric that FSx publishes each minute, for example DataReadBytes or ClientConnections.

        `options` are further arguments of `cloudwatch.Metric`.

        Source: FSx for Lustre User Guide, "Monitoring with Amazon CloudWatch" (2026).
        """
        return service_metric("AWS/FSx", name, {"FileSystemId": self.file_system_id}, options)

    def metric_free_data_storage_capacity(self, **options: Any) -> "cloudwatch.Metric":
        """Free capacity in bytes of all object storage targets, minute by minute."""
        minute = {"period": Duration.minutes(1), "statistic": "Sum"}
        return self.metric("FreeDataStorageCapacity", **{**minute, **options})

    def metric_data_read_bytes(self, **options: Any) -> "cloudwatch.Metric":
        """Bytes that clients read."""
        return self.metric("DataReadBytes", **{"statistic": "Sum", **options})

    def metric_data_write_bytes(self, **options: Any) -> "cloudwatch.Metric":
        """Bytes that clients write."""
        return self.metric("DataWriteBytes", **{"statistic": "Sum", **options})


class TrainingFileSystem(LustreFileSystem):
    """An FSx for Lustre file system with its security group and its log group.

    The file system and its security group are retained on delete and on replacement. `clients` is the security group
    of instances that mount it, `efa_clients` that of instances that mount over EFA; `grant_mount` adds further ones.
    `maintenance_window` is a time of the week in UTC such as sun:06:00.
    `settings.links` are created by `S3Links`. A key that this app does not manage needs the statements of
    `key_policy_statements`, which its owner must add.
    """

    key_policy_statements: tuple[iam.PolicyStatement, ...]
    """What the owner of `key` must add to the key policy; empty for a key that this app manages."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Lustre,
        vpc: Vpc,
        subnet: Subnet,
        key: IKeyRef,
        clients: SecurityGroup | None = None,
        efa_clients: SecurityGroup | None = None,
        backups: Backups | None = None,
        maintenance_window: str | None = None,
    ) -> None:
        super().__init__(scope, id)
        expect(settings, Lustre, "settings")
        if efa_clients and not settings.efa:
            raise InvalidArgument("efa_clients is passed, but the file system has no EFA. Set efa=True in its settings")
        self.mount_path, self.efa = settings.mount_path, settings.efa
        group, rules = self._access(vpc, clients, efa_clients)
        self.security_group_id = group
        times = _times(backups, maintenance_window)
        self._file_system = file_system = self._create(settings, subnet, key, times)
        # FSx checks the rules when it creates a file system, and refuses one whose ports are closed
        file_system.node.add_dependency(*rules)
        self.file_system_id, self.dns_name = file_system.ref, file_system.attr_dns_name
        self.mount_name = file_system.attr_lustre_mount_name
        if settings.root_squash:
            RootSquash(
                self,
                "RootSquash",
                file_system_id=self.file_system_id,
                root_squash=settings.root_squash,
                no_squash_nids=settings.no_squash_nids,
                key=key,
            )

    def grant_mount(
        self, clients: SecurityGroup, *, over_efa: bool = False, scope: Construct | None = None
    ) -> list[CfnResource]:
        """Allows instances with the security group `clients` to mount the file system; see `LustreFileSystem`."""
        rules = super().grant_mount(clients, over_efa=over_efa, scope=scope)
        if Stack.of(scope or self) is Stack.of(self):
            self._file_system.node.add_dependency(*rules)
        return rules

    @staticmethod
    def from_file_system_attributes(
        scope: Construct,
        id: str,
        *,
        file_system_id: str,
        mount_name: str,
        security_group: SecurityGroup | None = None,
        dns_name: str | None = None,
        mount_path: str = "/fsx",
        efa: bool = False,
        read_only: bool = False,
    ) -> LustreFileSystem:
        """A file system that exists. `dns_name` defaults to the one that FSx gives in the stack's Region."""
        found = LustreFileSystem(scope, id)
        found.file_system_id, found.mount_name = file_system_id, mount_name
        found.dns_name = dns_name or f"{file_system_id}.fsx.{REGION}.amazonaws.com"
        found.mount_path, found.efa, found.read_only = mount_path, efa, read_only
        found.security_group_id = security_group_id(security_group) if security_group else None
        return found

    def _access(
        self, vpc: Vpc, clients: SecurityGroup | None, efa_clients: SecurityGroup | None
    ) -> tuple[str, list[CfnResource]]:
        """Source: FSx for Lustre User Guide, "File System Access Control with Amazon VPC" (2026)."""
        group = security_group(self, "Access", vpc_id=vpc_id(vpc), description="FSx for Lustre", retained=True)
        ways = [(name, ports, clients, "Lustre clients") for name, ports in LUSTRE_PORTS.items()]
        if self.efa:
            ways.append(("Efa", ALL_TRAFFIC, efa_clients, "EFA clients"))
        rules: list[CfnResource] = []
        for name, ports, others, who in ways:
            if others:
                rules += _allow_clients(self, name, ports, servers=group, clients=security_group_id(others), who=who)
            rules += allow(
                self, f"{name}Servers", source=group, target=group, ports=ports, description="Among file servers"
            )
        return group, rules

    def _create(self, settings: Lustre, subnet: Subnet, key: IKeyRef, times: dict[str, Any]) -> fsx.CfnFileSystem:
        properties = _properties(settings)
        properties["lustre_configuration"] |= times
        logs = log_group(self, "Logs", name="/aws/fsx/lustre", key=key)
        self.key_policy_statements = logs.key_policy_statements
        destination = arn_without_wildcard(logs)
        properties["lustre_configuration"]["logConfiguration"] = {"level": "WARN_ERROR", "destination": destination}
        # scratch file systems are encrypted with a key of the service, and accept no other
        if settings.deployment != "scratch_2":
            properties["kms_key_id"] = key_arn(key)
        file_system = fsx.CfnFileSystem(
            self,
            "FileSystem",
            file_system_type="LUSTRE",
            file_system_type_version=LUSTRE_VERSION,
            subnet_ids=[subnet_id(subnet)],
            security_group_ids=[self._group_id],
            **properties,
        )
        retain(file_system)
        return file_system


def _allow_clients(
    scope: Construct, name: str, ports: Ports, *, servers: str, clients: str, who: str
) -> list[CfnResource]:
    """Rules between the security groups of file servers and clients, in both directions."""
    return [
        *allow(scope, f"{name}In", source=clients, target=servers, ports=ports, description=who),
        *allow(scope, f"{name}Out", source=servers, target=clients, ports=ports, description=who),
    ]


def _properties(settings: Lustre) -> dict[str, Any]:
    """Keyword arguments of CfnFileSystem that follow from the settings."""
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


def _times(backups: Backups | None, maintenance_window: str | None) -> dict[str, Any]:
    """When FSx backs up and patches the file system. Without a value, FSx chooses one, and keeps it."""
    times: dict[str, Any] = {}
    if backups:
        times["automaticBackupRetentionDays"] = backups.retention_days
        if backups.window:
            times["dailyAutomaticBackupStartTime"] = backups.window
    if maintenance_window:
        times["weeklyMaintenanceStartTime"] = weekly_time(maintenance_window)
    return times


def _metadata(iops: int | str) -> dict[str, Any]:
    return {"mode": "AUTOMATIC"} if iops == "automatic" else {"mode": "USER_PROVISIONED", "iops": iops}
