"""IAM for the functions of custom resources: each of their boto3 calls needs the permission of the function's role.

A function gets its role's ARN as the session token, as a function in Lambda gets credentials of its role. Actions and
the resources that they are about come from the service authorization data that cfn-lint bundles. A resource whose name
does not follow from the request counts as any resource, so that no call is denied wrongly. The deploying principal, and
what AWS does by itself, are not decided here.
"""

import functools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from botocore.client import BaseClient

from localaws.permissions import NotEvaluated
from localaws.schemas import bundled
from localaws.services import access
from localaws.services.patching import patch
from localaws.services.references import References

TOKEN = "localaws-role:"  # noqa: S105 - marks the session of a role; it authenticates nobody
PREFIXES = {"monitoring": "cloudwatch", "email": "ses"}
"""IAM's prefix of services that sign their requests with another name."""
S3_ACTIONS = {
    "CopyObject": "PutObject",
    "CompleteMultipartUpload": "PutObject",
    "CreateMultipartUpload": "PutObject",
    "DeleteBucketEncryption": "PutEncryptionConfiguration",
    "DeleteBucketLifecycle": "PutLifecycleConfiguration",
    "DeleteBucketTagging": "PutBucketTagging",
    "DeleteObjects": "DeleteObject",
    "GetBucketEncryption": "GetEncryptionConfiguration",
    "GetBucketLifecycleConfiguration": "GetLifecycleConfiguration",
    "GetBucketNotificationConfiguration": "GetBucketNotification",
    "HeadBucket": "ListBucket",
    "HeadObject": "GetObject",
    "ListBuckets": "ListAllMyBuckets",
    "ListMultipartUploads": "ListBucketMultipartUploads",
    "ListObjectVersions": "ListBucketVersions",
    "ListObjects": "ListBucket",
    "ListObjectsV2": "ListBucket",
    "PutBucketEncryption": "PutEncryptionConfiguration",
    "PutBucketLifecycleConfiguration": "PutLifecycleConfiguration",
    "PutBucketNotificationConfiguration": "PutBucketNotification",
    "UploadPart": "PutObject",
}
"""S3's operations whose action has another name (S3 User Guide, "Required permissions for S3 API operations")."""
OTHER_ACTIONS = {("lambda", "Invoke"): "InvokeFunction"}


class Session(NamedTuple):
    """The session of a function's role."""

    role_arn: str
    name: str

    @property
    def token(self) -> str:
        """The session token of the function's credentials."""
        return f"{TOKEN}{self.role_arn}:{self.name}"

    @property
    def arn(self) -> str:
        """ARN of the session, as messages name the caller."""
        start, role = self.role_arn.split(":role/")
        return f"{start.replace(':iam:', ':sts:')}:assumed-role/{role.rpartition('/')[2]}/{self.name}"


class Asked(NamedTuple):
    """An action on a resource; None is a resource of unknown name."""

    action: str
    resource: str | None


def asked_of(service: str, operation: str, parameters: Mapping[str, Any], place: References) -> list[Asked]:
    """What IAM decides on for a call of the service that signs as `service`. NotEvaluated for unknown actions."""
    prefix = PREFIXES.get(service, service)
    name = S3_ACTIONS.get(operation, operation) if prefix == "s3" else OTHER_ACTIONS.get((prefix, operation), operation)
    known = _authorization().get(prefix, {})
    about = known.get("Actions", {}).get(name.lower())
    if about is None:
        raise NotEvaluated(f"the IAM action of {prefix}:{operation}")
    action = f"{prefix}:{name}"
    if prefix == "s3":
        return [Asked(action, arn) for arn in _s3_resources(name, parameters)]
    kinds = about.get("Resources", [])
    if not kinds:
        return [Asked(action, "*")]
    formats = {kind: known["Resources"][kind]["ARNFormats"] for kind in kinds if kind in known["Resources"]}
    arns = [
        arn for kind, found in formats.items() for arn in _arns(kind, found, parameters, place, alone=len(kinds) == 1)
    ]
    return [Asked(action, arn) for arn in dict.fromkeys(arns)] or [Asked(action, None)]


@patch(BaseClient, "_make_api_call")
def _make_api_call(original: Any, self: Any, operation: str, parameters: dict[str, Any]) -> Any:
    session = _session(self)
    if session and (message := refusal_of(self, session, operation, parameters)):
        code, message = _error(self.meta.service_model, message)
        response = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": 403}}
        raise self.exceptions.from_code(code)(response, operation)
    return original(self, operation, parameters)


