"""Corrections of moto's services other than EC2, each small: what moto drops, invents or does not refuse."""

import copy
import functools
import hashlib
import json
import uuid
from collections.abc import Callable
from typing import Any

from moto.awslambda.models import LambdaFunction
from moto.cloudtrail.responses import CloudTrailResponse
from moto.cloudwatch.models import CloudWatchBackend
from moto.cloudwatch.responses import CloudWatchResponse
from moto.core.config import default_user_config
from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.ec2.models.amis import AmiBackend
from moto.iam.access_control import PermissionResult
from moto.iam.exceptions import DeleteConflictException, NotFoundException
from moto.iam.models import IAMBackend
from moto.kms import models
from moto.kms.exceptions import ValidationException
from moto.kms.responses import KmsResponse
from moto.kms.utils import RESERVED_ALIASE_TARGET_KEY_IDS, RESERVED_ALIASES, RSAPrivateKey
from moto.s3.models import FakeBucket, S3Backend
from moto.s3.responses import S3Response
from moto.secretsmanager.models import SecretsManagerBackend
from moto.settings import load_iam_aws_managed_policies
from moto.sns.responses import SNSResponse
from moto.sqs.models import Queue
from moto.ssm.models import Parameter, ParameterDict

from localaws.services.patching import add, patch
from localaws.services.references import References


def activate() -> None:
    """Set what is no method."""
    CloudWatchResponse.put_composite_alarm = CloudWatchResponse.put_metric_alarm
    LambdaFunction.vpc_config = property(_vpc_config)
    default_user_config["iam"]["load_aws_managed_policies"] = True
    AmiBackend._load_amis = lambda _: None
    for alias in (f"alias/aws/{service}" for service in MANAGED):
        RESERVED_ALIASES.append(alias)
        RESERVED_ALIASE_TARGET_KEY_IDS[alias] = str(uuid.uuid5(uuid.NAMESPACE_URL, alias))
    models.generate_private_key = functools.partial(_private_key, models.generate_private_key)
    Queue.sqs_managed_sse_enabled = True  # SQS: the default since October 2022
    Queue.BASE_ATTRIBUTES = [*Queue.BASE_ATTRIBUTES, "SqsManagedSseEnabled"]
    FakeBucket._log_permissions_enabled_policy = staticmethod(_logging_allowed)


# CloudTrail's LookupEvents, which the CDK CLI calls after a failure. It is empty: real events take minutes.


@add(CloudTrailResponse, "lookup_events")
def _lookup_events(_: Any) -> ActionResult:
    return ActionResult({"Events": []})


# CloudWatch: composite alarms, which moto cannot put, AlarmTypes of DescribeAlarms, and tags of dashboards and rules.

_LISTS = {"MetricAlarm": "MetricAlarms", "CompositeAlarm": "CompositeAlarms"}


@patch(CloudWatchResponse, "describe_alarms")
def _describe_alarms(original: Any, self: Any) -> ActionResult:
    found: ActionResult = original(self)
    wanted = self._get_param("AlarmTypes") or ["MetricAlarm"]
    found.result.update({name: [] for kind, name in _LISTS.items() if kind not in wanted})
    return found


@patch(CloudWatchBackend, "tag_resource")
def _tag_resource(original: Any, self: Any, arn: str, tags: dict[str, str]) -> None:
    rules = [rule.rule_arn for rule in self.insight_rules.values()]
    if arn in [*rules, *(dashboard.arn for dashboard in self.dashboards.values())]:
        self.tagger.tag_resource(arn, self.tagger.convert_dict_to_tags_input(tags))
    else:
        original(self, arn, tags)


# Lambda function settings that moto drops: logging and VPC; on update also tracing, storage, key and architecture.


@patch(LambdaFunction, "__init__")
def _init(
    original: Callable[..., None], self: Any, account_id: str, spec: dict[str, Any], *args: Any, **kw: Any
) -> None:
    self.logging_config = {}
    original(self, account_id, spec, *args, **kw)
    self.logging_config = spec.get("LoggingConfig") or {}


@patch(LambdaFunction, "get_configuration")
def _get_configuration(original: Callable[..., dict[str, Any]], self: Any, *args: Any, **kw: Any) -> dict[str, Any]:
    logging = {"LogFormat": "Text", "LogGroup": f"/aws/lambda/{self.function_name}", **self.logging_config}
    return {**original(self, *args, **kw), "LoggingConfig": logging}


