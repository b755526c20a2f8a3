"""Custom resources: small Python functions of ours for what CloudFormation cannot do."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from aws_cdk import CustomResource, Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from constructs import Construct, IConstruct

from infra.constructs.acknowledgements import acknowledge
from infra.constructs.keys import log_group

RUNTIME = lambda_.Runtime.PYTHON_3_14.name

INLINE_LIMIT = 4096
"""Characters of code that a template may carry (AWS::Lambda::Function, Code.ZipFile)."""

ACCEPTED = {
    "NIST.800.53.R5-LambdaInsideVPC": "It calls one AWS control API and answers CloudFormation through a presigned S3 "
    "address. It reads no data of the VPC, and inside the VPC it would need a way out that nothing else needs.",
    "NIST.800.53.R5-LambdaDLQ": "CloudFormation calls it, waits for the answer and fails the deployment when none "
    "comes; a dead letter would have no reader.",
    "NIST.800.53.R5-LambdaConcurrency": "CloudFormation calls it once for each deployment. Reserving concurrency would "
    "take it from the account's other functions, and fails in accounts whose limit is 10.",
}


class InlineResource(Construct):
    """A resource that `handlers/<handler>.py` creates, changes and deletes.

    The code travels inside the template: no asset, no Docker, nothing fetched at synth. The function may do what
    `statements` say and write its log.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        handler: str,
        resource_type: str,
        properties: Mapping[str, Any],
        statements: Sequence[iam.PolicyStatement],
        key: kms.IKey,
        timeout: Duration,
    ) -> None:
        super().__init__(scope, id)
        logs = log_group(self, "Logs", name=f"/aws/lambda/{handler}", key=key)
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        policy = iam.ManagedPolicy(
            self, "Policy", description=f"What serving {resource_type} takes", roles=[role], statements=list(statements)
        )
        logs.grant_write(policy)
        function = lambda_.CfnFunction(
            self,
            "Function",
            description=f"Serves {resource_type}",
            runtime=RUNTIME,
            handler="index.handler",
            code={"zipFile": inline_code(handler)},
            role=role.role_arn,
            logging_config={"logGroup": logs.log_group_name},
            timeout=int(timeout.to_seconds()),
        )
        function.node.add_dependency(policy)
        acknowledge(function, ACCEPTED)
        self._resource = CustomResource(
            self,
            "Resource",
            service_token=function.attr_arn,
            resource_type=resource_type,
            properties=dict(properties),
            service_timeout=timeout.plus(Duration.minutes(1)),
        )

    def wait_for(self, *before: IConstruct) -> None:
        """Has the function called only after `before` are there; the function itself need not wait."""
        self._resource.node.add_dependency(*before)


def inline_code(handler: str) -> str:
    """Source of `handlers/<handler>.py`. Raises ValueError when it is too long for a template."""
    code = files("infra.constructs.handlers").joinpath(f"{handler}.py").read_text("utf-8")
    if len(code) > INLINE_LIMIT:
        raise ValueError(f"{handler} has {len(code)} characters of code; a template carries at most {INLINE_LIMIT}")
    return code
