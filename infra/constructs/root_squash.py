"""Root squash of a Lustre file system, which FSx's API has and CloudFormation lacks."""

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from infra.constructs.acknowledgements import acknowledge
from infra.constructs.functions import InlineResource


class RootSquash(InlineResource):
    """Turns root of the clients into `root_squash`, a UID:GID. Taking it away again leaves the setting as it is.

    Deployed only when the setting is in force. To switch it off, set 0:0.
    """

    def __init__(self, scope: Construct, id: str, *, file_system_id: str, root_squash: str, key: kms.IKey) -> None:
        stack = Stack.of(scope)
        arn = f"arn:{stack.partition}:fsx:{stack.region}:{stack.account}:file-system/{file_system_id}"
        super().__init__(
            scope,
            id,
            handler="root_squash",
            resource_type="Custom::LustreRootSquash",
            properties={"FileSystemId": file_system_id, "RootSquash": root_squash},
            statements=[
                iam.PolicyStatement(actions=["fsx:UpdateFileSystem"], resources=[arn]),
                iam.PolicyStatement(actions=["fsx:DescribeFileSystems"], resources=["*"]),
            ],
            key=key,
            timeout=Duration.minutes(10),
        )
        reason = "IAM lets no policy narrow fsx:DescribeFileSystems, a read-only action, to a resource."
        acknowledge(self, {"AwsSolutions-IAM5[Resource::*]": reason})
