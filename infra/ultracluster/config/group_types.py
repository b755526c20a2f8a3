"""Rules about the instance types and the zones of one node group."""

from collections.abc import Iterator, Sequence

from ultracluster.catalog import Interface, efa_devices, instance_types, ultraservers
from ultracluster.catalog.ec2_types import family_types, nearest, read_on
from ultracluster.catalog.instance_types import InstanceType, UltraClusterType
from ultracluster.config.problems import Path, Problem, repeated
from ultracluster.config.purchase import Purchase

_SOLD_AS = {"on_demand": "on-demand", "spot": "spot", "capacity_block": "capacity-block"}
"""EC2's usage class of purchases."""

_WITHOUT_RESERVATION = ("on_demand", "spot")


def type_problems(one: str | None, several: Sequence[str], purchase: Purchase, *, efa: bool) -> Iterator[Problem]:
    """Problems of `instance_type` and `instance_types` of a node group with or without `efa`, at its paths.

    All types of a group have the same architecture, vCPUs, GPUs and EFA cards in use: they share one image and one
    launch template, and jobs count on alike nodes (AWS PCS User Guide, compute node groups; EKS User Guide, managed
    node groups, 2026).
    """
    if (one is None) == (not several):
        message = "both instance_type and instance_types are set" if one else "the group has no instance type"
        hint = "remove one of them" if one else "add instance_type: p5.48xlarge, or another type"
        yield Problem("instance-type-choice", (), message, hint)
        return
    named: list[tuple[Path, str]] = [(("instance_type",), one)] if one is not None else []
    named += [(("instance_types", i), name) for i, name in enumerate(several)]
    for at, name in named:
        yield from type_problem(at, name)
    yield from repeated("instance_types", several)
    yield from _sold(named, purchase)
    yield from _alike(several, efa=efa)
    if len(several) > 1 and purchase.type not in _WITHOUT_RESERVATION:
        message = f"{purchase.type} launches one instance type, that of its reservation; there are {len(several)}"
        hint = "keep the type of the reservation as instance_type, or set type: on_demand or spot"
        yield Problem("instance-types-with-reservation", "instance_types", message, hint)


def type_problem(at: Path, name: str) -> Iterator[Problem]:
    """The problem of an instance type that is unknown, or whose accelerator nothing here uses."""
    family = family_types(name.removesuffix(".*"))
    if family:
        message = f"{name.removesuffix('.*')} is a family, not an instance type"
        hint = f"name sizes, such as {min(family, key=lambda each: not each.endswith('.8xlarge'))}"
        yield from list(type_problem(at, family[0])) or [Problem("unknown-instance-type", at, message, hint)]
    elif name in ultraservers:
        block = f"type: capacity_block, ultraserver: {name}, reservation_ids: [cr-...]"
        message = f"{name} is an UltraServer; its instances are {ultraservers[name].instance_type.name}"
        hint = f"set instance_type: {ultraservers[name].instance_type.name} and purchase: {{{block}}}"
        yield Problem("unknown-instance-type", at, message, hint)
    elif name not in instance_types:
        message = f"{name or repr(name)} is not in the list of EC2 instance types of {read_on()}"
        near = nearest(name)
        hint = f"did you mean {' or '.join(near)}?" if near else "`ultracluster catalog` lists those of UltraClusters"
        yield Problem("unknown-instance-type", at, message, hint)
    elif accelerator := instance_types[name].accelerator:
        has = "a part of a GPU" if accelerator == "part of a GPU" else f"{accelerator} accelerators"
        message = f"{name} has {has}; supported are whole NVIDIA GPUs, and types without accelerators"
        yield Problem(
            "accelerator-not-supported", at, message, "set a type with whole NVIDIA GPUs, or without accelerators"
        )


def _sold(named: Sequence[tuple[Path, str]], purchase: Purchase) -> Iterator[Problem]:
    """The records age, so this is only a warning; UltraServers have a rule of their own."""
    usage = _SOLD_AS.get(purchase.type)
    for at, name in named:
        kind = instance_types.get(name)
        if usage and kind and usage not in kind.usage_classes and not kind.ultraserver_only:
            sold = " and ".join(sorted(kind.usage_classes))
            message = f"on {read_on()} EC2 listed {name} for {sold} only, not for {usage}"
            yield Problem("purchase-not-listed", at, message, "set purchase.type to what EC2 sells", "warning")


def _alike(names: Sequence[str], *, efa: bool) -> Iterator[Problem]:
    known = [(i, instance_types[name]) for i, name in enumerate(names) if name in instance_types]
    if not known:
        return
    first = known[0][1]
    for i, other in known[1:]:
        for what, mine, wanted in _differences(other, first, efa=efa):
            message = f"{other.name} has {mine} {what} and {first.name} has {wanted}; nodes of a group must not differ"
            hint = f"remove {other.name}, or make it a node group of its own"
            yield Problem("instance-types-differ", ("instance_types", i), message, hint)
            break


def _differences(other: InstanceType, first: InstanceType, *, efa: bool) -> Iterator[tuple[str, str, str]]:
    facts = (
        ("as architecture", other.architecture, first.architecture),
        ("vCPUs", str(other.vcpus), str(first.vcpus)),
        ("as GPUs", _gpus(other), _gpus(first)),
        ("EFA cards", _efa(other, used=efa), _efa(first, used=efa)),
    )
    yield from ((what, mine, wanted) for what, mine, wanted in facts if mine != wanted)


def _gpus(kind: InstanceType) -> str:
    return f"{kind.gpu_count} x {kind.gpu_model}" if kind.gpu_count else "none"


def _efa(kind: InstanceType, *, used: bool) -> str:
    return str(len(kind.efa.cards)) if kind.efa and used else "no"


def wiring_problems(
    kind: InstanceType, interfaces: str, layout: Sequence[Interface], zones: Sequence[str], *, placed: bool
) -> Iterator[Problem]:
    """Problems of `interfaces` and `zones`, for a group with this layout. `placed`: it has a placement group.

    Nodes that talk over EFA are in one zone, beside the file system (EC2 User Guide, "Elastic Fabric Adapter"); a
    cluster placement group is in one zone too.
    """
    efa = efa_devices(layout) > 0
    if interfaces == "without_efa" and isinstance(kind, UltraClusterType):
        message = f"{kind.name} is made for jobs over EFA; without it they fall back to TCP"
        yield Problem("efa-not-used", "interfaces", message, "set interfaces: auto", "warning")
    elif interfaces not in ("auto", "without_efa") and not kind.efa:
        message = f"{kind.name} has no EFA, so {interfaces} would be ignored"
        yield Problem("efa-not-on-type", "interfaces", message, "remove interfaces")
    yield from repeated("zones", zones)
    if zones and efa:
        message = f"nodes of {kind.name} talk over EFA, in the availability_zone of the environment only"
        yield Problem("zones-with-efa", "zones", message, "remove zones, or set interfaces: without_efa")
    elif zones and placed:
        message = "a placement group is in one zone, which zones could contradict"
        yield Problem("zones-with-placement-group", "zones", message, "remove zones, or remove placement")
