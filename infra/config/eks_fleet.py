"""Rules between an EKS control plane and the rest of the file."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING

from infra.catalog import catalog, eks
from infra.config.eks import Eks
from infra.config.problems import Path, Problem

if TYPE_CHECKING:
    from infra.config.environment import Environment

NODES_PER_GROUP = 100
"""Nodes of a managed node group that every account has; newer accounts may have more (not verified)."""


def eks_problems(environment: "Environment", settings: Eks) -> Iterator[Problem]:
    """What speaks against running the fleet of `environment` under `settings`, its control plane."""
    yield from _subnets(environment)
    yield from _internet(environment, settings)
    yield from _purchases(environment)
    yield from _node_counts(environment)
    yield from _lustre_efa(environment)
    yield from _device_stacks(environment, settings)
    yield from _ultraservers(environment, settings)
    yield from _team_groups(environment, settings)
    yield from _quotas(environment, settings)
    yield from _members(settings)


def _subnets(environment: "Environment") -> Iterator[Problem]:
    """EKS puts its interfaces into two zones or more (EKS User Guide, "VPC and subnet requirements")."""
    existing = environment.network.existing
    if existing and len(set(existing.control_plane_subnet_ids)) < 2:
        message = "EKS needs subnets in at least two zones; one is named"
        at = ("network", "existing", "control_plane_subnet_ids")
        yield Problem("eks-subnets", at, message, "add a private subnet of another zone")


def _internet(environment: "Environment", settings: Eks) -> Iterator[Problem]:
    create = environment.network.create
    if create and not create.nat_gateways and not settings.chart_mirror:
        message = "without NAT gateways the cluster reaches neither charts nor images"
        at = ("network", "create", "nat_gateways")
        yield Problem("charts-without-internet", at, message, "set nat_gateways: 1, or control_plane.chart_mirror")


def _purchases(environment: "Environment") -> Iterator[Problem]:
    for i, group in enumerate(environment.node_groups):
        at: Path = ("node_groups", i, "purchase")
        if group.purchase.type == "interruptible_reservation":
            message = "EKS managed node groups do not launch into interruptible reservations"
            hint = "set type: reservation, capacity_block or spot"
            yield Problem("purchase-not-on-eks", (*at, "type"), message, hint)
        starts = group.purchase.start_time
        if starts and starts < datetime.now(UTC):
            message = f"the capacity block began at {group.purchase.starts}; the next change would set its nodes to 0"
            yield Problem("capacity-block-started", (*at, "starts"), message, "remove starts")


def _node_counts(environment: "Environment") -> Iterator[Problem]:
    for i, group in enumerate(environment.node_groups):
        if group.max_count > NODES_PER_GROUP and not group.purchase.ultraserver:
            message = f"{group.max_count} nodes; accounts have {NODES_PER_GROUP} a managed node group, some more"
            hint = "check the quota, or split the group"
            yield Problem("eks-node-quota", ("node_groups", i, "count"), message, hint, "warning")


def _lustre_efa(environment: "Environment") -> Iterator[Problem]:
    """AWS documents Lustre over EFA for Ubuntu; AL2023's GPU images were not verified (EKS User Guide, FSx CSI)."""
    if environment.storage.lustre and environment.storage.lustre.efa:
        message = "Lustre over EFA is documented for Ubuntu; whether EKS's AL2023 images take it is open"
        hint = "check `lnetctl net show --net efa` on the first node: without it, Lustre runs over TCP"
        yield Problem("lustre-efa-on-eks", ("storage", "lustre", "efa"), message, hint, "warning")


def _device_stacks(environment: "Environment", settings: Eks) -> Iterator[Problem]:
    """Two stacks on a node give the same GPU to two pods without a word (EKS User Guide, device management)."""
    if isinstance(settings.device_stack, str):
        return
    names = [group.name for group in environment.node_groups]
    named = {stack: getattr(settings.device_stack, stack) for stack in type(settings.device_stack).model_fields}
    for stack, groups in named.items():
        for i, name in enumerate(groups):
            if name not in names:
                at: Path = ("control_plane", "device_stack", stack, i)
                yield _unknown("device-stack-node-group-unknown", at, name, names)
    for name, times in Counter(name for groups in named.values() for name in groups).items():
        if times > 1:
            stacks = " and ".join(settings.device_stacks(name)) or "one stack"
            message = f"{name} is served by {stacks}; two on a node give the same GPU away twice"
            at = ("control_plane", "device_stack")
            yield Problem("device-stack-conflict", at, message, f"name {name} once")
    for i, name in enumerate(names):
        if not settings.device_stacks(name):
            message = f"no device stack serves {name}, so Kubernetes would not see its GPUs"
            hint = f"add {name} to a list of control_plane.device_stack"
            yield Problem("device-stack-missing", ("node_groups", i, "name"), message, hint)


