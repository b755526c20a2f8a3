"""Health of nodes: when they are checked, what happens to one with a fault, and spare nodes."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field

from ultracluster.catalog import InstanceType, instance_types
from ultracluster.catalog.health import floors
from ultracluster.config import cluster_effects
from ultracluster.config.acceptance import Acceptance, OnFailure, decide
from ultracluster.config.codes import Code
from ultracluster.config.effect_rules import JOBS_FIRST
from ultracluster.config.effects import ByValue, Change, Effect, Effects, On
from ultracluster.config.eks import Eks
from ultracluster.config.fleet import Fleet
from ultracluster.config.node_groups import Controller, NodeGroup, unknown_group
from ultracluster.config.pcs import Pcs
from ultracluster.config.problems import Path, Problem
from ultracluster.config.settings import Settings

HEALTH_PROGRAM = "HealthCheckProgram"

ON_NODES = Effects(On(pcs=Effect("nodes", "groups"), eks=Effect("none")))


def _accept_on_eks(change: Change) -> Effect:
    if "none" in (change.old, change.new):
        return Effect("group", "gpus", note="the startup taint", first=JOBS_FIRST)
    return Effect("content", note="agent of nodes; applies to new nodes")


ACCEPT = Effects(
    On(
        pcs=Effect("nodes", "groups"),
        eks=ByValue("a new group to or from none; otherwise content", _accept_on_eks),
    )
)
ON_FAILURE = Effects(On(pcs=Effect("nodes", "groups"), eks=Effect("content")))


def _periodic_on_pcs(change: Change) -> Effect:
    # compute nodes get the programs of the checks if any check is on
    first_or_last = change.before.health.checks_nodes != change.after.health.checks_nodes
    return Effect("nodes", "fleet" if first_or_last else "login", jobs=cluster_effects.CONTROLLER_PAUSE)


PERIODIC = Effects(
    On(
        pcs=ByValue("replaces login nodes; the first or last check also replaces compute nodes", _periodic_on_pcs),
        eks=Effect("none"),
    )
)


def _spare_nodes(change: Change) -> Effect:
    removed = [group for group in change.old if group not in change.new]
    commands = "; ".join(f"scontrol delete reservationname=spares-{group}" for group in removed)
    return Effect("nodes", "login", note=f"Slurm keeps reservations; delete them: {commands}" if removed else "")


SPARES = Effects(
    On(
        pcs=ByValue("replaces login nodes; Slurm reservations of groups without spares stay", _spare_nodes),
        eks=Effect("content"),
    ),
    whole=True,
)

MIG_PROFILE = re.compile(r"\b\d+g\.\d+gb\b")
"""A MIG profile in Gres, such as gpu:1g.10gb:7 (NVIDIA, "MIG User Guide")."""


class Health(Settings):
    """Health checks of nodes, and spare nodes.

    `fast` checks read nvidia-smi and the state of NVLink, EFA and Lustre: seconds, beside jobs. `full` checks run
    DCGM's diagnostics, memory bandwidth and NCCL on idle GPUs: minutes. On PCS a node with a fault is drained: its jobs
    run to their end. Then a node of a static group stays for inspection, and one of a dynamic group is replaced.

    On EKS, new nodes with GPUs have a startup taint until they are accepted. From then on AWS's node monitoring agent
    checks them, and EKS node repair acts. There is no prolog.
    """

    accept: Annotated[Literal["none", "fast", "full"], ACCEPT] = "fast"
    """Checks of a new node before its first job. `ultracluster job --kind nccl-pairs` tests pairs of nodes."""
    prolog: Annotated[Literal["none", "fast"], ON_NODES] = "fast"
    """Checks of a node before each job. A node that fails is drained, and the job is requeued. PCS only."""
    periodic: Annotated[Literal["none", "fast"], PERIODIC] = "fast"
    """Checks every five minutes, beside jobs. On EKS, AWS's node monitoring agent does them."""
    on_failure: Annotated[OnFailure, ON_FAILURE] = "drain"
    """What happens to a new node that is not accepted: drained for inspection, or terminated."""
    spares: Annotated[Mapping[str, Annotated[int, Field(ge=1)]], SPARES] = Field(default_factory=dict)
    """Number of nodes by node group that jobs get only as a replacement of failed nodes."""

    @property
    def checks_nodes(self) -> bool:
        """Whether any check of PCS nodes is on, so that they need the programs of the checks."""
        return (self.accept, self.prolog, self.periodic) != ("none", "none", "none")

    def acceptance(self, controller: Controller, gpus: int) -> Acceptance | None:
        """How a new node with `gpus` GPUs is accepted before its first job; None if nobody checks it."""
        return decide(self.accept, self.on_failure, controller, gpus=gpus)

    def is_set(self, name: str) -> bool:
        """Whether the file sets a key."""
        return name in self.model_fields_set


