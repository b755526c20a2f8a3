"""Stacks, resources, events and change sets as CloudFormation's API describes them."""

import json
from typing import Any

from ultracluster.localaws.stacks import ChangeSet, Record, Stack, Version
from ultracluster.localaws.templates import Body, required_capabilities, transforms

Told = dict[str, Any]


def stack(of: Stack) -> Told:
    """A member of DescribeStacks."""
    version = of.version
    told: Told = {
        **stack_summary(of),
        "ChangeSetId": of.executed,
        "Description": version.body.get("Description") if version else None,
        "Parameters": _parameters(version) if version else [],
        "Capabilities": list(version.capabilities) if version else [],
        "NotificationARNs": list(version.notification_arns) if version else [],
        "RoleARN": version.role_arn if version else None,
        "Tags": _tags(version) if version else [],
        "Outputs": [
            _known({"OutputKey": name, "OutputValue": it.value, "Description": it.description, "ExportName": it.export})
            for name, it in of.outputs.items()
        ],
        "DisableRollback": of.disable_rollback,
        "EnableTerminationProtection": of.termination_protection,
        "RollbackConfiguration": {},
    }
    return _known(told)


def stack_summary(of: Stack) -> Told:
    """A member of ListStacks."""
    return _known(
        {
            "StackId": of.id,
            "StackName": of.name,
            "TemplateDescription": of.version.body.get("Description") if of.version else None,
            "CreationTime": of.created,
            "LastUpdatedTime": of.updated,
            "DeletionTime": of.deleted,
            "StackStatus": of.status,
            "StackStatusReason": of.reason,
            "DriftInformation": {"StackDriftStatus": "NOT_CHECKED"},
        }
    )


def resource(of: Stack, record: Record) -> Told:
    """A member of DescribeStackResources and ListStackResources, and what DescribeStackResource answers."""
    return _known(
        {
            "StackName": of.name,
            "StackId": of.id,
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


def operation_events(of: Stack, *, failed_only: bool) -> list[Told]:
    """Members of DescribeEvents, newest first."""
    return [
        {**event, "EventType": "STACK_EVENT", "OperationId": event.get("ClientRequestToken", of.id)}
        for event in reversed(of.events)
        if not failed_only or event["ResourceStatus"].endswith("_FAILED")
    ]


def change_set(of: Stack, change: ChangeSet) -> Told:
    """What DescribeChangeSet answers, and a member of ListChangeSets."""
    return _known(
        {
            "ChangeSetName": change.name,
            "ChangeSetId": change.id,
            "StackId": of.id,
            "StackName": of.name,
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


def template_summary(body: Body) -> Told:
    """What GetTemplateSummary and ValidateTemplate answer."""
    needed = required_capabilities(body)
    return _known(
        {
            "Parameters": [
                _known(
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


def _parameters(version: Version) -> list[Told]:
    """Parameters with the values given or defaulted, and what SSM holds for those of an SSM type."""
    told = []
    for name, about in version.body.get("Parameters", {}).items():
        value = version.given.get(name, about.get("Default"))
        hidden = about.get("NoEcho", False) in (True, "true")
        resolved = version.values[name] if "SSM::Parameter::Value" in about["Type"] else None
        shown = ",".join(resolved) if isinstance(resolved, list) else resolved
        told.append(
            _known({"ParameterKey": name, "ParameterValue": "****" if hidden else str(value), "ResolvedValue": shown})
        )
    return told


def _tags(version: Version) -> list[Told]:
    return [{"Key": key, "Value": value} for key, value in version.tags.items()]


def _known(told: Told) -> Told:
    return {name: value for name, value in told.items() if value is not None}


def _json(value: Any) -> str:
    return json.dumps(value, default=str)
