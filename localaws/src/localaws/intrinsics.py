"""The functions of a CloudFormation template, evaluated. Pure: `Lookup` finds values that are not in the template."""

import base64
import ipaddress
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from botocore.exceptions import ClientError

from localaws.resources import HandlerError, Resource
from localaws.schemas import text

LANGUAGE_EXTENSIONS = "AWS::LanguageExtensions"


class TemplateError(Exception):
    """A template or its parameters are invalid. The message is that of CloudFormation's ValidationError."""


class _Pending:
    """A value that is known only after the change set is executed."""

    def __repr__(self) -> str:
        return "{{changeSet:KNOWN_AFTER_APPLY}}"


PENDING = _Pending()
NO_VALUE = object()


class Lookup(Protocol):
    """Values that a template looks up in its Region."""

    def exported(self, name: str) -> str:
        """The value of an export."""

    def stack_output(self, stack: str, output: str, region: str | None) -> str:
        """The value of another stack's output."""

    def ssm_parameter(self, name: str, version: str | None) -> str:
        """The value of an SSM parameter."""

    def zones(self, region: str) -> list[str]:
        """Names of the Region's Availability Zones."""


@dataclass(frozen=True)
class Scope:
    """Everything that functions may refer to. `parameters` includes the pseudo parameters."""

    parameters: Mapping[str, Any]
    mappings: Mapping[str, Any]
    lookup: Lookup
    conditions: Mapping[str, bool] = field(default_factory=dict)
    resources: Mapping[str, Resource | _Pending] = field(default_factory=dict)
    transforms: frozenset[str] = frozenset()


def resolve(value: Any, scope: Scope) -> Any:
    """Evaluate every function in `value`. Removes NO_VALUE entries, keeps PENDING values. Raises TemplateError."""
    if isinstance(value, Mapping):
        name = function_name(value)
        if name:
            return _call(name, value[name], scope)
        resolved = {key: resolve(inner, scope) for key, inner in value.items()}
        return {key: inner for key, inner in resolved.items() if inner is not NO_VALUE}
    if isinstance(value, list):
        return [item for item in (resolve(item, scope) for item in value) if item is not NO_VALUE]
    return _dynamic_references(value, scope) if isinstance(value, str) else value


def pending(value: Any) -> bool:
    """Whether any part of `value` is known only after execution."""
    if isinstance(value, Mapping):
        return any(pending(inner) for inner in value.values())
    return any(pending(item) for item in value) if isinstance(value, list) else value is PENDING


def function_name(value: Any) -> str | None:
    """The function that `value` calls: the only key of a mapping, if that key is Ref or Fn::*."""
    if isinstance(value, Mapping) and len(value) == 1:
        name = str(next(iter(value)))
        return name if name == "Ref" or name.startswith("Fn::") else None
    return None


def references(value: Any, conditions: Mapping[str, bool]) -> Iterator[tuple[str, str | None]]:
    """(name, attribute) of every Ref, Fn::GetAtt and ${...} in `value`, in the branches that the conditions select."""
    name = function_name(value)
    if name == "Ref":
        yield value["Ref"], None
    elif name == "Fn::GetAtt":
        yield _attribute(value[name])
    elif name == "Fn::If":
        condition, true, false = _arguments(name, value[name], 3)
        yield from references(true if conditions.get(condition) else false, conditions)
    elif name == "Fn::Sub":
        template, local = _sub_arguments(value[name])
        yield from references(dict(local), conditions)
        for inner in _SUB.findall(template):
            if not inner.startswith("!") and inner.strip() not in local:
                target, _, attribute = inner.strip().partition(".")
                yield target, attribute or None
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from references(inner, conditions)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner, conditions)


def evaluate_condition(value: Any, scope: Scope, condition: Callable[[str], bool]) -> bool:
    """Whether a condition holds. `condition` evaluates another condition by its name."""
    if not isinstance(value, Mapping) or len(value) != 1:
        raise TemplateError(f"Template format error: a condition must be one condition function, not {value!r}")
    name, argument = next(iter(value.items()))
    if name == "Condition":
        return condition(argument)
    if name == "Fn::Equals":
        left, right = (_comparable(resolve(side, scope)) for side in _arguments(name, argument, 2))
        return bool(left == right)
    if name == "Fn::Not":
        return not evaluate_condition(_arguments(name, argument, 1)[0], scope, condition)
    if name in ("Fn::And", "Fn::Or"):
        results = [evaluate_condition(part, scope, condition) for part in argument]
        return all(results) if name == "Fn::And" else any(results)
    if name == "Fn::Contains":
        values, wanted = (resolve(side, scope) for side in _arguments(name, argument, 2))
        return wanted in values
    if name == "Fn::EachMemberIn":
        values, allowed = (resolve(side, scope) for side in _arguments(name, argument, 2))
        return all(item in allowed for item in values)
    if name == "Fn::EachMemberEquals":
        values, wanted = (resolve(side, scope) for side in _arguments(name, argument, 2))
        return all(item == wanted for item in values)
    raise TemplateError(f"Template format error: {name} is not a condition function")


