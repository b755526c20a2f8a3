"""What AWS PCS nodes run at boot: steps, as node lifecycle actions, and user data for what must run before them.

PCS runs the steps in order, after it has configured the node and before slurmd starts; the node group defines what
happens to a node on which a step fails. Boot hooks of user data run at every boot before the parts of PCS, shell parts
after the node has registered with PCS and before slurmd starts. There is no cloud-config part: cloud-init merges it
with that of PCS, and keeps only the last of two lists under the same key, such as write_files.

Source: AWS PCS User Guide, "Run custom scripts with node lifecycle actions", "Working with EC2 user data" (2026).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ultracluster.catalog import pcs
from ultracluster.catalog.training import type_environment
from ultracluster.config.bootstrap import Script
from ultracluster.config.health import NO_CHECKS, Health
from ultracluster.config.node_groups import NodeGroup
from ultracluster.config.slurm_settings import serves_metrics, with_words
from ultracluster.nodes.bootstrap import bootstrap_step
from ultracluster.nodes.containers import ContainerSource, container_steps
from ultracluster.nodes.health import admit_steps, check_steps, login_steps
from ultracluster.nodes.mime import boot_hook, multipart, shell_script
from ultracluster.nodes.mounts import Mount, lustre_mounts, mount_steps
from ultracluster.nodes.steps import Step, script
from ultracluster.nodes.telemetry import LOGIN, Telemetry, telemetry_steps
from ultracluster.nodes.users import DirectorySource, UserSource, user_steps

SCRATCH = "/scratch"
"""Mount point of the instance store."""

TASK_PROLOG = "/opt/ultracluster/task-prolog"
"""Program of every compute node that gives jobs the environment variables of its instance type, Region and credentials.

A job's environment is that of the login node where it was submitted: /etc/environment and profiles of the compute node
do not reach it, Slurm's TaskProlog does (slurm.conf man page). Jobs fail on a node without the program.
"""

PROLOG, EPILOG = "/opt/ultracluster/prolog", "/opt/ultracluster/epilog"
"""Programs of every compute node that tell DCGM exporter which job uses which GPU, and record jobs that have ended.

