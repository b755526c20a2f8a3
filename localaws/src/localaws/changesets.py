"""What a new version of a stack would change, computed before any resource is touched."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlparse

from localaws.engine import scope_of
from localaws.intrinsics import PENDING, Scope, TemplateError, pending, resolve
from localaws.properties import Replacement, changed_names, check_types, replacement, resolved_properties
from localaws.region import RegionLookup
from localaws.resources import Properties, Resource, client
from localaws.schemas import create_only
from localaws.stacks import Record, Stack, StackBackend, Version
from localaws.templates import (
    Body,
    Declaration,
    check_rules,
    declarations,
    outputs,
    parameter_values,
    parse,
)

Change = dict[str, Any]


def requested_version(request: Mapping[str, Any], stack: Stack, backend: StackBackend) -> Version:
    """The version of `stack` that a CreateStack, UpdateStack or CreateChangeSet request describes.

    Raises TemplateError when CloudFormation would refuse the request.
    """
    previous = stack.version
    source = template_source(request, previous, backend)
    body = parse(source)
    check_types(body, backend.region_name)
    if previous and (moved := sorted(_changed_types(previous.body, body))):
        raise TemplateError(
            "Update of resource type is not permitted. The new template modifies resource type of the following "
            f"resources: [{', '.join(moved)}]"
        )
    given = _request_parameters(request.get("Parameters") or [], previous)
    tags = request.get("Tags")
    version = Version(
        source=source,
        body=body,
        given=given,
        values=parameter_values(body, given, RegionLookup(backend).ssm_parameter),
        tags={tag["Key"]: tag["Value"] for tag in tags or ()} if tags is not None or not previous else previous.tags,
        capabilities=tuple(request.get("Capabilities") or ()),
        role_arn=request.get("RoleARN") or (previous.role_arn if previous else None),
        notification_arns=tuple(request.get("NotificationARNs") or ()),
    )
    scope = scope_of(stack, version, RegionLookup(backend))
    check_rules(body, scope)
    _check_functions(body, scope)
    return version


def _check_functions(body: Body, scope: Scope) -> None:
    """Raise TemplateError for functions that are wrong whatever the resources and lookups turn out to be."""
    wanted = declarations(body, scope.conditions)
    unknown = replace(scope, lookup=_Unknown(), resources=dict.fromkeys(wanted, PENDING))
    values: list[tuple[str, Any]] = [(name, declared.properties) for name, declared in wanted.items()]
    values += [(name, about.get("Value")) for name, about in outputs(body, scope.conditions)]
    for name, value in values:
        try:
            resolve(value, unknown)
        except TemplateError as error:
            raise TemplateError(f"{error} (used by {name})") from error


class _Unknown:
    """Looks nothing up."""

    def exported(self, name: str) -> Any:
        return PENDING

    def stack_output(self, stack: str, output: str, region: str | None) -> Any:
        return PENDING

    def ssm_parameter(self, name: str, version: str | None) -> str:
        return ""

    def zones(self, region: str) -> Any:
        return PENDING


def template_source(request: Mapping[str, Any], previous: Version | None, backend: StackBackend) -> str:
    """The template: in the request, in S3, or that of the previous version. TemplateError when there is none."""
    if request.get("TemplateBody"):
        return str(request["TemplateBody"])
    if request.get("TemplateURL"):
        bucket, key = _bucket_and_key(str(request["TemplateURL"]))
        source: bytes = (
            client("s3", backend.region_name, backend.account_id).get_object(Bucket=bucket, Key=key)["Body"].read()
        )
        return source.decode()
    if request.get("UsePreviousTemplate") and previous:
        return previous.source
    raise TemplateError("Either Template URL or Template Body must be specified.")


def plan(stack: Stack, version: Version, backend: StackBackend) -> list[Change]:
    """The changes from the stack's resources to `version`, as DescribeChangeSet lists them."""
    scope = scope_of(stack, version, RegionLookup(backend))
    wanted = declarations(version.body, scope.conditions)
    there = {name: record for name, record in stack.resources.items() if record.key in stack.alive}
    known: dict[str, Any] = {}
    changes: list[Change] = []
    for name, declaration in wanted.items():
        record = there.get(name)
        properties = resolved_properties(declaration, replace(scope, resources=known), version.tags, stack.region)
        if record is None:
            known[name] = PENDING
            changes.append(_change("Add", name, declaration.type))
            continue
        kind = replacement(record.type, record.properties, properties, stack.region)
        scopes = _scopes(record, declaration, properties)
        known[name] = PENDING if kind == "True" else _planned_resource(record, altered="Properties" in scopes)
        if scopes:
            changes.append(_modify(record, declaration, properties, kind, scopes, stack.region))
    for name, record in there.items():
        if name not in wanted:
            policy = "Delete" if record.deletion_policy == "Delete" else "Retain"
            changes.append(_change("Remove", name, record.type, record.physical_id, PolicyAction=policy))
    return changes


