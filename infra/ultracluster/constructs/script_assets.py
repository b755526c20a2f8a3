"""Scripts as file assets of the CDK, and the permission of nodes to read them and other objects."""

import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory

from aws_cdk import AssetHashType, AssetStaging, FileAssetLocation, FileAssetPackaging, Stack
from aws_cdk import aws_iam as iam
from aws_cdk.interfaces.aws_iam import IRoleRef
from constructs import Construct

from ultracluster.constructs.acknowledgements import acknowledge
from ultracluster.constructs.endpoints import VERSION_ACTIONS
from ultracluster.constructs.names import PARTITION
from ultracluster.constructs.references import role_object
from ultracluster.constructs.roles import policy_document
from ultracluster.nodes.steps import Script, Step


def upload(scope: Construct, id: str, script: Script) -> FileAssetLocation:
    """Adds `script` to the stack's assets: in the versioned bucket of `cdk bootstrap`, under a hash of its text."""
    # what aws_s3_assets.Asset does; that module takes Node a quarter of a second to load
    stack = Stack.of(scope)
    with TemporaryDirectory() as folder:
        file = script.file or Path(folder, f"{id}.sh")
        if script.file is None:
            file.write_text(script.text)
        staging = AssetStaging(
            scope, id, source_path=str(file), asset_hash=script.checksum, asset_hash_type=AssetHashType.CUSTOM
        )
    return stack.synthesizer.add_file_asset(
        source_hash=staging.asset_hash,
        file_name=staging.relative_staged_path(stack),
        packaging=FileAssetPackaging.FILE,
        display_name=f"Boot step {id}",
    )


def object_arn(location: FileAssetLocation) -> str:
    """ARN of an asset in S3."""
    return f"arn:{PARTITION}:s3:::{location.bucket_name}/{location.object_key}"


def grant_objects(
    scope: Construct, name: str, role: IRoleRef, location: FileAssetLocation, step: Step
) -> iam.CfnPolicy:
    """Allows nodes of the group `name` to read the script at `location`, and the objects that `step` downloads.

    An inline policy: many groups may share a role, to which IAM attaches 10 managed policies. Its name contains a hash
    of what it allows, so that an update adds the new policy before it deletes the old one.
    """
    objects = [f"arn:{PARTITION}:s3:::{each}" for each in step.objects]
    versions = [{"Action": list(VERSION_ACTIONS), "Resource": objects}] if objects else []
    suffix = hashlib.sha256(" ".join((step.script.checksum, *step.objects)).encode()).hexdigest()[:8]
    policy = iam.CfnPolicy(
        scope,
        f"ReadBootstrap-{name}-{suffix}",
        policy_name=f"bootstrap-{name}-{suffix}",
        policy_document=policy_document([{"Action": "s3:GetObject", "Resource": object_arn(location)}, *versions]),
        roles=[role_object(role).role_ref.role_name],
    )
    acknowledge(
        policy, {"NIST.800.53.R5-IAMNoInlinePolicy": "IAM attaches only ten managed policies to a role of nodes."}
    )
    return policy
