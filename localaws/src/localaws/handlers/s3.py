"""S3: buckets and their policies."""

from botocore.exceptions import ClientError

from localaws.handlers.s3_lifecycle import RENAMES, lifecycle_rule
from localaws.resources import Context, HandlerError, Properties, pick
from localaws.rows.existing import known
from localaws.rows.handler import register
from localaws.rows.row import Row, Setting

_ENCRYPTION = "BucketEncryption.ServerSideEncryptionConfiguration"
_PUBLIC_ACCESS = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")


def _prepared(properties: Properties) -> Properties:
    """Lifecycle rules, access logs and public access as S3 takes them. Logs go to the bucket itself by default."""
    given = dict(properties)
    if lifecycle := given.get("LifecycleConfiguration"):
        given["LifecycleConfiguration"] = {**lifecycle, "Rules": [lifecycle_rule(rule) for rule in lifecycle["Rules"]]}
    if (logging := given.get("LoggingConfiguration")) is not None:
        target = logging.get("DestinationBucketName") or given.get("ref") or given["BucketName"]
        more = pick(logging, "TargetObjectKeyFormat")
        given["LoggingConfiguration"] = {
            "LoggingEnabled": {"TargetBucket": target, "TargetPrefix": logging.get("LogFilePrefix", ""), **more}
        }
    if (block := given.get("PublicAccessBlockConfiguration")) is not None:
        given["PublicAccessBlockConfiguration"] = {**dict.fromkeys(_PUBLIC_ACCESS, False), **block}
    return given


def _check_bucket(context: Context, old: Properties, new: Properties) -> Properties | None:
    """The name is free, and the bucket of access logs exists. moto returns half of a canned ACL."""
    acl, logging = new.get("AccessControl"), new.get("LoggingConfiguration")
    if acl not in (None, "Private"):
        raise HandlerError(f"the embedded AWS does not support AccessControl {acl}")
    if logging and (target := logging["LoggingEnabled"]["TargetBucket"]) not in (new.get("ref"), new.get("BucketName")):
        known(context, "bucket", target)
    if old:
        return None
    if _exists(context, new["BucketName"]):
        raise HandlerError(f"{new['BucketName']} already exists")
    return new if context.region == "us-east-1" else {**new, "Location": context.region}


def _exists(context: Context, name: str) -> bool:
    try:
        context.client("s3").head_bucket(Bucket=name)
    except ClientError as error:
        return bool(error.response["Error"]["Code"] != "404")
    return True


def _check_policy(context: Context, old: Properties, new: Properties) -> None:
    """A bucket has at most one policy."""
    bucket = new["Bucket"]
    try:
        found = None if old else context.client("s3").get_bucket_policy(Bucket=bucket)
    except ClientError:
        return
    if found:
        raise HandlerError(f"The bucket policy already exists on bucket {bucket}.")


register(
    Row(
        type="AWS::S3::Bucket",
        service="s3",
        name=("BucketName", 63),
        lower_name=True,
        ignored="BucketNamespace LifecycleConfiguration.TransitionDefaultMinimumObjectSize",
        ref="{BucketName}",
        renames={
            **RENAMES,
            "BucketEncryption": "ServerSideEncryptionConfiguration",
            "BucketName": "Bucket",
            "Location": "CreateBucketConfiguration.LocationConstraint",
            "LoggingConfiguration": "BucketLoggingStatus",
            "Tags": "Tagging.TagSet",
            _ENCRYPTION: "Rules",
            f"{_ENCRYPTION}.ServerSideEncryptionByDefault": "ApplyServerSideEncryptionByDefault",
        },
        settings=(
            Setting("BucketEncryption", put="PutBucketEncryption", remove="DeleteBucketEncryption"),
            Setting(  # S3 cannot remove versioning, only suspend it
                "VersioningConfiguration",
                put="PutBucketVersioning",
                reset={"VersioningConfiguration": {"Status": "Suspended"}},
            ),
            Setting("PublicAccessBlockConfiguration", put="PutPublicAccessBlock", remove="DeletePublicAccessBlock"),
            Setting("OwnershipControls", put="PutBucketOwnershipControls", remove="DeleteBucketOwnershipControls"),
            Setting("LifecycleConfiguration", put="PutBucketLifecycleConfiguration", remove="DeleteBucketLifecycle"),
            Setting("LoggingConfiguration", put="PutBucketLogging", reset={"LoggingConfiguration": {}}),
            Setting("Tags", put="PutBucketTagging", remove="DeleteBucketTagging"),
        ),
        by_hand="AccessControl",
        attributes={
            "Arn": "arn:{partition}:s3:::{ref}",
            "DomainName": "{ref}.s3.amazonaws.com",
            "DualStackDomainName": "{ref}.s3.dualstack.{region}.amazonaws.com",
            "RegionalDomainName": "{ref}.s3.{region}.amazonaws.com",
            "WebsiteURL": "http://{ref}.s3-website-{region}.amazonaws.com",
        },
        tags=None,
        prepare=_prepared,
        must_exist={f"{_ENCRYPTION}.ServerSideEncryptionByDefault.KMSMasterKeyID": "KMS key"},
        check=_check_bucket,
    ),
    Row(
        type="AWS::S3::BucketPolicy",
        service="s3",
        read=None,
        create="PutBucketPolicy",
        update="PutBucketPolicy",
        renames={"PolicyDocument": "Policy"},
        tags=None,
        must_exist={"Bucket": "bucket"},
        check=_check_policy,
    ),
)