NO_CHECKS = Health(accept="none", prolog="none", periodic="none")
"""No checks and no spares."""


def health_problems(health: Health, fleet: Fleet, plane: Pcs | Eks) -> Iterator[Problem]:
    """Problems between the section and the fleet, at paths of the section."""
    yield from _without_gpus(health, fleet)
    yield from _on_failure(health)
    yield from _spares(health, fleet, plane)
    yield from _on_eks(health) if isinstance(plane, Eks) else _on_pcs(health, plane)
    yield from _full(health, fleet)


def _without_gpus(health: Health, fleet: Fleet) -> Iterator[Problem]:
    if fleet.gpu_groups or not fleet.known_groups:
        return
    if health.accept == "full":
        message = "full checks need GPUs, and no node group has any"
        yield Problem("health-full-without-gpus", "accept", message, "set accept: fast")
    used = [key for key in ("accept", "prolog", "periodic") if health.is_set(key) and getattr(health, key) == "fast"]
    if used:
        message = "no node group has GPUs, so the checks cover only EFA devices and Lustre"
        yield Problem("health-without-gpus", used[0], message, f"remove {used[0]}: it is the default", "warning")


def _on_failure(health: Health) -> Iterator[Problem]:
    if health.on_failure == "replace" and health.accept == "none":
        message = "with accept: none no node is checked before its first job, so on_failure would be ignored"
        yield Problem("health-setting-ignored", "on_failure", message, "remove on_failure, or set accept: fast")


def _on_eks(health: Health) -> Iterator[Problem]:
    if health.prolog == "none":
        message = "Kubernetes has no job prolog, so prolog would be ignored"
        yield Problem("health-setting-ignored", "prolog", message, "remove prolog")
    if health.periodic == "none":
        message = "on EKS the node monitoring agent always checks nodes, so periodic would be ignored"
        hint = "remove periodic; to disable repairs by EKS, set control_plane.node_repair: {enabled: false}"
        yield Problem("health-setting-ignored", "periodic", message, hint)


def _on_pcs(health: Health, plane: Pcs) -> Iterator[Problem]:
    setting = _overrides_periodic(plane.slurm_settings)
    if health.is_set("periodic") and health.periodic == "fast" and setting:
        message = f"{setting} of slurm_settings overrides the periodic check, so periodic is ignored"
        hint = f"remove periodic, or remove {setting}"
        yield Problem("health-setting-ignored", "periodic", message, hint, "warning")


def _overrides_periodic(settings: Mapping[str, str | int]) -> str:
    """The setting of Slurm that disables or replaces the periodic check; empty if there is none."""
    if HEALTH_PROGRAM in settings:
        return HEALTH_PROGRAM
    if str(settings.get("HealthCheckInterval", "")).strip() == "0":
        return "HealthCheckInterval"
    states = str(settings.get("HealthCheckNodeState", "")).upper()
    return "HealthCheckNodeState" if states.strip() in ("START_ONLY", "REBOOT_ONLY") else ""


