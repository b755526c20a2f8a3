"""`<env>-storage`: buckets and file systems."""

from functools import cached_property
from typing import Any

from aws_cdk import aws_kms as kms
from aws_cdk.interfaces.aws_kms import IKeyRef
from constructs import Construct

from ultracluster.config.buckets import Bucket
from ultracluster.config.environment import Environment
from ultracluster.config.file_systems import HOME, Efs, MoreEfs, MoreLustre, MoreOpenZfs, OpenZfs
from ultracluster.config.lustre import Lustre
from ultracluster.constructs.buckets import TrainingBucket
from ultracluster.constructs.existing_lustre import LustreLookup
from ultracluster.constructs.existing_servers import ExistingServers
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.lustre import LustreFileSystem, TrainingFileSystem
from ultracluster.constructs.network import ClusterNetwork
from ultracluster.constructs.nfs import ElasticFileSystem, NfsFileSystem, OpenZfsFileSystem, existing_nfs
from ultracluster.stacks.base import EnvironmentStack


class StorageStack(EnvironmentStack):
    """Buckets and file systems, which are retained when the stack is deleted.

    `home`, `file_system` and `more` are the file systems of the sections of storage; `more` maps their names.
    """

    def __init__(self, scope: Construct, environment: Environment, *, network: ClusterNetwork) -> None:
        super().__init__(scope, "storage", environment, stateful=True)
        settings = environment.storage
        self.key = DataKey(self, "Key", description=f"Buckets and file system of {environment.name}")
        self.buckets = {
            name: TrainingBucket(self, f"Bucket-{name}", settings=bucket, key=self._key_of(name, bucket))
            for name, bucket in settings.buckets.items()
        }
        self._storage, self._network = settings, network
        self.home = self._nfs("Home", settings.homes, HOME) if settings.homes else None
        self.file_system = self._lustre("FileSystem", settings.lustre) if settings.lustre else None
        self.more = {each.name: self._more(each) for each in settings.more}

    @property
    def more_file_systems(self) -> list[LustreFileSystem | NfsFileSystem]:
        """File systems that nodes mount beside the first Lustre, homes first."""
        return [*([self.home] if self.home else []), *self.more.values()]

    def _key_of(self, name: str, bucket: Bucket) -> IKeyRef | None:
        if not bucket.existing:
            return self.key
        return kms.Key.from_key_arn(self, f"KeyOf-{name}", bucket.key_arn) if bucket.key_arn else None

    def _more(self, settings: MoreLustre | MoreOpenZfs | MoreEfs) -> LustreFileSystem | NfsFileSystem:
        name = f"More-{settings.name}"
        if not isinstance(settings, MoreLustre):
            return self._nfs(name, settings, settings.mount_path, read_only=settings.read_only)
        return self._existing_lustre(name, settings) if settings.existing else self._lustre(name, settings.lustre)

    def _lustre(self, id: str, settings: Lustre) -> TrainingFileSystem:
        network, storage = self._network, self._storage
        return TrainingFileSystem(
            self,
            id,
            settings=settings,
            vpc=network.vpc_id,
            subnet=network.node_subnet_id,
            clients=network.cluster_security_group_id,
            efa_clients=network.efa_security_group_id if settings.efa else None,
            key=self.key,
            backups=None if settings.unbacked else storage.backups,
            maintenance_window=storage.maintenance_window,
        )

    def _existing_lustre(self, id: str, settings: MoreLustre) -> LustreFileSystem:
        file_system_id = str(settings.existing)
        self._allow_nodes(settings)
        found = LustreLookup(self, f"{id}-Lookup", file_system_id=file_system_id, key=self.key, efa=settings.efa)
        return TrainingFileSystem.from_file_system_attributes(
            self,
            id,
            file_system_id=file_system_id,
            mount_name=found.mount_name,
            dns_name=found.dns_name,
            mount_path=settings.mount_path,
            efa=settings.efa,
            read_only=settings.read_only,
            security_group=settings.security_group,
        )

    def _nfs(self, id: str, settings: OpenZfs | Efs, mount_path: str, *, read_only: bool = False) -> NfsFileSystem:
        network, storage = self._network, self._storage
        if settings.existing:
            self._allow_nodes(settings)
            return existing_nfs(self, id, settings=settings, mount_path=mount_path, read_only=read_only)
        place: dict[str, Any] = {
            "vpc": network.vpc_id,
            "subnet": network.node_subnet_id,
            "clients": network.cluster_security_group_id,
            "key": self.key,
            "mount_path": mount_path,
        }
        if isinstance(settings, Efs):
            return ElasticFileSystem(self, id, settings=settings, backups=storage.backups is not None, **place)
        times: dict[str, Any] = {"backups": storage.backups, "maintenance_window": storage.maintenance_window}
        return OpenZfsFileSystem(self, id, settings=settings, **place, **times)

    def _allow_nodes(self, settings: OpenZfs | Efs | MoreLustre) -> None:
        """Rules with which nodes mount an existing file system. Without its security group, the owner adds them."""
        if settings.security_group:
            efa = isinstance(settings, MoreLustre) and settings.efa
            self._servers.let_in(settings.security_group, service=settings.type, efa=efa)

    @cached_property
    def _servers(self) -> ExistingServers:
        network = self._network
        return ExistingServers(
            self, "Existing", clients=network.cluster_security_group_id, efa_clients=network.efa_security_group_id
        )
