"""The scripts that PCS nodes run at boot: file assets, with the permission to read them, as node lifecycle actions."""

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

from aws_cdk import FileAssetLocation
from aws_cdk import aws_iam as iam
from aws_cdk.interfaces.aws_iam import IRoleRef
from constructs import Construct

from ultracluster.constructs.names import PARTITION
from ultracluster.constructs.references import role_object
from ultracluster.constructs.roles import managed_policy
from ultracluster.constructs.script_assets import grant_objects, object_arn, upload
from ultracluster.nodes.pcs import PCS_SCRIPTS
from ultracluster.nodes.steps import Frequency, Stage, Step, script

OnError = Literal["TERMINATE", "STOP_SEQUENCE", "CONTINUE"]

_STAGES: dict[Stage, str] = {"bootstrapped": "nodeBootstrapped", "ready": "nodeReady"}
_POLICIES: dict[Frequency, str] = {"first_boot": "FIRST_BOOT_ONLY", "every_boot": "EVERY_BOOT"}


class NodeScripts(Construct):
    """The scripts of all steps of PCS nodes, in the versioned bucket of `cdk bootstrap`, which encrypts them.

    A script's object key is a hash of its text, so objects never change, and earlier ones stay for nodes that still
    name them.
    """

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        self._objects = {name: upload(self, name, script(name)) for name in PCS_SCRIPTS}
        self._own: dict[str, FileAssetLocation] = {}
        self._readers: dict[str, iam.CfnManagedPolicy] = {}

    @property
    def object_arns(self) -> list[str]:
        """ARNs of the scripts in S3, which nodes must be allowed to read (s3:GetObject)."""
        return [object_arn(found) for found in self._objects.values()]

    def arns_of(self, steps: Sequence[Step]) -> list[str]:
        """ARNs of the scripts in S3 for a node group with `steps`, and of the objects that these download."""
        own = [object_arn(self.location(step)) for step in steps if step.own_text is not None]
        objects = [f"arn:{PARTITION}:s3:::{each}" for step in steps for each in step.objects]
        return [*self.object_arns, *own, *objects]

    def grant_read(self, role: IRoleRef) -> iam.CfnManagedPolicy:
        """Allows nodes with `role` to read the scripts. Node groups must depend on the policy that is returned.

        Its logical id contains a hash of the scripts. An update that changes scripts therefore creates a second policy,
        and CloudFormation deletes the first one after every group has changed: until then nodes need the old scripts.
        """
        checksums = hashlib.sha256(" ".join(script(name).checksum for name in PCS_SCRIPTS).encode()).hexdigest()
        path = role.node.path
        if path not in self._readers:
            number = len(self._readers) or ""
            statement = {"Action": "s3:GetObject", "Resource": self.object_arns}
            self._readers[path] = managed_policy(
                self, f"Read{number}{checksums[:8]}", roles=[role_object(role)], statements=[statement]
            )
        return self._readers[path]

    def grant_own(self, name: str, role: IRoleRef, steps: Sequence[Step]) -> iam.CfnPolicy | None:
        """Allows nodes of the group `name` to read the script that one of `steps` has of its own, if one does."""
        own = next((step for step in steps if step.own_text is not None), None)
        return grant_objects(self, name, role, self.location(own), own) if own else None

    def location(self, step: Step) -> FileAssetLocation:
        """Where the script of `step` is in S3."""
        if step.own_text is None:
            return self._objects[step.name]
        checksum = step.script.checksum
        if checksum not in self._own:
            self._own[checksum] = upload(self, f"{step.name}-{checksum[:8]}", step.script)
        return self._own[checksum]

    def lifecycle_actions(self, steps: Sequence[Step], on_error: OnError) -> dict[str, Any] | None:
        """`steps` as the property NodeLifecycleActions of a node group; None without steps."""
        stages = {
            name: [self._action(step, on_error) for step in steps if step.stage == stage]
            for stage, name in _STAGES.items()
            if any(step.stage == stage for step in steps)
        }
        return {"stages": stages, "scriptCachingPolicy": "CACHE_ONCE"} if stages else None

    def _action(self, step: Step, on_error: OnError) -> dict[str, Any]:
        action = {
            "name": step.name,
            "scriptSource": {
                "scriptLocation": self.location(step).s3_object_url,
                "checksum": step.script.checksum,
            },
            "onError": on_error if step.required else "CONTINUE",
            "executionPolicy": _POLICIES[step.frequency],
        }
        return {**action, "arguments": list(step.arguments)} if step.arguments else action


def node_scripts(scope: Construct) -> NodeScripts:
    """The scripts of the node groups in `scope`, created on first use."""
    found = scope.node.try_find_child("Scripts")
    return found if isinstance(found, NodeScripts) else NodeScripts(scope, "Scripts")
