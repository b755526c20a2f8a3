"""What the nodes of an environment do at boot, in order, for people: `ultracluster validate --explain`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ultracluster.config.bootstrap import Script
from ultracluster.config.environment import Environment
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.pcs import Login, Pcs
from ultracluster.config.slurm_settings import serves_metrics
from ultracluster.nodes import bootstrap
from ultracluster.nodes.eks import group_steps
from ultracluster.nodes.lustre import LustreMount
from ultracluster.nodes.pcs import compute_node_steps, login_node_steps, own_programs
from ultracluster.nodes.steps import Step
from ultracluster.nodes.telemetry import Telemetry

LOGGED = "it is logged"


@dataclass(frozen=True)
class PlannedStep:
    """A step of ours, or a script of the user: then `sha256` and `timeout_seconds` are set.

    `frequency` is "first boot" or "every boot", `failure` what a failure does.
    """

    name: str
    does: str
    frequency: str
    failure: str
    sha256: str = ""
    timeout_seconds: int = 0


@dataclass(frozen=True)
class BootPlan:
    """The steps of a group of nodes in order, and what its nodes have beside ours. `nodes` is the maximum count."""

    name: str
    instance_types: tuple[str, ...]
    nodes: int
    steps: tuple[PlannedStep, ...]
    policies: tuple[str, ...]
    security_groups: tuple[str, ...]


def boot_plans(environment: Environment) -> list[BootPlan]:
    """The plan of the login nodes and of each node group as it is launched."""
    plane = environment.control_plane
    if not isinstance(plane, Pcs):
        lustre = environment.storage.lustre
        failure = "the node powers off before it joins, and is replaced"
        plans = ((group, [*group_steps(group, lustre), *_own(group)]) for group in environment.launched_groups)
        return [_plan(group.name, group, group.max_count, steps, failure) for group, steps in plans]
    mount, telemetry, programs = _mount(environment), _telemetry(environment, plane), own_programs(plane.slurm_settings)
    links = environment.storage.lustre.links if environment.storage.lustre else ()
    login = login_node_steps(
        mount,
        open_folders=[link.path for link in links if link.export_events],
        instance_type=plane.login.instance_type,
        telemetry=telemetry,
        bootstrap=plane.login.boot_scripts,
        region=environment.region,
    )
    return [
        _plan("login", plane.login, plane.login.count, login, "the node stays"),
        *(
            _plan(
                group.name,
                group,
                group.max_count,
                compute_node_steps(group, mount, telemetry=telemetry, own_programs=programs, region=environment.region),
                "the node takes no jobs; PCS terminates it",
            )
            for group in environment.launched_groups
        ),
    ]


def _own(group: NodeGroup) -> list[Step]:
    own = bootstrap.bootstrap_step(group.boot_scripts, region="", node_group=group.name)
    return [own] if own else []


def _mount(environment: Environment) -> LustreMount | None:
    """The file system, whose name nobody knows before its deployment."""
    settings = environment.storage.lustre
    return LustreMount("FILE-SYSTEM", "NAME", settings.mount_path, settings.efa) if settings else None


def _telemetry(environment: Environment, plane: Pcs) -> Telemetry:
    section = environment.observability
    return Telemetry(
        remote_write_url="WORKSPACE",
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
    planned = tuple(each for step in steps for each in _planned(step, group.boot_scripts, failure))
    types = (group.instance_type,) if isinstance(group, Login) else group.types
    return BootPlan(name, types, nodes, planned, group.policies, group.security_groups)


def _planned(step: Step, scripts: Sequence[Script], failure: str) -> Iterator[PlannedStep]:
    when = "first boot" if step.frequency == "first_boot" else "every boot"
    if step.name != bootstrap.NAME:
        yield PlannedStep(step.name, summary(step), when, failure if step.required else LOGGED)
        return
    for script in scripts:
        outcome = failure if script.on_failure == "stop" else LOGGED
        does = f"your script, version {script.version_id}" if script.s3 else "your script"
        yield PlannedStep(script.source, does, when, outcome, script.checksum, script.timeout_seconds)


def summary(step: Step) -> str:
    """The first sentence of the comment on a script, with the arguments of the step."""
    comment = " ".join(line.lstrip("# ") for line in _comment(step.script.text))
    sentence = re.split(r"[.:](?:\s|$)", comment, maxsplit=1)[0]
    filled = re.sub(r"\$(\d)(\.\.\.)?", lambda found: _argument(step, int(found[1]), rest=bool(found[2])), sentence)
    return " ".join(filled.split())


def _comment(text: str) -> Iterator[str]:
    for line in text.splitlines()[1:]:
        if not line.startswith("#"):
            return
        yield line


def _argument(step: Step, number: int, *, rest: bool) -> str:
    given = step.arguments[number - 1 :] if rest else step.arguments[number - 1 : number]
    return " ".join(name.partition("@sha256:")[0] or "none" for name in given) if given else "none"
