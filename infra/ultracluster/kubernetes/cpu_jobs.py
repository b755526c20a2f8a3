"""Jobs with parts that need no GPU: the launcher of an MPI job, and data preparation. They run on the CPU nodes.

Source: Kubeflow MPI operator 0.8 (2026), MPIJob v2beta1; nccl-tests 2.20; Kueue 0.19 and KAI 0.17 as in `jobs`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ultracluster.catalog.health import pair_floor
from ultracluster.catalog.training import training_environment
from ultracluster.config.eks import Team
from ultracluster.jobs.request import PAIR_ARGUMENTS, PAIR_NODES, PAIR_SECONDS, Script, pair_environment
from ultracluster.kubernetes import kai, kueue, volcano
from ultracluster.kubernetes.environment import EksEnvironment
from ultracluster.kubernetes.job_pods import (
    FILES,
    SCRATCH,
    Job,
    file_system_mounts,
    gpu_pod,
    mount_files,
    pair_files,
    scheduler_name,
    script_files,
    security_context,
    user_environment,
)
from ultracluster.kubernetes.karpenter_own import elastic_cpu_pod
from ultracluster.kubernetes.kueue_elastic import ELASTIC_QUEUE
from ultracluster.kubernetes.labels import CPU, GPU_TOLERATION, NODE_GROUP
from ultracluster.kubernetes.parts import Object

LAUNCHER_CPUS = 2
"""CPUs of the pod that starts mpirun."""

LEAST_VCPUS = 12
"""vCPUs of nodes on which a worker, which has three quarters of them, leaves enough for the launcher and the node."""

MPIRUN = "/opt/amazon/openmpi/bin/mpirun"
ALL_REDUCE = "/opt/nccl-tests/build/all_reduce_perf"
"""Where AWS's image for NCCL tests has Open MPI and nccl-tests (awsome-distributed-ai, micro-benchmarks, 2026)."""

LARGEST_MESSAGE = "16G"
"""Largest message of the test, at which AWS publishes bus bandwidths."""

PREPARE_SCRIPT = "prepare.py"
PREPARE_SECONDS = 24 * 3600
"""How long a finished preparation is kept."""


def nccl_test(job: Job, metadata: Object, *, kept_for: int) -> Object:
    """An MPIJob that measures all_reduce: workers on whole GPU nodes, and a launcher on a CPU node.

    On nodes of Karpenter the launcher is beside a worker: a job has one queue, and that of elastic nodes has no others.
    """
    variables = {
        **training_environment(job.group.hardware, efa=job.group.efa),
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,NET",
    }
    arguments = ("-b", "8", "-e", LARGEST_MESSAGE, "-f", "2", "-g", "1", "-c", "1", "-n", "100")
    launcher = _launcher(job, _all_reduce(job, variables, arguments, job.nodes))
    worker = gpu_pod(job, "worker", [], variables, files=False)
    return _mpi_job(job, metadata, launcher, worker, kept_for, restarts=3)


