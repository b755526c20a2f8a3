"""Jobs for a queue of a PCS cluster: the options of a user, checked against the environment and the catalogue.

Source: sbatch and srun man pages of Slurm 25.11; AWS PCS User Guide (2026).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ultracluster.catalog import instance_types
from ultracluster.config.environment import Environment
from ultracluster.config.file_systems import HOME
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.pcs import Pcs, Queue
from ultracluster.jobs.request import (
    TESTS,
    JobRefused,
    Kind,
    Script,
    check_command,
    check_name,
    check_pairs,
    public_image,
    unknown,
    whole_nodes,
)
from ultracluster.nodes.slurm_policy import queue_settings

SlurmKind = Literal[Kind, "prepare"]

VIRTUAL_ENVIRONMENT = "venv"
"""Virtual environment of a job without a container, in the folder where it is submitted."""


@dataclass(frozen=True)
class SlurmJob:
    """A job on nodes of one size.

    `image` is a container image, None for the programs of the nodes. `venv` is the path of a virtual environment, empty
    for the Python of the nodes. `spares` are nodes of the queue that the job does not use.
    """

    environment: Environment
    queue: Queue
    group: NodeGroup
    kind: SlurmKind
    name: str
    nodes: int
    spares: int
    gpus_per_node: int = 0
    cpus: int = 0
    account: str | None = None
    image: str | None = None
    venv: str = VIRTUAL_ENVIRONMENT
    command: tuple[str, ...] = ()
    script: Script | None = None

    @property
    def gpus(self) -> int:
        """GPUs of the whole job."""
        return self.nodes * self.gpus_per_node

    @property
    def exclusive(self) -> bool:
        """Whether the job takes whole nodes."""
        return bool(self.gpus_per_node) and self.gpus_per_node == self.group.hardware.gpu_count

    @property
    def cpus_of_gpus(self) -> int:
        """CPUs of a job on a part of a node, in proportion to its GPUs."""
        return cpus_of_node(self.group) * self.gpus_per_node // self.group.hardware.gpu_count

    @property
    def segment(self) -> int | None:
        """Size of --segment: the largest number of nodes that fits into an UltraServer and divides the job's nodes.

        None for other instance types, and for a job that no segment divides, such as one of 19 nodes: without segments
        Slurm fills one UltraServer before it takes the next.
        """
        if not self.group.hardware.ultraserver_only:
            return None
        block = min(part.max_count for part in self.group.blocks())
        return max((size for size in range(2, block + 1) if self.nodes % size == 0), default=None)

    @property
    def folders(self) -> tuple[str, ...]:
        """Mount points of file systems that all nodes share."""
        return shared_folders(self.environment)


def shared_folders(environment: Environment) -> tuple[str, ...]:
    """Mount points of file systems that all nodes share, the one for jobs first."""
    storage = environment.storage
    lustre = (storage.lustre.mount_path,) if storage.lustre else ()
    homes = (HOME,) if storage.homes else ()
    return (*lustre, *(each.mount_path for each in storage.more), *homes)


def cpus_of_node(group: NodeGroup) -> int:
    """CPUs that Slurm has on a node: PCS switches hyper-threading off (AWS PCS User Guide, launch templates, 2026)."""
    return min(instance_types[name].cores for name in group.types)


def gpu_job(
    environment: Environment,
    gpus: int,
    *,
    kind: Kind = "train",
    queue: str | None = None,
    node_group: str | None = None,
    team: str | None = None,
    name: str | None = None,
    image: str | None = None,
    venv: str | None = None,
    command: Sequence[str] = (),
    script: Script | None = None,
) -> SlurmJob:
    """A job on `gpus` GPUs: whole nodes of a queue, by default the first with GPUs, or a part of one node.

    Raises JobRefused if the environment has no such queue, group or team, the GPUs do not fit, or the cluster runs no
    containers.
    """
    settings = _settings(environment)
    check_command(kind, command, script)
    place = _place(environment, settings, queue, node_group, gpus=True)
    group = place.groups[0]
    if not group.hardware.gpu_count:
        others = ", ".join(_queues(environment, settings, gpus=True)) or "there is none"
        text = f"{group.name} has no GPUs; use --kind prepare --cpus N for CPU nodes"
        raise JobRefused(f"{text}, or a queue with GPUs: {others}")
    nodes, each = _whole_or_part(gpus, place)
    if kind in TESTS and each < group.hardware.gpu_count:
        raise JobRefused(f"{kind} takes whole nodes: {group.type_names} has {group.hardware.gpu_count} GPUs")
    if kind == "nccl-pairs":
        check_pairs(nodes, each, group.type_names, efa=group.efa)
    return SlurmJob(
        environment,
        place.queue,
        group,
        kind,
        _name(environment, name or f"{kind}-{gpus}-gpus"),
        nodes,
        place.nodes - nodes,
        gpus_per_node=each,
        account=_account(settings, team, place.queue, gpus),
        image=_image(settings, group, image, venv, kind),
        venv=venv or VIRTUAL_ENVIRONMENT,
        command=tuple(command),
        script=script,
    )


def cpu_job(
    environment: Environment,
    cpus: int,
    *,
    queue: str | None = None,
    node_group: str | None = None,
    team: str | None = None,
    name: str | None = None,
    image: str | None = None,
    venv: str | None = None,
    command: Sequence[str] = (),
    script: Script | None = None,
) -> SlurmJob:
    """A job that prepares data with `cpus` CPUs of one CPU node, by default in the first queue of CPU nodes.

    Raises JobRefused as `gpu_job` does.
    """
    settings = _settings(environment)
    place = _place(environment, settings, queue, node_group, gpus=False)
    group = place.groups[0]
    if group.hardware.gpu_count:
        others = ", ".join(_queues(environment, settings, gpus=False)) or "there is none"
        raise JobRefused(f"{group.name} has GPUs, which prepare does not use; use a queue of CPU nodes: {others}")
    most = cpus_of_node(group)
    if not 1 <= cpus <= most:
        raise JobRefused(f"{cpus} CPUs do not fit: prepare runs on one {group.type_names}; request 1 to {most} CPUs")
    if image:
        _check_containers(settings, venv)
    return SlurmJob(
        environment,
        place.queue,
        group,
        "prepare",
        _name(environment, name or f"prepare-{cpus}-cpus"),
        nodes=1,
        spares=0,
        cpus=cpus,
        account=_account(settings, team, place.queue),
        image=image,
        venv=venv or "",
        command=tuple(command),
        script=script,
    )


@dataclass(frozen=True)
class _Place:
    """A queue with its node groups, whose nodes have the same GPUs and CPUs."""

    queue: Queue
    groups: tuple[NodeGroup, ...]
    spares: int
    """Nodes that health.spares reserves."""

    @property
    def nodes(self) -> int:
        """Nodes that jobs of the queue can use."""
        return sum(group.max_count for group in self.groups) - self.spares


def _settings(environment: Environment) -> Pcs:
    settings = environment.control_plane
    if not isinstance(settings, Pcs):
        raise JobRefused(f"{environment.name} runs Kubernetes on EKS, which takes no sbatch scripts")
    return settings


def _groups(environment: Environment, queue: Queue) -> tuple[NodeGroup, ...]:
    known = {group.name: group for group in environment.node_groups}
    return tuple(known[name] for name in queue.node_groups)


def _queues(environment: Environment, settings: Pcs, *, gpus: bool) -> list[str]:
    """Queues whose first node group has GPUs, or has none."""
    return [q.name for q in settings.queues if bool(_groups(environment, q)[0].hardware.gpu_count) == gpus]


def _place(environment: Environment, settings: Pcs, queue: str | None, node_group: str | None, *, gpus: bool) -> _Place:
    """The queue of the job: the one of that name, the one with `node_group` alone, or the first that fits."""
    queues = {each.name: each for each in settings.queues}
    if queue is not None and queue not in queues:
        raise JobRefused(unknown(queue, f"a queue of {environment.name}", list(queues)))
    if node_group is not None:
        known = [group.name for group in environment.node_groups]
        if node_group not in known:
            raise JobRefused(unknown(node_group, f"a node group of {environment.name}", known))
        users = [name for name, each in queues.items() if node_group in each.node_groups and queue in (None, name)]
        if not users:
            raise JobRefused(
                unknown(node_group, f"a node group of queue {queue}", list(queues[queue or ""].node_groups))
            )
        alone = [name for name in users if len(queues[name].node_groups) == 1]
        if not alone:
            text = f"no queue has {node_group} alone, and a job cannot choose within a queue"
            raise JobRefused(f"{text}; use --queue {users[0]} without --node-group, or add a queue for {node_group}")
        queue = alone[0]
    queue = queue or next(iter(_queues(environment, settings, gpus=gpus)), None)
    if queue is None:
        missing = "GPUs" if gpus else "CPU nodes"
        raise JobRefused(f"no queue of {environment.name} has {missing}; add a node group and a queue for it")
    groups = _groups(environment, queues[queue])
    spares = sum(environment.health.spares.get(group.name, 0) for group in groups)
    settings_of_queue = queue_settings(queues[queue], groups, settings.teams, settings.slurm_version)
    place = _Place(queues[queue].model_copy(update={"slurm_settings": settings_of_queue}), groups, spares)
    sizes = {(group.hardware.gpu_count, cpus_of_node(group)): group.type_names for group in place.groups}
    if len(sizes) > 1:
        names = ", ".join(sizes.values())
        raise JobRefused(f"the nodes of queue {queue} differ in size ({names}); use a queue with nodes of one size")
    return place


def _whole_or_part(gpus: int, place: _Place) -> tuple[int, int]:
    """Number of nodes, and of GPUs on each, for `gpus` GPUs."""
    group = place.groups[0]
    each = group.hardware.gpu_count
    most = place.nodes * each
    if 1 <= gpus < each:
        if group.hardware.ultraserver_only:
            raise JobRefused(f"{gpus} GPUs are a part of a node: jobs on {group.type_names} take whole nodes of {each}")
        if whole_nodes_only(place.queue):
            raise JobRefused(f"{gpus} GPUs are a part of a node: queue {place.queue.name} gives whole nodes of {each}")
        return 1, gpus
    if gpus > most:
        nodes = -(-gpus // each)
        text = f"{gpus} GPUs are {nodes} nodes of {group.type_names}"
        beside = f" and {place.spares} spare{'s' * (place.spares > 1)}" if place.spares else ""
        raise JobRefused(f"{text}: queue {place.queue.name} has {place.nodes}{beside}; request at most {most} GPUs")
    if gpus < 1 or gpus % each:
        raise whole_nodes(gpus, each, most, group.type_names)
    return gpus // each, each


def whole_nodes_only(queue: Queue) -> bool:
    """Whether Slurm gives jobs of the queue whole nodes (slurm.conf man page, Exclusive and OverSubscribe)."""
    shared = str(queue.slurm_settings.get("OverSubscribe", "")).upper()
    exclusive = str(queue.slurm_settings.get("Exclusive", "")).upper()
    return shared == "EXCLUSIVE" or exclusive in ("NODE", "TOPO")


def _name(environment: Environment, name: str) -> str:
    check_name(name)
    if not shared_folders(environment):
        text = f"{environment.name} has no shared file system, so nodes cannot read the files of a login node"
        raise JobRefused(f"{text}; add storage.lustre or storage.home")
    return name


def _account(settings: Pcs, name: str | None, queue: Queue, gpus: int = 0) -> str | None:
    """The Slurm account of a team. Raises JobRefused if it may not use the queue, or `gpus` GPUs."""
    if name is None:
        return None
    if not settings.accounting:
        raise JobRefused(
            "without accounting Slurm has no accounts; remove --team, or set control_plane.accounting: true"
        )
    check_name(name)
    teams = {team.name: team for team in settings.teams}
    if teams and name not in teams:
        raise JobRefused(unknown(name, "a team", list(teams)))
    team = teams.get(name)
    if team and not team.may_use(queue.node_groups):
        text = f"{name} may not use queue {queue.name}: it has {', '.join(team.node_groups)}"
        raise JobRefused(f"{text}; pass another --queue, or add {', '.join(queue.node_groups)} to its node_groups")
    if team and team.max_gpus is not None and gpus > team.max_gpus:
        raise JobRefused(f"{gpus} GPUs exceed max_gpus of {name}; request {team.max_gpus} or fewer")
    return name


def _check_containers(settings: Pcs, venv: str | None) -> None:
    if not settings.containers:
        raise JobRefused("--image requires containers; set control_plane.containers: true, or use --venv")
    if venv:
        raise JobRefused("--image and --venv exclude each other: a container has its own Python")


def _image(settings: Pcs, group: NodeGroup, image: str | None, venv: str | None, kind: Kind) -> str | None:
    """The image of --image; without it and --venv, AWS's image if the cluster runs containers."""
    if image:
        _check_containers(settings, venv)
        return image
    if venv or not settings.containers:
        if venv and kind in TESTS:
            raise JobRefused(f"{kind} uses no virtual environment; remove --venv")
        return None
    return public_image(group.hardware, group.type_names, kind)