@patch(LambdaFunction, "update_configuration")
def _update_configuration(
    original: Callable[..., dict[str, Any]], self: Any, updates: dict[str, Any]
) -> dict[str, Any]:
    self.logging_config = updates.get("LoggingConfig", self.logging_config)
    self.tracing_config = updates.get("TracingConfig", self.tracing_config)
    self.kms_key_arn = updates.get("KMSKeyArn", self.kms_key_arn) or None
    self.ephemeral_storage = updates.get("EphemeralStorage", {"Size": self.ephemeral_storage})["Size"]
    return original(self, updates)


@patch(LambdaFunction, "update_function_code")
def _update_function_code(original: Callable[..., Any], self: Any, updates: dict[str, Any]) -> Any:
    self.architectures = updates.get("Architectures", self.architectures)
    return original(self, updates)


def _vpc_config(self: Any) -> dict[str, Any] | None:
    """The subnets and groups of a function with their VPC. moto invents the VPC."""
    config = self._vpc_config or {}
    if not config.get("SubnetIds"):
        return None
    subnet = References(self.account_id, self.region).subnet(config["SubnetIds"][0])
    return {**config, "VpcId": subnet.vpc_id}


# IAM: AWS's managed policies, and refusals to delete a policy in use or to remove a role that is not there.

_AWS_POLICIES: dict[str, list[Any]] = {}  # by account


@patch(IAMBackend, "_init_aws_policies")
def _init_aws_policies(original: Any, self: Any) -> list[Any]:
    # moto parses all 1,500 policies for each of six partitions at every start and reset, which takes seconds.
    if self.region_name != "aws" or not load_iam_aws_managed_policies():
        return []
    if self.account_id not in _AWS_POLICIES:
        _AWS_POLICIES[self.account_id] = original(self)
    return [copy.copy(policy) for policy in _AWS_POLICIES[self.account_id]]


@patch(IAMBackend, "remove_role_from_instance_profile")
def _remove_role(original: Any, self: Any, profile_name: str, role_name: str) -> None:
    if self.get_role(role_name) not in self.get_instance_profile(profile_name).roles:
        raise NotFoundException(f"Role {role_name} in Instance Profile {profile_name} cannot be found.")
    original(self, profile_name, role_name)


@patch(IAMBackend, "delete_policy")
def _delete_policy(original: Any, self: Any, policy_arn: str) -> Any:
    policy = self.get_policy(policy_arn)
    if policy.attachment_count:
        raise DeleteConflictException("Cannot delete a policy attached to entities.")
    if len(policy.versions) > 1:
        raise DeleteConflictException(
            "This policy has more than one version. Before you delete a policy, you must delete the policy's versions."
        )
    return original(self, policy_arn)


# Machine images: none in EC2; the ids of PCS-ready images in Parameter Store.
#
# Templates contain image ids, which the embedded AWS does not look up. moto would create 1,300 images with volumes and
# snapshots in every Region it uses; without them a Region is ready in a hundredth of the time.

# AWS PCS User Guide, "Using AWS PCS-ready DLAMIs" (2026).
PCS_IMAGES = "/aws/service/pcs/ami/"
PCS_IMAGE_PARAMETERS = tuple(
    f"{PCS_IMAGES}dlami-base-ubuntu2404/{architecture}/latest/ami-id" for architecture in ("x86_64", "arm64")
)


@patch(ParameterDict, "_check_loading_status")
def _name_images(original: Any, self: Any, key: str) -> None:
    original(self, key)
    if not str(key or "").startswith(PCS_IMAGES):
        return
    for name in PCS_IMAGE_PARAMETERS:
        if not dict.__contains__(self, name):
            image = f"ami-{hashlib.sha256((self.region_name + name).encode()).hexdigest()[:17]}"
            dict.__setitem__(self, name, [_parameter(self, name, image)])


def _parameter(self: Any, name: str, value: str) -> Any:
    return Parameter(
        account_id=self.account_id,
        name=name,
        value=value,
        parameter_type="String",
        description=None,
        allowed_pattern=None,
        keyid=None,
        last_modified_date=utcnow(),
        version=1,
        data_type="aws:ec2:image",
    )


# KMS: the rotation period of a key, which moto drops, AWS managed keys, and symmetric keys without an RSA key.

