"""Stacks, resources, events and change sets as CloudFormation's API describes them."""

import json
from typing import Any

from localaws.stacks import ChangeSet, Record, Stack, Version
from localaws.templates import Body, required_capabilities, transforms

ApiResponse = dict[str, Any]


def stack(source: Stack) -> ApiResponse:
    """A stack as DescribeStacks lists it."""
    version = source.version
    response: ApiResponse = {
        **stack_summary(source),
        "ChangeSetId": source.executed,
        "Description": version.body.get("Description") if version else None,
        "Parameters": _parameters(version) if version else [],
        "Capabilities": list(version.capabilities) if version else [],
        "NotificationARNs": list(version.notification_arns) if version else [],
        "RoleARN": version.role_arn if version else None,
        "Tags": _tags(version) if version else [],
        "Outputs": [
            _without_none(
                {
                    "OutputKey": name,
                    "OutputValue": output.value,
                    "Description": output.description,
                    "ExportName": output.export,
                }
            )
            for name, output in source.outputs.items()
        ],
        "DisableRollback": source.disable_rollback,
        "EnableTerminationProtection": source.termination_protection,
        "RollbackConfiguration": {},
    }
    return _without_none(response)


def stack_summary(source: Stack) -> ApiResponse:
    """A stack as ListStacks lists it."""
    return _without_none(
        {
            "StackId": source.id,
            "StackName": source.name,
            "TemplateDescription": source.version.body.get("Description") if source.version else None,
            "CreationTime": source.created,
            "LastUpdatedTime": source.updated,
            "DeletionTime": source.deleted,
            "StackStatus": source.status,
            "StackStatusReason": source.reason,
            "DriftInformation": {"StackDriftStatus": "NOT_CHECKED"},
        }
    )


def resource(source: Stack, record: Record) -> ApiResponse:
    """A resource as DescribeStackResource, DescribeStackResources and ListStackResources return it."""
    return _without_none(
        {
            "StackName": source.name,
            "StackId": source.id,
            "LogicalResourceId": record.logical_id,
            "PhysicalResourceId": record.physical_id,
            "ResourceType": record.type,
            "Timestamp": record.at,
            "LastUpdatedTimestamp": record.at,
            "ResourceStatus": record.status,
            "ResourceStatusReason": record.reason,
            "Metadata": _json(record.metadata) if record.metadata else None,
            "DriftInformation": {"StackResourceDriftStatus": "NOT_CHECKED"},
        }
    )


def operation_events(source: Stack, *, failed_only: bool) -> list[ApiResponse]:
    """The events that DescribeEvents lists, newest first."""
    return [
        {**event, "EventType": "STACK_EVENT", "OperationId": event.get("ClientRequestToken", source.id)}
        for event in reversed(source.events)
        if not failed_only or event["ResourceStatus"].endswith("_FAILED")
    ]


def change_set(source: Stack, change: ChangeSet) -> ApiResponse:
    """A change set as DescribeChangeSet and ListChangeSets return it."""
    return _without_none(
        {
            "ChangeSetName": change.name,
            "ChangeSetId": change.id,
            "StackId": source.id,
            "StackName": source.name,
            "Description": change.description,
            "Parameters": _parameters(change.version),
            "CreationTime": change.created,
            "ExecutionStatus": change.execution_status,
            "Status": change.status,
            "StatusReason": change.reason,
            "Capabilities": list(change.version.capabilities),
            "Tags": _tags(change.version),
            "Changes": change.changes,
            "OnStackFailure": change.on_failure,
            "IncludeNestedStacks": False,
        }
    )


def template_summary(body: Body) -> ApiResponse:
    """The response of GetTemplateSummary and ValidateTemplate."""
    needed = required_capabilities(body)
    return _without_none(
        {
            "Parameters": [
                _without_none(
                    {
                        "ParameterKey": name,
                        "ParameterType": about["Type"],
                        "DefaultValue": None if "Default" not in about else str(about["Default"]),
                        "NoEcho": about.get("NoEcho", False) in (True, "true"),
                        "Description": about.get("Description"),
                    }
                )
                for name, about in body.get("Parameters", {}).items()
            ],
            "Description": body.get("Description"),
            "Capabilities": needed,
            "CapabilitiesReason": "The template holds IAM resources" if needed else None,
            "ResourceTypes": sorted({about["Type"] for about in body["Resources"].values()}),
            "Version": body.get("AWSTemplateFormatVersion"),
            "Metadata": _json(body["Metadata"]) if "Metadata" in body else None,
            "DeclaredTransforms": sorted(transforms(body)),
        }
    )


def _parameters(version: Version) -> list[ApiResponse]:
    """Parameters with their given or default values; those of an SSM type also with the value in Parameter Store."""
    response = []
    for name, about in version.body.get("Parameters", {}).items():
        value = version.given.get(name, about.get("Default"))
        hidden = about.get("NoEcho", False) in (True, "true")
        resolved = version.values[name] if "SSM::Parameter::Value" in about["Type"] else None
        shown = ",".join(resolved) if isinstance(resolved, list) else resolved
        given = "****" if hidden else str(value)
        response.append(_without_none({"ParameterKey": name, "ParameterValue": given, "ResolvedValue": shown}))
    return response


def _tags(version: Version) -> list[ApiResponse]:
    return [{"Key": key, "Value": value} for key, value in version.tags.items()]


def _without_none(response: ApiResponse) -> ApiResponse:
    return {name: value for name, value in response.items() if value is not None}


def _json(value: Any) -> str:
    return json.dumps(value, default=str)
