"""What CloudFormation does between the templates of two environments, by the registry's schemas.

Nothing here reads the package's own data about effects: this is the other side of the comparison.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import botocore.session

import localaws.handlers  # noqa: F401  # registers the handlers
from localaws import schemas
from localaws.properties import handler_of
from localaws.resources import changed

Templates = dict[str, dict[str, Any]]
Resource = tuple[str, str]
"""Stack and logical id."""

REGION = schemas.DEFAULT_REGION
NODE_GROUPS = {"AWS::PCS::ComputeNodeGroup", "AWS::EKS::Nodegroup"}
STATEFUL = {
    "AWS::APS::Workspace",
    "AWS::EC2::Subnet",
    "AWS::EC2::VPC",
    "AWS::EFS::FileSystem",
    "AWS::EKS::Cluster",
    "AWS::FSx::FileSystem",
    "AWS::KMS::Key",
    "AWS::PCS::Cluster",
    "AWS::S3::Bucket",
}
"""Types whose replacement loses data, or a cluster. A log group that is replaced stays, with its logs."""

OVERLAPS = {"AWS::FSx::DataRepositoryAssociation"}
"""Types whose replacement AWS refuses while the old one exists (FSx for Lustre User Guide, "Linking", 2026)."""

ONLY_HIGHER = {
    "AWS::FSx::FileSystem": (
        "StorageCapacity",
        "LustreConfiguration.ThroughputCapacity",
        "LustreConfiguration.MetadataConfiguration.Iops",
    )
}
"""Properties that AWS only raises.

Sources: FSx for Lustre User Guide, "Managing storage capacity", "Managing metadata performance" (2026); FSx for OpenZFS
User Guide, "Managing storage capacity" (2026).
"""

NEW_NODES = {
    "AWS::PCS::ComputeNodeGroup": {
        "AmiId",
        "CustomLaunchTemplate",
        "IamInstanceProfileArn",
        "NodeLifecycleActions",
        "SlurmConfiguration",
    },
    "AWS::EKS::Nodegroup": {"LaunchTemplate", "ReleaseVersion", "Version"},
}
"""Properties whose change gives a group new nodes.

