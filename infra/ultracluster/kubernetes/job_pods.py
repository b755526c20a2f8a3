"""The pods of a job: containers, volumes, devices and the claims for them.

Source: EKS User Guide, "Run machine learning training on Amazon EKS with EFA" (2026); Kueue 0.19, Volcano 1.15,
NVIDIA DRA driver 0.4, each its own reference.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ultracluster.catalog.eks import HUGE_PAGES_REQUEST
from ultracluster.catalog.training import recorder_environment, training_environment
from ultracluster.config.eks import Scheduler, Team
from ultracluster.config.file_systems import HOME
from ultracluster.config.node_groups import NodeGroup
from ultracluster.jobs.request import (
    PAIR_NODES,
    RENDEZVOUS_PORT,
    STALLED_SECONDS,
    WATCH_JOB,
    Script,
    program,
)
from ultracluster.kubernetes import kai, kueue, volcano
from ultracluster.kubernetes.elastic_nodes import ElasticNodes
from ultracluster.kubernetes.environment import EksEnvironment, QueueSoftware
from ultracluster.kubernetes.file_systems import further_mounts
from ultracluster.kubernetes.folders import lustre_mounts
from ultracluster.kubernetes.labels import (
    EFA,
    EFA_CLASS,
    GPU,
    GPU_CLASS,
    GPU_TOLERATION,
    HUGE_PAGES,
    NODE_GROUP,
)
from ultracluster.kubernetes.parts import Object
from ultracluster.kubernetes.quotas import cpus, efa_devices, memory_gib
from ultracluster.kubernetes.topology import preferred_level

SCRIPT = "train.py"
"""Script that the job runs: at the root of the file system, or without one in the image's working directory."""

FILES = "/job"
"""Where a pod finds the files of its job: the program that watches it, and the user's script."""

SCRATCH = "/scratch"
"""Where a pod mounts its `emptyDir`, which is on the node's instance store when RAID 0 joins that."""


Mounts = tuple[tuple[str, str], ...]
"""Claims with the paths where pods mount them."""


