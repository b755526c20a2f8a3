"""AWS::SSM::Parameter and Document."""

import json
import re
from typing import Any, Literal

from localaws.handlers.common import as_list, undo_on_failure
from localaws.resources import (
    Context,
    Handler,
    HandlerError,
    NotUpdatable,
    Properties,
    Resource,
    changed,
    handler,
    pick,
    tag_map,
)

Kind = Literal["Document", "Parameter"]


@handler
class Parameter(Handler):
    """A parameter in Parameter Store."""

    type = "AWS::SSM::Parameter"
    supported_properties = frozenset(
        {"AllowedPattern", "DataType", "Description", "Name", "Tags", "Tier", "Type", "Value"}
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Put a new parameter."""
        name = properties.get("Name") or f"CFN-{context.logical_id}-{context.physical_name()[-12:]}"
        ssm = context.client("ssm")
        _check(properties)
        ssm.put_parameter(Name=name, Overwrite=False, **_settings(properties))
        with undo_on_failure(lambda: ssm.delete_parameter(Name=name)):
            _tag(context, name, {}, properties.get("Tags", {}))
        return _resource(context, name, properties)

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Put the parameter again. PutParameter keeps members that are not set, so removed properties are put empty."""
        _check(new)
        gone = {"Description": "", "AllowedPattern": ""}
        removed = {name: gone[name] for name in changed(old, new) if name in gone and name not in new}
        context.client("ssm").put_parameter(Name=physical_id, Overwrite=True, **removed, **_settings(new))
        _tag(context, physical_id, old.get("Tags", {}), new.get("Tags", {}))
        return _resource(context, physical_id, new)

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the parameter."""
        context.client("ssm").delete_parameter(Name=physical_id)


@handler
class Document(Handler):
    """A Systems Manager document with content in JSON. Ref gives its name."""

    type = "AWS::SSM::Document"
    supported_properties = frozenset(
        {"Content", "DocumentFormat", "DocumentType", "Name", "Tags", "TargetType", "UpdateMethod"}
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the document."""
        name = properties.get("Name") or context.physical_name(128)
        settings = pick(properties, "DocumentFormat", "DocumentType", "TargetType")
        tags = as_list(tag_map(properties.get("Tags")))
        context.client("ssm").create_document(Name=name, Content=_content(properties), Tags=tags, **settings)
        return Resource(name, {})

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Create a version of the document, and make it the default, as UpdateMethod NewVersion asks."""
        if new.get("UpdateMethod") != "NewVersion":
            raise NotUpdatable(self.type, changed(old, new))
        ssm = context.client("ssm")
        if old["Content"] != new["Content"]:
            content = _content(new)
            made = ssm.update_document(Name=physical_id, Content=content, DocumentVersion="$LATEST")
            version = made["DocumentDescription"]["DocumentVersion"]
            ssm.update_document_default_version(Name=physical_id, DocumentVersion=version)
        _tag(context, physical_id, tag_map(old.get("Tags")), tag_map(new.get("Tags")), kind="Document")
        return Resource(physical_id, {})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the document."""
        context.client("ssm").delete_document(Name=physical_id)


def _content(properties: Properties) -> str:
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
    return text


def _settings(properties: Properties) -> Properties:
    return pick(properties, "AllowedPattern", "DataType", "Description", "Tier", "Type", "Value")


def _check(properties: Properties) -> None:
    """Parameter Store refuses a value that does not match AllowedPattern; moto does not."""
    pattern, value = properties.get("AllowedPattern"), properties["Value"]
    if pattern and not re.fullmatch(pattern, value):
        raise HandlerError(f"Parameter value, cannot be validated against allowedPattern: {pattern}")


def _tag(context: Context, name: str, old: dict[str, str], new: dict[str, str], kind: Kind = "Parameter") -> None:
    ssm = context.client("ssm")
    if removed := sorted(old.keys() - new.keys()):
        ssm.remove_tags_from_resource(ResourceType=kind, ResourceId=name, TagKeys=removed)
    if new:
        ssm.add_tags_to_resource(ResourceType=kind, ResourceId=name, Tags=as_list(new))


def _resource(context: Context, name: str, properties: Properties) -> Resource:
    arn = context.arn("ssm", f"parameter/{name.lstrip('/')}")
    return Resource(name, {"Arn": arn, "Type": properties["Type"], "Value": properties["Value"]})
