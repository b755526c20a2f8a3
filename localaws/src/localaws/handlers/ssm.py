"""Systems Manager: parameters, documents and associations. Ref gives the name."""

import json
import re
import secrets
from typing import Any

from localaws.resources import Context, HandlerError, NotUpdatable, Properties, changed, pick
from localaws.rows.handler import register
from localaws.rows.row import Row


def _check_parameter(context: Context, _: Properties, new: Properties) -> Properties:
    """Parameter Store refuses a value that does not match AllowedPattern; moto does not."""
    pattern, value = new.get("AllowedPattern"), new["Value"]
    if pattern and not re.fullmatch(pattern, value):
        raise HandlerError(f"Parameter value, cannot be validated against allowedPattern: {pattern}")
    name = {} if "ref" in new else {"Name": f"CFN-{context.logical_id}-{secrets.token_hex(6)}"}
    return {**name, **new}


def _document(properties: Properties) -> Properties:
    """The content as text. Systems Manager refuses one that uses a parameter which it does not declare."""
    content: Any = properties["Content"]
    document = content if isinstance(content, dict) else json.loads(content)
    text = json.dumps(document)
    declared = document.get("parameters", {})
    if missing := sorted(set(re.findall(r"\{\{ ?(\w+) ?\}\}", text)) - set(declared)):
        raise HandlerError(f"InvalidDocumentContent: parameters {', '.join(missing)} are not defined in the document")
    for name, parameter in declared.items():
        default, pattern = parameter.get("default"), parameter.get("allowedPattern", "")
        if default is not None and not re.search(pattern, str(default)):
            raise HandlerError(f"InvalidDocumentContent: the default of {name} does not match {pattern}")
    return {**properties, "Content": text}


def _check_document(_: Context, old: Properties, new: Properties) -> None:
    if old and new.get("UpdateMethod") != "NewVersion":
        raise NotUpdatable("AWS::SSM::Document", changed(old, new))


def _new_version(context: Context, old: Properties, new: Properties) -> None:
    """A changed document gets a version that becomes the default, as UpdateMethod NewVersion asks."""
    if old and old["Content"] != new["Content"]:
        ssm, content = context.client("ssm"), new["Content"]
        more = pick(new, "DocumentFormat", "TargetType")
        made = ssm.update_document(Name=new["ref"], Content=content, DocumentVersion="$LATEST", **more)
        version = made["DocumentDescription"]["DocumentVersion"]
        ssm.update_document_default_version(Name=new["ref"], DocumentVersion=version)


def _wait_for_success(context: Context, new: Properties) -> Properties:
    """With WaitForSuccessTimeoutSeconds, an association that does not succeed fails the deployment."""
    if seconds := new.get("WaitForSuccessTimeoutSeconds"):
        found = context.client("ssm").describe_association(AssociationId=new["ref"])["AssociationDescription"]
        if (status := found["Overview"]["Status"]) != "Success":
            raise HandlerError(f"Association {new['ref']} did not succeed within {seconds} seconds: it is {status}")
    return {}


register(
    Row(
        type="AWS::SSM::Parameter",
        service="ssm",
        ignored="Policies",
        create="PutParameter",
        update="PutParameter",
        update_with={"Overwrite": True},
        ident={"Name": "{ref}", "ResourceType": "Parameter", "ResourceId": "{ref}"},
        resets={"AllowedPattern": "", "Description": ""},
        attributes={"Type": "Type", "Value": "Value"},
        tag="AddTagsToResource",
        untag="RemoveTagsFromResource",
        check=_check_parameter,
    ),
    Row(
        type="AWS::SSM::Document",
        service="ssm",
        read=None,
        update=None,
        ignored="Attachments Requires VersionName",
        name=("Name", 128),
        ident={"Name": "{ref}", "ResourceType": "Document", "ResourceId": "{ref}"},
        tag="AddTagsToResource",
        untag="RemoveTagsFromResource",
        by_hand="Content UpdateMethod",
        prepare=_document,
        check=_check_document,
        hook=_new_version,
    ),
    Row(
        type="AWS::SSM::Association",
        service="ssm",
        properties="AssociationName DocumentVersion MaxConcurrency MaxErrors Name Parameters Tags Targets "
        "WaitForSuccessTimeoutSeconds",
        ref="{AssociationId}",
        whole=True,
        ident={"AssociationId": "{ref}", "ResourceType": "Association", "ResourceId": "{ref}"},
        tag="AddTagsToResource",
        untag="RemoveTagsFromResource",
        by_hand="WaitForSuccessTimeoutSeconds",
        describe=_wait_for_success,
        described_at_once=True,
    ),
)