DEFAULT_ROTATION_DAYS = 365  # KMS API Reference, EnableKeyRotation
MANAGED = (
    *("backup", "cloud9", "codecommit", "connect", "dms", "ecr", "fsx", "kafka", "kinesis", "lex"),
    *("lightsail", "mq", "ses", "sns", "sqs", "workspaces"),
)
"""Services with an AWS managed key `alias/aws/...`, besides those that moto knows (KMS Developer Guide, 2026)."""


def _private_key(original: Any, key_spec: str) -> Any:
    # moto makes an RSA key for each symmetric key too, which takes a tenth of a second, and does not use it
    return _unused_key() if key_spec == "SYMMETRIC_DEFAULT" else original(key_spec)


@patch(models.KmsBackend, "_generate_default_keys")
def _generate_managed_key(original: Any, self: Any, alias_name: str) -> Any:
    """A predefined alias gets its key on first use (KMS API Reference, DescribeKey)."""
    key_id = original(self, alias_name)
    self.keys[key_id].key_manager = "AWS"
    return key_id


@functools.cache
def _unused_key() -> Any:
    return RSAPrivateKey(2048)


@patch(KmsResponse, "list_aliases")
def _list_aliases(original: Any, self: Any) -> str:
    """A predefined alias has no TargetKeyId before its first use."""
    answer = json.loads(original(self))
    for alias in answer["Aliases"]:
        if not self.kms_backend.alias_exists(alias["AliasName"]):
            del alias["TargetKeyId"]
    return json.dumps(answer)


@patch(KmsResponse, "enable_key_rotation")
def _enable_key_rotation(original: Any, self: Any) -> Any:
    period = self._get_param("RotationPeriodInDays") or DEFAULT_ROTATION_DAYS
    if not 90 <= period <= 2560:
        raise ValidationException(f"RotationPeriodInDays {period} is not between 90 and 2560")
    answer = original(self)
    _key(self).rotation_period = period
    return answer


@patch(KmsResponse, "get_key_rotation_status")
def _get_key_rotation_status(original: Any, self: Any) -> str:
    answer = json.loads(original(self))
    if answer["KeyRotationEnabled"]:
        answer["RotationPeriodInDays"] = getattr(_key(self), "rotation_period", DEFAULT_ROTATION_DAYS)
    return json.dumps({"KeyId": _key(self).id, **answer})


def _key(self: Any) -> Any:
    backend = self.kms_backend
    return backend.keys[backend.get_key_id(self._get_param("KeyId"))]


# SNS: topics show the attributes that moto keeps and does not return.

_HIDDEN = {"SignatureVersion": "signature_version", "TracingConfig": "tracing_config"}
"""Attributes of a topic (SNS API reference, GetTopicAttributes, 2026), and where moto keeps what was set."""


@patch(SNSResponse, "get_topic_attributes")
def _get_topic_attributes(original: Any, self: SNSResponse) -> Any:
    answer = original(self)
    topic = self.backend.get_topic(self._get_param("TopicArn"))
    shown = {name: getattr(topic, kept) for name, kept in _HIDDEN.items() if getattr(topic, kept, None)}
    answer.result["Attributes"] |= shown
    return answer


# SQS: queue policies, which moto loses when another attribute changes, and encryption with SQS-managed keys.


@patch(Queue, "_set_attributes")
def _set_attributes(original: Any, self: Any, attributes: dict[str, Any], now: float | None = None) -> None:
    kept = getattr(self, "_policy_json", None)
    original(self, attributes, now)
    if kept is not None and "Policy" not in attributes:
        self._policy_json = kept


# S3: bucket settings that moto drops, and checks of moto that AWS does not make.


@patch(FakeBucket, "get_permission")
def _get_permission(original: Any, self: Any, action: str, resource: str) -> Any:  # noqa: ARG001
    # moto ignores a statement's conditions and principals, so a TLS-only policy would deny everything. The embedded AWS
    # stores policies and does not evaluate them.
    return PermissionResult.NEUTRAL


@patch(S3Backend, "log_incoming_request")
def _log_request(original: Any, self: Any, request: Any, bucket_name: str) -> None:
    # moto asks no policy of the target at delivery (S3 User Guide, "Permissions for log delivery")
    bucket = self.buckets.get(bucket_name)
    target = self.buckets.get((bucket.logging or {}).get("TargetBucket")) if bucket else None
    if target and _takes_logs(target):
        original(self, request, bucket_name)


