"""Lambda: functions, layer versions and permissions. Only custom resources of the embedded AWS run a function."""

import io
import zipfile

from botocore.exceptions import ClientError

from localaws.resources import Context, HandlerError, Properties
from localaws.rows.existing import known
from localaws.rows.handler import register
from localaws.rows.row import Row, Setting
from localaws.services.references import References
from localaws.services.trust import allows_service


def _packed(properties: Properties) -> Properties:
    """Inline text in an archive, as CloudFormation packs it."""
    code, runtime = properties.get("Code", {}), str(properties.get("Runtime", ""))
    if "ZipFile" not in code:
        return properties
    if len(code) > 1:
        raise HandlerError("the embedded AWS does not support Code with both ZipFile and S3Bucket")
    if not runtime.startswith(("python", "nodejs")):
        raise HandlerError(f"inline code needs a Python or Node.js runtime, not {runtime or 'none'}")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        name = zipfile.ZipInfo("index.py" if runtime.startswith("python") else "index.js")  # with a fixed date
        archive.writestr(name, code["ZipFile"])
    return {**properties, "Code": {"ZipFile": packed.getvalue()}}


def _check_function(context: Context, _: Properties, new: Properties) -> None:
    """Lambda may assume the role, subnets and groups are in one VPC, and the code exists."""
    role = References(context.account, context.region).role(new["Role"])
    if role is None or not allows_service(role, "lambda.amazonaws.com"):
        raise HandlerError("The role defined for the function cannot be assumed by Lambda.")
    network = new.get("VpcConfig") or {}
    subnet_ids, group_ids = network.get("SubnetIds") or [], network.get("SecurityGroupIds") or []
    if bool(subnet_ids) != bool(group_ids):
        raise HandlerError("SubnetIds and SecurityGroupIds must coexist or be both empty list.")
    if subnet_ids:
        kinds = {"subnet": subnet_ids, "security group": group_ids}
        if len({known(context, kind, each)["VpcId"] for kind, ids in kinds.items() for each in ids}) > 1:
            raise HandlerError(f"{', '.join([*subnet_ids, *group_ids])} are not in one VPC.")
    if "ZipFile" not in new["Code"]:
        _require_object(context, new["Code"])


def _check_layer(context: Context, _: Properties, new: Properties) -> None:
    _require_object(context, new["Content"])


def _require_object(context: Context, code: Properties) -> None:
    """HandlerError, in Lambda's words, when bucket, object or version do not exist."""
    names = {"S3Bucket": "Bucket", "S3Key": "Key", "S3ObjectVersion": "VersionId"}
    try:
        context.client("s3").get_object(**{to: code[name] for name, to in names.items() if name in code})
    except ClientError as error:
        refused = error.response["Error"]
        words = f"S3 Error Code: {refused['Code']}. S3 Error Message: {refused['Message']}"
        raise HandlerError(f"Error occurred while GetObject. {words}") from error


register(
    Row(
        type="AWS::Lambda::Function",
        service="lambda",
        ignored="CapacityProviderConfig CodeSigningConfigArn DeadLetterConfig DurableConfig FileSystemConfigs "
        "ImageConfig PackageType SnapStart TenancyConfig "
        "Code.ImageUri Code.SourceKMSKeyArn VpcConfig.Ipv6AllowedForDualStack",
        name=("FunctionName", 64),
        read="GetFunctionConfiguration",
        update="UpdateFunctionConfiguration",
        resets={
            "Description": "",
            "Environment": {"Variables": {}},
            "EphemeralStorage": {"Size": 512},
            "KmsKeyArn": "",
            "Layers": [],
            "LoggingConfig": {"LogFormat": "Text"},
            "MemorySize": 128,
            "Timeout": 3,
            "TracingConfig": {"Mode": "PassThrough"},
            "VpcConfig": {"SubnetIds": [], "SecurityGroupIds": []},
        },
        settings=(
            Setting(
                "Code Architectures",
                put="UpdateFunctionCode",
                reset={"Architectures": ["x86_64"]},
                spread=True,
                at_creation=False,
            ),
            Setting("ReservedConcurrentExecutions", put="PutFunctionConcurrency", remove="DeleteFunctionConcurrency"),
        ),
        attributes={"SnapStartResponse": "SnapStart"},
        arn="{FunctionArn}",
        prepare=_packed,
        must_exist={
            "Role": "role",
            "VpcConfig.SubnetIds": "subnet",
            "VpcConfig.SecurityGroupIds": "security group",
        },
        check=_check_function,
    ),
    Row(
        type="AWS::Lambda::LayerVersion",
        service="lambda",
        name=("LayerName", 64),
        create="PublishLayerVersion",
        ref="{LayerVersionArn}",
        ident={"LayerName": "{ref:6}", "VersionNumber": "{ref:}"},
        tags=None,
        check=_check_layer,
    ),
    Row(
        type="AWS::Lambda::Permission",
        service="lambda",
        ignored="EventSourceToken FunctionUrlAuthType InvokedViaFunctionUrl",
        name=("StatementId", 100),
        create="AddPermission",
        delete="RemovePermission",
        ref="{StatementId}",
        ident={"FunctionName": "{FunctionName}", "StatementId": "{ref}"},
        attributes={"Id": "{ref}"},
        tags=None,
    ),
)
