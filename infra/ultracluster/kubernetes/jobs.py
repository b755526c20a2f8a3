"""A multi-node training job for a team: a gang that is scheduled on nodes close to each other and uses EFA.

Source: EKS User Guide, "Run machine learning training on Amazon EKS with EFA" (2026); Kueue 0.19, JobSet 0.12,
Volcano 1.15, KAI Scheduler 0.17, NVIDIA DRA driver 0.4, each its own reference.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Literal

from ultracluster.catalog.software import mirrored_image
from ultracluster.catalog.training import CPU_IMAGE, Use, closest_image, default_image
from ultracluster.config.eks import Team
from ultracluster.config.eks_fleet import ELASTIC_GROUPS
from ultracluster.config.environment import Environment
from ultracluster.config.node_groups import NodeGroup
from ultracluster.errors import UltraclusterError
from ultracluster.kubernetes import cpu_jobs, kai, kueue, volcano
from ultracluster.kubernetes.environment import EksEnvironment, NotEks
from ultracluster.kubernetes.job_pods import Job, claims, torchrun_pod
from ultracluster.kubernetes.karpenter import elastic_pools
from ultracluster.kubernetes.karpenter_own import largest_elastic_cpu_pod
from ultracluster.kubernetes.kueue_elastic import ELASTIC_QUEUE
from ultracluster.kubernetes.labels import NODE_GROUP
from ultracluster.kubernetes.parts import Object
from ultracluster.kubernetes.quotas import fleet_gpus
from ultracluster.kubernetes.topology import topology_name

MAXIMUM_RESTARTS = 3

KEPT_FOR_SECONDS = 24 * 3600
"""How long a finished job and its logs are kept. Kubernetes then deletes the job with its pods."""

MAXIMUM_NAME = 40
"""Characters of a job's name. Operators append to it for names of pods, which have 63 at most, and Ray takes 47."""

Kind = Literal["train", "nccl-test"]
_USES: dict[Kind, Use] = {"train": "training", "nccl-test": "nccl-tests"}

_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?", re.ASCII)

RENDEZVOUS_SERVICE = "job-pods"
"""Headless Service that gives the pods of all plain Jobs in a namespace DNS names. It stays when jobs are deleted."""
RENDEZVOUS_LABEL = "ultracluster/service"


class JobRefused(UltraclusterError, ValueError):
    """A job that the environment cannot run. The message says why, and what is allowed."""


def example_job(
    environment: Environment,
    team: str,
    gpus: int,
    *,
    kind: Kind = "train",
    name: str | None = None,
    node_group: str | None = None,
    image: str | None = None,
    command: Sequence[str] = (),
) -> list[Object]:
    """Objects of a job of `team` on `gpus` GPUs: whole nodes of one node group, by default the team's first.

    `train` is a JobSet if the environment has its operator, Volcano's own job under Volcano, and otherwise a Job with a
    Service. `nccl-test` is an MPIJob whose launcher runs on a CPU node. Two jobs of a team need two names; without
    `name` it is "train-64-gpus" for 64 GPUs. Raises JobRefused if the environment has no such team or group, the team
    has fewer GPUs, or no public image fits the instance type.

    torchrun starts `command`, a script with its arguments, on each GPU: by default train.py of the team's folder.
    """
    if kind == "nccl-test" and command:
        raise JobRefused("nccl-test has a command of its own; remove --command, or use --kind train")
    job = _checked(environment, team, gpus, kind, name, node_group, image)
    job = replace(job, command=tuple(command))
    if kind == "nccl-test":
        return [*claims(job), _nccl_test(job)]
    if job.scheduler == "volcano":
        return [*claims(job), _volcano_job(job)]
    if "jobset" in job.environment.job_operators:
        return [*claims(job), _job_set(job)]
    return [*claims(job), _service(job), _indexed_job(job)]


def prepare_job(
    environment: Environment,
    team: str,
    cpus: int,
    *,
    name: str | None = None,
    image: str | None = None,
    command: Sequence[str] = (),
) -> list[Object]:
    """Objects of a job of `team` that prepares data with `cpus` CPUs of one CPU node, by `command` or prepare.py.

    Where no static node is large enough, a pool of Karpenter in the file launches one. Raises JobRefused if the
    environment has no such team, or its CPU nodes are too small.
    """
    view = _view(environment)
    owner = _team(view, team)
    name = name or f"prepare-{cpus}-cpus"
    _check_name(name)
    _check_cpus(view, owner, cpus, elastic=largest_elastic_cpu_pod(view))
    return [cpu_jobs.prepare(view, owner, cpus, name, image or _mirrored(view, CPU_IMAGE), command)]