@dataclass(frozen=True)
class Job:
    """A job of a team on whole nodes of a group or a pool. `command` is what torchrun starts, by default SCRIPT."""

    environment: EksEnvironment
    team: Team
    group: NodeGroup | ElasticNodes
    gpus: int
    image: str
    name: str
    command: tuple[str, ...] = ()
    script: Script | None = None

    @property
    def gpus_per_node(self) -> int:
        """GPUs of one node, all of which a pod uses."""
        return self.group.hardware.gpu_count

    @property
    def nodes(self) -> int:
        """Nodes, each with one pod."""
        return self.gpus // self.gpus_per_node

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler setting of the environment."""
        return self.environment.settings.scheduler

    @property
    def elastic(self) -> bool:
        """Whether Karpenter launches the nodes for the job."""
        return isinstance(self.group, ElasticNodes)

    @property
    def uses_dra(self) -> bool:
        """Whether pods claim GPUs and EFA devices through DRA."""
        return not isinstance(self.group, ElasticNodes) and self.environment.uses_dra_on(self.group)

    @property
    def preferred_level(self) -> str | None:
        """Topology level within which the nodes should be; None if the type has none, or no node exists yet."""
        return None if self.elastic else preferred_level(self.group.hardware)

    @property
    def node_selector(self) -> dict[str, str]:
        """Labels of the nodes."""
        more = self.group.selector(self.nodes) if isinstance(self.group, ElasticNodes) else {}
        return {NODE_GROUP: self.group.name, **more}

    @property
    def shared_folder(self) -> str | None:
        """Folder of the job on the file system, which all its pods see. Without a file system there is none."""
        lustre = self.environment.storage.lustre
        return f"{lustre.mount_path}/jobs/{self.name}" if lustre else None

    @property
    def folder(self) -> str:
        """Folder of the job, JOB_FOLDER of its pods: `shared_folder`, or one in each pod."""
        return self.shared_folder or f"{SCRATCH}/job"

    @property
    def metadata(self) -> Object:
        """Name and namespace."""
        return {"name": self.name, "namespace": self.team.name}


def job_files(job: Job) -> Object:
    """The files of a job as a ConfigMap. Jobs with the same files share it, and it stays when they are deleted."""
    more = {job.script.name: job.script.text} if job.script else {}
    return _files({WATCH_JOB: program(WATCH_JOB), **more}, job.team.name)


def pair_files(namespace: str) -> Object:
    """The ConfigMap with the program that measures pairs of nodes."""
    return _files({PAIR_NODES: program(PAIR_NODES)}, namespace)


def script_files(script: Script, namespace: str) -> Object:
    """The ConfigMap with the script of a job that is not watched."""
    return _files({script.name: script.text}, namespace)


def _files(data: Mapping[str, str], namespace: str) -> Object:
    digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
    metadata = {"name": f"job-files-{digest[:10]}", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": True, "data": data}


def mount_files(pod: Object, files: Object) -> None:
    """Mounts a ConfigMap of files into the container of a pod, at FILES."""
    (container,) = pod["spec"]["containers"]
    container.setdefault("volumeMounts", []).append({"name": "job-files", "mountPath": FILES, "readOnly": True})
    volume = {"name": "job-files", "configMap": {"name": files["metadata"]["name"]}}
    pod["spec"].setdefault("volumes", []).append(volume)


def torchrun_pod(job: Job, main_address: str, *, rank: str) -> Object:
    """Template of the pods of a training job, one on each node, which mount the ConfigMap of `job_files`.

    `main_address` is the address of the first pod, `rank` the environment variable with a pod's own number.
    """
    lustre = job.environment.storage.lustre
    script = f"{FILES}/{job.script.name}" if job.script else f"{lustre.mount_path}/{SCRIPT}" if lustre else SCRIPT
    command = [
        "python3",
        f"{FILES}/{WATCH_JOB}",
        f"--ranks={job.gpus if job.shared_folder else 0}",
        f"--ranks-per-node={job.gpus_per_node}",
        f"--stalled={STALLED_SECONDS}",
        "--node=$(NODE_NAME)",
        f"--node-rank=$({rank})",
        "--",
        "torchrun",
        f"--nnodes={job.nodes}",
        f"--nproc-per-node={job.gpus_per_node}",
        f"--node-rank=$({rank})",
        "--master-addr=$(MASTER_ADDR)",
        f"--master-port={RENDEZVOUS_PORT}",
        *([script, *job.command] if job.script else job.command or (script,)),
    ]
    variables = {
        **training_environment(job.group.hardware, efa=job.group.efa),
        **recorder_environment(f"{job.folder}/traces/rank-", job.image),
        **user_environment(job.environment, job.team),
        "JOB_FOLDER": job.folder,
        "MASTER_ADDR": main_address,
    }
    pod = gpu_pod(job, "train", command, variables)
    (container,) = pod["spec"]["containers"]
    container["env"].append({"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}})
    mount_files(pod, job_files(job))
    return pod


def gpu_pod(job: Job, name: str, command: list[str], variables: dict[str, str], *, files: bool = True) -> Object:
    """Template of pods that take a whole node each. Without `command` they run that of the image or the operator.

    With `files` they mount the team's folders as the team's user; otherwise they run as the image's user.
    """
    annotations, scheduler = _pod_annotations(job), job.environment.gang_scheduler
    mounts = file_system_mounts(job.environment) if files else ()
    return {
        **({"metadata": {"annotations": annotations}} if annotations else {}),
        "spec": {
            **scheduler_name(scheduler),
            "restartPolicy": "Never",
            "nodeSelector": job.node_selector,
            "tolerations": [dict(GPU_TOLERATION)],
            **(security_context(job.team) if files else {}),
            **_pod_claims(job),
            "containers": [_container(job, name, command, variables, mounts)],
            "volumes": _volumes(mounts),
        },
    }


_SCHEDULER_NAMES: dict[QueueSoftware, str] = {"volcano": volcano.SCHEDULER, "kai": kai.SCHEDULER}


def scheduler_name(scheduler: QueueSoftware) -> Object:
    """The field of a pod that names its scheduler, empty for the default scheduler of Kubernetes."""
    return {"schedulerName": _SCHEDULER_NAMES[scheduler]} if scheduler in _SCHEDULER_NAMES else {}


def _pod_annotations(job: Job) -> dict[str, str]:
    """Annotations that prefer nodes close to each other, but allow others. Kueue tries the closest level first.

    None for nodes that do not exist yet: with them Kueue would wait for such nodes.
    """
    if isinstance(job.group, ElasticNodes):
        return {}
    level = job.preferred_level
    if kueue.topology_aware(job.environment, job.group):
        return {kueue.PREFERRED_TOPOLOGY: level} if level else {kueue.UNCONSTRAINED_TOPOLOGY: "true"}
    if job.scheduler == "kueue_with_volcano":
        topology = {volcano.TOPOLOGY_ANNOTATION: "soft"} if level else {}
        return {volcano.QUEUE_ANNOTATION: volcano.DEFAULT_QUEUE, **topology}
    return {}


def _container(job: Job, name: str, command: list[str], variables: dict[str, str], mounts: Mounts) -> Object:
    return {
        "name": name,
        "image": job.image,
        **({"command": command} if command else {}),
        "env": [{"name": key, "value": value} for key, value in variables.items()],
        "resources": _resources(job),
        "volumeMounts": [
            *({"name": claim, "mountPath": path} for claim, path in mounts),
            {"name": "shared-memory", "mountPath": "/dev/shm"},  # noqa: S108 - NCCL uses this path
            {"name": "scratch", "mountPath": SCRATCH},
        ],
    }


def file_system_mounts(environment: EksEnvironment) -> Mounts:
    """Claims of file systems with the paths where pods mount them: the team's folders, and linked folders in them."""
    lustre = environment.storage.lustre
    return (*(lustre_mounts(lustre) if lustre else ()), *further_mounts(environment))


