"""Rules about the instance types, limits and zones of one pool of Karpenter."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ultracluster.catalog import InstanceType, UltraClusterType, instance_types, interface_layout
from ultracluster.catalog.ec2_types import family_types, nearest_families, read_on
from ultracluster.config.group_types import type_problem
from ultracluster.config.problems import Path, Problem


def pool_type_problems(
    names: Sequence[str], families: Sequence[str], markets: Sequence[str], *, efa: bool
) -> Iterator[Problem]:
    """Problems of `instance_types` and `families` of a pool that buys in `markets`, at its paths."""
    if bool(names) == bool(families):
        message = "both instance_types and families are set" if names else "the pool has no instance types"
        hint = "remove one of them" if names else "add families: [g6e], or instance_types"
        yield Problem("instance-type-choice", (), message, hint)
        return
    good: list[tuple[Path, str, list[InstanceType]]] = []
    for i, name in enumerate(names):
        at: Path = ("instance_types", i)
        problems = [_as_family(name, each) for each in (*type_problem(at, name), *_ultraserver(at, name, name))]
        yield from problems
        if not problems:
            yield from _not_sold(at, name, markets)
            good.append((at, name, [instance_types[name]]))
    for i, family in enumerate(families):
        at = ("families", i)
        problems = list(_family(at, family))
        yield from problems
        if not problems:
            good.append((at, family, [instance_types[name] for name in family_types(family)]))
    yield from _alike(good, efa=efa)


def _family(at: Path, family: str) -> Iterator[Problem]:
    types = family_types(family)
    if not types:
        message = f"{family} is not a family in the list of EC2 instance types of {read_on()}"
        near = nearest_families(family)
        hint = f"did you mean {' or '.join(near)}?" if near else "name a family, such as g6e"
        hint = f"set instance_types: [{family}]" if "." in family and family in instance_types else hint
        yield Problem("unknown-instance-family", at, message, hint)
        return
    yield from list(type_problem(at, types[0])) or _ultraserver(at, types[0], family)


def _as_family(name: str, problem: Problem) -> Problem:
    """`problem` of an instance type, with the key of a pool that takes families."""
    family = name.removesuffix(".*")
    if problem.code != "unknown-instance-type" or not family_types(family):
        return problem
    return replace(problem, hint=f"set families: [{family}] instead of instance_types")


def _ultraserver(at: Path, name: str, written: str) -> Iterator[Problem]:
    if name in instance_types and instance_types[name].ultraserver_only:
        message = f"AWS sells {written} only in capacity blocks of UltraServers, which Karpenter does not launch"
        yield Problem("pool-of-ultraservers", at, message, "make it a node group")


def _not_sold(at: Path, name: str, markets: Sequence[str]) -> Iterator[Problem]:
    """The records age, so this is only a warning."""
    classes = instance_types[name].usage_classes
    for market in markets:
        if market.replace("_", "-") not in classes:
            message = f"on {read_on()} EC2 listed {name} for {' and '.join(sorted(classes))} only, not for {market}"
            yield Problem("purchase-not-listed", at, message, "set purchase to what EC2 sells", "warning")


def _alike(entries: Sequence[tuple[Path, str, list[InstanceType]]], *, efa: bool) -> Iterator[Problem]:
    """All nodes of a pool have the taint of GPUs or none; programs and images are for one architecture."""
    first: InstanceType | None = None
    for at, written, kinds in entries:
        without = next((each.name for each in kinds if not each.efa), None)
        if efa and without:
            message = f"{without} has no EFA"
            yield Problem("efa-not-on-type", at, message, "list instance_types that all have EFA, or remove efa")
            continue
        first = first or kinds[0]
        for kind in kinds:
            if differs := _difference(kind, first, efa=efa):
                what = written if written == kind.name else f"{kind.name} of {written}"
                message = f"{what} has {differs[0]} and {first.name} has {differs[1]}; nodes of a pool must not differ"
                yield Problem("instance-types-differ", at, message, f"make {written} a pool of its own")
                break


def _difference(kind: InstanceType, first: InstanceType, *, efa: bool) -> tuple[str, str] | None:
    facts = [(each.architecture, "GPUs" if each.gpu_count else "no GPUs", _efa(each)) for each in (kind, first)]
    pairs = list(zip(*facts, strict=True))[: 3 if efa else 2]
    return next((pair for pair in pairs if pair[0] != pair[1]), None)


def _efa(kind: InstanceType) -> str:
    """The cards of the EFA devices, which are neighbours: one layout serves all nodes of a pool."""
    cards = [each.card for each in interface_layout(kind, "fewest_ips") if each.kind != "interface"]
    return f"{len(cards)} EFA cards from card {cards[0]} on" if cards else "no EFA"


def limit_problems(types: Sequence[InstanceType], *, cpus: int | None, gpus: int | None) -> Iterator[Problem]:
    """Limits that bind nothing, or that no node of these types fits into; types that are refused do not count."""
    types = [each for each in types if not each.accelerator]
    if not types:
        return
    least = min(types, key=lambda each: each.vcpus)
    if cpus and cpus < least.vcpus:
        message = f"the smallest node, {least.name}, has {least.vcpus} vCPUs, so Karpenter would launch none"
        yield Problem("pool-limit-too-small", ("limits", "cpus"), message, f"set cpus: {least.vcpus} or more")
    with_gpus = [each for each in types if each.gpu_count]
    if gpus and not with_gpus:
        message = f"{least.name} has no GPUs, so this limits nothing"
        yield Problem("pool-limit-ignored", ("limits", "gpus"), message, "set cpus or nodes instead of gpus")
    elif gpus:
        least = min(with_gpus, key=lambda each: each.gpu_count)
        if gpus < least.gpu_count:
            message = f"the smallest node, {least.name}, has {least.gpu_count} GPUs, so Karpenter would launch none"
            yield Problem("pool-limit-too-small", ("limits", "gpus"), message, f"set gpus: {least.gpu_count} or more")


def pool_wiring_problems(types: Sequence[InstanceType], zones: Sequence[str], *, efa: bool) -> Iterator[Problem]:
    """Nodes that talk over EFA are in one zone; types made for EFA without it are slow."""
    if zones and efa:
        message = "nodes with EFA are in the availability_zone of the environment only"
        yield Problem("zones-with-efa", "zones", message, "remove zones, or remove efa")
    made_for_efa = [each for each in types if isinstance(each, UltraClusterType) and not each.ultraserver_only]
    if made_for_efa and not efa and all(each.gpu_count > 1 for each in types):
        message = f"{made_for_efa[0].name} is made for jobs over EFA; without it they fall back to TCP"
        yield Problem("efa-not-used", "efa", message, "set efa: true", "warning")
