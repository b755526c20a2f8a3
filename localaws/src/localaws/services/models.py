"""A service's resources in botocore's models: members of descriptions, states, tags, names of errors."""

import copy
import datetime
import functools
from collections.abc import Mapping
from typing import Any

from botocore import xform_name

CREATED = frozenset({"createdAt", "created", "CreationTime"})
MODIFIED = frozenset({"modifiedAt", "modified", "lastModifiedAt"})
"""Names of timestamps in descriptions."""

STATES = ("status", "Lifecycle")
"""Names of the state in descriptions."""

QUOTA_ERRORS = ("ServiceQuotaExceededException", "ResourceLimitExceededException", "ServiceLimitExceeded")


def plural(noun: str) -> str:
    """The noun as in the names of operations on lists."""
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"


def hyphenated(noun: str) -> str:
    """The noun as in the names of moto's states: compute-node-group."""
    return str(xform_name(noun, "-"))


@functools.cache
def description_shape(model: Any, noun: str) -> Any:
    """The shape of a resource in the output of its Describe, Get or List operation."""
    for operation in (f"Describe{noun}", f"Get{noun}", f"Describe{plural(noun)}", f"List{plural(noun)}"):
        if operation in model.operation_names:
            members = model.operation_model(operation).output_shape.members
            for member in members.values():
                inner = member.member if member.type_name == "list" else member
                if inner.type_name == "structure":
                    return inner
    raise LookupError(f"{model.service_name} does not describe {noun}")


def stored(model: Any, noun: str, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a request that the description has, also where the request prefixes them: workspaceName, name."""
    described, asked = description_shape(model, noun).members, model.operation_model(operation).input_shape.members
    prefix = noun[0].lower() + noun[1:]
    found = {}
    for name, value in request.items():
        short = name.removeprefix(prefix)
        known = name if name in described else short[:1].lower() + short[1:]
        if known in described and name.lower() != "tags" and value is not None and not token(asked[name]):
            found[known] = copy.deepcopy(value)
    return found


def arn_member(shape: Any, noun: str) -> str:
    """The member of a description with its ARN: arn, ResourceARN, nodegroupArn."""
    for name in shape.members:
        if name == "ResourceARN" or (name.lower().endswith("arn") and noun.lower().endswith(name[:-3].lower())):
            return str(name)
    return "arn"


def parent_members(shape: Any, parent_noun: str, parent_id: str) -> tuple[str, ...]:
    """The members of a description with the id of the parent: clusterId, clusterName, or the parent's own."""
    known = {f"{parent_noun.lower()}{end}" for end in ("id", "name")}
    return parent_id, *(name for name in shape.members if name.lower() in known)


def token(member: Any) -> bool:
    """Whether a member of a request makes it idempotent."""
    return bool(member.metadata.get("idempotencyToken"))


def state(shape: Any, status: str | None) -> dict[str, Any]:
    """The member with the state, which is a structure in some services; empty if the model has none."""
    for name in STATES:
        if name in shape.members:
            return {name: {"statusCode": status} if shape.members[name].type_name == "structure" else status}
    return {}


def ready(shape: Any) -> str:
    """The name of the state in which a resource can be used."""
    for name in STATES:
        member = shape.members.get(name)
        if member is not None and "AVAILABLE" in (member.metadata.get("enum") or ()):
            return "AVAILABLE"
    return "ACTIVE"


def transitions(shape: Any) -> list[tuple[str | None, str]]:
    """The states of a new and of a changed resource, for moto's state manager."""
    return [("CREATING", ready(shape)), ("UPDATING", ready(shape))]


def stamps(shape: Any, names: frozenset[str]) -> dict[str, datetime.datetime]:
    """The current time, for those of the timestamps that the shape has."""
    return dict.fromkeys(names & shape.members.keys(), datetime.datetime.now(datetime.UTC))


def tags_in(tags: Any) -> dict[str, str]:
    """Tags of a request, a map or a list."""
    return {tag["Key"]: tag["Value"] for tag in tags} if isinstance(tags, list) else dict(tags or {})


def tags_out(shape: Any, tags: Mapping[str, str]) -> dict[str, Any]:
    """The member with the tags, if the shape has one. A list is left out when it is empty."""
    for name in ("tags", "Tags"):
        member = shape.members.get(name)
        if member is not None and member.type_name == "map":
            return {name: dict(tags)}
        if member is not None and tags:
            return {name: [{"Key": key, "Value": value} for key, value in tags.items()]}
    return {}


def error_code(model: Any, *codes: str) -> str:
    """The first of the codes that the service has, or that an operation has."""
    names = {shape.name for shape in model.error_shapes}
    return next((code for code in codes if code in names), codes[-1])


def merged(old: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The blocks `old` with the changes: merged by member at every depth, other values replaced."""
    new = copy.deepcopy(dict(old))
    for name, value in changes.items():
        new[name] = merged(old.get(name) or {}, value) if isinstance(value, Mapping) else copy.deepcopy(value)
    return new


def listed(model: Any, operation: str) -> tuple[str, Any] | None:
    """The list member of an operation's output and the shape of its items; None for an operation on one resource."""
    members = model.operation_model(operation).output_shape.members
    found = [(name, shape.member) for name, shape in members.items() if shape.type_name == "list"]
    return found[0] if len(found) == 1 else None


def complete(model: Any, error: Any) -> None:
    """Set the members of an error that its shape determines: the service's code, and what is invalid in which field."""
    shape = next((found for found in model.error_shapes if found.name == error.code), None)
    members = shape.members if shape else {}
    if "reason" in members:
        reasons = members["reason"].metadata["enum"]
        error.reason = next(each for each in reasons if each.replace("_", "").lower() == "fieldvalidationfailed")
        if hasattr(error, "field"):
            error.fieldList = [{"name": error.field, "message": error.about}]
    if "serviceCode" in members:
        error.serviceCode = model.signing_name
    if shape and "quotaCode" not in shape.required_members and hasattr(error, "quotaCode"):
        del error.quotaCode
