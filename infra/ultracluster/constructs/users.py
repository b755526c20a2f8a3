"""The list of users in SSM parameters, and the permission of machines to read it or the secret of a directory."""

import hashlib
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_ssm as ssm
from aws_cdk.interfaces.aws_iam import IRoleRef
from constructs import Construct

from ultracluster.config.users import Users
from ultracluster.constructs.acknowledgements import acknowledge, wildcards
from ultracluster.constructs.names import own_arn
from ultracluster.constructs.references import expect, role_object
from ultracluster.constructs.roles import policy_document
from ultracluster.nodes.users import DirectorySource, UserSource, list_parts, user_list


class UserList(Construct):
    """The users of machines, which read the list at boot and every ten minutes.

    The list is text in SSM parameters /ultracluster/NAME/users/1, 2 and so on, where `name` is that of the environment.
    The parameter /ultracluster/NAME/users has their number and the SHA-256 of the whole, and changes last. So another
    list changes parameters, and no machine. `shared_homes` is whether /home is a shared file system.
    """

    source: UserSource
    """Where machines find the list, for `add_node_group`, `add_login_nodes` and `UserReader`."""

    def __init__(self, scope: Construct, id: str, *, settings: Users, name: str, shared_homes: bool = False) -> None:
        super().__init__(scope, id)
        expect(settings, Users, "settings")
        text, parameter = user_list(settings), f"/ultracluster/{name}/users"
        parts = [
            ssm.CfnParameter(self, f"Part{i}", name=f"{parameter}/{i}", type="String", value=part)
            for i, part in enumerate(list_parts(text), start=1)
        ]
        head = ssm.CfnParameter(
            self,
            "Head",
            name=parameter,
            type="String",
            value=f"{len(parts)} {hashlib.sha256(text.encode()).hexdigest()}",
            description="Number of parts and SHA-256 of the list of users",
        )
        for part in parts:
            head.add_resource_dependency(part)
        self.source = UserSource(parameter, Stack.of(self).region, shared_homes)


class UserReader(Construct):
    """Allows machines with `role` to read the list of users, or the secret of the directory, of `source`.

    Machines must be launched after it. An inline policy: IAM attaches only ten managed policies to a role.
    """

    def __init__(self, scope: Construct, id: str, *, source: UserSource | DirectorySource, role: IRoleRef) -> None:
        super().__init__(scope, id)
        accepted = {"NIST.800.53.R5-IAMNoInlinePolicy": "IAM attaches only ten managed policies to a role of nodes."}
        if isinstance(source, DirectorySource):
            statements = _secret_statements(source)
        else:
            expect(source, UserSource, "source")
            arns = [own_arn("ssm", f"parameter{source.parameter}{parts}") for parts in ("", "/*")]
            statements = [{"Action": ["ssm:GetParameter", "ssm:GetParameters"], "Resource": arns}]
            accepted |= wildcards(self, arns[1:], "the parts of the list, whose number changes")
        policy = iam.CfnPolicy(
            self,
            "Policy",
            policy_name="read-users",
            policy_document=policy_document(statements),
            roles=[role_object(role).role_ref.role_name],
        )
        acknowledge(policy, accepted)


def _secret_statements(source: DirectorySource) -> list[dict[str, Any]]:
    """Reading the secret; with its key, only through Secrets Manager."""
    directory = source.settings
    statements: list[dict[str, Any]] = [{"Action": "secretsmanager:GetSecretValue", "Resource": directory.secret_arn}]
    if directory.secret_key_arn:
        through = {"kms:ViaService": f"secretsmanager.{source.region}.amazonaws.com"}
        statements.append(
            {
                "Action": "kms:Decrypt",
                "Resource": directory.secret_key_arn,
                "Condition": {"StringEquals": through},
            }
        )
    return statements
