"""Custom resources: small Python functions of ours for what CloudFormation cannot do."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from aws_cdk import CfnResource
from aws_cdk import aws_lambda as lambda_
from constructs import Construct, IConstruct

from ultracluster.constructs.acknowledgements import acknowledge
from ultracluster.constructs.keys import EncryptionKey, log_group
from ultracluster.constructs.roles import grant, service_role

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
    """A resource that `handlers/<handler>.py` creates, changes and deletes.

    The code travels inside the template: no asset, no Docker, nothing fetched at synth. The function may do what
    `statements` allow, mappings with Action and Resource, and write its log.
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
        key: EncryptionKey,
        timeout_seconds: int,
    ) -> None:
        super().__init__(scope, id)
        logs = log_group(self, "Logs", name=f"/aws/lambda/{handler}", key=key)
        role = service_role(self, "Role", service="lambda.amazonaws.com", description=f"Serves {resource_type}")
        writes_log = {"Action": ["logs:CreateLogStream", "logs:PutLogEvents"], "Resource": logs.log_group_arn}
        policy = grant(self, "Policy", roles=[role], statements=[*statements, writes_log])
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
        self._resource = CfnResource(
            self,
            "Resource",
            type=resource_type,
            properties={"ServiceToken": function.attr_arn, "ServiceTimeout": answers_within, **properties},
        )

    def wait_for(self, *before: IConstruct) -> None:
        """Has the function called only after `before` are there; the function itself need not wait."""
        self._resource.node.add_dependency(*before)


def inline_code(handler: str) -> str:
    """Source of `handlers/<handler>.py`. Raises ValueError when it is too long for a template."""
    code = files("ultracluster.constructs.handlers").joinpath(f"{handler}.py").read_text("utf-8")
    if len(code) > INLINE_LIMIT:
        raise ValueError(f"{handler} has {len(code)} characters of code; a template carries at most {INLINE_LIMIT}")
    return code
