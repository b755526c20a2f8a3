"""A multi-node training job for a team: a gang that is scheduled on nodes close to each other and uses EFA.

Source: EKS User Guide, "Run machine learning training on Amazon EKS with EFA" (2026); Kueue 0.19, JobSet 0.12,
Volcano 1.15, KAI Scheduler 0.17, NVIDIA DRA driver 0.4, each its own reference.
"""

from collections.abc import Sequence
from dataclasses import replace

from ultracluster.catalog.training import CPU_IMAGE
from ultracluster.config.eks import Team
from ultracluster.config.environment import Environment
from ultracluster.config.node_groups import NodeGroup
from ultracluster.jobs.request import (
    CANNOT_START,
    MAXIMUM_RESTARTS,
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
from ultracluster.kubernetes import cpu_jobs, kai, kueue, volcano
from ultracluster.kubernetes.elastic_nodes import ElasticNodes, elastic_nodes, gpu_pools, pool_label
from ultracluster.kubernetes.environment import EksEnvironment, NotEks
from ultracluster.kubernetes.job_pods import Job, claims, job_files, pair_files, script_files, torchrun_pod
from ultracluster.kubernetes.karpenter_own import elastic_cpu_pools, elastic_group, largest_elastic_cpu_pod
from ultracluster.kubernetes.kueue_elastic import ELASTIC_QUEUE
from ultracluster.kubernetes.labels import NODE_GROUP
from ultracluster.kubernetes.parts import Object
from ultracluster.kubernetes.quotas import fleet_gpus
from ultracluster.kubernetes.topology import topology_name

KEPT_FOR_SECONDS = 24 * 3600
"""How long a finished job and its logs are kept. Kubernetes then deletes the job with its pods."""

RENDEZVOUS_SERVICE = "job-pods"
"""Headless Service that gives the pods of all plain Jobs in a namespace DNS names. It stays when jobs are deleted."""
RENDEZVOUS_LABEL = "ultracluster/service"


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
    script: Script | None = None,
) -> list[Object]:
    """Objects of a job of `team` on `gpus` GPUs: whole nodes of one node group, by default the team's first.

    `node_group` may also be a pool of Karpenter: the job is for nodes of one size, which Karpenter launches for it.

    `train` is a JobSet if the environment has its operator, Volcano's own job under Volcano, and otherwise a Job with a
    Service. `nccl-test` and `nccl-pairs` are MPIJobs whose launcher runs on a CPU node. Two jobs of a team need two
    names; without `name` it is "train-64-gpus" for 64 GPUs. Raises JobRefused if the environment has no such team or
    group, the team has fewer GPUs, or no public image fits the instance type.

    torchrun starts `command`, a script with its arguments, on each GPU: by default train.py of the team's folder. With
    `script` the objects hold the script, and `command` has its arguments.
    """
    check_command(kind, command, script)
    job = _checked(environment, team, gpus, kind, name, node_group, image)
    job = replace(job, command=tuple(command), script=script)
    if kind == "nccl-test":
        return [*claims(job), cpu_jobs.nccl_test(job, _mpi_metadata(job), kept_for=KEPT_FOR_SECONDS)]
    if kind == "nccl-pairs":
        pairs = cpu_jobs.nccl_pairs(job, _mpi_metadata(job), kept_for=KEPT_FOR_SECONDS)
        return [*claims(job), pair_files(team), pairs]
    if job.scheduler == "volcano":
        return [*claims(job), _volcano_job(job), job_files(job)]
    if "jobset" in job.environment.job_operators:
        return [*claims(job), _job_set(job), job_files(job)]
    return [*claims(job), _service(job), _indexed_job(job), job_files(job)]


