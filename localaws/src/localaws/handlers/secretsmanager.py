"""Secrets Manager: secrets. CloudFormation deletes them without recovery (its coverage roadmap, issue 1999)."""

import json

from localaws.resources import Context, Properties
from localaws.rows.handler import register
from localaws.rows.row import Row

_OF_TEMPLATE = ("GenerateStringKey", "SecretStringTemplate")


def _generate(context: Context, old: Properties, new: Properties) -> Properties | None:
    """A password, in a JSON document where the template asks for one, when GenerateSecretString is new or changed."""
    asked = new.get("GenerateSecretString")
    if asked is None or asked == old.get("GenerateSecretString"):
        return None
    rules = {name: value for name, value in asked.items() if name not in _OF_TEMPLATE}
    password = context.client("secretsmanager").get_random_password(**rules)["RandomPassword"]
    if key := asked.get("GenerateStringKey"):
        return {**new, "SecretString": json.dumps({**json.loads(asked["SecretStringTemplate"]), key: password})}
    return {**new, "SecretString": password}


register(
    Row(
        type="AWS::SecretsManager::Secret",
        service="secretsmanager",
        ignored="Type",
        name=("Name", 512),
        ref="{ARN}",
        ident={"SecretId": "{ref}", "ForceDeleteWithoutRecovery": "true"},
        resets={"Description": "", "KmsKeyId": "alias/aws/secretsmanager"},
        must_exist={"KmsKeyId": "KMS key"},
        check=_generate,
        by_hand="GenerateSecretString",
    ),
)
