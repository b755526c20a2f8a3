"""A multi-node training job for a team: a gang that is scheduled on nodes close to each other and uses EFA.

Source: EKS User Guide, "Run machine learning training on Amazon EKS with EFA" (2026); Kueue 0.19, JobSet 0.12,
Volcano 1.15, KAI Scheduler 0.17, NVIDIA DRA driver 0.4, each its own reference.
"""

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from ultracluster.catalog.eks import HUGE_PAGES_REQUEST
from ultracluster.catalog.software import mirrored_image
from ultracluster.catalog.training import training_environment, training_image
from ultracluster.config.eks import Scheduler, Team
from ultracluster.config.environment import Environment
from ultracluster.config.node_groups import NodeGroup
from ultracluster.errors import UltraclusterError
from ultracluster.kubernetes import kai, kueue, volcano
from ultracluster.kubernetes.environment import EksEnvironment, NotEks
from ultracluster.kubernetes.labels import (
    EFA,
    EFA_CLASS,
    FILE_SYSTEM_CLAIM,
    GPU,
    GPU_CLASS,
    GPU_TOLERATION,
    HUGE_PAGES,
    NODE_GROUP,
)
from ultracluster.kubernetes.parts import Object
from ultracluster.kubernetes.quotas import cpus, efa_devices, fleet_gpus, memory_gib
from ultracluster.kubernetes.topology import preferred_level, topology_name

SCRIPT = "train.py"
"""Script that the job runs: at the root of the file system, or without one in the image's working directory."""

RENDEZVOUS_PORT = 29500
MAXIMUM_RESTARTS = 3

SCRATCH = "/scratch"
"""Where a pod mounts its `emptyDir`, which is on the node's instance store when RAID 0 joins that."""


class JobRefused(UltraclusterError, ValueError):
    """A job that the environment cannot run. The message says why, and what is allowed."""


@dataclass(frozen=True)
class _Job:
    environment: EksEnvironment
    team: Team
    group: NodeGroup
    gpus: int
    image: str

    @property
    def name(self) -> str:
        return f"train-{self.gpus}-gpus"

    @property
    def gpus_per_node(self) -> int:
        return self.group.hardware.gpu_count

    @property
    def nodes(self) -> int:
        return self.gpus // self.gpus_per_node

    @property
    def scheduler(self) -> Scheduler:
        return self.environment.settings.scheduler

    @property
    def uses_dra(self) -> bool:
        return self.environment.uses_dra_on(self.group)

    @property
    def preferred_level(self) -> str | None:
        return preferred_level(self.group.hardware)

    @property
    def metadata(self) -> Object:
        return {"name": self.name, "namespace": self.team.name}


def example_job(
    environment: Environment, team: str, gpus: int, *, node_group: str | None = None, image: str | None = None
) -> list[Object]:
    """Objects of a job of `team` on `gpus` GPUs: whole nodes of one node group, by default the team's first.

    The job is a JobSet if the environment has its operator, Volcano's own job under Volcano, and otherwise a Job with a
    Service. Raises JobRefused if the environment has no such team or group, or the team has fewer GPUs.
    """
    job = _checked(environment, team, gpus, node_group, image)
    if job.scheduler == "volcano":
        return [*_claims(job), _volcano_job(job)]
    if "jobset" in job.environment.job_operators:
        return [*_claims(job), _job_set(job)]
    return [*_claims(job), _service(job), _indexed_job(job)]


def _checked(environment: Environment, team: str, gpus: int, node_group: str | None, image: str | None) -> _Job:
    try:
        view = EksEnvironment.from_environment(environment)
    except NotEks:
        raise JobRefused(f"{environment.name} runs Slurm on PCS: submit jobs with sbatch on a login node") from None
    teams = {team.name: team for team in view.teams}
    if team not in teams:
        raise JobRefused(_unknown(team, f"a team of {view.name}", list(teams)))
    name = node_group or teams[team].node_groups[0]
    if name not in teams[team].node_groups:
        raise JobRefused(_unknown(name, f"a node group of {team}", list(teams[team].node_groups)))
    group = next(group for group in view.node_groups if group.name == name)
    _check_gpus(teams[team], group, gpus)
    return _Job(view, teams[team], group, gpus, _default_image(view, group) if image is None else image)


