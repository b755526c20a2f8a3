"""What the nodes of an environment do at boot, in order, for people: `ultracluster validate --explain`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ultracluster.catalog.health import MINUTES, CheckLevel
from ultracluster.catalog.nfs import EFS_OPTIONS, OPENZFS_OPTIONS
from ultracluster.config.acceptance import Acceptance
from ultracluster.config.bootstrap import Script
from ultracluster.config.environment import Environment
from ultracluster.config.file_systems import HOME, MoreLustre
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.pcs import Login, Pcs
from ultracluster.config.slurm_settings import serves_metrics
from ultracluster.config.storage import Storage
from ultracluster.nodes import bootstrap
from ultracluster.nodes.containers import container_source
from ultracluster.nodes.eks import group_steps
from ultracluster.nodes.lustre import LustreMount
from ultracluster.nodes.mounts import Mount, NfsMount
from ultracluster.nodes.pcs import JobRole, compute_node_steps, login_node_steps, own_programs
from ultracluster.nodes.steps import Step
from ultracluster.nodes.telemetry import Telemetry
from ultracluster.nodes.users import DirectorySource, UserSource

LOGGED = "it is logged"

UNKNOWN = ("PARAMETER", "LOG-GROUP", "JOB-ROLE")
"""Placeholders of arguments that are unknown before the deployment; descriptions leave them out."""

_OPTIONAL = re.compile(r" and, on nodes with [^,]*, [^,$]*\$(\d)")
"""Part of a sentence about an argument that some nodes do not get."""


@dataclass(frozen=True)
class PlannedStep:
    """A generated step, or a script of the user, which has `sha256` and `timeout_seconds`.

    `frequency` is "first boot" or "every boot", `failure` the consequence of a failure.
    """

    name: str
    does: str
    frequency: str
    failure: str
    sha256: str = ""
    timeout_seconds: int = 0


@dataclass(frozen=True)
class BootPlan:
    """The steps of a group of nodes in order, with the policies and security groups that the user added.

    `nodes` is the maximum count, `minimum_nodes` the minimum.
    """

    name: str
    instance_types: tuple[str, ...]
    nodes: int
    steps: tuple[PlannedStep, ...]
    policies: tuple[str, ...]
    security_groups: tuple[str, ...]
    minimum_nodes: int


def boot_plans(environment: Environment) -> list[BootPlan]:
    """The plan of the login nodes and of each node group as it is launched."""
    plane, storage, region = environment.control_plane, environment.storage, environment.region
    if not isinstance(plane, Pcs):
        failure = "the node powers off before it joins, and is replaced"
        plans = ((group, [*group_steps(group, storage.client), *_own(group)]) for group in environment.launched_groups)
        booted = ((group, _plan(group.name, group, group.max_count, steps, failure)) for group, steps in plans)
        health = environment.health
        return [_accepted(plan, health.acceptance("eks", group.hardware.gpu_count)) for group, plan in booted]
    mounts, telemetry, users = _mounts(storage), _telemetry(environment, plane), _users(environment)
    containers = container_source(plane)
    job_role = JobRole("JOB-ROLE", region) if plane.metadata_access == "root" else None
    login = login_node_steps(
        mounts,
        queue_folders=storage.lustre.mount_path if storage.lustre else None,
        open_folders=storage.open_folders,
        instance_type=plane.login.instance_type,
        telemetry=telemetry,
        bootstrap=plane.login.boot_scripts,
        region=region,
        users=users,
        health=environment.health,
        containers=containers,
        job_role=job_role,
    )
    found = [_plan("login", plane.login, plane.login.count, login, "the node stays")]
    programs, failure = own_programs(plane.slurm_settings), "the node takes no jobs; PCS terminates it"
    for group in environment.launched_groups:
        steps = compute_node_steps(
            group,
            mounts,
            telemetry=telemetry,
            own_programs=programs,
            record_output=plane.record_output,
            region=region,
            users=users,
            health=environment.health,
            containers=containers,
            job_role=job_role,
        )
        found.append(_plan(group.name, group, group.max_count, steps, failure))
    return found


def _users(environment: Environment) -> UserSource | DirectorySource | None:
    """The source of users; the name of its parameter is unknown before the deployment."""
    access = environment.access
    if access.directory:
        return DirectorySource(access.directory, environment.region)
    return UserSource("PARAMETER", environment.region, bool(environment.storage.homes)) if access.users else None


def _own(group: NodeGroup) -> list[Step]:
    own = bootstrap.bootstrap_step(group.boot_scripts, region="", node_group=group.name)
    return [own] if own else []


def _mounts(storage: Storage) -> list[Mount]:
    """The file systems of nodes; their DNS names are unknown before the deployment."""
    named = [(HOME, storage.homes)] if storage.homes else []
    named += [(each.mount_path, each) for each in storage.more if not isinstance(each, MoreLustre)]
    over_nfs = [
        NfsMount("FILE-SYSTEM:/", path, OPENZFS_OPTIONS if each.type == "openzfs" else EFS_OPTIONS)
        for path, each in named
    ]
    systems = [LustreMount("FILE-SYSTEM", "NAME", each.mount_path, each.efa) for _, each in storage.all_lustre]
    return [*over_nfs, *systems]


def _telemetry(environment: Environment, plane: Pcs) -> Telemetry:
    section = environment.observability
    return Telemetry(
        remote_write_url="WORKSPACE" if section.collects_metrics else None,
        log_group="LOG-GROUP",
        region=environment.region,
        cluster="CLUSTER",
        environment=environment.name,
        interval=section.scrape_interval_seconds,
        mirror=plane.image_mirror,
        slurm=serves_metrics(plane.slurm_settings, plane.slurm_version),
        drop=section.drop,
    )


def _plan(name: str, group: NodeGroup | Login, nodes: int, steps: Sequence[Step], failure: str) -> BootPlan:
    ordered = sorted(steps, key=lambda step: step.stage == "ready")  # on PCS after all others, when the node has joined
    planned = tuple(each for step in ordered for each in _planned(step, group.boot_scripts, failure))
    types = (group.instance_type,) if isinstance(group, Login) else group.types
    least = nodes if isinstance(group, Login) else group.min_count
    return BootPlan(name, types, nodes, planned, group.policies, group.security_groups, least)


def _planned(step: Step, scripts: Sequence[Script], failure: str) -> Iterator[PlannedStep]:
    when = "first boot" if step.frequency == "first_boot" else "every boot"
    if step.name != bootstrap.NAME:
        if step.name == "admit-jobs" and step.arguments:
            yield _admission(step, when, failure)
        else:
            yield PlannedStep(step.name, summary(step), when, failure if step.required else LOGGED)
        return
    for script in scripts:
        outcome = failure if script.on_failure == "stop" else LOGGED
        does = f"your script, version {script.version_id}" if script.s3 else "your script"
        yield PlannedStep(script.source, does, when, outcome, script.checksum, script.timeout_seconds)


def _admission(step: Step, when: str, failure: str) -> PlannedStep:
    """The step that checks a node before its first job, with its duration."""
    level, on_failure, *_ = step.arguments
    does = f"{summary(step)}, after {level} checks of {minutes('full' if level == 'full' else 'fast')}"
    return PlannedStep(step.name, does, when, failure if on_failure == "replace" else "the node joins and is drained")


def minutes(level: CheckLevel) -> str:
    """Duration of the checks of a level, in words."""
    least, most = MINUTES[level]
    return f"{least} to {most} minutes" if least else f"at most {most} minute{'s' * (most > 1)}"


def _accepted(plan: BootPlan, acceptance: Acceptance | None) -> BootPlan:
    """The plan of an EKS group, extended by the acceptance of nodes that have joined."""
    if acceptance is None:
        return plan
    does = f"the startup taint is removed after {acceptance.level} checks of {minutes(acceptance.level)}"
    outcome = "powers off" if acceptance.replaces else "waits for a person"
    step = PlannedStep("node-acceptance", does, "first boot", f"the node keeps a taint and {outcome}")
    return replace(plan, steps=(*plan.steps, step))


def summary(step: Step) -> str:
    """The first sentence of the comment on a script, with the arguments of the step."""
    comment = " ".join(line.lstrip("# ") for line in _comment(step.script.text))
    sentence = re.split(r"[.:](?:\s|$)", comment, maxsplit=1)[0]
    sentence = _OPTIONAL.sub(lambda found: found[0] if len(step.arguments) >= int(found[1]) else "", sentence)
    filled = re.sub(r"\$(\d)(\.\.\.)?", lambda found: _argument(step, int(found[1]), rest=bool(found[2])), sentence)
    return " ".join(filled.split())


def _comment(text: str) -> Iterator[str]:
    for line in text.splitlines()[1:]:
        if not line.startswith("#"):
            return
        yield line


def _argument(step: Step, number: int, *, rest: bool) -> str:
    given = step.arguments[number - 1 :] if rest else step.arguments[number - 1 : number]
    named = (name.partition("@sha256:")[0] or "none" for name in given if name not in UNKNOWN)
    return " ".join(named) if given else "none"
