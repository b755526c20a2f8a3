"""A Lustre file system that exists, of which only the id is known."""

from aws_cdk.interfaces.aws_kms import IKeyRef
from constructs import Construct

from ultracluster.constructs.acknowledgements import acknowledge
from ultracluster.constructs.functions import InlineResource


class LustreLookup(InlineResource):
    """Looks the mount name of an existing Lustre file system up, which its id does not tell, at each deployment.

    The deployment fails where the file system does not exist, is not Lustre or not available, or where `efa` is True
    and it has no EFA.
    """

    def __init__(self, scope: Construct, id: str, *, file_system_id: str, key: IKeyRef, efa: bool = False) -> None:
        super().__init__(
            scope,
            id,
            handler="lustre_lookup",
            resource_type="Custom::LustreLookup",
            properties={"FileSystemId": file_system_id, "Efa": str(efa).lower()},
            statements=[{"Action": "fsx:DescribeFileSystems", "Resource": "*"}],
            key=key,
            timeout_seconds=60,
        )
        reason = "IAM lets no policy narrow fsx:DescribeFileSystems, a read-only action, to a resource."
        acknowledge(self, {"AwsSolutions-IAM5[Resource::*]": reason})

    @property
    def mount_name(self) -> str:
        """Lustre's own name of the file system."""
        return self.resource.get_att("MountName").to_string()

    @property
    def dns_name(self) -> str:
        """DNS name that clients mount."""
        return self.resource.get_att("DNSName").to_string()