def _default_image(environment: EksEnvironment, group: NodeGroup) -> str:
    image, mirror = training_image(group.hardware), environment.settings.chart_mirror
    return mirrored_image(image, mirror) if mirror else image


def _check_gpus(team: Team, group: NodeGroup, gpus: int) -> None:
    each, quota, fleet = group.hardware.gpu_count, team.quotas.get(group.name, 0), fleet_gpus(group)
    if gpus < 1 or gpus % each:
        below = max(gpus // each, 0) * each
        choices = f"{below} or {below + each}" if below else str(each)
        raise JobRefused(f"{gpus} GPUs are not whole nodes: {group.instance_type} has {each}; request {choices}")
    if gpus > fleet:
        raise JobRefused(f"{gpus} GPUs are too many: {group.name} has {fleet}")
    if gpus > quota and not team.may_borrow:
        limit = f"the quota of {team.name} on {group.name} is {quota}, and the team may not borrow"
        raise JobRefused(f"{gpus} GPUs are too many: {limit}")


def _unknown(name: str, kind: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"{name} is not {kind}; allowed: {', '.join(known)}" + (f". Did you mean {near[0]}?" if near else "")


def _job_set(job: _Job) -> Object:
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
            "replicatedJobs": [{"name": "node", "replicas": 1, "template": replicated}],
        },
    }


def _indexed_job(job: _Job) -> Object:
    """An indexed Job. When a pod fails, the whole Job fails: a Job cannot restart its pods together."""
    spec = _job_spec(job, f"{job.name}-0.{job.name}")
    spec["template"]["spec"]["subdomain"] = job.name
    metadata = {**job.metadata, **_queue_metadata(job, gang=True)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _service(job: _Job) -> Object:
    """A headless Service that gives the pods of a Job DNS names before they are ready."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": job.metadata,
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {"batch.kubernetes.io/job-name": job.name},
        },
    }


def _job_spec(job: _Job, main_address: str) -> Object:
    return {
        "completionMode": "Indexed",
        "completions": job.nodes,
        "parallelism": job.nodes,
        "backoffLimit": 0,
        "template": _pod(job, main_address, rank="JOB_COMPLETION_INDEX"),
    }


def _volcano_job(job: _Job) -> Object:
    """Volcano's job. It starts when all its pods can start, and restarts as a whole."""
    topology = {"networkTopology": {"mode": "soft"}} if job.preferred_level else {}
    template = _pod(job, f"{job.name}-node-0.{job.name}", rank="VC_TASK_INDEX")
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
            **topology,
            "plugins": {"env": [], "svc": ["--publish-not-ready-addresses=true"]},
            "policies": [{"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"}],
            "tasks": [{"name": "node", "replicas": job.nodes, "template": template}],
        },
    }


def _queue_metadata(job: _Job, *, gang: bool) -> Object:
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


def _pod(job: _Job, main_address: str, *, rank: str) -> Object:
    """Template of the pods, one on each node.

    `main_address` is the address of the first pod, `rank` the environment variable with a pod's own number.
    """
    annotations, scheduler = _pod_annotations(job), job.environment.gang_scheduler
    return {
        **({"metadata": {"annotations": annotations}} if annotations else {}),
        "spec": {
            **({"schedulerName": _SCHEDULER_NAMES[scheduler]} if scheduler in _SCHEDULER_NAMES else {}),
            "restartPolicy": "Never",
            "nodeSelector": {NODE_GROUP: job.group.name},
            "tolerations": [dict(GPU_TOLERATION)],
            **_pod_claims(job),
            "containers": [_container(job, main_address, rank)],
            "volumes": _volumes(job),
        },
    }


_SCHEDULER_NAMES = {"volcano": volcano.SCHEDULER, "kai": kai.SCHEDULER}


def _pod_annotations(job: _Job) -> dict[str, str]:
    """Annotations that prefer nodes close to each other, but allow others. Kueue tries the closest level first."""
    level = job.preferred_level
    if kueue.topology_aware(job.environment, job.group):
        return {kueue.PREFERRED_TOPOLOGY: level} if level else {kueue.UNCONSTRAINED_TOPOLOGY: "true"}
    if job.scheduler == "kueue_with_volcano":
        topology = {volcano.TOPOLOGY_ANNOTATION: "soft"} if level else {}
        return {volcano.QUEUE_ANNOTATION: volcano.DEFAULT_QUEUE, **topology}
    return {}


