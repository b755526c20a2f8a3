"""Jobs with parts that need no GPU: the launcher of an MPI job, and data preparation. They run on the CPU nodes.

Source: Kubeflow MPI operator 0.8 (2026), MPIJob v2beta1; nccl-tests 2.20; Kueue 0.19 and KAI 0.17 as in `jobs`.
"""

from collections.abc import Sequence

from ultracluster.catalog.training import training_environment
from ultracluster.config.eks import Team
from ultracluster.kubernetes import kai, kueue, volcano
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.job_pods import (
    SCRATCH,
    Job,
    file_system_mounts,
    gpu_pod,
    scheduler_name,
    security_context,
    user_environment,
)
from ultracluster.kubernetes.karpenter_own import elastic_cpu_pod
from ultracluster.kubernetes.kueue_elastic import ELASTIC_QUEUE
from ultracluster.kubernetes.labels import CPU, NODE_GROUP
from ultracluster.kubernetes.parts import Object

LAUNCHER_CPUS = 2
"""CPUs of the pod that starts mpirun."""

MPIRUN = "/opt/amazon/openmpi/bin/mpirun"
ALL_REDUCE = "/opt/nccl-tests/build/all_reduce_perf"
"""Where AWS's image for NCCL tests has Open MPI and nccl-tests (awsome-distributed-ai, micro-benchmarks, 2026)."""

LARGEST_MESSAGE = "16G"
"""Largest message of the test, at which AWS publishes bus bandwidths."""

PREPARE_SCRIPT = "prepare.py"
PREPARE_SECONDS = 24 * 3600
"""How long a finished preparation is kept."""


def nccl_test(job: Job, metadata: Object, *, kept_for: int) -> Object:
    """An MPIJob that measures all_reduce: workers on whole GPU nodes, and a launcher on a CPU node."""
    variables = {
        **training_environment(job.group.hardware, efa=job.group.efa),
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,NET",
    }
    command = [
        MPIRUN,
        "--allow-run-as-root",
        "--bind-to",
        "none",
        "-np",
        str(job.gpus),
        "-N",
        str(job.gpus_per_node),
        *(word for name in ("PATH", "LD_LIBRARY_PATH") for word in ("-x", name)),
        *(word for name, value in variables.items() for word in ("-x", f"{name}={value}")),
        ALL_REDUCE,
        *("-b", "8", "-e", LARGEST_MESSAGE, "-f", "2", "-g", "1", "-c", "1", "-n", "100"),
    ]
    launcher = _cpu_pod(job.environment, "launcher", job.image, command, LAUNCHER_CPUS)
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": metadata,
        "spec": {
            "slotsPerWorker": job.gpus_per_node,
            "launcherCreationPolicy": "WaitForWorkersReady",
            "runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": 3, "ttlSecondsAfterFinished": kept_for},
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "restartPolicy": "OnFailure", "template": launcher},
                "Worker": {"replicas": job.nodes, "template": gpu_pod(job, "worker", [], variables, files=False)},
            },
        },
    }


def prepare(
    environment: EksEnvironment, team: Team, cpus: int, name: str, image: str, command: Sequence[str] = ()
) -> Object:
    """A job of one pod on a CPU node that runs `command` or PREPARE_SCRIPT; under Volcano, Volcano's own job."""
    lustre = environment.storage.lustre
    script = f"{lustre.mount_path}/{PREPARE_SCRIPT}" if lustre else PREPARE_SCRIPT
    pod = _cpu_pod(environment, "prepare", image, list(command) or ["python", script], cpus)
    _as_team(environment, team, pod["spec"])
    metadata: Object = {"name": name, "namespace": team.name}
    if environment.settings.scheduler == "volcano":
        return {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": metadata,
            "spec": {
                "schedulerName": volcano.SCHEDULER,
                "queue": team.name,
                "priorityClassName": team.priority,
                "minAvailable": 1,
                "ttlSecondsAfterFinished": PREPARE_SECONDS,
                "tasks": [{"name": "node", "replicas": 1, "template": pod}],
            },
        }
    labels = _queue_labels(environment, team)
    if environment.cpu_pool(cpus) is None and elastic_cpu_pod(environment, cpus):
        labels[kueue.QUEUE_LABEL] = ELASTIC_QUEUE
    spec: Object = {"backoffLimit": 0, "ttlSecondsAfterFinished": PREPARE_SECONDS, "template": pod}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {**metadata, "labels": labels}, "spec": spec}


def _queue_labels(environment: EksEnvironment, team: Team) -> dict[str, str]:
    if environment.settings.scheduler == "kai":
        return {kai.QUEUE_LABEL: team.name, kai.PRIORITY_LABEL: team.priority}
    labels = {kueue.QUEUE_LABEL: kueue.LOCAL_QUEUE, kueue.PRIORITY_LABEL: team.priority}
    if environment.settings.scheduler == "kueue_with_kai":
        labels[kai.QUEUE_LABEL] = kai.admitted_queue_name(environment)
    return labels


def _nodes(environment: EksEnvironment, cpus: int) -> tuple[str, int]:
    """Label of the nodes for a pod with `cpus` CPUs, and its memory in GiB: static nodes, or else Karpenter's."""
    pool = environment.cpu_pool(cpus)
    if pool:
        return pool.name, cpus * pool.each.memory_gib // pool.each.cpus
    return elastic_cpu_pod(environment, cpus) or (CPU, cpus)


def _cpu_pod(environment: EksEnvironment, name: str, image: str, command: list[str], cpus: int) -> Object:
    """Template of a pod on a CPU node, with memory in proportion. The node selector keeps it off accelerated nodes."""
    nodes, memory = _nodes(environment, cpus)
    container: Object = {
        "name": name,
        "image": image,
        "command": command,
        "resources": {"requests": {"cpu": cpus, "memory": f"{memory}Gi"}},
    }
    spec: Object = {
        **scheduler_name(environment.gang_scheduler),
        "restartPolicy": "Never",
        "nodeSelector": {NODE_GROUP: nodes},
        "containers": [container],
    }
    if environment.settings.scheduler == "kueue_with_volcano":
        return {"metadata": {"annotations": {volcano.QUEUE_ANNOTATION: volcano.DEFAULT_QUEUE}}, "spec": spec}
    return {"spec": spec}


def _as_team(environment: EksEnvironment, team: Team, spec: Object) -> None:
    """Let a pod read and write the team's folders, as the team's user, with a scratch space as its home."""
    mounts = (*file_system_mounts(environment), ("scratch", SCRATCH))
    variables = user_environment(environment, team)
    spec |= security_context(team)
    spec["containers"][0] |= {
        **({"env": [{"name": key, "value": value} for key, value in variables.items()]} if variables else {}),
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in mounts],
    }
    claims = ({"name": name, "persistentVolumeClaim": {"claimName": name}} for name, _ in mounts[:-1])
    spec["volumes"] = [*claims, {"name": "scratch", "emptyDir": {}}]
