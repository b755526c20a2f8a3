"""The differences between two environment files, each with the effect of its deployment."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from ultracluster.config.cluster_effects import SIZE, pcs_size
from ultracluster.config.effect_rules import ANOTHER_KIND
from ultracluster.config.effects import ByValue, Change, Effect, Effects, Plane, refused
from ultracluster.config.environment import Environment
from ultracluster.config.node_groups import NodeGroup

IDENTITIES = ("name", "path")
"""Keys that identify entries of a list, so that a new order of a list is no difference."""

KUBERNETES_IMAGES = ("control_plane.kubernetes_version", "control_plane.image_release")
"""Keys whose change updates only the images of node groups on EKS."""

PROPERTIES = ("tags", "control_plane.node_repair", "control_plane.device_stack", "observability.auto_repair")
"""Prefixes of paths whose change updates other properties of every node group on EKS."""


class Difference(NamedTuple):
    """One changed value: its path, both values, the effect, and the names of the affected node groups.

    `field` is the model and the key whose annotation has the effect.
    """

    path: str
    old: Any
    new: Any
    effect: Effect
    nodes: tuple[str, ...]
    field: tuple[str, str] = ("", "")


def compare(before: Environment, after: Environment) -> list[Difference]:
    """The differences between two environments, in the order of the fields of the models."""
    if before.control_plane.type != after.control_plane.type:
        kinds = before.control_plane.type, after.control_plane.type
        return [Difference("control_plane.type", *kinds, ANOTHER_KIND, ())]
    found = list(_section(before, after, "", before, after))
    found += _implied_size(before, after, found)
    return [*found, *_mixed_changes(before, found)]


def effects_of(model: type[BaseModel], key: str) -> Effects | None:
    """`Effects` in the annotation of a field; None if there are none."""
    return next((each for each in model.model_fields[key].metadata if isinstance(each, Effects)), None)


def _section(
    old: BaseModel, new: BaseModel, path: str, before: Environment, after: Environment
) -> Iterator[Difference]:
    for key in type(new).model_fields:
        effects = effects_of(type(new), key)
        if effects is None:
            continue
        values = getattr(old, key), getattr(new, key)
        here = f"{path}.{key}" if path else key
        change = Change(here, *values, old, new, before, after)
        yield from _value(change, effects)


def _value(change: Change, effects: Effects) -> Iterator[Difference]:
    old, new = change.old, change.new
    if effects.whole or not (_holds_sections(old) or _holds_sections(new)):
        if old != new:
            yield _difference(change, effects, added=_absent(old), removed=_absent(new))
    elif isinstance(old, BaseModel) and type(old) is type(new):
        yield from _section(old, new, change.path, change.before, change.after)
    elif isinstance(old, tuple | Mapping):
        yield from _entries(change, effects)
    elif old != new:
        yield _difference(change, effects, added=_absent(old), removed=_absent(new))


def _entries(change: Change, effects: Effects) -> Iterator[Difference]:
    old, new = _by_name(change.old), _by_name(change.new)
    for name in dict.fromkeys([*old, *new]):
        path = f"{change.path}[{name}]"
        values = old.get(name), new.get(name)
        entry = Change(path, *values, change.old_owner, change.owner, change.before, change.after)
        if isinstance(values[0], BaseModel) and type(values[0]) is type(values[1]):
            yield from _section(*values, path, change.before, change.after)  # type: ignore[arg-type]
        elif values[0] != values[1]:
            yield _difference(entry, effects, added=values[0] is None, removed=values[1] is None)


def _by_name(entries: Any) -> dict[str, Any]:
    if isinstance(entries, Mapping):
        return dict(entries)
    return {_identity(entry, i): entry for i, entry in enumerate(entries)}


def _identity(entry: Any, index: int) -> str:
    return str(next((getattr(entry, key) for key in IDENTITIES if hasattr(entry, key)), index))


def _holds_sections(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(isinstance(each, BaseModel) for each in value.values())
    return isinstance(value, BaseModel) or (isinstance(value, tuple) and any(isinstance(e, BaseModel) for e in value))


def _absent(value: Any) -> bool:
    return value is None or value == "none" or value == () or value is False


def _difference(change: Change, effects: Effects, *, added: bool = False, removed: bool = False) -> Difference:
    plane: Plane = change.before.control_plane.type
    effect = effects.of(plane, added=added and not removed, removed=removed and not added)
    if isinstance(effect, ByValue):
        effect = effect.decide(change)
    key = change.path.rpartition(".")[2].partition("[")[0]
    nodes = tuple(_nodes(change, effect))
    return Difference(change.path, change.old, change.new, effect, nodes, (type(change.owner).__name__, key))


def _nodes(change: Change, effect: Effect) -> Iterator[str]:
    """Names of the node groups of the old file that an effect is about."""
    environment = change.before
    on_pcs = environment.control_plane.type == "pcs"
    groups: tuple[NodeGroup, ...] = environment.node_groups
    match effect.nodes:
        case "group":
            name = _group_of(change)
            yield from (block.name for group in groups if group.name == name for block in group.blocks())
        case "efa":
            yield from (block.name for group in groups if group.lustre_over_efa for block in group.blocks())
        case "groups":
            yield from (group.name for group in environment.launched_groups)
        case "gpus":
            yield from (block.name for group in groups if group.hardware.gpu_count for block in group.blocks())
        case "scripts":
            yield from (block.name for group in groups if group.bootstrap for block in group.blocks())
        case "zones":
            yield from (group.name for group in groups if group.zones)
        case "fleet" | "images":
            every = effect.nodes == "fleet"
            yield from (group.name for group in environment.launched_groups if every or group.image == "auto")
            yield from ("login",) if on_pcs else ("system",)
            if not on_pcs and environment.control_plane.cpu_nodes.count:
                yield "cpu"
        case "":
            return
        case other:
            yield other


def _group_of(change: Change) -> str:
    return change.path.partition("node_groups[")[2].partition("]")[0]


def _implied_size(before: Environment, after: Environment, found: list[Difference]) -> Iterator[Difference]:
    """`size: auto` resolves to another size when the fleet grows."""
    if before.control_plane.type == "pcs" and not any(each.path == "control_plane.size" for each in found):
        sizes = [f"auto ({pcs_size(each)})" for each in (before, after)]
        if pcs_size(before) != pcs_size(after):
            planes = before.control_plane, after.control_plane
            yield _difference(Change("control_plane.size", sizes[0], sizes[1], *planes, before, after), SIZE)


def _mixed_changes(before: Environment, found: list[Difference]) -> Iterator[Difference]:
    """CloudFormation allows one kind of change of an EKS node group at a time (docs/operations-kubernetes.md)."""
    if before.control_plane.type != "eks":
        return
    for name in [*(group.name for group in before.launched_groups), "system", "cpu"]:
        kinds: dict[str, list[str]] = {}
        for each in found:
            if kind := _kind_of_change(each, name):
                kinds.setdefault(kind, []).append(each.path)
        if len(kinds) > 1:
            paths = "; ".join(f"{kind}: {', '.join(paths)}" for kind, paths in kinds.items())
            first = "deploy them one kind at a time"
            effect = refused(first, f"CloudFormation allows one kind of change of a node group at a time. {paths}")
            yield Difference(f"node group {name}", None, None, effect, (name,))


def _kind_of_change(each: Difference, name: str) -> str:
    """The kind of an update of the node group `name` on EKS; empty if the change does not update it."""
    if each.effect.kind == "nodes" and name in each.nodes:
        return "images" if each.path in KUBERNETES_IMAGES else "launch template"
    own = each.path.startswith(f"node_groups[{name}].") or each.path.startswith(PROPERTIES)
    return "other properties" if own and each.effect.kind == "in-place" else ""
