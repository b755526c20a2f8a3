"""AWS::Lambda::Function, LayerVersion and Permission."""

import io
import zipfile
from typing import Any

from botocore.exceptions import ClientError

from localaws.handlers.common import require_only, tag_changes, undo_on_failure
from localaws.resources import (
    Context,
    Handler,
    HandlerError,
    Properties,
    Resource,
    handler,
    pick,
    require_role,
    require_security_groups,
    require_subnets,
    tag_map,
)

# As get_function_configuration returns them, so that supported properties can be read back.
CONFIGURATION = (
    "Description",
    "EphemeralStorage",
    "Environment",
    "Handler",
    "Layers",
    "LoggingConfig",
    "MemorySize",
    "Role",
    "Runtime",
    "Timeout",
    "TracingConfig",
    "VpcConfig",
)
DEFAULTS: Properties = {
    "Description": "",
    "Environment": {"Variables": {}},
    "EphemeralStorage": {"Size": 512},
    "Layers": [],
    "LoggingConfig": {"LogFormat": "Text"},
    "MemorySize": 128,
    "Timeout": 3,
    "TracingConfig": {"Mode": "PassThrough"},
    "VpcConfig": {"SubnetIds": [], "SecurityGroupIds": []},
}


@handler
class Function(Handler):
    """A function. Only custom resources of the embedded AWS run it."""

    type = "AWS::Lambda::Function"
    supported_properties = frozenset(
        {*CONFIGURATION, "Architectures", "Code", "FunctionName", "KmsKeyArn", "ReservedConcurrentExecutions", "Tags"}
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Create the function from inline code or an archive in S3."""
        name = properties.get("FunctionName") or context.physical_name()
        _check(context, properties)
        lambdas = context.client("lambda")
        made = lambdas.create_function(
            FunctionName=name,
            Code=_code(context, properties),
            Tags=tag_map(properties.get("Tags")),
            **pick(properties, "Architectures", *CONFIGURATION),
            **_key(properties),
        )
        with undo_on_failure(lambda: lambdas.delete_function(FunctionName=name)):
            _set_concurrency(lambdas, name, {}, properties)
        return Resource(name, {"Arn": made["FunctionArn"]})

    def update(self, context: Context, physical_id: str, old: Properties, new: Properties) -> Resource:
        """Update code, configuration, concurrency and tags."""
        _check(context, new)
        lambdas = context.client("lambda")
        architectures = new.get("Architectures", ["x86_64"])
        lambdas.update_function_code(FunctionName=physical_id, Architectures=architectures, **_code(context, new))
        settings = {**DEFAULTS, **pick(new, *CONFIGURATION)}
        made = lambdas.update_function_configuration(
            FunctionName=physical_id, **settings, **(_key(new) or {"KMSKeyArn": ""})
        )
        _set_concurrency(lambdas, physical_id, old, new)
        added, removed = tag_changes(old, new)
        if added:
            lambdas.tag_resource(Resource=made["FunctionArn"], Tags=added)
        if removed:
            lambdas.untag_resource(Resource=made["FunctionArn"], TagKeys=removed)
        return Resource(physical_id, {"Arn": made["FunctionArn"]})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the function."""
        context.client("lambda").delete_function(FunctionName=physical_id)


@handler
class LayerVersion(Handler):
    """A version of a layer. Every change creates a new version."""

    type = "AWS::Lambda::LayerVersion"
    supported_properties = frozenset(
        {"CompatibleArchitectures", "CompatibleRuntimes", "Content", "Description", "LayerName", "LicenseInfo"}
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Publish the version from an archive in S3."""
        require_only(properties["Content"], {"S3Bucket", "S3Key", "S3ObjectVersion"}, f"Content of {self.type}")
        _require_object(context, properties["Content"])
        name = properties.get("LayerName") or context.physical_name()
        made = context.client("lambda").publish_layer_version(**{**properties, "LayerName": name})
        return Resource(made["LayerVersionArn"], {"LayerVersionArn": made["LayerVersionArn"]})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Delete the version."""
        layer, _, version = physical_id.rpartition(":")
        context.client("lambda").delete_layer_version(LayerName=layer, VersionNumber=int(version))


@handler
class Permission(Handler):
    """A statement of a function's policy."""

    type = "AWS::Lambda::Permission"
    supported_properties = frozenset(
        {"Action", "FunctionName", "Principal", "PrincipalOrgID", "SourceAccount", "SourceArn"}
    )

    def create(self, context: Context, properties: Properties) -> Resource:
        """Add the statement."""
        statement = context.physical_name(100)
        context.client("lambda").add_permission(StatementId=statement, **properties)
        return Resource(statement, {"Id": statement})

    def delete(self, context: Context, physical_id: str, properties: Properties) -> None:
        """Remove the statement."""
        context.client("lambda").remove_permission(FunctionName=properties["FunctionName"], StatementId=physical_id)


def _check(context: Context, properties: Properties) -> None:
    """HandlerError when role, subnets or groups do not exist, or when subnets and groups are in two VPCs."""
    require_role(context, properties["Role"])
    network = properties.get("VpcConfig") or {}
    require_only(network, {"SecurityGroupIds", "SubnetIds"}, "VpcConfig of AWS::Lambda::Function")
    subnet_ids, group_ids = network.get("SubnetIds") or [], network.get("SecurityGroupIds") or []
    if bool(subnet_ids) != bool(group_ids):
        raise HandlerError("SubnetIds and SecurityGroupIds must coexist or be both empty list.")
    if subnet_ids:
        places = [*require_subnets(context, subnet_ids), *require_security_groups(context, group_ids)]
        if len({place["VpcId"] for place in places}) > 1:
            raise HandlerError(f"{', '.join([*subnet_ids, *group_ids])} are not in one VPC.")


def _require_object(context: Context, code: Properties) -> None:
    """HandlerError, in Lambda's words, when bucket, object or version do not exist."""
    try:
        context.client("s3").get_object(
            Bucket=code["S3Bucket"],
            Key=code["S3Key"],
            **({"VersionId": code["S3ObjectVersion"]} if "S3ObjectVersion" in code else {}),
        )
    except ClientError as error:
        refused = error.response["Error"]
        words = f"S3 Error Code: {refused['Code']}. S3 Error Message: {refused['Message']}"
        raise HandlerError(f"Error occurred while GetObject. {words}") from error


def _code(context: Context, properties: Properties) -> Properties:
    """The code as the API takes it. CloudFormation packs inline text into an archive, as here."""
    code = properties["Code"]
    if "ZipFile" not in code:
        require_only(code, {"S3Bucket", "S3Key", "S3ObjectVersion"}, "Code of AWS::Lambda::Function")
        _require_object(context, code)
        return dict(code)
    require_only(code, {"ZipFile"}, "Code of AWS::Lambda::Function")
    runtime = str(properties.get("Runtime", ""))
    if not runtime.startswith(("python", "nodejs")):
        raise HandlerError(f"inline code needs a Python or Node.js runtime, not {runtime or 'none'}")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("index.py" if runtime.startswith("python") else "index.js", code["ZipFile"])
    return {"ZipFile": packed.getvalue()}


def _key(properties: Properties) -> Properties:
    return {"KMSKeyArn": properties["KmsKeyArn"]} if "KmsKeyArn" in properties else {}


def _set_concurrency(lambdas: Any, name: str, old: Properties, new: Properties) -> None:
    reserved = "ReservedConcurrentExecutions"
    if reserved in new:
        lambdas.put_function_concurrency(FunctionName=name, **pick(new, reserved))
    elif reserved in old:
        lambdas.delete_function_concurrency(FunctionName=name)