def _comparable(value: Any) -> Any:
    return [_comparable(item) for item in value] if isinstance(value, list) else text(value)


def _call(name: str, argument: Any, scope: Scope) -> Any:
    if name not in _FUNCTIONS:
        raise TemplateError(f"Template format error: the function {name} is not supported")
    if name in _EXTENSIONS and LANGUAGE_EXTENSIONS not in scope.transforms:
        raise TemplateError(f"Template format error: {name} needs the transform {LANGUAGE_EXTENSIONS}")
    if name in _LAZY:
        return _LAZY[name](argument, scope)
    resolved = resolve(argument, scope)
    return PENDING if pending(resolved) else _FUNCTIONS[name](resolved, scope)


def _ref(name: Any, scope: Scope) -> Any:
    if name == "AWS::NoValue":
        return NO_VALUE
    if name in scope.parameters:
        return scope.parameters[name]
    resource = scope.resources.get(name)
    if resource is None:
        raise TemplateError(f"Template format error: Unresolved resource dependencies [{name}] in the template")
    return resource.physical_id if isinstance(resource, Resource) else PENDING


def _get_att(argument: Any, scope: Scope) -> Any:
    name, attribute = _attribute(resolve(argument, scope))
    resource = scope.resources.get(name)
    if resource is None:
        raise TemplateError(f"Template error: instance of Fn::GetAtt references undefined resource {name}")
    if not isinstance(resource, Resource):
        return PENDING
    try:
        known = attribute in resource.attributes
    except (ClientError, HandlerError) as error:
        raise TemplateError(f"Template error: {attribute} of resource {name} cannot be read: {error}") from error
    if not known:
        raise TemplateError(
            f"Template error: resource {name} does not support attribute type {attribute} in Fn::GetAtt"
        )
    return resource.attributes[attribute]


def _attribute(argument: Any) -> tuple[str, str]:
    parts = argument.split(".", 1) if isinstance(argument, str) else list(argument)
    if len(parts) != 2 or not all(isinstance(part, str) for part in parts):
        raise TemplateError(f"Template error: Fn::GetAtt needs a resource and an attribute, not {argument!r}")
    return parts[0], parts[1]


def _if(argument: Any, scope: Scope) -> Any:
    condition, true, false = _arguments("Fn::If", argument, 3)
    if condition not in scope.conditions:
        raise TemplateError(f"Template error: unresolved condition dependency {condition} in Fn::If")
    return resolve(true if scope.conditions[condition] else false, scope)


_SUB = re.compile(r"\$\{([^}]*)\}")


def _sub(argument: Any, scope: Scope) -> Any:
    template, local = _sub_arguments(argument)
    values = resolve(dict(local), scope)
    unknown = False

    def replacement(match: re.Match[str]) -> str:
        nonlocal unknown
        name = match[1].strip()
        if name.startswith("!"):
            return "${" + name[1:] + "}"
        value = values[name] if name in values else _ref_or_attribute(name, scope)
        if value is PENDING:
            unknown = True
            return ""
        return _string(value, f"variable {name} in Fn::Sub expression does not resolve to a string")

    replaced = _SUB.sub(replacement, template)
    return PENDING if unknown else _dynamic_references(replaced, scope)


def _ref_or_attribute(name: str, scope: Scope) -> Any:
    return _get_att(name, scope) if "." in name and name not in scope.parameters else _ref(name, scope)


def _sub_arguments(argument: Any) -> tuple[str, Mapping[str, Any]]:
    if isinstance(argument, str):
        return argument, {}
    template, local = _arguments("Fn::Sub", argument, 2)
    if not isinstance(template, str) or not isinstance(local, Mapping):
        raise TemplateError("Template error: Fn::Sub needs a string and a map of variables")
    return template, local


def _find_in_map(argument: Any, scope: Scope) -> Any:
    if not isinstance(argument, list) or len(argument) not in (3, 4):
        raise TemplateError("Template error: Fn::FindInMap needs a map, a first and a second key")
    keys = [resolve(key, scope) for key in argument[:3]]
    if pending(keys):
        return PENDING
    found: Any = scope.mappings
    for key in keys:
        found = found.get(text(key)) if isinstance(found, Mapping) else None
    if found is None and len(argument) == 4 and LANGUAGE_EXTENSIONS in scope.transforms:
        return resolve(argument[3].get("DefaultValue", NO_VALUE), scope)
    if found is None:
        raise TemplateError(f"Template error: Unable to get mapping for {'::'.join(text(key) for key in keys)}")
    return resolve(found, scope)


