"""CloudFormation templates: parsing, parameters, conditions, rules, order of resources. Pure."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

import yaml

from localaws.documents import MAX_DEPTH, TOO_DEEP, load_yaml
from localaws.intrinsics import (
    LANGUAGE_EXTENSIONS,
    Scope,
    TemplateError,
    evaluate_condition,
    references,
)
from localaws.limits import check_counts, check_parameter, check_size
from localaws.schemas import text

Body = dict[str, Any]

SECTIONS = frozenset(
    {
        "AWSTemplateFormatVersion",
        "Conditions",
        "Description",
        "Mappings",
        "Metadata",
        "Outputs",
        "Parameters",
        "Resources",
        "Rules",
        "Transform",
    }
)
FORMAT_VERSION = "2010-09-09"
RESOURCE_KEYS = frozenset(
    {"Condition", "DeletionPolicy", "DependsOn", "Metadata", "Properties", "Type", "UpdateReplacePolicy"}
)
POLICIES = {
    "DeletionPolicy": frozenset({"Delete", "Retain", "RetainExceptOnCreate"}),
    "UpdateReplacePolicy": frozenset({"Delete", "Retain"}),
}
PSEUDO = frozenset(
    f"AWS::{name}"
    for name in (
        "AccountId",
        "NoValue",
        "NotificationARNs",
        "Partition",
        "Region",
        "StackId",
        "StackName",
        "URLSuffix",
    )
)
SSM_VALUE = re.compile(r"AWS::SSM::Parameter::Value<(.+)>")
IAM_TYPES = frozenset(
    f"AWS::IAM::{name}"
    for name in (
        "AccessKey",
        "Group",
        "InstanceProfile",
        "ManagedPolicy",
        "Policy",
        "Role",
        "User",
        "UserToGroupAddition",
    )
)
IAM_NAMES = frozenset({"GroupName", "InstanceProfileName", "ManagedPolicyName", "RoleName", "UserName"})


@dataclass(frozen=True)
class Declaration:
    """One resource as a template declares it, functions not yet evaluated."""

    logical_id: str
    type: str
    properties: Mapping[str, Any]
    depends_on: frozenset[str]
    metadata: Mapping[str, Any]
    deletion_policy: str
    update_replace_policy: str
    needs: frozenset[str] = frozenset()  # dependencies and references under the evaluated conditions


def parse(source: str) -> Body:
    """Parse a JSON or YAML template and check its structure and size. Raises TemplateError."""
    check_size(source)
    try:
        body = _json(source) if source.lstrip().startswith("{") else load_yaml(source, _Loader, aliases=False)
    except (ValueError, yaml.YAMLError) as error:
        raise TemplateError(f"Template format error: unsupported structure. {error}") from error
    if not isinstance(body, dict) or not isinstance(body.get("Resources"), dict) or not body["Resources"]:
        raise TemplateError("Template format error: At least one Resources member must be defined.")
    if unknown := sorted(body.keys() - SECTIONS):
        raise TemplateError(f"Invalid template property or properties {unknown}")
    if body.get("AWSTemplateFormatVersion", FORMAT_VERSION) != FORMAT_VERSION:
        raise TemplateError("Template format error: unsupported value for AWSTemplateFormatVersion.")
    check_counts(body)
    if unsupported := transforms(body) - {LANGUAGE_EXTENSIONS}:
        raise TemplateError(f"No transform named {', '.join(sorted(unsupported))} found.")
    for logical_id, resource in body["Resources"].items():
        _check_resource(logical_id, resource)
    return body


def transforms(body: Body) -> frozenset[str]:
    """The transforms that the template declares."""
    declared = body.get("Transform", [])
    return frozenset([declared] if isinstance(declared, str) else declared)


def parameter_values(body: Body, given: Mapping[str, str], ssm: Callable[[str], str]) -> dict[str, Any]:
    """The parameters' values, lists as lists. `ssm` reads the values of AWS::SSM::Parameter::Value types."""
    declared: Body = body.get("Parameters", {})
    if unknown := sorted(given.keys() - declared.keys()):
        raise TemplateError(f"Parameters: [{', '.join(unknown)}] do not exist in the template")
    if missing := [name for name, about in declared.items() if name not in given and "Default" not in about]:
        raise TemplateError(f"Parameters: [{', '.join(missing)}] must have values")
    return {
        name: _parameter(name, about, given.get(name, about.get("Default")), ssm) for name, about in declared.items()
    }