def _session(client: Any) -> Session | None:
    credentials = client._request_signer._credentials
    token = str(getattr(credentials, "token", None) or "")
    return Session(*token.removeprefix(TOKEN).rsplit(":", 1)) if token.startswith(TOKEN) else None


def refusal_of(client: Any, session: Session, operation: str, parameters: Mapping[str, Any]) -> str | None:
    """AWS's message when the role may not make the call."""
    service = client.meta.service_model.signing_name
    place = References(session.role_arn.split(":")[4], client.meta.region_name)
    role = place.role(session.role_arn)
    if role is None:
        return f"Role {session.role_arn} of the function does not exist"
    caller = access.role_caller(place, role, session.arn)
    try:
        everything = asked_of(service, operation, parameters, place)
    except NotEvaluated as error:
        return f"The embedded AWS does not know {error}"
    for action, resource in everything:
        path = (resource or "").partition(":::")[2]
        through_s3 = action in ("s3:GetObject", "s3:PutObject") and place.bucket(path.partition("/")[0]) is not None
        message = (
            access.objects_refusal(place, caller, path, (action,))
            if through_s3
            else access.refusal(place, caller, action, resource)
        )
        if message:
            return message
    return None


def _error(model: Any, message: str) -> tuple[str, str]:
    """Code and message of a denied call in the service's protocol."""
    if model.service_name == "ec2":
        return "UnauthorizedOperation", f"You are not authorized to perform this operation. {message}"
    if model.service_name == "sns":
        return "AuthorizationError", message
    return ("AccessDenied" if model.protocol in ("query", "rest-xml") else "AccessDeniedException"), message


def _s3_resources(name: str, parameters: Mapping[str, Any]) -> Iterator[str | None]:
    bucket = parameters.get("Bucket")
    if not bucket:
        yield "*"
        return
    start = bucket if bucket.startswith("arn:") else f"arn:aws:s3:::{bucket}"
    if name == "DeleteObject" and "Delete" in parameters:
        yield from (f"{start}/{each['Key']}" for each in parameters["Delete"]["Objects"])
    else:
        yield f"{start}/{parameters['Key']}" if "Key" in parameters else start


def _arns(
    kind: str, formats: list[str], parameters: Mapping[str, Any], place: References, *, alone: bool
) -> Iterator[str | None]:
    """ARNs of a kind of resource that the parameters name; None for one that they name in a way not known here."""
    about = [name for name in parameters if _is_about(name, kind)]
    for name in about or [name for name in parameters if alone and not _bare(name)]:
        value = parameters[name]
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, str):
                yield _arn(kind, formats, each, place)


def _arn(kind: str, formats: list[str], value: str, place: References) -> str | None:
    if value.startswith("arn:"):
        return value
    if kind == "key":
        key = place.key(value)
        return str(key.arn) if key is not None else None
    if value.startswith("https://sqs."):
        value = value.rpartition("/")[2]
    filled = {
        text.replace("${Partition}", place.partition)
        .replace("${Region}", place.region)
        .replace("${Account}", place.account)
        for text in formats
    }
    plain = [text for text in filled if text.count(".*") == 1 and text.endswith(".*") and ":iam:" not in text]
    if len(filled) != 1 or not plain:
        return None
    start = plain[0].removesuffix(".*")
    return start + (value.lstrip("/") if start.endswith("/") else value)  # parameter/a/b, log-group:/a/b


def _is_about(name: str, kind: str) -> bool:
    """Whether a parameter such as FileSystemId names a resource of a kind such as file-system."""
    return bool(_bare(name)) and re.sub("[^a-z]", "", kind.lower()).endswith(_bare(name))


def _bare(name: str) -> str:
    """A parameter's name without its last part, such as Id or Name."""
    return re.sub(r"(identifiers?|ids?|arns?|names?|urls?)$", "", name.lower())


@functools.cache
def _authorization() -> dict[str, Any]:
    """Actions and resources by IAM's prefix of a service, names of actions in lower case."""
    found: dict[str, Any] = json.loads((bundled() / "AdditionalSpecs" / "Policies.json").read_text("utf-8"))
    return found