Sources: AWS PCS User Guide, "Updating an AWS PCS compute node group" (2026); EKS API Reference,
UpdateNodegroupVersion (2026).
"""


@dataclass
class Observed:
    """The resources that differ, each with its type."""

    added: dict[Resource, str] = field(default_factory=dict)
    removed: dict[Resource, str] = field(default_factory=dict)
    changed: dict[Resource, str] = field(default_factory=dict)
    replaced: dict[Resource, str] = field(default_factory=dict)
    new_nodes: dict[Resource, str] = field(default_factory=dict)
    rejected: list[str] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        """Whether the templates are alike."""
        return not (self.added or self.removed or self.changed or self.replaced)

    @property
    def types(self) -> set[str]:
        """Types of all resources that differ."""
        return {kind for part in (self.added, self.removed, self.changed, self.replaced) for kind in part.values()}

    @property
    def refused(self) -> list[str]:
        """Why the deployment fails, or loses a cluster or data; empty if it does not."""
        lost = [f"{at[0]}/{at[1]} is replaced" for at, kind in self.replaced.items() if kind in STATEFUL | OVERLAPS]
        return lost + self.rejected

    def groups(self, names: Iterable[str]) -> set[str]:
        """Names of the groups that are replaced."""
        return {_named(at, names) for at, kind in self.replaced.items() if kind in NODE_GROUPS}

    def nodes(self, names: Iterable[str]) -> set[str]:
        """Names of the groups that get new nodes and stay."""
        return {_named(at, names) for at in self.new_nodes}


def _named(at: Resource, names: Iterable[str]) -> str:
    _, logical_id = at
    by_id = {"Login": "login", "Cpu": "cpu", "System": "system"}
    by_id |= {"Group" + re.sub("[^A-Za-z0-9]", "", name): name for name in names}
    return by_id[logical_id[:-8]]


def observe(old: Templates, new: Templates) -> Observed:
    """Compares all stacks of two environments."""
    seen = Observed()
    before, after = _resources(old), _resources(new)
    seen.added = {at: after[at]["Type"] for at in after.keys() - before.keys()}
    seen.removed = {at: before[at]["Type"] for at in before.keys() - after.keys()}
    exports, old_exports = _exports(new), _exports(old)
    moved: set[Resource] = set()
    pending = True
    while pending:
        pending = False
        for at in sorted(before.keys() & after.keys()):
            if at not in seen.replaced and _replaced(before[at], after[at], at[0], moved, exports):
                seen.replaced[at] = after[at]["Type"]
                moved.add(at)
                pending = True
    for at in sorted(before.keys() & after.keys()):
        if at in seen.replaced:
            continue
        names = changed(before[at].get("Properties", {}), after[at].get("Properties", {}))
        if names or _names(after[at].get("Properties", {}), at[0], exports) & moved:
            seen.changed[at] = after[at]["Type"]
    # the CDK CLI leaves a stack as it is that is no longer in the app
    kept = {name: at for name, at in old_exports.items() if at[0] in new}
    seen.rejected = [
        *_fixed_exports(kept, exports, _imports(old), moved),
        *_refused_updates(before, after, seen),
    ]
    # the version of a launch template and what a custom resource finds are other values then
    answers = ("AWS::EC2::LaunchTemplate", "Custom::")
    templates = {at for at, kind in (seen.changed | seen.replaced).items() if kind.startswith(answers)}
    for at in sorted(before.keys() & after.keys() - seen.replaced.keys()):
        kind = after[at]["Type"]
        if kind not in NODE_GROUPS:
            continue
        new_properties = after[at]["Properties"]
        names = changed(before[at]["Properties"], new_properties)
        names |= {name for name, value in new_properties.items() if _names(value, at[0], exports) & (templates | moved)}
        if names & NEW_NODES[kind]:
            seen.new_nodes[at] = kind
    return seen


def _resources(templates: Templates) -> dict[Resource, dict[str, Any]]:
    return {
        (stack, name): {**about, "Properties": _resolved(about.get("Properties", {}))}
        for stack, template in templates.items()
        for name, about in template["Resources"].items()
        if about["Type"] != "AWS::CDK::Metadata"
    }


PSEUDO = {
    "AWS::AccountId": "111122223333",
    "AWS::Partition": "aws",
    "AWS::Region": "us-east-2",
    "AWS::URLSuffix": "amazonaws.com",
}


def _resolved(value: Any) -> Any:
    """The value with pseudo parameters filled in: CloudFormation compares values, not how they are written."""
    if isinstance(value, list):
        return [_resolved(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"Ref"} and value["Ref"] in PSEUDO:
        return PSEUDO[value["Ref"]]
    if value.keys() == {"Fn::Sub"} and isinstance(value["Fn::Sub"], str):
        text = value["Fn::Sub"]
        for name, filled in PSEUDO.items():
            text = text.replace(f"${{{name}}}", filled)
        return text if "${" not in text else {"Fn::Sub": text}
    if value.keys() == {"Fn::Join"}:
        between, parts = value["Fn::Join"]
        parts = [_resolved(each) for each in parts] if isinstance(parts, list) else parts
        joined: list[Any] = []
        for part in parts:
            if joined and not between and isinstance(part, str) and isinstance(joined[-1], str):
                joined[-1] += part
            else:
                joined.append(part)
        if len(joined) == 1 and isinstance(joined[0], str):
            return joined[0]
        return {"Fn::Join": [between, joined]}
    return {key: _resolved(inner) for key, inner in value.items()}


def _exports(templates: Templates) -> dict[str, Resource]:
    found = {}
    for stack, template in templates.items():
        for output in template.get("Outputs", {}).values():
            if name := output.get("Export", {}).get("Name"):
                for named in _names(output["Value"], stack, {}):
                    found[str(name)] = named
    return found


def _imports(templates: Templates) -> set[str]:
    return {name for template in templates.values() for name in _imported(template["Resources"])}


def _imported(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _imported(each)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key == "Fn::ImportValue" and isinstance(inner, str):
                yield inner
            else:
                yield from _imported(inner)


def _fixed_exports(
    old: dict[str, Resource], new: dict[str, Resource], imported: set[str], moved: set[Resource]
) -> Iterator[str]:
    """An export that a stack imports is neither deleted nor changed; a stack is deployed before those that import it.

    Source: CloudFormation User Guide, "Get exported outputs from a deployed CloudFormation stack" (2026).
    """
    for name in sorted(imported & old.keys()):
        if name not in new or new[name] in moved:
            yield f"export {name} is in use"


def _refused_updates(
    before: dict[Resource, dict[str, Any]], after: dict[Resource, dict[str, Any]], seen: Observed
) -> Iterator[str]:
    """Changes that the schema allows and the service's update call does not take."""
    for at, kind in seen.changed.items():
        old, new = before[at]["Properties"], after[at]["Properties"]
        for path in ONLY_HIGHER.get(kind, ()):
            values = _at(old, path), _at(new, path)
            if all(isinstance(value, int) for value in values) and values[1] < values[0]:
                yield f"{at[1]}: {path} is only raised"
        if (
            new.get("FileSystemType") == "OPENZFS"
            and 0 < new["StorageCapacity"] - old["StorageCapacity"] < old["StorageCapacity"] / 10
        ):
            yield f"{at[1]}: FSx grows OpenZFS by a tenth or more"
        lustre = new.get("LustreConfiguration", {})
        if lustre.get("EfaEnabled") and "PerUnitStorageThroughput" in changed(
            old.get("LustreConfiguration", {}), lustre
        ):
            yield f"{at[1]}: FSx changes no throughput tier with EFA"
        if kind == "AWS::FSx::FileSystem":
            yield from (f"{at[1]}: UpdateFileSystem takes no {path}" for path in _unknown_to_fsx(old, new))


