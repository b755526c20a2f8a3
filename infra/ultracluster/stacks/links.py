"""`<env>-links`: S3 links of the file system, in a stack that no node waits for."""

from constructs import Construct

from ultracluster.config.environment import Environment
from ultracluster.constructs.links import S3Links
from ultracluster.errors import InvalidArgument
from ultracluster.stacks.base import EnvironmentStack
from ultracluster.stacks.storage import StorageStack


class LinksStack(EnvironmentStack):
    """The data repository associations of the environment's file system."""

    def __init__(self, scope: Construct, environment: Environment, *, storage: StorageStack) -> None:
        super().__init__(scope, "links", environment)
        lustre, file_system = environment.storage.lustre, storage.file_system
        if lustre is None or file_system is None:
            raise InvalidArgument("storage has no file system. Set storage.lustre")
        S3Links(self, "Links", settings=lustre.links, file_system=file_system, buckets=storage.buckets)