Jobs fail on a node without them, so the step that writes them is required. Each then runs the executables of
`prolog.d` or `epilog.d`, which later steps write, and last the user's own program.
"""

CREDENTIALS = "http://127.0.0.1:470/credentials"
"""Where SDKs of users find credentials of the role of jobs, once separate-users serves them."""


@dataclass(frozen=True)
class JobRole:
    """The role whose credentials the users of a node get. Strings may be tokens."""

    arn: str
    region: str


PCS_SCRIPTS = (
    "separate-users",
    "hold-kernel",
    "write-job-programs",
    "write-health-checks",
    "collect-efa",
    "collect-lustre",
    "configure-metrics",
    "run-exporters",
    "serve-job-metrics",
    "find-slurm-controller",
    "ship-logs",
    "set-job-environment",
    "mount-scratch",
    "mount-nfs",
    "set-lustre-module-options",
    "set-up-lustre-efa",
    "mount-lustre",
    "tune-lustre",
    "create-users",
    "ask-directory",
    "create-folders",
    "set-up-containers",
    "set-up-imex",
    "read-topology",
    "admit-jobs",
    "drain-unaccepted",
    "keep-spares",
)
"""Scripts of all steps that a PCS node may have."""


def login_node_steps(
    mounts: Sequence[Mount] = (),
    *,
    queue_folders: str | None = None,
    open_folders: Sequence[str] = (),
    instance_type: str = "",
    telemetry: Telemetry | None = None,
    bootstrap: Sequence[Script] = (),
    region: str = "",
    users: UserSource | DirectorySource | None = None,
    health: Health = NO_CHECKS,
    containers: ContainerSource | None = None,
    job_role: JobRole | None = None,
) -> tuple[Step, ...]:
    """Steps of login nodes, which mount file systems, Lustre over TCP, and create the folders of users.

    `queue_folders` is the mount point of the file system that gets a folder for each queue. `open_folders` are paths of
    folders in it, such as those of links, and mount points of other file systems, that users may write to as well.
    `users` is the source of users, `containers` that of Enroot and Pyxis: srun on a login node accepts options of
    containers only with Pyxis. `health` names spare nodes. The scripts of `bootstrap` run last, with `region` in their
    environment.
    """
    steps = [*_separation("login", job_role), Step("hold-kernel"), Step("set-job-environment", _variables(job_role))]
    steps += mount_steps(mounts, None)
    if queue_folders or open_folders:
        steps.append(Step("create-folders", (queue_folders or "none", *open_folders)))
    steps += user_steps(users)
    steps += container_steps(containers, None)
    steps += telemetry_steps(
        telemetry,
        instance_type=instance_type,
        node_group=LOGIN,
        gpus=False,
        efa=False,
        mounts=lustre_mounts(mounts),
    )
    steps += login_steps(health)
    own = bootstrap_step(bootstrap, region=region, node_group=LOGIN)
    return (*steps, own) if own else tuple(steps)


def compute_node_steps(
    group: NodeGroup,
    mounts: Sequence[Mount] = (),
    *,
    telemetry: Telemetry | None = None,
    own_programs: tuple[str, str] = ("", ""),
    record_output: bool = False,
    region: str = "",
    users: UserSource | DirectorySource | None = None,
    health: Health = NO_CHECKS,
    containers: ContainerSource | None = None,
    job_role: JobRole | None = None,
) -> tuple[Step, ...]:
    """Steps of the nodes of a node group. The last one lets slurmd start, after the scripts of `group.bootstrap`.

    `own_programs` are Prolog and Epilog of the user, which the generated ones run. With `record_output` the record of a
    job, which the log agent sends, has the end of its output. Users get credentials of `job_role`, if there is one, and
    do not reach instance metadata. Scripts get `region` in their
    environment. `health` defines the checks of nodes. `containers` is the source of Enroot and Pyxis. PCS configures
    Slurm's topology for UltraServers only, whose jobs need IMEX; other nodes with EFA record their instance topology.
    """
    variables = (*(f"{name}={value}" for name, value in type_environment(*group.types).items()), *_variables(job_role))
    programs = ("output" if record_output else "ended", *(own_programs if any(own_programs) else ()))
    steps = [*_separation("compute", job_role), Step("hold-kernel"), Step("set-job-environment", variables)]
    steps.append(Step("write-job-programs", programs))
    steps += check_steps(health, group, lustre_mounts(mounts))
    if group.joins_disks:
        steps.append(Step("mount-scratch", (SCRATCH,), "every_boot"))
    steps += mount_steps(mounts, group.hardware, efa=group.lustre_over_efa)
    steps += user_steps(users)
    steps += container_steps(containers, group)
    if group.hardware.ultraserver_only:
        steps.append(Step("set-up-imex"))
    elif group.efa:
        steps.append(Step("read-topology", stage="ready", required=False))
    steps += telemetry_steps(
        telemetry,
        instance_type=group.one_type or "auto",
        node_group=group.name,
        gpus=group.hardware.gpu_count > 0,
        efa=group.efa,
        mounts=lustre_mounts(mounts),
    )
    if own_step := bootstrap_step(group.boot_scripts, region=region, node_group=group.name):
        steps.append(own_step)
    return (*steps, *admit_steps(health.acceptance("pcs", group.hardware.gpu_count)))


def _separation(kind: Literal["compute", "login"], job_role: JobRole | None) -> list[Step]:
    """The step that keeps users from the role of the node, and on compute nodes members from SSH."""
    if job_role:
        return [Step("separate-users", (kind, job_role.arn, job_role.region))]
    return [Step("separate-users", (kind,))] if kind == "compute" else []


def _variables(job_role: JobRole | None) -> tuple[str, ...]:
    """What jobs and sessions no longer learn from instance metadata: the Region, and where credentials are."""
    if not job_role:
        return ()
    given = {"AWS_REGION": job_role.region, "AWS_DEFAULT_REGION": job_role.region}
    return tuple(
        f"{name}={value}" for name, value in {**given, "AWS_CONTAINER_CREDENTIALS_FULL_URI": CREDENTIALS}.items()
    )


def job_settings(
    settings: Mapping[str, str | int], groups: Iterable[NodeGroup], slurm_version: str
) -> dict[str, str | int]:
    """`slurm_settings` of a cluster, with the generated prolog and epilog, which run those of the user.

    TaskProlog is added if the user set none, and PrologFlags that IMEX needs if there are UltraServers. A job whose
    prolog fails is requeued without a hold.

    Source: AWS PCS User Guide, "Configure UltraServer instances" (2026).
    """
    groups = tuple(groups)
    programs: dict[str, str | int] = {"Prolog": PROLOG, "Epilog": EPILOG}
    scheduler = with_words(
        settings.get("SchedulerParameters", ""), *pcs.scheduler_parameters(slurm_version), "nohold_on_prolog_fail"
    )
    if any(group.hardware.ultraserver_only for group in groups):
        programs["PrologFlags"] = with_words(settings.get("PrologFlags", ""), "Alloc", "NoHold")
    return {"TaskProlog": TASK_PROLOG, **settings, "SchedulerParameters": scheduler, **programs}


def own_programs(settings: Mapping[str, str | int]) -> tuple[str, str]:
    """Prolog and Epilog of `slurm_settings`, empty where there is none."""
    return str(settings.get("Prolog", "")), str(settings.get("Epilog", ""))


def metrics_settings(settings: Mapping[str, str | int], slurm_version: str) -> dict[str, str | int]:
    """`slurm_settings` of a cluster, with metrics of slurmctld if it can serve them.

    enable_http is added to the user's CommunicationParameters.
    """
    if not serves_metrics(settings, slurm_version):
        return dict(settings)
    return {
        "MetricsType": "metrics/openmetrics",
        **settings,
        "CommunicationParameters": with_words(settings.get("CommunicationParameters", ""), "enable_http"),
    }


def login_node_user_data() -> str:
    """User data of login nodes."""
    return multipart([boot_hook(script("limit-upgrades").text)])


def compute_node_user_data() -> str:
    """User data of compute nodes: slurmd starts only after the last step."""
    return multipart([boot_hook(script("limit-upgrades").text), shell_script(script("fence-slurmd").text)])