def changes_outputs(stack: Stack, version: Version, backend: StackBackend) -> bool:
    """Whether outputs would change although no resource does."""
    scope = scope_of(stack, version, RegionLookup(backend))
    current = replace(scope, resources={name: record.resource for name, record in stack.resources.items()})
    new = {
        name: (resolve(about["Value"], current), resolve(about.get("Export", {}).get("Name"), current))
        for name, about in outputs(version.body, scope.conditions)
    }
    return new != {name: (output.value, output.export) for name, output in stack.outputs.items()}


class _PendingAttributes(dict[str, Any]):
    """Attributes of a resource that will be updated: any of them may change."""

    def __contains__(self, _: object) -> bool:
        return True

    def __missing__(self, _: str) -> Any:
        return PENDING


def _planned_resource(record: Record, *, altered: bool) -> Resource:
    return Resource(record.physical_id, _PendingAttributes()) if altered else record.resource


def _changed_types(old: Body, new: Body) -> Iterator[str]:
    for name, about in new["Resources"].items():
        if name in old["Resources"] and old["Resources"][name]["Type"] != about["Type"]:
            yield name


def _request_parameters(parameters: list[Mapping[str, Any]], previous: Version | None) -> dict[str, str]:
    """Parameters of the request; those with UsePreviousValue keep the value that the previous request gave."""
    given: dict[str, str] = {}
    for parameter in parameters:
        name = str(parameter["ParameterKey"])
        if not parameter.get("UsePreviousValue"):
            given[name] = str(parameter.get("ParameterValue", ""))
        elif previous is None:
            raise TemplateError(f"Invalid input for parameter key {name}. Cannot specify usePreviousValue as true")
        elif name in previous.given:
            given[name] = previous.given[name]
    return given


def _bucket_and_key(url: str) -> tuple[str, str]:
    """Bucket and key of a virtual-hosted or path-style S3 URL."""
    parsed = urlparse(url)
    hosted = re.fullmatch(r"(.+)\.s3[.-][^/]*amazonaws\.com", parsed.hostname or "")
    path = unquote(parsed.path).lstrip("/")
    if hosted:
        return hosted[1], path
    bucket, _, key = path.partition("/")
    if not key:
        raise TemplateError(f"S3 error: {url} names no object")
    return bucket, key


def _scopes(record: Record, declaration: Declaration, properties: Properties) -> list[str]:
    scopes = []
    if record.attempted is not None or record.properties != properties:
        scopes.append("Properties")
    if dict(record.metadata) != dict(declaration.metadata):
        scopes.append("Metadata")
    if record.deletion_policy != declaration.deletion_policy:
        scopes.append("DeletionPolicy")
    return scopes


def _modify(
    record: Record, declaration: Declaration, properties: Properties, kind: Replacement, scopes: list[str], region: str
) -> Change:
    fixed = {pointer.split("/")[2] for pointer in create_only(record.type, region)}
    details = [
        _detail("Properties", name, properties.get(name), fixed=name in fixed and kind != "False")
        for name in changed_names(record.properties, properties)
    ]
    details += [_detail(scope, None, None, fixed=False) for scope in scopes if scope != "Properties"]
    extra: Change = {"Replacement": kind, "Scope": scopes, "Details": details}
    if kind != "False":
        kept = declaration.update_replace_policy == "Retain"
        extra["PolicyAction"] = "ReplaceAndRetain" if kept else "ReplaceAndDelete"
    return _change("Modify", record.logical_id, record.type, record.physical_id, **extra)


def _detail(attribute: str, name: str | None, value: Any, *, fixed: bool) -> Change:
    unknown = pending(value)
    target = {"Attribute": attribute, "RequiresRecreation": "Never"}
    if fixed:
        target["RequiresRecreation"] = "Conditionally" if unknown else "Always"
    if name:
        target["Name"] = name
    return {
        "Target": target,
        "Evaluation": "Dynamic" if unknown else "Static",
        "ChangeSource": "ResourceReference" if unknown else "DirectModification",
    }


def _change(action: str, name: str, type_name: str, physical_id: str | None = None, **extra: Any) -> Change:
    change = {"Action": action, "LogicalResourceId": name, "ResourceType": type_name, **extra}
    if physical_id:
        change["PhysicalResourceId"] = physical_id
    return {"Type": "Resource", "ResourceChange": change}
