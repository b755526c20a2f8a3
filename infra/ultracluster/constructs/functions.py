"""Custom resources backed by inline Lambda functions, for what CloudFormation cannot do."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from aws_cdk import CfnResource
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
    "NIST.800.53.R5-LambdaInsideVPC": "It calls one AWS control API and answers CloudFormation through a presigned S3 "
    "address. It reads no data of the VPC, and inside the VPC it would need a way out that nothing else needs.",
    **CALLED_BY_CLOUDFORMATION,
}


class InlineResource(Construct):
    """A custom resource that the code of `handlers/<handler>.py` creates, updates and deletes.

    The template contains the code: no asset, no Docker, nothing fetched at synth. The execution role allows
    `statements`, mappings with Action and Resource, and writing the function's log.
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
        super().__init__(scope, id)
        logs = log_group(self, "Logs", name=f"/aws/lambda/{handler}", key=key)
        role = service_role(self, "Role", service="lambda.amazonaws.com", description=f"Serves {resource_type}")
        writes_log = {"Action": ["logs:CreateLogStream", "logs:PutLogEvents"], "Resource": logs.log_group_arn}
        policy = managed_policy(self, "Policy", roles=[role], statements=[*statements, writes_log])
        function = lambda_.CfnFunction(
            self,
            "Function",
            description=f"Serves {resource_type}",
            runtime=RUNTIME,
            handler="index.handler",
            code={"zipFile": inline_code(handler)},
            role=role,
            logging_config={"logGroup": logs.log_group_name},
            timeout=timeout_seconds,
        )
        function.add_resource_dependency(policy)
        acknowledge(function, ACCEPTED)
        answers_within = str(timeout_seconds + 60)
        CfnResource(
            self,
            "Resource",
            type=resource_type,
            properties={"ServiceToken": function.attr_arn, "ServiceTimeout": answers_within, **properties},
        )


def inline_code(handler: str) -> str:
    """Source code of `handlers/<handler>.py`. Raises ValueError when it is too long for a template."""
    code = files("ultracluster.constructs.handlers").joinpath(f"{handler}.py").read_text("utf-8")
    if len(code) > INLINE_LIMIT:
        raise ValueError(f"{handler} has {len(code)} characters of code; a template carries at most {INLINE_LIMIT}")
    return code
