"""The list of users: an object in S3, and the SSM parameter that names the newest one."""

import hashlib

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_ssm as ssm
from aws_cdk.interfaces.aws_iam import IRoleRef
from constructs import Construct

from ultracluster.config.users import Users
from ultracluster.constructs.assets import text_asset
from ultracluster.constructs.names import PARTITION, own_arn
from ultracluster.constructs.references import expect, role_object
from ultracluster.constructs.roles import managed_policy
from ultracluster.nodes.users import UserSource, user_list


class UserList(Construct):
    """The users of machines, which read the list at boot and every ten minutes.

    The list is an object in the bucket of `cdk bootstrap`. `name` is that of the environment: the SSM parameter
    /ultracluster/NAME/users names the object, with its SHA-256. Another list is another object, so the parameter
    changes, and no machine. `shared_homes` is whether /home is a shared file system.
    """

    source: UserSource
    """Where machines find the list, for `add_node_group`, `add_login_nodes` and `AccessHost`."""

    def __init__(self, scope: Construct, id: str, *, settings: Users, name: str, shared_homes: bool = False) -> None:
        super().__init__(scope, id)
        expect(settings, Users, "settings")
        text = user_list(settings)
        checksum = hashlib.sha256(text.encode()).hexdigest()
        uploaded = text_asset(self, "List", text=text, checksum=checksum, suffix=".txt", display_name="Users")
        parameter = f"/ultracluster/{name}/users"
        self._object_arn = f"arn:{PARTITION}:s3:::{uploaded.bucket_name}/{uploaded.object_key}"
        self._parameter_arn = own_arn("ssm", f"parameter{parameter}")
        self._parameter = ssm.CfnParameter(
            self,
            "Parameter",
            name=parameter,
            type="String",
            value=f"s3://{uploaded.bucket_name}/{uploaded.object_key} {checksum}",
            description="Address and SHA-256 of the list of users",
        )
        self.source = UserSource(parameter, Stack.of(self).region, shared_homes)
        self._readers = 0

    def grant_read(self, role: IRoleRef) -> iam.CfnManagedPolicy:
        """Allows machines with `role` to read the list. The parameter names a list only after they may read it."""
        self._readers += 1
        policy = managed_policy(
            self,
            f"Read{self._readers}",
            roles=[role_object(role)],
            statements=[
                {"Action": "ssm:GetParameter", "Resource": self._parameter_arn},
                {"Action": "s3:GetObject", "Resource": self._object_arn},
            ],
        )
        self._parameter.add_resource_dependency(policy)
        return policy