def with_conditions(body: Body, scope: Scope) -> Scope:
    """The scope with the template's conditions evaluated. Raises TemplateError for cycles and unknown names."""
    declared: Body = body.get("Conditions", {})
    known: dict[str, bool] = {}

    def truth(name: str, trail: tuple[str, ...] = ()) -> bool:
        if name not in declared or name in trail:
            reason = "Circular condition dependency" if name in trail else "unresolved condition dependency"
            raise TemplateError(f"Template format error: {reason} {name}")
        if name not in known:
            known[name] = evaluate_condition(declared[name], scope, lambda other: truth(other, (*trail, name)))
        return known[name]

    return replace(scope, conditions={name: truth(name) for name in declared})


def check_rules(body: Body, scope: Scope) -> None:
    """Raise TemplateError with the descriptions of failed assertions."""

    def no_conditions(name: str) -> bool:
        raise TemplateError(f"Template format error: a rule cannot use the condition {name}")

    failed = [
        str(assertion.get("AssertDescription", f"rule {name}"))
        for name, rule in body.get("Rules", {}).items()
        if "RuleCondition" not in rule or evaluate_condition(rule["RuleCondition"], scope, no_conditions)
        for assertion in rule["Assertions"]
        if not evaluate_condition(assertion["Assert"], scope, no_conditions)
    ]
    if failed:
        raise TemplateError(f"Template validation error: {'; '.join(failed)}")


def declarations(body: Body, conditions: Mapping[str, bool]) -> dict[str, Declaration]:
    """The resources whose condition holds, each after its dependencies.

    Raises TemplateError for cycles and dangling references.
    """
    all_resources = body["Resources"].items()
    present = {name: _declare(name, about) for name, about in all_resources if _condition_holds(about, conditions)}
    needs = dependencies(body, present, conditions)
    _check_outputs(body, present, conditions)
    ordered = {name: [other for other in present if other in needed] for name, needed in needs.items()}
    try:
        return {name: replace(present[name], needs=needs[name]) for name in TopologicalSorter(ordered).static_order()}
    except CycleError as error:
        circle = ", ".join(sorted(set(error.args[1])))
        raise TemplateError(f"Circular dependency between resources: [{circle}]") from error


def dependencies(
    body: Body, present: Mapping[str, Declaration], conditions: Mapping[str, bool]
) -> dict[str, frozenset[str]]:
    """The dependencies and references of each resource. Raises TemplateError for dangling references."""
    names = PSEUDO | body.get("Parameters", {}).keys()
    needs: dict[str, frozenset[str]] = {}
    for name, declared in present.items():
        if loose := sorted(declared.depends_on - body["Resources"].keys()):
            raise TemplateError(f"Template format error: Unresolved resource dependencies {loose} of resource {name}")
        used = {target for target, _ in references(declared.properties, conditions) if target not in names}
        if loose := sorted(used - present.keys()):
            raise TemplateError(
                f"Template format error: Unresolved resource dependencies [{', '.join(loose)}] "
                f"in the Resources block of the template (used by {name})"
            )
        needs[name] = frozenset(used | (declared.depends_on & present.keys()))
    return needs


def outputs(body: Body, conditions: Mapping[str, bool]) -> Iterator[tuple[str, Body]]:
    """The outputs whose condition holds."""
    return ((name, about) for name, about in body.get("Outputs", {}).items() if _condition_holds(about, conditions))


def required_capabilities(body: Body) -> list[str]:
    """The capability that the request must acknowledge, as a list with one entry or none."""
    iam = [about for about in body["Resources"].values() if about["Type"] in IAM_TYPES]
    if any(IAM_NAMES & about.get("Properties", {}).keys() for about in iam):
        return ["CAPABILITY_NAMED_IAM"]
    return ["CAPABILITY_IAM"] if iam else []


def _json(source: str) -> Any:
    try:
        body = json.loads(source)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    level = [body]
    for _ in range(MAX_DEPTH):
        collections = (value for value in level if isinstance(value, dict | list))
        level = [inner for value in collections for inner in (value.values() if isinstance(value, dict) else value)]
    if any(isinstance(value, dict | list) for value in level):
        raise ValueError(TOO_DEEP)
    return body