def _at(properties: Any, path: str) -> Any:
    for key in path.split("."):
        properties = properties.get(key) if isinstance(properties, dict) else None
    return properties


def _unknown_to_fsx(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    shape = botocore.session.get_session().get_service_model("fsx").operation_model("UpdateFileSystem").input_shape
    for name in sorted(changed(old, new) - {"Tags"}):
        member = shape.members.get(name)
        if member is None:
            yield name
        elif member.type_name == "structure":
            yield from (
                f"{name}.{each}"
                for each in sorted(changed(old.get(name, {}), new.get(name, {})))
                if each not in member.members
            )


def _replaced(
    old: dict[str, Any], new: dict[str, Any], stack: str, moved: set[Resource], exports: dict[str, Resource]
) -> bool:
    kind = new["Type"]
    if old["Type"] != kind:
        return True
    before, after = old.get("Properties", {}), new.get("Properties", {})
    for pointer in schemas.create_only(kind, REGION):
        values = schemas.values_at(before, pointer), schemas.values_at(after, pointer)
        if values[0] != values[1] or _names(values[1], stack, exports) & moved:
            return True
    return handler_of(kind).replaces(before, after)


def _names(value: Any, stack: str, exports: dict[str, Resource]) -> set[Resource]:
    """Resources that a value refers to, in its own stack and through exports."""
    return set(_references(value, stack, exports))


def _references(value: Any, stack: str, exports: dict[str, Resource]) -> Iterator[Resource]:
    if isinstance(value, list):
        for each in value:
            yield from _references(each, stack, exports)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key == "Ref" and isinstance(inner, str):
                yield stack, inner
            elif key == "Fn::GetAtt":
                yield stack, inner[0] if isinstance(inner, list) else inner.split(".")[0]
            elif key == "Fn::ImportValue" and inner in exports:
                yield exports[inner]
            else:
                yield from _references(inner, stack, exports)