def _join(argument: Any, _: Scope) -> str:
    delimiter, parts = _arguments("Fn::Join", argument, 2)
    if not isinstance(parts, list):
        raise TemplateError("Template error: every Fn::Join object requires a delimiter and a list of strings")
    return str(delimiter).join(_string(part, "every Fn::Join object requires a list of strings") for part in parts)


def _split(argument: Any, _: Scope) -> list[str]:
    delimiter, source = _arguments("Fn::Split", argument, 2)
    return _string(source, "Fn::Split needs a string to split").split(delimiter)


def _select(argument: Any, _: Scope) -> Any:
    index, values = _arguments("Fn::Select", argument, 2)
    if not isinstance(values, list) or not str(index).isdigit() or int(index) >= len(values):
        raise TemplateError(f"Template error: Fn::Select cannot select nonexistent value at index {index}")
    return values[int(index)]


def _cidr(argument: Any, _: Scope) -> list[str]:
    if not isinstance(argument, list) or len(argument) not in (2, 3):
        raise TemplateError("Template error: Fn::Cidr needs an IP block, a count and the bits of a subnet")
    try:
        block = ipaddress.ip_network(str(argument[0]), strict=False)
        bits = int(argument[2]) if len(argument) == 3 else 8
        prefix, count = block.max_prefixlen - bits, int(argument[1])
    except (TypeError, ValueError) as error:
        raise TemplateError(f"Template error: Fn::Cidr: {error}") from error
    if prefix < block.prefixlen or count > 2 ** (prefix - block.prefixlen):
        raise TemplateError(f"Template error: Fn::Cidr cannot cut {count} blocks of {bits} bits out of {block}")
    subnets = block.subnets(new_prefix=prefix)
    return [str(next(subnets)) for _ in range(count)]


def _get_azs(argument: Any, scope: Scope) -> list[str]:
    return scope.lookup.zones(argument or scope.parameters["AWS::Region"])


def _get_stack_output(argument: Any, scope: Scope) -> str:
    if not isinstance(argument, Mapping) or not {"StackName", "OutputName"} <= argument.keys() <= _STACK_OUTPUT:
        raise TemplateError(f"Template error: Fn::GetStackOutput takes {sorted(_STACK_OUTPUT)}, not {argument!r}")
    return scope.lookup.stack_output(argument["StackName"], argument["OutputName"], argument.get("Region"))


_STACK_OUTPUT = {"StackName", "OutputName", "Region"}  # RoleArn, for stacks of other accounts, is not supported


def _arguments(name: str, argument: Any, count: int) -> list[Any]:
    if not isinstance(argument, list) or len(argument) != count:
        raise TemplateError(f"Template error: {name} needs {count} arguments, not {argument!r}")
    return argument


def _string(value: Any, complaint: str) -> str:
    if isinstance(value, list | Mapping) or value is None or value is NO_VALUE:
        raise TemplateError(f"Template error: {complaint}")
    return text(value)


_DYNAMIC = re.compile(r"\{\{resolve:([^:}]+):([^}]+)\}\}")


def _dynamic_references(value: str, scope: Scope) -> str:
    def replacement(match: re.Match[str]) -> str:
        service, rest = match.groups()
        if service != "ssm":
            raise TemplateError(f"the dynamic reference {match[0]} is not supported: only {{{{resolve:ssm:...}}}} is")
        name, _, version = rest.partition(":")
        return scope.lookup.ssm_parameter(name, version or None)

    return _DYNAMIC.sub(replacement, value) if "{{resolve:" in value else value


_LAZY: dict[str, Callable[[Any, Scope], Any]] = {
    "Ref": _ref,
    "Fn::GetAtt": _get_att,
    "Fn::If": _if,
    "Fn::Sub": _sub,
    "Fn::FindInMap": _find_in_map,
}

_FUNCTIONS: dict[str, Callable[[Any, Scope], Any]] = {
    **_LAZY,
    "Fn::Join": _join,
    "Fn::Split": _split,
    "Fn::Select": _select,
    "Fn::Cidr": _cidr,
    "Fn::GetAZs": _get_azs,
    "Fn::ImportValue": lambda name, scope: scope.lookup.exported(name),
    "Fn::GetStackOutput": _get_stack_output,
    "Fn::Base64": lambda value, _: base64.b64encode(str(value).encode()).decode(),
    "Fn::Length": lambda value, _: len(value),
    "Fn::ToJsonString": lambda value, _: json.dumps(value, separators=(",", ":")),
}

_EXTENSIONS = frozenset({"Fn::Length", "Fn::ToJsonString"})