def _ultraservers(environment: "Environment", settings: Eks) -> Iterator[Problem]:
    """NVLink between instances comes with the DRA driver's ComputeDomains.

    Source: EKS User Guide, "Use P6e-GB200 UltraServers with Amazon EKS" (2026).
    """
    for i, group in enumerate(environment.node_groups):
        if group.instance_type not in catalog or not group.hardware.ultraserver_only:
            continue
        if eks.older(settings.kubernetes_version, eks.ULTRASERVER_KUBERNETES):
            message = f"{group.instance_type} needs Kubernetes {eks.ULTRASERVER_KUBERNETES} or newer"
            hint = f'set kubernetes_version: "{eks.NEWEST_TESTED}"'
            yield Problem("kubernetes-too-old", ("control_plane", "kubernetes_version"), message, hint)
        if settings.karpenter:
            message = f"{group.instance_type} takes the DRA driver, and Karpenter serves no pods that claim from it"
            yield Problem("karpenter-with-dra", ("control_plane", "karpenter"), message, "set karpenter: false")
        if "dra" in settings.used_device_stacks and "dra" not in settings.device_stacks(group.name):
            message = f"{group.name} needs the DRA driver for NVLink alone, and other groups need it for their GPUs"
            at: Path = ("node_groups", i, "name")
            hint = f"name {group.name} under device_stack.dra too, and under nothing else"
            yield Problem("device-stack-ultraserver", at, message, hint)


def _team_groups(environment: "Environment", settings: Eks) -> Iterator[Problem]:
    names = [group.name for group in environment.node_groups]
    for i, team in enumerate(settings.teams):
        for j, name in enumerate(team.node_groups):
            if name not in names:
                at: Path = ("control_plane", "teams", i, "node_groups", j)
                yield _unknown("team-node-group-unknown", at, name, names)
            elif name in team.node_groups[:j]:
                message = f"{name} is node_groups[{team.node_groups.index(name)}] already"
                yield Problem("duplicate-name", ("control_plane", "teams", i, "node_groups", j), message, "remove it")
    used = {name for team in settings.teams for name in team.node_groups}
    for i, name in enumerate(names):
        if name not in used:
            message = f"no team uses {name}, so no job could run on it"
            hint = f"add {name} to a team of control_plane"
            yield Problem("node-group-without-team", ("node_groups", i, "name"), message, hint)


def _quotas(environment: "Environment", settings: Eks) -> Iterator[Problem]:
    for group in environment.node_groups:
        if group.instance_type not in catalog:
            continue
        gpus, has = group.hardware.gpu_count, group.max_count * group.hardware.gpu_count
        claimed = 0
        for i, team in enumerate(settings.teams):
            quota = team.quotas.get(group.name, 0)
            claimed += quota
            at: Path = ("control_plane", "teams", i, "gpus")
            if quota and claimed > has:
                message = f"teams up to {team.name} claim {claimed} GPUs of {group.name}, which has {has}"
                left = max(0, has - claimed + quota)
                hint = f"set gpus: {left}" if left else "lower the quotas of other teams"
                yield Problem("quota-above-fleet", at, message, hint)
            if quota % gpus:
                message = f"{quota} GPUs of {group.name} are no whole number of nodes with {gpus}"
                hint = f"set gpus: {quota - quota % gpus or gpus}, unless jobs take parts of nodes"
                yield Problem("quota-not-whole-nodes", at, message, hint, "warning")


def _members(settings: Eks) -> Iterator[Problem]:
    """A role has one access entry in a cluster, so it belongs to the administrators or to one team."""
    seen = dict.fromkeys(settings.admins, "admins")
    for i, team in enumerate(settings.teams):
        for j, role in enumerate(team.members):
            if role in seen:
                message = f"{role} is among {seen[role]} already; a role has one access entry in a cluster"
                at: Path = ("control_plane", "teams", i, "members", j)
                yield Problem("duplicate-name", at, message, "name another role")
            seen.setdefault(role, f"the members of {team.name}")


def _unknown(code: str, at: Path, name: str, names: list[str]) -> Problem:
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]}?" if near else "choose one of them"
    return Problem(code, at, f"{name} is not a node group; there are {', '.join(names)}", hint)  # type: ignore[arg-type]
