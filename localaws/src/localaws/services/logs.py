"""CloudWatch Logs: what moto lacks (log group settings, deliveries of PCS scheduler logs)."""

import json
from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.logs.exceptions import ConflictException, LogsClientError, ResourceNotFoundException, ValidationException
from moto.logs.models import DeliverySource, LogGroup, LogsBackend
from moto.logs.responses import LogsResponse

from localaws.services.access import ENCRYPTION_CONTEXT, Caller, refusal
from localaws.services.patching import add, patch
from localaws.services.references import References

# CloudWatch Logs API, PutDeliverySource; AWS PCS User Guide, "Scaling logs in AWS PCS" (2026).
PCS_LOG_TYPES = ("PCS_SCHEDULER_LOGS", "PCS_SCHEDULER_AUDIT_LOGS", "PCS_JOBCOMP_LOGS", "PCS_SCALING_LOGS")

KEY_ACTIONS = ("kms:GenerateDataKey", "kms:Encrypt", "kms:Decrypt")
NOT_ALLOWED = "The specified KMS key does not exist or is not allowed to be used with Arn '{group}'"


def _check_key(self: Any, name: str, key: str | None) -> None:
    """The key's policy lets CloudWatch Logs use it for the group (User Guide, "Encrypt log data using AWS KMS")."""
    place = References(self.current_account, self.region)
    group = f"arn:{self.partition}:logs:{self.region}:{self.current_account}:log-group:{name}"
    context = {f"{ENCRYPTION_CONTEXT}aws:logs:arn": group, "aws:SourceArn": group, "aws:SourceAccount": place.account}
    logs = Caller(f"logs.{self.region}.amazonaws.com")
    for action in KEY_ACTIONS if key else ():
        found = place.key(str(key))
        if found is None or refusal(place, logs, action, found.arn, context):
            raise LogsClientError("AccessDeniedException", NOT_ALLOWED.format(group=group))


@patch(LogsResponse, "create_log_group")
def _create_log_group(original: Any, self: Any) -> Any:
    _check_key(self, self._get_param("logGroupName"), self._get_param("kmsKeyId"))
    answer = original(self)
    group = self.logs_backend.groups[self._get_param("logGroupName")]
    group.log_group_class = self._get_param("logGroupClass")
    group.deletion_protection = self._get_param("deletionProtectionEnabled")
    return answer


@patch(LogGroup, "to_describe_dict")
def _describe_log_group(original: Any, self: Any) -> Any:
    protection = getattr(self, "deletion_protection", None)
    shown = {"logGroupClass": getattr(self, "log_group_class", None) or "STANDARD"}
    return original(self) | shown | ({} if protection is None else {"deletionProtectionEnabled": protection})


@patch(LogsBackend, "delete_log_group")
def _delete_log_group(original: Any, self: Any, log_group_name: str) -> Any:
    group = self.groups.get(log_group_name)
    if group is not None and getattr(group, "deletion_protection", None):
        raise ValidationException("Log group is protected from deletion")
    if group is not None:
        # A new group of this name must not have the old group's tags.
        self.tagger.delete_all_tags_for_resource(group.arn)
    return original(self, log_group_name)


@patch(LogsBackend, "put_metric_filter")
def _put_metric_filter(
    original: Any, self: Any, filter_name: str, filter_pattern: str, log_group_name: str, metric_transformations: Any
) -> None:
    self.filters.delete_filter(filter_name, log_group_name)  # moto would keep both
    original(self, filter_name, filter_pattern, log_group_name, metric_transformations)


@add(LogsResponse, "associate_kms_key")
def _associate_kms_key(self: Any) -> ActionResult:
    _check_key(self, _group(self).name, self._get_param("kmsKeyId"))
    _group(self).kms_key_id = self._get_param("kmsKeyId")
    return EmptyResult()


@add(LogsResponse, "disassociate_kms_key")
def _disassociate_kms_key(self: Any) -> ActionResult:
    _group(self).kms_key_id = None
    return EmptyResult()


