"""`<env>-storage`: buckets and the Lustre file system."""

from aws_cdk import aws_kms as kms
from aws_cdk.interfaces.aws_kms import IKeyRef
from constructs import Construct

from ultracluster.config.buckets import Bucket
from ultracluster.config.environment import Environment
from ultracluster.config.lustre import Lustre
from ultracluster.config.storage import Storage
from ultracluster.constructs.buckets import TrainingBucket
from ultracluster.constructs.keys import DataKey
from ultracluster.constructs.lustre import TrainingFileSystem
from ultracluster.constructs.network import ClusterNetwork
from ultracluster.stacks.base import EnvironmentStack


class StorageStack(EnvironmentStack):
    """Buckets and the Lustre file system, which are retained when the stack is deleted."""

    def __init__(self, scope: Construct, environment: Environment, *, network: ClusterNetwork) -> None:
        super().__init__(scope, "storage", environment, stateful=True)
        settings = environment.storage
        self.key = DataKey(self, "Key", description=f"Buckets and file system of {environment.name}")
        self.buckets = {
            name: TrainingBucket(self, f"Bucket-{name}", settings=bucket, key=self._key_of(name, bucket))
            for name, bucket in settings.buckets.items()
        }
        self.file_system = self._file_system(settings, settings.lustre, network) if settings.lustre else None

    def _key_of(self, name: str, bucket: Bucket) -> IKeyRef | None:
        if not bucket.existing:
            return self.key
        return kms.Key.from_key_arn(self, f"KeyOf-{name}", bucket.key_arn) if bucket.key_arn else None

    def _file_system(self, storage: Storage, settings: Lustre, network: ClusterNetwork) -> TrainingFileSystem:
        return TrainingFileSystem(
            self,
            "FileSystem",
            settings=settings,
            vpc=network.vpc_id,
            subnet=network.node_subnet_id,
            clients=network.cluster_security_group_id,
            efa_clients=network.efa_security_group_id if settings.efa else None,
            key=self.key,
            backups=storage.backups,
            maintenance_window=storage.maintenance_window,
        )