def _checked(
    environment: Environment,
    team: str,
    gpus: int,
    kind: Kind,
    name: str | None,
    node_group: str | None,
    image: str | None,
) -> Job:
    view = _view(environment)
    owner = _team(view, team)
    wanted = node_group or owner.node_groups[0]
    if wanted not in owner.node_groups and (pool := _pool(view, wanted)):
        raise JobRefused(_for_pool(view, wanted, pool))
    if wanted not in owner.node_groups:
        raise JobRefused(_unknown(wanted, f"a node group of {team}", list(owner.node_groups)))
    group = next(group for group in view.node_groups if group.name == wanted)
    _check_gpus(owner, group, gpus)
    name = name or f"{kind}-{gpus}-gpus"
    _check_name(name)
    if kind == "nccl-test":
        _check_nccl_test(view, owner)
    return Job(view, owner, group, gpus, image or _default_image(view, group, kind), name)


def _pool(view: EksEnvironment, name: str) -> str | None:
    """Label of the nodes of the Karpenter pool that is called `name` in the file or in the cluster."""
    labels = [pool.name for pool in elastic_pools(view)] if view.settings.karpenter else []
    return next((label for label in labels if name in (label, label.removeprefix(ELASTIC_GROUPS))), None)


def _for_pool(view: EksEnvironment, name: str, group: str) -> str:
    label = f"the label {kueue.QUEUE_LABEL}: {ELASTIC_QUEUE} and " if view.settings.scheduler == "kueue" else ""
    text = f"{name} is a pool of Karpenter, and --node-group names static nodes. Give a job of yours {label}"
    return f"{text}nodeSelector {{{NODE_GROUP}: {group}}}; see docs/kubernetes.md, CPU nodes and elastic nodes"


def _view(environment: Environment) -> EksEnvironment:
    try:
        return EksEnvironment.from_environment(environment)
    except NotEks:
        raise JobRefused(
            f"{environment.name} runs Slurm on PCS: submit jobs with sbatch on a login node (docs/slurm.md)"
        ) from None


def _team(view: EksEnvironment, name: str) -> Team:
    teams = {team.name: team for team in view.teams}
    if name not in teams:
        raise JobRefused(_unknown(name, f"a team of {view.name}", list(teams)))
    return teams[name]


def _check_nccl_test(view: EksEnvironment, team: Team) -> None:
    if "mpi" not in view.job_operators:
        raise JobRefused("nccl-test is an MPIJob; add mpi to control_plane.jobs")
    if view.settings.scheduler == "volcano":
        raise JobRefused("nccl-test is for Kueue and KAI: Volcano does not queue MPIJobs")
    _check_cpus(view, team, cpu_jobs.LAUNCHER_CPUS)


def _check_cpus(view: EksEnvironment, team: Team, cpus: int, *, elastic: int = 0) -> None:
    """Each team has an equal share of each kind of CPU nodes; a pod needs one node.

    Karpenter may launch a node with `elastic` CPUs for a pod.
    """
    most = max((*map(view.pod_cpus, view.cpu_pools), elastic), default=0)
    if not most:
        raise JobRefused("there are no CPU nodes; set count of control_plane.cpu_nodes to 2")
    if not 1 <= cpus <= most:
        raise JobRefused(f"{cpus} CPUs are too many or too few: a pod of {team.name} may have 1 to {most}")


def _mirrored(view: EksEnvironment, image: str) -> str:
    return mirrored_image(image, view.settings.chart_mirror) if view.settings.chart_mirror else image


def _check_name(name: str) -> None:
    if len(name) > MAXIMUM_NAME or not _NAME.fullmatch(name):
        allowed = f"a letter, then lower-case letters, digits and -, at most {MAXIMUM_NAME} characters"
        raise JobRefused(f"{name!r} is not a name of a job; allowed: {allowed}, no - at the end")


def _default_image(environment: EksEnvironment, group: NodeGroup, kind: Kind) -> str:
    found = default_image(group.hardware, _USES[kind])
    if found is None:
        closest = closest_image(group.hardware, _USES[kind])
        lacking = f": {closest.name} has {'; '.join(closest.shortfalls(group.hardware))}" if closest else ""
        raise JobRefused(
            f"no public image of AWS meets the minimum versions of {group.type_names}{lacking}. "
            f"Build an image with what `ultracluster catalog {group.hardware.name}` lists, and pass it with --image"
        )
    return _mirrored(environment, found.name)