def prepare_job(
    environment: Environment,
    team: str,
    cpus: int,
    *,
    name: str | None = None,
    image: str | None = None,
    command: Sequence[str] = (),
    script: Script | None = None,
    node_group: str | None = None,
) -> list[Object]:
    """Objects of a job of `team` that prepares data with `cpus` CPUs of one CPU node, by `command` or prepare.py.

    Where no static node is large enough, a pool of Karpenter in the file launches one; `node_group` names a node group
    without GPUs, `cpu` or a pool instead. Raises JobRefused if the environment has no such team or nodes, or its CPU
    nodes are too small.
    """
    view = _view(environment)
    owner = _team(view, team)
    name = name or f"prepare-{cpus}-cpus"
    check_name(name)
    known = [*(pool.name for pool in view.cpu_pools), *map(elastic_group, elastic_cpu_pools(view))]
    if node_group and node_group not in known and not elastic_cpu_pools(view, node_group):
        raise JobRefused(unknown(node_group, f"a group or pool of CPU nodes of {view.name}", known))
    _check_cpus(view, owner, cpus, elastic=largest_elastic_cpu_pod(view, node_group), name=node_group)
    files = [script_files(script, team)] if script else []
    image = image or view.image(CPU_IMAGE)
    return [cpu_jobs.prepare(view, owner, cpus, name, image, command, script, node_group), *files]


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
    group: NodeGroup | ElasticNodes
    if wanted not in owner.node_groups and (pool := pool_label(view, wanted)):
        group = _nodes_of_pool(view, pool, gpus)
    elif wanted not in owner.node_groups:
        raise JobRefused(unknown(wanted, f"a node group of {team}", [*owner.node_groups, *gpu_pools(view)]))
    else:
        group = next(group for group in view.node_groups if group.name == wanted)
        _check_gpus(view, owner, group, gpus)
    name = name or f"{kind}-{gpus}-gpus"
    check_name(name)
    if kind in TESTS:
        _check_test(view, owner, group, kind)
    job = Job(view, owner, group, gpus, image or _default_image(view, group, kind), name)
    if kind == "nccl-pairs":
        check_pairs(job.nodes, job.gpus_per_node, group.type_names, efa=group.efa)
    return job