def nccl_pairs(job: Job, metadata: Object, *, kept_for: int) -> Object:
    """An MPIJob whose launcher measures pairs of workers, with the program of `pair_files`.

    Workers write the name of their node to a file: the MPI operator tells the launcher the names of pods only.
    """
    hardware = job.group.hardware
    variables = {**training_environment(hardware, efa=job.group.efa), **pair_environment(hardware)}
    each = job.gpus_per_node
    hosts = ("--host", f"{{first}}:{each},{{second}}:{each}")
    limits = ("--type", hardware.name, "--floor", f"{pair_floor(hardware) or 0:g}", "--seconds", str(PAIR_SECONDS))
    mpirun = _all_reduce(job, variables, PAIR_ARGUMENTS, 2, *hosts)
    launcher = _launcher(job, ["bash", "-ec", _FIND_NODES, f"{FILES}/{PAIR_NODES}", *limits, "--", *mpirun])
    mount_files(launcher, pair_files(job.team.name))
    worker = gpu_pod(job, "worker", ["sh", "-c", _SERVE], variables, files=False)
    (container,) = worker["spec"]["containers"]
    container["env"].append({"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}})
    return _mpi_job(job, metadata, launcher, worker, kept_for, restarts=0)


_SERVE = f'echo "$NODE_NAME" > {SCRATCH}/node; exec /usr/sbin/sshd -De'
"""Command of a worker: the one that the MPI operator gives it, after the name of its node."""

_FIND_NODES = f"""
name() {{ ssh -n -o ConnectionAttempts=10 -o ConnectTimeout=30 "$1" cat {SCRATCH}/node; }}
nodes=$(cut -d " " -f 1 /etc/mpi/hostfile | while read -r host; do echo "$host=$(name "$host")"; done | paste -sd,)
exec python3 "$0" --nodes "$nodes" "$@"
"""
"""Command of a launcher, which asks the workers for the names of their nodes."""


def _all_reduce(job: Job, variables: Mapping[str, str], arguments: Sequence[str], nodes: int, *hosts: str) -> list[str]:
    """The command that runs all_reduce_perf on each GPU of `nodes` nodes."""
    return [
        MPIRUN,
        "--allow-run-as-root",
        "--bind-to",
        "none",
        *hosts,
        "-np",
        str(nodes * job.gpus_per_node),
        "-N",
        str(job.gpus_per_node),
        *(word for name in ("PATH", "LD_LIBRARY_PATH") for word in ("-x", name)),
        *(word for name, value in variables.items() for word in ("-x", f"{name}={value}")),
        ALL_REDUCE,
        *arguments,
    ]


def _launcher(job: Job, command: list[str]) -> Object:
    place = _place(job.environment, LAUNCHER_CPUS)
    launcher = _cpu_pod(job.environment, "launcher", job.image, command, LAUNCHER_CPUS, place)
    if job.elastic:
        launcher["spec"] |= {"nodeSelector": job.node_selector, "tolerations": [dict(GPU_TOLERATION)]}
    return launcher


def _mpi_job(job: Job, metadata: Object, launcher: Object, worker: Object, kept_for: int, *, restarts: int) -> Object:
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": metadata,
        "spec": {
            "slotsPerWorker": job.gpus_per_node,
            "launcherCreationPolicy": "WaitForWorkersReady",
            "runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": restarts, "ttlSecondsAfterFinished": kept_for},
            "mpiReplicaSpecs": {
                "Launcher": {
                    "replicas": 1,
                    "restartPolicy": "OnFailure" if restarts else "Never",
                    "template": launcher,
                },
                "Worker": {"replicas": job.nodes, "template": worker},
            },
        },
    }


def prepare(
    environment: EksEnvironment,
    team: Team,
    cpus: int,
    name: str,
    image: str,
    command: Sequence[str] = (),
    script: Script | None = None,
    node_group: str | None = None,
) -> Object:
    """A job of one pod on a CPU node that runs `command` or PREPARE_SCRIPT; under Volcano, Volcano's own job.

    With `script` it runs that, and `command` has its arguments. `node_group` names the kind of CPU nodes, or a pool.
    """
    lustre = environment.storage.lustre
    default = f"{lustre.mount_path}/{PREPARE_SCRIPT}" if lustre else PREPARE_SCRIPT
    words = list(command) or ["python", default]
    if script:
        words = ["python" if script.name.endswith(".py") else "bash", f"{FILES}/{script.name}", *command]
    place = _place(environment, cpus, node_group)
    pod = _cpu_pod(environment, "prepare", image, words, cpus, place)
    _as_team(environment, team, pod["spec"])
    if script:
        mount_files(pod, script_files(script, team.name))
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
    if place.elastic:
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


class _Place(NamedTuple):
    """CPU nodes for a pod by their label, its memory, and whether Karpenter launches them."""

    nodes: str
    memory_gib: int
    elastic: bool


def _place(environment: EksEnvironment, cpus: int, node_group: str | None = None) -> _Place:
    """Where a pod with `cpus` CPUs runs: on static nodes, or else Karpenter's; with `node_group`, on those only."""
    if pool := environment.cpu_pool(cpus, node_group):
        return _Place(pool.name, cpus * pool.each.memory_gib // pool.each.cpus, elastic=False)
    if found := elastic_cpu_pod(environment, cpus, node_group):
        return _Place(*found, elastic=True)
    return _Place(CPU, cpus, elastic=False)


def _cpu_pod(
    environment: EksEnvironment, name: str, image: str, command: list[str], cpus: int, place: _Place
) -> Object:
    """Template of a pod on a CPU node, with memory in proportion. The node selector keeps it off accelerated nodes."""
    container: Object = {
        "name": name,
        "image": image,
        "command": command,
        "resources": {"requests": {"cpu": cpus, "memory": f"{place.memory_gib}Gi"}},
    }
    spec: Object = {
        **scheduler_name(environment.gang_scheduler),
        "restartPolicy": "Never",
        "nodeSelector": {NODE_GROUP: place.nodes},
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
