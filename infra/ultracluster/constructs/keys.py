"""KMS keys, and what their key policies allow."""

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import jsii
from aws_cdk import Annotations, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk.interfaces import ResourceEnvironment
from aws_cdk.interfaces.aws_kms import IKeyRef, KeyReference
from constructs import Construct

from ultracluster.constructs.names import ACCOUNT, PARTITION
from ultracluster.constructs.references import key_arn
from ultracluster.constructs.retention import retain
from ultracluster.constructs.roles import policy_document, statement_text

DECRYPT = ("kms:Decrypt",)
ENCRYPT = ("kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*")


@jsii.implements(IKeyRef)
class DataKey(Construct):
    """A customer managed KMS key with yearly rotation. Retained on delete and on replacement.

    The key policy trusts the account, so IAM policies decide who uses the key. CDK constructs accept it as an
    `IKeyRef`; pass `key` to those that want an L2.
    """

    def __init__(self, scope: Construct, id: str, *, description: str) -> None:
        super().__init__(scope, id)
        root = {"AWS": f"arn:{PARTITION}:iam::{ACCOUNT}:root"}
        self._statements: list[Mapping[str, Any]] = [{"Principal": root, "Action": "kms:*", "Resource": "*"}]
        self._key = kms.CfnKey(
            Construct(self, "Resource"),
            "Resource",
            description=description,
            enable_key_rotation=True,
            key_policy=policy_document(self._statements),
        )
        retain(self._key)
        self._arn = self._key.attr_arn

    @property
    def key_arn(self) -> str:
        """ARN of the key."""
        return self._arn

    @cached_property
    def key_id(self) -> str:
        """Id of the key."""
        return self._key.ref

    @property
    def key_ref(self) -> KeyReference:
        """Lets CDK constructs take this as an `IKeyRef`."""
        return KeyReference(key_arn=self._arn, key_id=self.key_id)

    @property
    def env(self) -> ResourceEnvironment:
        """Account and Region of the key."""
        return self._key.env

    @cached_property
    def key(self) -> kms.IKey:
        """The key as an L2, created on first use. Change the key policy with `add_to_policy`: this view does not."""
        return kms.Key.from_key_arn(self, "KeyView", self._arn)

    def add_to_policy(self, statement: Mapping[str, Any]) -> None:
        """Adds a statement to the key policy: a mapping with Principal, Action, Resource and optionally Condition."""
        if statement not in self._statements:
            self._statements.append(statement)
            self._key.key_policy = policy_document(self._statements)

    def grant_decrypt(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allows `grantee` to decrypt with the key."""
        return grant_key(self, grantee, *DECRYPT)

    def grant_encrypt(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allows `grantee` to encrypt with the key."""
        return grant_key(self, grantee, *ENCRYPT)

    def grant_encrypt_decrypt(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allows `grantee` to encrypt and decrypt with the key."""
        return grant_key(self, grantee, *DECRYPT, *ENCRYPT)


def grant_key(key: IKeyRef, grantee: iam.IGrantable, *actions: str) -> iam.Grant:
    """Allows `grantee` some actions on `key`.

    An L2 key grants by itself. Otherwise the IAM policy of the grantee does it, which is enough where the key policy
    trusts the account, as that of a DataKey.
    """
    if isinstance(key, kms.Key):
        return key.grant(grantee, *actions)
    return iam.Grant.add_to_principal(grantee=grantee, actions=list(actions), resource_arns=[key.key_ref.key_arn])


def add_to_key_policy(scope: Construct, key: IKeyRef, statement: Mapping[str, Any]) -> tuple[iam.PolicyStatement, ...]:
    """Adds a statement to a key policy: a mapping with Principal, Action, Resource and optionally Condition.

    The policy of a key that this app does not manage cannot be changed from here. The statement that the key's owner
    must add is then returned, and a warning on `scope` shows it at synth.
    """
    if isinstance(key, DataKey):
        key.add_to_policy(statement)
        return ()
    wanted = iam.PolicyStatement.from_json({"Effect": "Allow", **statement})
    if hasattr(key, "add_to_resource_policy") and key.add_to_resource_policy(wanted).statement_added:
        return ()
    arn, shown = json.dumps(Stack.of(scope).resolve(key_arn(key))), statement_text(scope, wanted)
    message = f"the policy of the key {arn} is not managed by this app. Its owner must add this statement, unless the "
    message += f"policy allows it already: {shown}"
    Annotations.of(scope).add_warning_v2("ultracluster:key-policy", message)
    return (wanted,)