def _nodes_of_pool(view: EksEnvironment, pool: str, gpus: int) -> ElasticNodes:
    """The largest nodes of a pool of Karpenter that `gpus` GPUs fill. Kueue's queue `elastic` admits jobs on them.

    Whether Karpenter sees the pods of other schedulers in time is not verified.
    """
    if view.settings.scheduler != "kueue":
        text = f"{pool} is a pool of Karpenter, on which jobs are printed for the scheduler kueue only"
        raise JobRefused(f"{text}. Give a job of yours nodeSelector {{{NODE_GROUP}: {pool}}}")
    sizes = elastic_nodes(view, pool)
    if not sizes:
        raise JobRefused(f"{pool} has no GPUs; use --kind prepare --cpus N --pool {pool}")
    whole = [size for size in sizes if gpus > 0 and gpus % size.hardware.gpu_count == 0]
    fitting = [size for size in whole if gpus // size.hardware.gpu_count <= size.max_count]
    if not fitting:
        most = max(size.max_count * size.hardware.gpu_count for size in sizes)
        nodes = " or ".join(str(size.hardware.gpu_count) for size in reversed(sizes))
        raise JobRefused(f"{gpus} GPUs do not fit {pool}: its nodes have {nodes}, and its limits allow {most} GPUs")
    return fitting[0]


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
        raise JobRefused(unknown(name, f"a team of {view.name}", list(teams)))
    return teams[name]


def _check_test(view: EksEnvironment, team: Team, group: NodeGroup | ElasticNodes, kind: Kind) -> None:
    if "mpi" not in view.job_operators:
        raise JobRefused(f"{kind} is an MPIJob; add mpi to control_plane.jobs")
    if view.settings.scheduler == "volcano":
        raise JobRefused(f"{kind} is for Kueue and KAI: Volcano does not queue MPIJobs")
    if not isinstance(group, ElasticNodes):
        _check_cpus(view, team, cpu_jobs.LAUNCHER_CPUS)
    elif group.hardware.vcpus < cpu_jobs.LEAST_VCPUS:
        text = f"{group.type_names} of {group.name} has {group.hardware.vcpus} vCPUs, too few for workers and launcher"
        raise JobRefused(f"{text}; request GPUs for nodes with {cpu_jobs.LEAST_VCPUS} vCPUs or more")


def _check_cpus(view: EksEnvironment, team: Team, cpus: int, *, elastic: int = 0, name: str | None = None) -> None:
    """Each team has an equal share of each kind of CPU nodes; a pod needs one node, of the kind `name` if given.

    Karpenter may launch a node with `elastic` CPUs for a pod.
    """
    most = max((*(view.pod_cpus(pool) for pool in view.cpu_pools if name in (None, pool.name)), elastic), default=0)
    if not most:
        raise JobRefused("there are no CPU nodes; set count of control_plane.cpu_nodes to 2")
    if not 1 <= cpus <= most:
        raise JobRefused(f"{cpus} CPUs do not fit: a pod of {team.name} may have 1 to {most}")


def _default_image(environment: EksEnvironment, group: NodeGroup | ElasticNodes, kind: Kind) -> str:
    return environment.image(public_image(group.hardware, group.type_names, kind))


def _check_gpus(view: EksEnvironment, team: Team, group: NodeGroup, gpus: int) -> None:
    each, quota = group.hardware.gpu_count, team.quotas.get(group.name, 0)
    spares = view.health.spares.get(group.name, 0)
    fleet = fleet_gpus(group) - spares * each
    limit = fleet if team.may_borrow else min(quota, fleet)
    if gpus < 1 or gpus % each:
        raise whole_nodes(gpus, each, limit, group.type_names)
    if gpus > fleet:
        beside = f" and {spares * each} on spare nodes" if spares else ""
        raise JobRefused(f"{gpus} GPUs are too many: {group.name} has {fleet}{beside}; request at most {limit}")
    if gpus > limit:
        quota_of = f"the quota of {team.name} on {group.name} is {quota}, and the team may not borrow"
        raise JobRefused(f"{gpus} GPUs are too many: {quota_of}")


def _job_set(job: Job) -> Object:
    """A JobSet. When a pod fails, it restarts all pods together, and training continues from its checkpoint."""
    replicated: Object = {"spec": {**_job_spec(job, f"{job.name}-node-0-0.{job.name}"), **_pod_failures()}}
    if job.scheduler == "kueue_with_volcano":
        replicated["metadata"] = {"annotations": {volcano.GANG_ANNOTATION: str(job.nodes)}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {**job.metadata, **_queue_metadata(job, gang=False)},
        "spec": {
            "failurePolicy": {"maxRestarts": MAXIMUM_RESTARTS, "rules": _failure_rules()},
            "ttlSecondsAfterFinished": KEPT_FOR_SECONDS,
            "replicatedJobs": [{"name": "node", "replicas": 1, "template": replicated}],
        },
    }


_FAILED_BY_RULE = "PodFailurePolicy"
"""Reason of a Job that a rule of its podFailurePolicy fails. Its message has the exit code or the condition."""


def _pod_failures() -> Object:
    """Fails a Job for pods that cannot start, and for pods that were evicted; _failure_rules tells them apart."""
    cannot_start = {"containerName": "train", "operator": "In", "values": list(CANNOT_START)}
    evicted = {"type": "DisruptionTarget", "status": "True"}
    rules = [
        {"action": "FailJob", "onExitCodes": cannot_start},
        {"action": "FailJob", "onPodConditions": [evicted]},
    ]
    return {"podFailurePolicy": {"rules": rules}}


def _failure_rules() -> list[Object]:
    """Rules of a JobSet: no restart where it does not help, and one that does not count after an eviction."""
    by_rule = {"onJobFailureReasons": [_FAILED_BY_RULE]}
    return [
        {
            "name": "cannot_start",
            "action": "FailJobSet",
            **by_rule,
            "onJobFailureMessagePatterns": ["failed with exit code"],
        },
        {"name": "evicted", "action": "RestartJobSetAndIgnoreMaxRestarts", **by_rule},
    ]


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


def _mpi_metadata(job: Job) -> Object:
    # KAI counts the workers of an MPIJob by itself
    return {**job.metadata, **_queue_metadata(job, gang=job.environment.gang_scheduler == "volcano")}


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
            "policies": [
                *({"exitCode": code, "action": "TerminateJob"} for code in CANNOT_START),
                {"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"},
            ],
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
        labels[kueue.QUEUE_LABEL] = ELASTIC_QUEUE if job.elastic else kueue.LOCAL_QUEUE
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