@add(LogsResponse, "put_log_group_deletion_protection")
def _put_deletion_protection(self: Any) -> ActionResult:
    _group(self).deletion_protection = self._get_param("deletionProtectionEnabled")
    return EmptyResult()


def _group(self: Any) -> Any:
    """The log group that a request names, by name or by ARN."""
    name = self._get_param("logGroupName") or self._get_param("logGroupIdentifier")
    name = name.split(":log-group:")[-1].removesuffix(":*")
    if name not in self.logs_backend.groups:
        raise ResourceNotFoundException()
    return self.logs_backend.groups[name]


@patch(LogsBackend, "put_delivery_source")
def _put_delivery_source(
    original: Any, self: Any, name: str, resource_arn: str, log_type: str, tags: dict[str, str] | None
) -> Any:
    if resource_arn.split(":")[2] != "pcs":
        return original(self, name, resource_arn, log_type, tags)
    if log_type not in PCS_LOG_TYPES:
        raise ValidationException(" This service is not allowed for this LogSource.")
    if name in self.delivery_sources:
        found = self.delivery_sources[name]
        if tags:
            raise ConflictException("Tags can only be provided when a resource is being created, not updated.")
        if resource_arn not in found.resource_arns or log_type != found.log_type:
            raise ConflictException("A delivery source's resource and log type cannot change.")
        return found
    source = DeliverySource(self.account_id, self.region_name, name, resource_arn, log_type, tags)
    self.delivery_sources[name] = source
    if tags:
        self.tag_resource(source.arn, tags)
    return source


@patch(LogsBackend, "create_delivery")
def _create_delivery(
    original: Any, self: Any, delivery_source_name: str, *args: Any, record_fields: Any = None, **kwargs: Any
) -> Any:
    delivery = original(self, delivery_source_name, *args, record_fields=record_fields, **kwargs)
    if self.delivery_sources[delivery_source_name].service == "pcs":
        # moto sets CloudFront's fields and path.
        delivery.record_fields = record_fields
        delivery.s3_delivery_configuration = kwargs.get("s3_delivery_configuration")
    return delivery


@add(LogsResponse, "update_delivery_configuration")
def _update_delivery(self: Any) -> str:
    delivery = self.logs_backend.get_delivery(self._get_param("id"))
    for parameter, attribute in (
        ("recordFields", "record_fields"),
        ("fieldDelimiter", "field_delimiter"),
        ("s3DeliveryConfiguration", "s3_delivery_configuration"),
    ):
        if self._get_param(parameter) is not None:
            setattr(delivery, attribute, self._get_param(parameter))
    return json.dumps({})


@patch(LogsBackend, "delete_delivery_source")
def _delete_delivery_source(original: Any, self: Any, name: str) -> Any:
    if any(delivery.delivery_source_name == name for delivery in self.deliveries.values()):
        raise ConflictException("This Delivery Source is used by a Delivery; delete the Delivery first.")
    return original(self, name)


@patch(LogsBackend, "delete_delivery_destination")
def _delete_delivery_destination(original: Any, self: Any, name: str) -> Any:
    used = {delivery.delivery_destination_arn for delivery in self.deliveries.values()}
    if name in self.delivery_destinations and self.delivery_destinations[name].arn in used:
        raise ConflictException("This Delivery Destination is used by a Delivery; delete the Delivery first.")
    return original(self, name)


@patch(LogsBackend, "tag_resource")
@patch(LogsBackend, "untag_resource")
def _store_tags(original: Any, self: Any, arn: str, changes: Any) -> None:
    # moto returns the tags that the resource was created with.
    original(self, arn, changes)
    for kept in (self.delivery_sources, self.delivery_destinations, self.deliveries):
        for found in kept.values():
            if found.arn == arn:
                found.tags = self.tagger.get_tag_dict_for_resource(arn)
