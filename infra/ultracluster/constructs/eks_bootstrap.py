"""The scripts of `bootstrap` of an EKS node group: a file asset that nodes download, and the permission to read it."""

from aws_cdk import Aws
from constructs import Construct

from ultracluster.config.node_groups import NodeGroup
from ultracluster.constructs.references import Role
from ultracluster.constructs.script_assets import grant_objects, upload
from ultracluster.errors import InvalidArgument
from ultracluster.nodes.bootstrap import bootstrap_step
from ultracluster.nodes.steps import Step

DOWNLOAD = "run-from-s3"


class EksBootstrap(Construct):
    """The last steps of nodes: download the scripts of `settings`, check their SHA-256, and run them.

    `role` is allowed to read them. Raises InvalidArgument.
    """

    steps: tuple[Step, ...]
    """Steps to run after all others."""

    def __init__(self, scope: Construct, id: str, settings: NodeGroup, role: Role) -> None:
        super().__init__(scope, id)
        own = bootstrap_step(settings.boot_scripts, region=Aws.REGION, node_group=settings.name)
        if own is None:
            raise InvalidArgument("settings has no bootstrap. Name a script")
        if isinstance(role, str):
            raise InvalidArgument("role is an ARN. With bootstrap, pass the role itself: it gets a policy")
        location = upload(self, own.name, own.script)
        grant_objects(self, settings.name, role, location, own)
        self.steps = (Step(DOWNLOAD, (location.bucket_name, location.object_key, own.script.checksum, *own.arguments)),)