def security_context(team: Team) -> Object:
    """The team's user, which owns its folders, as a field of a pod."""
    if team.user is None:
        return {}
    user, group = map(int, team.user.split(":"))
    return {"securityContext": {"runAsUser": user, "runAsGroup": group}}


def user_environment(environment: EksEnvironment, team: Team) -> dict[str, str]:
    """A name and a home for the team's user, which has no entry in the /etc/passwd of the image.

    With a file system of homes, the home of every team is its folder there.
    """
    home = HOME if environment.storage.homes else SCRATCH if team.user else None
    return {**({"HOME": home} if home else {}), **({"LOGNAME": team.name} if team.user else {})}


def _volumes(mounts: Mounts) -> list[Object]:
    return [
        *({"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim, _ in mounts),
        {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
        {"name": "scratch", "emptyDir": {}},
    ]


def _resources(job: Job) -> Object:
    """Every GPU and EFA device of the node, and three quarters of its CPUs and memory: the node needs the rest."""
    each, devices = job.gpus_per_node, efa_devices(job.group, job.gpus_per_node)
    limits: dict[str, Any] = {HUGE_PAGES: HUGE_PAGES_REQUEST} if devices else {}
    if not job.uses_dra:
        limits = {GPU: each, **({EFA: devices} if devices else {}), **limits}
    host = {"cpu": cpus(job.group, each) * 3 // 4, "memory": f"{memory_gib(job.group, each) * 3 // 4}Gi"}
    claims = [{"name": name} for name in _claim_templates(job)]
    return {"requests": {**host, **limits}, "limits": dict(limits), **({"claims": claims} if claims else {})}


def _claim_templates(job: Job) -> dict[str, str]:
    """Names of the ResourceClaimTemplates of each pod, by the name of the claim.

    Those of devices are named after what they claim: all jobs of the namespace that claim the same share them.
    """
    gpus, efa = job.gpus_per_node, efa_devices(job.group, job.gpus_per_node)
    devices = {"gpus": f"gpus-{gpus}", **({"efa": f"efa-devices-{efa}"} if efa else {})} if job.uses_dra else {}
    return {**devices, **({"channel": f"{job.name}-channel"} if job.group.hardware.ultraserver_only else {})}


def _pod_claims(job: Job) -> Object:
    claims = [{"name": name, "resourceClaimTemplateName": template} for name, template in _claim_templates(job).items()]
    return {"resourceClaims": claims} if claims else {}


def claims(job: Job) -> list[Object]:
    """Objects that pods claim from: GPUs and EFA devices under DRA, and NVLink between instances of UltraServers.

    GPUs and EFA devices have separate claims, because a claim holds at most 32 devices and a P5 node has more. They
    need no alignment with each other, because a pod takes a whole node.
    """
    templates, each = _claim_templates(job), job.gpus_per_node
    objects: list[Object] = []
    if job.uses_dra:
        objects.append(_claim_template(job, templates["gpus"], GPU_CLASS, each))
        if "efa" in templates:
            objects.append(_claim_template(job, templates["efa"], EFA_CLASS, efa_devices(job.group, each)))
    if job.group.hardware.ultraserver_only:
        objects.append(_compute_domain(job, templates["channel"]))
    return objects


def _claim_template(job: Job, name: str, device_class: str, count: int) -> Object:
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


def _compute_domain(job: Job, template: str) -> Object:
    """NVLink between the instances of the job. The DRA driver creates `template`, from which pods claim a channel."""
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": job.metadata,
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": template}}},
    }