def _check_resource(logical_id: str, about: Any) -> None:
    if not re.fullmatch(r"[A-Za-z0-9]+", logical_id):
        raise TemplateError(f"Template format error: Resource name {logical_id} is non alphanumeric.")
    if not isinstance(about, dict) or not isinstance(about.get("Type"), str):
        raise TemplateError(f"Template format error: every Resources object must contain a Type member ({logical_id}).")
    if unknown := sorted(about.keys() - RESOURCE_KEYS):
        raise TemplateError(f"Invalid template resource property {unknown} of resource {logical_id}")
    for policy, allowed in POLICIES.items():
        if about.get(policy, "Delete") not in allowed:
            raise TemplateError(f"Template format error: {policy} {about[policy]} of {logical_id} is not supported")


def _check_outputs(body: Body, present: Mapping[str, Declaration], conditions: Mapping[str, bool]) -> None:
    names = PSEUDO | body.get("Parameters", {}).keys() | present.keys()
    for name, about in outputs(body, conditions):
        if loose := sorted({target for target, _ in references(about, conditions)} - names):
            raise TemplateError(
                f"Template format error: Unresolved resource dependencies [{', '.join(loose)}] "
                f"in the Outputs block of the template (used by {name})"
            )


def _condition_holds(about: Body, conditions: Mapping[str, bool]) -> bool:
    name = about.get("Condition")
    if name is None:
        return True
    if name not in conditions:
        raise TemplateError(f"Template format error: Unresolved condition dependency {name}")
    return conditions[name]


def _declare(logical_id: str, about: Body) -> Declaration:
    depends_on = about.get("DependsOn", [])
    return Declaration(
        logical_id=logical_id,
        type=about["Type"],
        properties=about.get("Properties") or {},
        depends_on=frozenset([depends_on] if isinstance(depends_on, str) else depends_on),
        metadata=about.get("Metadata") or {},
        deletion_policy=about.get("DeletionPolicy", "Delete"),
        update_replace_policy=about.get("UpdateReplacePolicy", "Delete"),
    )


def _parameter(name: str, about: Body, value: Any, ssm: Callable[[str], str]) -> Any:
    kind = str(about["Type"])
    check_parameter(name, str(value))
    stored = SSM_VALUE.fullmatch(kind)
    if stored:
        kind, value = stored[1], ssm(str(value))
    values = [item.strip() for item in str(value).split(",")] if _is_list(kind) else [text(value)]
    if complaint := next(filter(None, (_constraint_problem(kind, about, item) for item in values)), None):
        said = about.get("ConstraintDescription", f"Parameter {name} {complaint}")
        raise TemplateError(f"Parameter {name} failed to satisfy constraint: {said}")
    return values if _is_list(kind) else values[0]


def _is_list(kind: str) -> bool:
    return kind == "CommaDelimitedList" or kind.startswith("List<")


def _constraint_problem(kind: str, about: Body, value: str) -> str | None:
    number = kind in ("Number", "List<Number>")
    if number and not re.fullmatch(r"-?\d+(\.\d+)?", value):
        return f"must be a number, not {value}"
    if "AllowedValues" in about and value not in [text(allowed) for allowed in about["AllowedValues"]]:
        return f"must be one of {about['AllowedValues']}"
    if "AllowedPattern" in about and not re.fullmatch(about["AllowedPattern"], value):
        return f"must match pattern {about['AllowedPattern']}"
    size, least, most = (
        (float(value), "MinValue", "MaxValue") if number else (float(len(value)), "MinLength", "MaxLength")
    )
    if not float(about.get(least, size)) <= size <= float(about.get(most, size)):
        return f"must lie between {about.get(least, 'any')} and {about.get(most, 'any')}"
    return None


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML as CloudFormation reads it: dates stay text; !Ref, !Sub and others are short forms of functions."""


# Without the resolver that would turn a policy's version, 2012-10-17, into a date.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _short_form(loader: Any, suffix: str, node: yaml.Node) -> Body:
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
        if suffix == "GetAtt":
            value = value.split(".", 1)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _short_form)
