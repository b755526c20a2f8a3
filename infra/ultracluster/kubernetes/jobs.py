"""The first multi-node job of a team: all its pods start together, on nodes near each other, and talk over EFA.

Source: EKS User Guide, "Run machine learning training on Amazon EKS with EFA" (2026); Kueue 0.19, JobSet 0.12,
Volcano 1.15, KAI Scheduler 0.17, NVIDIA DRA driver 0.4, each its own reference.
"""

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from ultracluster.catalog.eks import HUGE_PAGES_REQUEST
from ultracluster.catalog.software import mirrored_image
from ultracluster.catalog.training import training_environment, training_image
from ultracluster.config.eks import Eks, Team
from ultracluster.config.environment import Environment
from ultracluster.config.node_groups import NodeGroup
from ultracluster.errors import UltraclusterError
from ultracluster.kubernetes import kai, kueue, volcano
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
from ultracluster.kubernetes.operators import installed
from ultracluster.kubernetes.parts import Object
from ultracluster.kubernetes.shares import cpus, efa_devices, fleet_gpus, memory_gib
from ultracluster.kubernetes.topology import nearest, topology_name

SCRIPT = "train.py"
"""Script that the job runs: at the root of the file system, or in the image's folder where there is none."""

RENDEZVOUS_PORT = 29500
MAXIMUM_RESTARTS = 3

SCRATCH = "/scratch"
"""Where a pod finds the node's own disks: nodes keep what belongs to pods on them, when they are joined."""


class JobRefused(UltraclusterError, ValueError):
    """A job that the environment cannot run. Its text says what can be."""


@dataclass(frozen=True)
class _Job:
    environment: Environment
    settings: Eks
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
    def claims_devices(self) -> bool:
        return "dra" in self.settings.device_stacks(self.group.name)

    @property
    def metadata(self) -> Object:
        return {"name": self.name, "namespace": self.team.name}


def example_job(
    environment: Environment, team: str, gpus: int, *, node_group: str | None = None, image: str | None = None
) -> list[Object]:
    """Objects that make a job of `team` on `gpus` GPUs: whole nodes of one group, by default the team's first.

    It is a JobSet where JobSets run, Volcano's own job under Volcano, and otherwise a Job with a Service. Raises
    JobRefused when the environment has no such team or group, or the team not so many GPUs.
    """
    job = _checked(environment, team, gpus, node_group, image)
    if job.settings.scheduler == "volcano":
        return [*_claims(job), _volcano_job(job)]
    if "jobset" in installed(job.settings):
        return [*_claims(job), _job_set(job)]
    return [*_claims(job), _service(job), _indexed_job(job)]


def _checked(environment: Environment, team: str, gpus: int, node_group: str | None, image: str | None) -> _Job:
    settings = environment.control_plane
    if not isinstance(settings, Eks):
        raise JobRefused(f"{environment.name} runs Slurm on PCS: submit jobs with sbatch on a login node")
    teams = {team.name: team for team in settings.teams}
    if team not in teams:
        raise JobRefused(_unknown(team, f"a team of {environment.name}", list(teams)))
    name = node_group or teams[team].node_groups[0]
    if name not in teams[team].node_groups:
        raise JobRefused(_unknown(name, f"a node group of {team}", list(teams[team].node_groups)))
    group = next(group for group in environment.node_groups if group.name == name)
    _check_gpus(teams[team], group, gpus)
    if image is None:
        image = training_image(group.hardware)
        image = mirrored_image(image, settings.chart_mirror) if settings.chart_mirror else image
    return _Job(environment, settings, teams[team], group, gpus, image)