def _container(job: _Job, main_address: str, rank: str) -> Object:
    lustre = job.environment.storage.lustre
    script = f"{lustre.mount_path}/{SCRIPT}" if lustre else SCRIPT
    variables = {**training_environment(job.group.hardware), "MASTER_ADDR": main_address}
    return {
        "name": "train",
        "image": job.image,
        "command": [
            "torchrun",
            f"--nnodes={job.nodes}",
            f"--nproc-per-node={job.gpus_per_node}",
            f"--node-rank=$({rank})",
            "--master-addr=$(MASTER_ADDR)",
            f"--master-port={RENDEZVOUS_PORT}",
            script,
        ],
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "resources": _resources(job),
        "volumeMounts": [
            *([{"name": FILE_SYSTEM_CLAIM, "mountPath": lustre.mount_path}] if lustre else []),
            {"name": "shared-memory", "mountPath": "/dev/shm"},  # noqa: S108 - NCCL uses this path
            {"name": "scratch", "mountPath": SCRATCH},
        ],
    }


def _volumes(job: _Job) -> list[Object]:
    claim = {"name": FILE_SYSTEM_CLAIM, "persistentVolumeClaim": {"claimName": FILE_SYSTEM_CLAIM}}
    return [
        *([claim] if job.environment.storage.lustre else []),
        {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
        {"name": "scratch", "emptyDir": {}},
    ]


def _resources(job: _Job) -> Object:
    """Every GPU and EFA device of the node, and three quarters of its CPUs and memory: the node needs the rest."""
    each, devices = job.gpus_per_node, efa_devices(job.group, job.gpus_per_node)
    limits: dict[str, Any] = {HUGE_PAGES: HUGE_PAGES_REQUEST}
    if not job.uses_dra:
        limits = {GPU: each, EFA: devices, **limits}
    host = {"cpu": cpus(job.group, each) * 3 // 4, "memory": f"{memory_gib(job.group, each) * 3 // 4}Gi"}
    claims = [{"name": name} for name in _claim_templates(job)]
    return {"requests": {**host, **limits}, "limits": dict(limits), **({"claims": claims} if claims else {})}


def _claim_templates(job: _Job) -> dict[str, str]:
    """Names of the ResourceClaimTemplates of each pod, by the name of the claim."""
    devices = {"gpus": f"{job.name}-gpus", "efa": f"{job.name}-efa"} if job.uses_dra else {}
    return {**devices, **({"channel": f"{job.name}-channel"} if job.group.hardware.ultraserver_only else {})}


def _pod_claims(job: _Job) -> Object:
    claims = [{"name": name, "resourceClaimTemplateName": template} for name, template in _claim_templates(job).items()]
    return {"resourceClaims": claims} if claims else {}


def _claims(job: _Job) -> list[Object]:
    """Objects that pods claim from: GPUs and EFA devices under DRA, and NVLink between instances of UltraServers.

    GPUs and EFA devices have separate claims, because a claim holds at most 32 devices and a P5 node has more. They
    need no alignment with each other, because a pod takes a whole node.
    """
    templates, each = _claim_templates(job), job.gpus_per_node
    objects: list[Object] = []
    if job.uses_dra:
        objects.append(_claim_template(job, templates["gpus"], GPU_CLASS, each))
        objects.append(_claim_template(job, templates["efa"], EFA_CLASS, efa_devices(job.group, each)))
    if job.group.hardware.ultraserver_only:
        objects.append(_compute_domain(job, templates["channel"]))
    return objects


def _claim_template(job: _Job, name: str, device_class: str, count: int) -> Object:
    request = {
        "name": "devices",
        "exactly": {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count},
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {**job.metadata, "name": name},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def _compute_domain(job: _Job, template: str) -> Object:
    """NVLink between the instances of the job. The DRA driver creates `template`, from which pods claim a channel."""
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": job.metadata,
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": template}}},
    }
