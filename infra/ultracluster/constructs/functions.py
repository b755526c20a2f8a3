"""Custom resources backed by Lambda functions, for what CloudFormation cannot do."""

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from aws_cdk import AssetHashType, AssetStaging, CfnResource, FileAssetPackaging, Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk.interfaces.aws_kms import IKeyRef
from constructs import Construct

from ultracluster.constructs.acknowledgements import acknowledge
from ultracluster.constructs.log_groups import log_group
from ultracluster.constructs.roles import managed_policy, service_role

RUNTIME = "python3.14"

INLINE_LIMIT = 4096
"""Characters of code that a template may carry (AWS::Lambda::Function, Code.ZipFile)."""

CALLED_BY_CLOUDFORMATION = {
    "NIST.800.53.R5-LambdaDLQ": "CloudFormation calls it, waits for the answer and fails the deployment when none "
    "comes; a dead letter would have no reader.",
    "NIST.800.53.R5-LambdaConcurrency": "CloudFormation calls it once for each change. Reserving concurrency would "
    "take it from the account's other functions, and fails in accounts whose limit is 10.",
}

ACCEPTED = {
    "NIST.800.53.R5-LambdaInsideVPC": "It calls APIs of one service and answers CloudFormation through a presigned S3 "
    "address. It reads no data of the VPC, and inside the VPC it would need a way out that nothing else needs.",
    **CALLED_BY_CLOUDFORMATION,
}


def logging_function(
    scope: Construct,
    *,
    log_group_name: str,
    description: str,
    code: Mapping[str, Any],
    statements: Sequence[Mapping[str, Any]],
    key: IKeyRef,
    timeout_seconds: int,
    findings: Mapping[str, str],
    accepted: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    memory_mib: int | None = None,
) -> lambda_.CfnFunction:
    """A Lambda function with a log group encrypted with `key`, and a role that allows `statements` and writing the log.

    `description` is that of the function and of its role. `findings` and `accepted` map findings of security scanners
    on the function and on the policy of its role to the reason for each. `variables` are its environment.
    Without `memory_mib` it has Lambda's default, 128 MiB with a small share of a vCPU.
    """
    logs = log_group(scope, "Logs", name=log_group_name, key=key)
    role = service_role(scope, "Role", service="lambda.amazonaws.com", description=description)
    writes_log = {"Action": ["logs:CreateLogStream", "logs:PutLogEvents"], "Resource": logs.log_group_arn}
    policy = managed_policy(scope, "Policy", roles=[role], statements=[*statements, writes_log], accepted=accepted)
    function = lambda_.CfnFunction(
        scope,
        "Function",
        description=description,
        runtime=RUNTIME,
        handler="index.handler",
        code=dict(code),
        role=role,
        environment={"variables": dict(variables)} if variables else None,
        logging_config={"logGroup": logs.log_group_name},
        timeout=timeout_seconds,
        memory_size=memory_mib,
    )
    function.add_resource_dependency(policy)
    acknowledge(function, findings)
    return function


class FunctionResource(Construct):
    """A custom resource that a Lambda function of `code` creates, updates and deletes.

    `code` is the property Code of the function, `handler` names its log group. The execution role allows `statements`,
    mappings with Action and Resource, and writing the function's log.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        handler: str,
        code: Mapping[str, Any],
        resource_type: str,
        properties: Mapping[str, Any],
        statements: Sequence[Mapping[str, Any]],
        key: IKeyRef,
        timeout_seconds: int,
    ) -> None:
        super().__init__(scope, id)
        function = logging_function(
            self,
            log_group_name=f"/aws/lambda/{handler}",
            description=f"Serves {resource_type}",
            code=code,
            statements=statements,
            key=key,
            timeout_seconds=timeout_seconds,
            findings=ACCEPTED,
        )
        answers_within = str(timeout_seconds + 60)
        self.resource = CfnResource(
            self,
            "Resource",
            type=resource_type,
            properties={"ServiceToken": function.attr_arn, "ServiceTimeout": answers_within, **properties},
        )


class InlineResource(FunctionResource):
    """A custom resource that the code of `handlers/<handler>.py` creates, updates and deletes.

    The template contains the code: no asset, no Docker, nothing fetched at synth.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        handler: str,
        resource_type: str,
        properties: Mapping[str, Any],
        statements: Sequence[Mapping[str, Any]],
        key: IKeyRef,
        timeout_seconds: int,
    ) -> None:
        super().__init__(
            scope,
            id,
            handler=handler,
            code={"zipFile": inline_code(handler)},
            resource_type=resource_type,
            properties=properties,
            statements=statements,
            key=key,
            timeout_seconds=timeout_seconds,
        )


def uploaded_code(scope: Construct, id: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """Property Code of a function with files of these texts, by path.

    The CDK CLI uploads them to the bootstrap bucket. The hash of the asset is that of paths and texts.
    """
    digest = hashlib.sha256(json.dumps(sorted(texts.items())).encode()).hexdigest()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            file = Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        # what aws_s3_assets.Asset does; that module takes Node a quarter of a second to load
        staging = AssetStaging(scope, id, source_path=folder, asset_hash=digest, asset_hash_type=AssetHashType.CUSTOM)
    stack = Stack.of(scope)
    location = stack.synthesizer.add_file_asset(
        source_hash=staging.asset_hash,
        file_name=staging.relative_staged_path(stack),
        packaging=FileAssetPackaging.ZIP_DIRECTORY,
        display_name=scope.node.path,
    )
    return {"s3Bucket": location.bucket_name, "s3Key": location.object_key}


def inline_code(handler: str) -> str:
    """Source code of `handlers/<handler>.py`. Raises ValueError when it is too long for a template."""
    code = handler_code(handler)
    if len(code) > INLINE_LIMIT:
        raise ValueError(f"{handler} has {len(code)} characters of code; a template carries at most {INLINE_LIMIT}")
    return code


def handler_code(handler: str) -> str:
    """Source code of `handlers/<handler>.py`."""
    return files("ultracluster.constructs.handlers").joinpath(f"{handler}.py").read_text("utf-8")