def _check_gpus(team: Team, group: NodeGroup, gpus: int) -> None:
    each, quota, fleet = group.hardware.gpu_count, team.quotas.get(group.name, 0), fleet_gpus(group)
    limit = fleet if team.may_borrow else min(quota, fleet)
    if gpus < 1 or gpus % each:
        below = max(gpus // each, 0) * each
        choices = [count for count in (below, below + each) if each <= count <= limit] or [limit]
        advice = " or ".join(map(str, choices))
        raise JobRefused(f"{gpus} GPUs are not whole nodes: {group.type_names} has {each}; request {advice}")
    if gpus > fleet:
        raise JobRefused(f"{gpus} GPUs are too many: {group.name} has {fleet}; request at most {limit}")
    if gpus > limit:
        quota_of = f"the quota of {team.name} on {group.name} is {quota}, and the team may not borrow"
        raise JobRefused(f"{gpus} GPUs are too many: {quota_of}")


def _unknown(name: str, kind: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"{name} is not {kind}; allowed: {', '.join(known)}" + (f". Did you mean {near[0]}?" if near else "")


def _job_set(job: Job) -> Object:
    """A JobSet. When a pod fails, it restarts all pods together, and training continues from its checkpoint."""
    replicated: Object = {"spec": _job_spec(job, f"{job.name}-node-0-0.{job.name}")}
    if job.scheduler == "kueue_with_volcano":
        replicated["metadata"] = {"annotations": {volcano.GANG_ANNOTATION: str(job.nodes)}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {**job.metadata, **_queue_metadata(job, gang=False)},
        "spec": {
            "failurePolicy": {"maxRestarts": MAXIMUM_RESTARTS},
            "ttlSecondsAfterFinished": KEPT_FOR_SECONDS,
            "replicatedJobs": [{"name": "node", "replicas": 1, "template": replicated}],
        },
    }


def _indexed_job(job: Job) -> Object:
    """An indexed Job. When a pod fails, the whole Job fails: a Job cannot restart its pods together."""
    spec = {"ttlSecondsAfterFinished": KEPT_FOR_SECONDS, **_job_spec(job, f"{job.name}-0.{RENDEZVOUS_SERVICE}")}
    spec["template"].setdefault("metadata", {})["labels"] = {RENDEZVOUS_LABEL: RENDEZVOUS_SERVICE}
    spec["template"]["spec"]["subdomain"] = RENDEZVOUS_SERVICE
    metadata = {**job.metadata, **_queue_metadata(job, gang=True)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _service(job: Job) -> Object:
    """A headless Service that gives the pods of Jobs DNS names before they are ready.

    All Jobs of a namespace share it: Kubernetes deletes a finished Job, but not a Service of its own.
    """
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": RENDEZVOUS_SERVICE, "namespace": job.team.name},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {RENDEZVOUS_LABEL: RENDEZVOUS_SERVICE},
        },
    }


def _nccl_test(job: Job) -> Object:
    # KAI counts the workers of an MPIJob by itself
    metadata = {**job.metadata, **_queue_metadata(job, gang=job.environment.gang_scheduler == "volcano")}
    return cpu_jobs.nccl_test(job, metadata, kept_for=KEPT_FOR_SECONDS)


def _job_spec(job: Job, main_address: str) -> Object:
    return {
        "completionMode": "Indexed",
        "completions": job.nodes,
        "parallelism": job.nodes,
        "backoffLimit": 0,
        "template": torchrun_pod(job, main_address, rank="JOB_COMPLETION_INDEX"),
    }


def _volcano_job(job: Job) -> Object:
    """Volcano's job. It starts when all its pods can start, and restarts as a whole."""
    topology = {"networkTopology": {"mode": "soft"}} if job.preferred_level else {}
    template = torchrun_pod(job, f"{job.name}-node-0.{job.name}", rank="VC_TASK_INDEX")
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": job.metadata,
        "spec": {
            "schedulerName": volcano.SCHEDULER,
            "queue": job.team.name,
            "priorityClassName": job.team.priority,
            "minAvailable": job.nodes,
            "maxRetry": MAXIMUM_RESTARTS,
            "ttlSecondsAfterFinished": KEPT_FOR_SECONDS,
            **topology,
            "plugins": {"env": [], "svc": ["--publish-not-ready-addresses=true"]},
            "policies": [{"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"}],
            "tasks": [{"name": "node", "replicas": job.nodes, "template": template}],
        },
    }


def _queue_metadata(job: Job, *, gang: bool) -> Object:
    """Labels and annotations of a job for its queue and its scheduler.

    `gang` adds the number of pods that start together. A JobSet does not need it here: KAI reads the number from the
    JobSet, and Volcano from the replicated job.
    """
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    if job.environment.queue_manager == "kueue":
        labels[kueue.QUEUE_LABEL] = kueue.LOCAL_QUEUE
        labels[kueue.PRIORITY_LABEL] = job.team.priority
    if job.scheduler == "kai":
        labels[kai.QUEUE_LABEL] = job.team.name
        labels[kai.PRIORITY_LABEL] = job.team.priority
    if job.scheduler == "kueue_with_kai":
        labels[kai.QUEUE_LABEL] = kai.admitted_queue_name(job.environment)
    scheduler = job.environment.gang_scheduler
    if scheduler == "kai" and job.preferred_level:
        annotations[kai.TOPOLOGY_ANNOTATION] = topology_name(job.group.hardware)
        annotations[kai.PREFERRED_TOPOLOGY] = job.preferred_level
    if scheduler == "kai" and gang:
        annotations[kai.GANG_ANNOTATION] = str(job.nodes)
    if scheduler == "volcano" and gang:
        annotations[volcano.GANG_ANNOTATION] = str(job.nodes)
    return {"labels": labels, **({"annotations": annotations} if annotations else {})}
