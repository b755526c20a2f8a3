"""Root squash of a Lustre file system, which FSx's API has and CloudFormation lacks."""

from collections.abc import Sequence

from aws_cdk.interfaces.aws_kms import IKeyRef
from constructs import Construct

from ultracluster.constructs.acknowledgements import acknowledge
from ultracluster.constructs.functions import InlineResource
from ultracluster.constructs.names import own_arn
from ultracluster.constructs.references import expect_list


class RootSquash(InlineResource):
    """Maps root on clients to `root_squash`, a UID:GID, except on `no_squash_nids`, clients by IPv4 address or range.

    The deployment completes when the setting is in force. Deleting the resource leaves the setting as it is. To switch
    root squash off, set 0:0. Without exempt clients nobody can create folders in a new file system.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        file_system_id: str,
        root_squash: str,
        key: IKeyRef,
        no_squash_nids: Sequence[str] = (),
    ) -> None:
        expect_list(no_squash_nids, "no_squash_nids")
        file_system = own_arn("fsx", f"file-system/{file_system_id}")
        super().__init__(
            scope,
            id,
            handler="root_squash",
            resource_type="Custom::LustreRootSquash",
            properties={
                "FileSystemId": file_system_id,
                "RootSquash": root_squash,
                "NoSquashNids": list(no_squash_nids),
            },
            statements=[
                {"Action": "fsx:UpdateFileSystem", "Resource": file_system},
                {"Action": "fsx:DescribeFileSystems", "Resource": "*"},
            ],
            key=key,
            timeout_seconds=600,
        )
        reason = "IAM lets no policy narrow fsx:DescribeFileSystems, a read-only action, to a resource."
        acknowledge(self, {"AwsSolutions-IAM5[Resource::*]": reason})