def _takes_logs(target: Any) -> bool:
    statements = json.loads(target.policy)["Statement"] if target.policy else []
    closed = [each for each in statements if each["Effect"] == "Deny" and not each.get("Condition")]
    denied = any(each["Principal"] == "*" and "s3:PutObject" in str(each["Action"]) for each in closed)
    allowed = any("logging.s3.amazonaws.com" in str(each["Principal"]) for each in statements)
    return not denied and (allowed or FakeBucket._log_permissions_enabled_acl(target))


@patch(S3Response, "all_buckets")
def _all_buckets(original: Any, self: Any) -> Any:
    size = self._get_param("max-buckets")
    if size is None:
        return original(self)
    # moto returns the first page and no token for the next
    asked = {"prefix": self._get_param("prefix"), "bucket_region": self._get_param("bucket-region")}
    found = sorted(self.backend.list_buckets(**asked, max_buckets=None), key=lambda bucket: str(bucket.name))
    rest = [bucket for bucket in found if bucket.name > (self._get_param("continuation-token") or "")]
    page = rest[: int(size)]
    answer: dict[str, Any] = {
        "Buckets": [{"Name": each.name, "CreationDate": each.creation_date_ISO8601} for each in page]
    }
    if len(rest) > len(page):
        answer["ContinuationToken"] = page[-1].name
    return self.serialized(ActionResult(answer))


def _logging_allowed(target_bucket: Any, target_prefix: str | None) -> bool:  # noqa: ARG001
    # The policy of a log bucket refers to the source bucket, so it can only be put after logging is enabled.
    return True


@patch(FakeBucket, "set_lifecycle")
def _set_lifecycle(original: Any, self: Any, rules: list[dict[str, Any]]) -> None:
    original(self, rules)
    for kept, asked in zip(self.rules, rules, strict=True):
        kept.asked = asked


@patch(S3Response, "get_bucket_lifecycle")
def _get_lifecycle(original: Any, self: Any) -> Any:
    rules = self.backend.get_bucket_lifecycle(self.bucket_name)
    if not rules:
        return original(self)
    serialize = self.serialized

    def with_dropped_members(action: Any) -> Any:
        for found, kept in zip(action.result["Rules"], rules, strict=True):
            _restore_dropped(found, kept.asked)
        return serialize(action)

    self.serialized = with_dropped_members
    return original(self)


def _restore_dropped(found: dict[str, Any], asked: dict[str, Any]) -> None:
    """Restore members that moto drops from a rule: NewerNoncurrentVersions and object size filters."""
    if "NoncurrentVersionExpiration" in found:
        found["NoncurrentVersionExpiration"] |= _sizes(asked["NoncurrentVersionExpiration"], "NewerNoncurrentVersions")
    wanted = asked.get("Filter") or {}
    if "Filter" in found:
        found["Filter"] |= _sizes(wanted, "ObjectSizeGreaterThan", "ObjectSizeLessThan")
    if "And" in found.get("Filter", {}):
        found["Filter"]["And"] |= _sizes(wanted["And"], "ObjectSizeGreaterThan", "ObjectSizeLessThan")


def _sizes(asked: dict[str, Any], *names: str) -> dict[str, int]:
    return {name: int(asked[name]) for name in names if name in asked}


@patch(S3Response, "get_bucket_logging")
def _get_logging(original: Any, self: Any) -> Any:
    asked = self.backend.get_bucket_logging(self.bucket_name) or {}
    serialize = self.serialized

    def with_dropped_members(action: Any) -> Any:
        if "TargetObjectKeyFormat" in asked:
            # moto's parser reads an empty XML element as None; for boto3 it is a structure without members.
            keys = {name: inner or {} for name, inner in asked["TargetObjectKeyFormat"].items()}
            action.result["LoggingEnabled"]["TargetObjectKeyFormat"] = keys
        return serialize(action)

    self.serialized = with_dropped_members
    return original(self)


# Secrets Manager: an empty description in UpdateSecret, which moto takes for none.


@patch(SecretsManagerBackend, "update_secret")
def _update_secret(original: Any, self: Any, secret_id: str, *args: Any, **given: Any) -> Any:
    answer = original(self, secret_id, *args, **given)
    if given.get("description") == "":
        self.secrets[secret_id].description = None
    return answer
