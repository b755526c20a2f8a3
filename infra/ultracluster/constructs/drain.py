"""Drains Slurm nodes on alerts: a topic invokes a function, which runs one command on a login node."""

from typing import Any

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_ssm as ssm
from aws_cdk.interfaces.aws_kms import IKeyRef
from constructs import Construct

from ultracluster.constructs.acknowledgements import wildcards
from ultracluster.constructs.alarms import Watch
from ultracluster.constructs.functions import inline_code, logging_function
from ultracluster.constructs.names import own_arn
from ultracluster.nodes.steps import script

ACCEPTED = {
    "NIST.800.53.R5-LambdaDLQ": "Lambda tries twice more, and the alert manager repeats an alert that goes on.",
    "NIST.800.53.R5-LambdaConcurrency": "Reserving concurrency would take it from the account's other functions, and "
    "fails in accounts whose limit is 10.",
    "NIST.800.53.R5-LambdaInsideVPC": "It calls one AWS API, and reaches no node itself.",
}


class NodeDrain(Construct):
    """Drains the nodes that messages of the topic name, through the login nodes of `environment`.

    A drained node finishes its jobs and gets no further ones; no job is killed. Audit trail: the log group of the
    function, encrypted with `key`, with the answer of the login node; Run Command's history, CloudTrail, and the reason
    in Slurm. The function may run one document, on login nodes of the environment, and the document does nothing else.
    """

    def __init__(self, scope: Construct, id: str, *, environment: str, topic_arn: str, key: IKeyRef) -> None:
        super().__init__(scope, id)
        document = ssm.CfnDocument(
            self,
            "Document",
            document_type="Command",
            document_format="JSON",
            content=document_content(),
            target_type="/AWS::EC2::Instance",
            update_method="NewVersion",
        )
        instances = own_arn("ec2", "instance/*")
        tags = {"ultracluster:environment": environment, "ultracluster:node-group": "login"}
        function = logging_function(
            self,
            log_group_name="/ultracluster/drain",
            description="Drains Slurm nodes on alerts",
            code={"zipFile": inline_code("drain")},
            statements=[
                {"Action": "ssm:SendCommand", "Resource": own_arn("ssm", f"document/{document.ref}")},
                {
                    "Action": "ssm:SendCommand",
                    "Resource": instances,
                    "Condition": {"StringEquals": {f"ssm:resourceTag/{name}": tag for name, tag in tags.items()}},
                },
                {"Action": ["ssm:DescribeInstanceInformation", "ssm:GetCommandInvocation"], "Resource": "*"},
            ],
            key=key,
            timeout_seconds=900,
            findings=ACCEPTED,
            accepted={
                **wildcards(self, [instances], "login nodes, which the condition on their tags selects"),
                **wildcards(self, ["*"], "actions without resources, which find login nodes and read what they said"),
            },
            variables={"DOCUMENT": document.ref, "ENVIRONMENT": environment},
        )
        permission = lambda_.CfnPermission(
            self,
            "Permission",
            action="lambda:InvokeFunction",
            function_name=function.attr_arn,
            principal="sns.amazonaws.com",
            source_arn=topic_arn,
        )
        subscription = sns.CfnSubscription(
            self, "Subscription", topic_arn=topic_arn, protocol="lambda", endpoint=function.attr_arn
        )
        subscription.add_resource_dependency(permission)
        self._function_name = function.ref

    @property
    def failures(self) -> Watch:
        """Alarm: a node was not drained, because no login node answers, or Slurm does not, or the function fails."""
        where = f"FROM \"AWS/Lambda\" WHERE FunctionName = '{self._function_name}'"
        return Watch(
            "Failed",
            f"SELECT SUM(Errors) {where}",
            "An alert could not drain a node: no login node or no Slurm answers",
            0,
        )


def document_content() -> dict[str, Any]:
    """Content of the Systems Manager document: the script drain-node, with a node, a reason and a time.

    Run Command replaces parameters in the text of the command; their patterns allow nothing that a shell would read.

    Source: Systems Manager User Guide, "SSM document syntax", "aws:runShellScript" (2026).
    """
    first, *lines = script("drain-node").text.splitlines()
    return {
        "schemaVersion": "2.2",
        "description": "Drains a Slurm node: its jobs run to their end, and it gets no further ones.",
        "parameters": {
            "node": {"type": "String", "description": "Slurm node", "allowedPattern": "^[A-Za-z][A-Za-z0-9-]{0,62}$"},
            "reason": {"type": "String", "description": "Why", "allowedPattern": "^[A-Za-z0-9 ,.:=_-]{1,200}$"},
            "since": {
                "type": "String",
                "description": "When the alert began, in UTC",
                "allowedPattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$",
            },
        },
        "mainSteps": [
            {
                "action": "aws:runShellScript",
                "name": "drain",
                "inputs": {
                    "timeoutSeconds": "120",
                    "runCommand": [first, "set -- '{{ node }}' '{{ reason }}' '{{ since }}'", *lines],
                },
            }
        ],
    }