def _check_gpus(team: Team, group: NodeGroup, gpus: int) -> None:
    each, quota, fleet = group.hardware.gpu_count, team.quotas.get(group.name, 0), fleet_gpus(group)
    if gpus < 1 or gpus % each:
        below = max(gpus // each, 0) * each
        choices = f"{below} or {below + each}" if below else str(each)
        raise JobRefused(f"{gpus} GPUs are no whole number of {group.instance_type} with {each} each; take {choices}")
    if gpus > fleet:
        raise JobRefused(f"{gpus} GPUs; {group.name} has {fleet}")
    if gpus > quota and not team.may_borrow:
        raise JobRefused(f"{gpus} GPUs; the quota of {team.name} on {group.name} is {quota}, and it may not borrow")


def _unknown(name: str, kind: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"{name} is not {kind}; there are {', '.join(known)}" + (f". Did you mean {near[0]}?" if near else "")


def _job_set(job: _Job) -> Object:
    """Pods restart together: when one fails, the JobSet makes all anew, and training goes on from its checkpoint."""
    replicated: Object = {"spec": _job_spec(job, f"{job.name}-node-0-0.{job.name}")}
    if job.settings.scheduler == "kueue_with_volcano":
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
    """When a pod fails, the whole job does: a Job alone cannot restart its pods together."""
    spec = _job_spec(job, f"{job.name}-0.{job.name}")
    spec["template"]["spec"]["subdomain"] = job.name
    metadata = {**job.metadata, **_queue_metadata(job, gang=True)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _service(job: _Job) -> Object:
    """Gives the pods of a Job names, before they are ready."""
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


def _job_spec(job: _Job, main: str) -> Object:
    return {
        "completionMode": "Indexed",
        "completions": job.nodes,
        "parallelism": job.nodes,
        "backoffLimit": 0,
        "template": _pod(job, main, rank="JOB_COMPLETION_INDEX"),
    }


def _volcano_job(job: _Job) -> Object:
    """Volcano's job: it starts when all pods can, and restarts as a whole."""
    topology = {"networkTopology": {"mode": "soft"}} if nearest(job.group.hardware) else {}
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
    """Labels and annotations of the job by which queues and schedulers find it.

    `gang` tells the scheduler how many pods belong together; of a JobSet KAI knows, and Volcano reads it below.
    """
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    if job.settings.queues_with == "kueue":
        labels[kueue.QUEUE_LABEL] = kueue.LOCAL_QUEUE
        labels[kueue.PRIORITY_LABEL] = job.team.priority
    if job.settings.scheduler == "kai":
        labels[kai.QUEUE_LABEL] = job.team.name
        labels[kai.PRIORITY_LABEL] = job.team.priority
    if job.settings.scheduler == "kueue_with_kai":
        labels[kai.QUEUE_LABEL] = kai.admitted_queue_name(job.environment)
    if job.settings.places_with == "kai" and (level := nearest(job.group.hardware)):
        annotations[kai.TOPOLOGY_ANNOTATION] = topology_name(job.group.hardware)
        annotations[kai.PREFERRED_TOPOLOGY] = level
    if job.settings.places_with == "kai" and gang:
        annotations[kai.GANG_ANNOTATION] = str(job.nodes)
    if job.settings.places_with == "volcano" and gang:
        annotations[volcano.GANG_ANNOTATION] = str(job.nodes)
    return {"labels": labels, **({"annotations": annotations} if annotations else {})}


def _pod(job: _Job, main: str, *, rank: str) -> Object:
    """One pod takes a node. `main` is the address of the first, `rank` the variable that holds a pod's own number."""
    annotations = _placement(job)
    return {
        **({"metadata": {"annotations": annotations}} if annotations else {}),
        "spec": {
            **({"schedulerName": _SCHEDULERS[job.settings.places_with]} if job.settings.places_with != "kueue" else {}),
            "restartPolicy": "Never",
            "nodeSelector": {NODE_GROUP: job.group.name},
            "tolerations": [dict(GPU_TOLERATION)],
            **_pod_claims(job),
            "containers": [_container(job, main, rank)],
            "volumes": _volumes(job),
        },
    }


_SCHEDULERS = {"volcano": volcano.SCHEDULER, "kai": kai.SCHEDULER}


def _placement(job: _Job) -> dict[str, str]:
    """Near each other rather than elsewhere, elsewhere rather than not at all: Kueue tries the nearest level first."""
    level = nearest(job.group.hardware)
    if kueue.placed_by_kueue(job.group, job.settings):
        return {kueue.PREFERRED_TOPOLOGY: level} if level else {kueue.UNCONSTRAINED_TOPOLOGY: "true"}
    if job.settings.scheduler == "kueue_with_volcano":
        topology = {volcano.TOPOLOGY_ANNOTATION: "soft"} if level else {}
        return {volcano.QUEUE_ANNOTATION: volcano.DEFAULT_QUEUE, **topology}
    return {}


def _container(job: _Job, main: str, rank: str) -> Object:
    lustre = job.environment.storage.lustre
    script = f"{lustre.mount_path}/{SCRIPT}" if lustre else SCRIPT
    variables = {**training_environment(job.group.hardware), "MASTER_ADDR": main}
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
            {"name": "shared-memory", "mountPath": "/dev/shm"},  # noqa: S108 - where NCCL looks for it
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
    """Every GPU and EFA device of the node; three quarters of its CPUs and memory, the rest serves the node itself."""
    each, devices = job.gpus_per_node, efa_devices(job.group, job.gpus_per_node)
    fixed: dict[str, Any] = {HUGE_PAGES: HUGE_PAGES_REQUEST}
    if not job.claims_devices:
        fixed = {GPU: each, EFA: devices, **fixed}
    own = {"cpu": cpus(job.group, each) * 3 // 4, "memory": f"{memory_gib(job.group, each) * 3 // 4}Gi"}
    claims = [{"name": name} for name in _claim_templates(job)]
    return {"requests": {**own, **fixed}, "limits": dict(fixed), **({"claims": claims} if claims else {})}


def _claim_templates(job: _Job) -> dict[str, str]:
    """Templates of what each pod claims, by the name of the claim."""
    devices = {"gpus": f"{job.name}-gpus", "efa": f"{job.name}-efa"} if job.claims_devices else {}
    return {**devices, **({"channel": f"{job.name}-channel"} if job.group.hardware.ultraserver_only else {})}


def _pod_claims(job: _Job) -> Object:
    claims = [{"name": name, "resourceClaimTemplateName": template} for name, template in _claim_templates(job).items()]
    return {"resourceClaims": claims} if claims else {}


def _claims(job: _Job) -> list[Object]:
    """What pods claim from: GPUs and EFA devices where they are not requested, and NVLink between instances.

    A pod takes whole nodes, so devices need no alignment; and one claim holds 32 devices, fewer than a P5 node has.
    """
    templates, each = _claim_templates(job), job.gpus_per_node
    made: list[Object] = []
    if job.claims_devices:
        made.append(_claim_template(job, templates["gpus"], GPU_CLASS, each))
        made.append(_claim_template(job, templates["efa"], EFA_CLASS, efa_devices(job.group, each)))
    if job.group.hardware.ultraserver_only:
        made.append(_compute_domain(job, templates["channel"]))
    return made


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
    """NVLink between the instances of the job; the driver makes the template that pods claim their channel from."""
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": job.metadata,
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": template}}},
    }