def _full(health: Health, fleet: Fleet) -> Iterator[Problem]:
    """NVIDIA DCGM documentation, "DCGM Diagnostics" (2026): they do not run with MIG."""
    if health.accept != "full":
        return
    for _, group in fleet.gpu_groups:
        if uses_mig(group):
            message = f"{group.name} uses MIG, and DCGM diagnostics do not run on MIG instances"
            yield Problem("health-full-with-mig", "accept", message, "set accept: fast")
        elif missing := _missing_floors(group.hardware):
            message = (
                f"no minimum is known for {missing} on {group.type_names}, so full checks measure it without a verdict"
            )
            hint = "compare the measurements between nodes"
            yield Problem("health-floor-unknown", "accept", message, hint, "warning")


def uses_mig(group: NodeGroup) -> bool:
    """Whether Gres or gres_settings of the group name a MIG profile."""
    records = [value for record in group.gres_settings for value in record.values()]
    return any(MIG_PROFILE.search(str(value)) for value in (*group.slurm_settings.values(), *records))


def _missing_floors(hardware: InstanceType) -> str:
    """Measurements without a known floor for an instance type, in words."""
    known = floors(instance_types[hardware.name])
    memory = [] if known.memory_mb_per_s else ["memory bandwidth"]
    nccl = [] if known.nccl_gb_per_s or hardware.gpu_count == 1 else ["NCCL bandwidth"]
    return " and ".join([*memory, *nccl])


def _spares(health: Health, fleet: Fleet, plane: Pcs | Eks) -> Iterator[Problem]:
    groups = {group.name: group for group in fleet.node_groups}
    for name, spares in health.spares.items():
        at: Path = ("spares", name)
        if name not in groups:
            yield from unknown_group("health-unknown-group", at, name, list(groups))
            continue
        group = groups[name]
        if spares >= group.max_count:
            message = f"{name} has {group.max_count} nodes, so {spares} spares leave none for jobs"
            hint = (
                f"set {name}: {group.max_count - 1}, or raise count of {name}"
                if group.max_count > 1
                else f"raise count of {name}"
            )
            yield Problem("spares-beyond-fleet", at, message, hint)
        elif group.known:
            yield from _spares_of(group, spares, at, plane)


def _spares_of(group: NodeGroup, spares: int, at: Path, plane: Pcs | Eks) -> Iterator[Problem]:
    code: Code | None = None
    if not group.hardware.gpu_count:
        code, message = "spares-without-gpus", f"{group.name} has no GPUs; spares replace failed GPU nodes"
    elif group.hardware.ultraserver_only:
        code, message = (
            "spares-of-ultraservers",
            f"{group.name} consists of UltraServers, which jobs use as a whole, so no single node can be a spare",
        )
    elif isinstance(plane, Pcs) and group.min_count < group.max_count:
        code = "spares-of-dynamic-group"
        message = f"{group.name} is dynamic: PCS launches its nodes for jobs, so none waits as a spare"
    if code:
        hint = f"set count: {group.max_count}" if code == "spares-of-dynamic-group" else f"remove {group.name}"
        yield Problem(code, at, message, hint)
    elif isinstance(plane, Eks):
        yield from _spares_in_quotas(group, spares, at, plane)


def _spares_in_quotas(group: NodeGroup, spares: int, at: Path, plane: Eks) -> Iterator[Problem]:
    """Spares are nodes outside all quotas. Only Kueue limits borrowing to the sum of the quotas."""
    if plane.queues_with != "kueue":
        message = f"{plane.queues_with} lets teams borrow beyond their quotas, so it cannot keep a node as a spare"
        yield Problem("spares-without-kueue", at, message, "remove spares, or set scheduler: kueue")
        return
    gpus, each = group.max_count * group.hardware.gpu_count, group.hardware.gpu_count
    claimed = sum(team.quotas.get(group.name, 0) for team in plane.teams)
    if claimed > gpus - spares * each:
        free = (gpus - claimed) // each
        message = (
            f"quotas of teams guarantee {claimed} of {gpus} GPUs of {group.name}, which leaves {free} nodes as spares"
        )
        instead = f"set {group.name}: {free}" if free > 0 else f"remove {group.name}"
        hint = f"lower quotas by {claimed + spares * each - gpus} GPUs, or {instead}"
        yield Problem("spares-in-quotas", at, message, hint)
