"""Alerts on Slurm and Kubernetes."""

from tests.telemetry.rules.case import Case
from tests.telemetry.rules.series import (
    CLUSTER,
    GPU,
    JOB,
    Series,
    burst,
    fault,
    gone,
    of_cluster,
    rising,
    series,
    steady,
    then,
)

_PARTITION = {**CLUSTER, "partition": "train"}
_NODE = {**CLUSTER, "node": "i-0a"}


def _slurm(
    alert: str, metric: str, good: float, bad: float, fires: int, clears: int, summary: str, near: float
) -> Case:
    nodes = of_cluster("slurm_nodes", steady(100, 400))
    return Case(
        alert,
        {**of_cluster(f"slurm_{metric}", fault(good, bad, minutes=100)), **nodes},
        fires,
        clears,
        (CLUSTER,),
        summary,
        {
            "near the limit": {**of_cluster(f"slurm_{metric}", steady(near, clears)), **nodes},
            "for a moment": {**of_cluster(f"slurm_{metric}", fault(good, bad, minutes=2)), **nodes},
        },
    )


def _fleet(sending: str, **nodes: int) -> Series:
    """A cluster of 100 nodes of which `sending` send metrics; `nodes` are counts by state, of partitions with a p."""
    counts = {"nodes": 100, **{f"nodes_{state}": count for state, count in nodes.items() if not state.startswith("p_")}}
    partitions = {state.removeprefix("p_"): count for state, count in nodes.items() if state.startswith("p_")}
    up = {"node_group": "train", "instance_type": "p5.48xlarge", "job": "node"}
    return {
        **{
            name: text
            for each, count in counts.items()
            for name, text in of_cluster(f"slurm_{each}", steady(count, 200)).items()
        },
        **{
            series(f"slurm_partition_nodes_{state}", _PARTITION): steady(count, 200)
            for state, count in partitions.items()
        },
        **{series("up", CLUSTER, node=f"n{number}", **up): steady(1, 200) for number in range(7)},
        series("up", CLUSTER, node="n7", **up): sending,
        series("up", CLUSTER, node="login-1", **{**up, "node_group": "login"}): steady(1, 200),
    }


def _waiting(
    idle: str, pending: int, held: int = 0, largest: int = 2, powered_down: str = "", drained: int = 0
) -> Series:
    values = {
        "nodes": steady(16, 200),
        "nodes_down": steady(0, 200),
        "nodes_drain": steady(drained, 200),
        "nodes_drained": steady(drained, 200),
        "nodes_idle": idle,
        "nodes_powered_down": powered_down or steady(0, 200),
        "jobs_pending": steady(pending, 200),
        "jobs_hold": steady(held, 200),
        "jobs_min_job_nodes_nohold": steady(largest, 200),
    }
    return {series(f"slurm_partition_{name}", _PARTITION): text for name, text in values.items()}


SLURM = (
    Case(
        "SlurmControllerSilent",
        of_cluster("up", fault(1, 0), job="slurm"),
        fires=18,
        clears=90,
        labels=({},),
        summary="slurmctld of test does not answer",
        look_alikes={
            "one of two collectors": {
                **of_cluster("up", steady(0, 90), job="slurm", instance="a"),
                **of_cluster("up", steady(1, 90), job="slurm", instance="b"),
            },
            "a restart": of_cluster("up", fault(1, 0, minutes=3), job="slurm"),
            "PCS replaces the login node": of_cluster(
                "up", then(steady(1, 30), gone(15), steady(1, 60)), job="slurm", instance="a"
            ),
        },
    ),
    Case(
        "SlurmControllerSilent",
        of_cluster("up", then(steady(1, 10), gone(60), steady(1, 100)), job="slurm"),
        fires=40,
        clears=90,
        labels=({},),
        summary="slurmctld of test does not answer",
        look_alikes={},
    ),
    _slurm("SlurmNodesDown", "nodes_down", 0, 3, 25, 130, "3 nodes of test are down", near=0),
    _slurm("SlurmManyNodesDown", "nodes_down", 0, 20, 25, 130, "20% of the nodes of test are down", near=4),
    Case(
        "SlurmManyNodesDown",
        {
            **of_cluster("slurm_nodes_down", fault(0, 3)),
            **of_cluster("slurm_nodes", steady(1000, 190)),
            **of_cluster("slurm_nodes_powered_down", steady(970, 190)),
        },
        fires=25,
        clears=130,
        labels=(CLUSTER,),
        summary="10% of the nodes of test are down",
        look_alikes={
            "a node of 16": {
                **of_cluster("slurm_nodes_down", fault(0, 1)),
                **of_cluster("slurm_nodes", steady(16, 190)),
            },
            "no node is up": {
                **of_cluster("slurm_nodes_down", steady(0, 130)),
                **of_cluster("slurm_nodes", steady(100, 130)),
                **of_cluster("slurm_nodes_powered_down", steady(100, 130)),
            },
        },
    ),
    Case(
        "SlurmNodesUnwatched",
        _fleet(then(steady(0, 10), steady(0, 60), steady(1, 130)), powered_down=90, p_powering_up=2),
        fires=45,
        clears=100,
        labels=(CLUSTER,),
        summary="1 nodes of test that Slurm has up send no metrics",
        look_alikes={
            "all others are powered down": _fleet(steady(1, 200), powered_down=92),
            "nodes power up and down": _fleet(steady(1, 200), powered_down=80, p_powering_up=8, p_powering_down=4),
            "a node is down and powered down": _fleet(steady(1, 200), powered_down=92, down=2),
            "a node boots": _fleet(then("_x10", steady(0, 15), steady(1, 170)), powered_down=92),
        },
    ),
    Case(
        "SlurmNodesUnwatched",
        _fleet(then("_x70", steady(1, 130)), powered_down=92),
        fires=45,
        clears=100,
        labels=(CLUSTER,),
        summary="1 nodes of test that Slurm has up send no metrics",
    ),
    Case(
        "SlurmNodesLost",
        of_cluster("slurm_nodes_down", then(steady(1, 30), steady(3, 4), steady(1, 100))),
        fires=33,
        clears=60,
        labels=(CLUSTER,),
        summary="2 nodes of test went down within ten minutes",
        look_alikes={
            "down since yesterday": of_cluster("slurm_nodes_down", steady(4, 60)),
            "a node is back": of_cluster("slurm_nodes_down", then(steady(4, 30), steady(3, 30))),
        },
    ),
    Case(
        "SlurmNodesDown",
        {**of_cluster("slurm_nodes_down", fault(0, 1)), **of_cluster("slurm_nodes", steady(16, 190))},
        fires=25,
        clears=130,
        labels=(CLUSTER,),
        summary="1 nodes of test are down",
        look_alikes={},
    ),
    _slurm("SlurmNodesDrained", "nodes_drained", 0, 2, 80, 130, "2 nodes of test are drained", near=0),
    Case(
        "SlurmManyNodesDrained",
        {**of_cluster("slurm_nodes_drained", fault(0, 16)), **of_cluster("slurm_nodes", steady(16, 190))},
        fires=25,
        clears=130,
        labels=(CLUSTER,),
        summary="16 nodes of test are drained at once",
        look_alikes={
            "two nodes of four": {
                **of_cluster("slurm_nodes_drained", fault(0, 2)),
                **of_cluster("slurm_nodes", steady(4, 190)),
            },
            "a quarter": {
                **of_cluster("slurm_nodes_drained", fault(0, 4)),
                **of_cluster("slurm_nodes", steady(16, 190)),
            },
            "an administrator drains and resumes": {
                **of_cluster("slurm_nodes_drained", fault(0, 16, minutes=8)),
                **of_cluster("slurm_nodes", steady(16, 190)),
            },
        },
    ),
    Case(
        "SlurmManyNodesDrained",
        {
            **of_cluster("slurm_nodes_drained", fault(0, 4)),
            **of_cluster("slurm_nodes", steady(100, 190)),
            **of_cluster("slurm_nodes_powered_down", steady(90, 190)),
        },
        fires=25,
        clears=130,
        labels=(CLUSTER,),
        summary="4 nodes of test are drained at once",
        look_alikes={},
    ),
    _slurm(
        "SlurmNodesInvalid",
        "nodes_invalid_reg",
        0,
        2,
        25,
        130,
        "2 nodes of test registered with less than configured",
        near=0,
    ),
    Case(
        "SlurmJobsLostNodes",
        of_cluster("slurm_jobs_node_failed", then(steady(1, 30), steady(3, 100))),
        fires=35,
        clears=70,
        labels=(CLUSTER,),
        summary="2 jobs of test lost a node",
        look_alikes={
            "an older job": of_cluster("slurm_jobs_node_failed", steady(1, 70)),
            "an older job is forgotten": of_cluster("slurm_jobs_node_failed", then(steady(3, 30), steady(0, 70))),
        },
    ),
    Case(
        "SlurmPendingWithIdleNodes",
        _waiting(fault(0, 8), 4),
        fires=50,
        clears=90,
        labels=(_PARTITION,),
        summary="Jobs wait in train of test while nodes are idle",
        look_alikes={
            "jobs are held": _waiting(steady(8, 200), 4, held=4),
            "the jobs are larger": _waiting(steady(8, 200), 4, largest=12),
            "nobody waits": _waiting(steady(8, 200), 0),
            "the nodes are drained": _waiting(steady(8, 200), 4, drained=8),
            "the nodes are powered down": _waiting(steady(8, 200), 4, powered_down=steady(8, 200)),
        },
    ),
    _slurm(
        "SlurmSchedulerSlow", "schedule_cycle_last", 1e4, 8e6, 25, 130, "A scheduling cycle of test takes 8s", near=4e6
    ),
    _slurm(
        "SlurmThreadsExhausted",
        "server_thread_cnt",
        9,
        250,
        25,
        130,
        "slurmctld of test has 250 busy threads",
        near=190,
    ),
    _slurm(
        "SlurmAccountingBacklog",
        "slurmdbd_queue_size",
        0,
        5000,
        25,
        130,
        "5000 accounting messages of test wait",
        near=900,
    ),
)


def _condition(name: str, values: str, status: str = "true") -> dict[str, str]:
    return {series("kube_node_status_condition", _NODE, condition=name, status=status): values}


def _taint(key: str, value: str, values: str) -> dict[str, str]:
    return {series("kube_node_spec_taint", _NODE, key=key, value=value, effect="NoSchedule"): values}


def _devices(allocatable: str, capacity: float = 8) -> Series:
    gpu = {"resource": "nvidia_com_gpu", "unit": "integer"}
    return {
        series("kube_node_status_allocatable", _NODE, **gpu): allocatable,
        series("kube_node_status_capacity", _NODE, **gpu): steady(capacity, 190),
    }


def _labels(instance_type: str, values: str, **more: str) -> dict[str, str]:
    return {series("kube_node_labels", _NODE, label_node_kubernetes_io_instance_type=instance_type, **more): values}


def _in(namespace: str, name: str, metric: str, values: str, **more: str) -> dict[str, str]:
    return {series(metric, CLUSTER, namespace=namespace, **{name: "thing"}, **more): values}


_TEAM = {series("kube_namespace_labels", CLUSTER, namespace="vision", label_ultracluster_team="vision"): steady(1, 190)}


def _crashing(namespace: str, values: str) -> dict[str, str]:
    return _in(
        namespace,
        "container",
        "kube_pod_container_status_waiting_reason",
        values,
        pod="p",
        uid="u",
        reason="CrashLoopBackOff",
    )


def _idle_gpus(used: int, pending: int, status: str = "active") -> Series:
    gpus = {
        series(
            "DCGM_FI_DEV_GPU_UTIL",
            {**GPU, "gpu": str(number), "UUID": f"GPU-{number}"},
            **(JOB if number < used else {}),
        ): steady(50, 190)
        for number in range(8)
    }
    queue = {"cluster_queue": "vision", "status": status, "replica_role": "leader"}
    return {**gpus, series("kueue_pending_workloads", CLUSTER, **queue): fault(0, pending)}


def _gpu_pods(*, unschedulable: str, gpus: bool = True, used: int = 4) -> Series:
    pod = {"namespace": "vision", "pod": "p", "uid": "u"}
    asked = {"resource": "nvidia_com_gpu" if gpus else "vpc_amazonaws_com_efa", "container": "c", "unit": "integer"}
    return {
        **_idle_gpus(used, 0),
        series("kube_pod_status_unschedulable", CLUSTER, **pod): unschedulable,
        series("kube_pod_container_resource_requests", CLUSTER, **pod, **asked): steady(8, 190),
    }


_FOR_AN_HOUR = then("_x10", steady(1, 60), "stale")


def _queue(values: str) -> dict[str, str]:
    return {
        series(
            "kueue_cluster_queue_status", CLUSTER, cluster_queue="vision", status="active", replica_role="leader"
        ): values
    }


def _evicted(reason: str, values: str) -> dict[str, str]:
    labels = {"cluster_queue": "vision", "reason": reason, "priority_class": "high", "replica_role": "leader"}
    return {series("kueue_evicted_workloads_total", CLUSTER, **labels): values}


def _karpenter_errors(error: str, values: str) -> dict[str, str]:
    return {series("karpenter_cloudprovider_errors_total", CLUSTER, error=error, method="Create"): values}


def _jobset(values: str) -> dict[str, str]:
    return {series("jobset_failed_total", CLUSTER, namespace="vision", jobset_name="llama"): values}


_DESIRED, _READY = "kube_daemonset_status_desired_number_scheduled", "kube_daemonset_status_number_ready"

KUBERNETES = (
    Case(
        "KubeNodeNotReady",
        _condition("Ready", fault(1, 0)),
        fires=25,
        clears=90,
        labels=(_NODE,),
        summary="i-0a is not ready",
        look_alikes={
            "the kubelet restarts": _condition("Ready", fault(1, 0, minutes=4)),
            "the node is removed": _condition("Ready", then(steady(1, 10), gone(80))),
        },
    ),
    Case(
        "KubeNodeHardwareFailed",
        _condition("AcceleratedHardwareReady", fault(1, 0)),
        fires=15,
        clears=90,
        labels=(_NODE,),
        summary="The node monitoring agent found a hardware fault on i-0a",
        look_alikes={
            "healthy": _condition("AcceleratedHardwareReady", steady(1, 90)),
            "no agent": _condition("Ready", steady(1, 90)),
        },
    ),
    Case(
        "KubeNodePressure",
        _condition("DiskPressure", fault(0, 1)),
        fires=25,
        clears=90,
        labels=({**_NODE, "condition": "DiskPressure"},),
        summary="i-0a has DiskPressure",
        look_alikes={
            "ready": _condition("Ready", steady(1, 90)),
            "for a moment": _condition("DiskPressure", fault(0, 1, minutes=4)),
        },
    ),
    Case(
        "KubeDevicesUnhealthy",
        _devices(fault(8, 7)),
        fires=25,
        clears=90,
        labels=({**_NODE, "resource": "nvidia_com_gpu"},),
        summary="1 devices nvidia_com_gpu of i-0a cannot be allocated",
        look_alikes={"all of them": _devices(steady(8, 90))},
    ),
    Case(
        "KubeNodeNotAccepted",
        _taint("ultracluster/not-accepted", "true", then(steady(1, 90), gone(120))),
        fires=50,
        clears=110,
        labels=(_NODE,),
        summary="i-0a is not accepted and takes no pods",
        look_alikes={
            "a new node": _taint("ultracluster/not-accepted", "true", then(steady(1, 35), gone(55))),
            "another taint": _taint("example.com/other", "true", steady(1, 90)),
        },
    ),
    Case(
        "KubeNodeWithoutTopology",
        _labels("p5.48xlarge", then(steady(1, 60), gone(120))),
        fires=40,
        clears=90,
        labels=(_NODE,),
        summary="i-0a has no topology labels",
        look_alikes={
            "labelled": _labels("p5.48xlarge", steady(1, 90), label_topology_k8s_aws_network_node_layer_1="nn-1"),
            "a CPU node": _labels("m7i.2xlarge", steady(1, 90)),
            "labelled a little later": {
                **_labels("p5.48xlarge", then(steady(1, 10), gone(80))),
                **_labels(
                    "p5.48xlarge", then("_x10", steady(1, 80)), label_topology_k8s_aws_network_node_layer_1="nn-1"
                ),
            },
        },
    ),
    Case(
        "KubeDaemonSetNotReady",
        {
            **_in("kube-system", "daemonset", _DESIRED, steady(9, 190)),
            **_in("kube-system", "daemonset", _READY, fault(9, 7)),
        },
        fires=45,
        clears=90,
        labels=({**CLUSTER, "namespace": "kube-system", "daemonset": "thing"},),
        summary="thing of test is missing on 2 nodes",
        look_alikes={
            "an update": {
                **_in("kube-system", "daemonset", _DESIRED, steady(9, 90)),
                **_in("kube-system", "daemonset", _READY, fault(9, 8, minutes=20)),
            },
        },
    ),
    Case(
        "KubePlatformCrashing",
        {**_crashing("gpu-operator", fault(0, 1)), **_TEAM},
        fires=30,
        clears=90,
        labels=({**CLUSTER, "namespace": "gpu-operator", "container": "thing"},),
        summary="thing in gpu-operator of test crashes in 1 pods",
        look_alikes={"a team's pod": {**_crashing("vision", steady(1, 90)), **_TEAM}},
    ),
    Case(
        "KubeDeploymentUnavailable",
        {**_in("kueue-system", "deployment", "kube_deployment_status_replicas_unavailable", fault(0, 1)), **_TEAM},
        fires=30,
        clears=90,
        labels=({**CLUSTER, "namespace": "kueue-system", "deployment": "thing"},),
        summary="thing in kueue-system of test lacks 1 replicas",
        look_alikes={
            "a team's": {
                **_in("vision", "deployment", "kube_deployment_status_replicas_unavailable", steady(1, 90)),
                **_TEAM,
            },
        },
    ),
    Case(
        "KueuePendingWithIdleGpus",
        _idle_gpus(4, 3),
        fires=50,
        clears=90,
        labels=(CLUSTER,),
        summary="Workloads wait while 50% of the GPUs of test are idle",
        look_alikes={
            "all GPUs are in use": _idle_gpus(8, 3),
            "nobody waits": _idle_gpus(4, 0),
        },
    ),
    Case(
        "PodsPendingWithIdleGpus",
        _gpu_pods(unschedulable=_FOR_AN_HOUR),
        fires=50,
        clears=90,
        labels=(CLUSTER,),
        summary="Pods wait for GPUs while 50% of the GPUs of test are idle",
        look_alikes={
            "all GPUs are in use": _gpu_pods(unschedulable=steady(1, 90), used=8),
            "pods without GPUs": _gpu_pods(unschedulable=steady(1, 90), gpus=False),
            "nobody waits": _idle_gpus(4, 0),
            "Kueue holds workloads back": _idle_gpus(4, 3),
        },
    ),
    Case(
        "PodsPendingWithIdleGpus",
        {**_idle_gpus(4, 0), series("volcano_queue_pod_group_pending_count", CLUSTER, queue_name="a"): fault(0, 2)},
        fires=50,
        clears=90,
        labels=(CLUSTER,),
        summary="Pods wait for GPUs while 50% of the GPUs of test are idle",
    ),
    Case(
        "KueuePendingWithIdleGpus",
        _idle_gpus(4, 3, "inadmissible"),
        fires=50,
        clears=90,
        labels=(CLUSTER,),
        summary="Workloads wait while 50% of the GPUs of test are idle",
        look_alikes={"all GPUs are in use": _idle_gpus(8, 3, "inadmissible")},
    ),
    Case(
        "KueueQueueInactive",
        _queue(fault(1, 0)),
        fires=25,
        clears=90,
        labels=({**CLUSTER, "cluster_queue": "vision"},),
        summary="Queue vision of test admits nothing",
        look_alikes={"active": _queue(steady(1, 90)), "starts": _queue(then(steady(0, 5), steady(1, 85)))},
    ),
    Case(
        "KueueWorkloadsNotStarting",
        _evicted("PodsReadyTimeout", then(steady(0, 20), rising(1, 0.5, 20), steady(10.5, 150))),
        fires=50,
        clears=120,
        labels=({**CLUSTER, "cluster_queue": "vision"},),
        summary="10.5 workloads of vision of test were evicted before they ran",
        look_alikes={
            "preempted": _evicted("Preempted", rising(0, 1, 120)),
            "two": _evicted("PodsReadyTimeout", then(steady(0, 20), steady(2, 100))),
        },
    ),
    Case(
        "JobSetFailed",
        _jobset(then("_x10", steady(1, 100))),
        fires=15,
        clears=50,
        labels=({**CLUSTER, "namespace": "vision", "jobset_name": "llama"},),
        summary="JobSet llama in vision failed",
        look_alikes={"the controller restarted": _jobset(then(steady(0, 10), gone(5), steady(0, 40)))},
    ),
    Case(
        "KarpenterNoCapacity",
        _karpenter_errors("InsufficientCapacityError", burst(1, minutes=40)),
        fires=40,
        clears=120,
        labels=(CLUSTER,),
        summary="EC2 has no capacity for nodes of test",
        look_alikes={"another error": _karpenter_errors("NodeClaimNotFoundError", rising(0, 1, 120))},
    ),
    Case(
        "KarpenterOutOfSync",
        of_cluster("karpenter_cluster_state_synced", fault(1, 0)),
        fires=25,
        clears=90,
        labels=(CLUSTER,),
        summary="Karpenter of test does not know the state of the cluster",
        look_alikes={"starts": of_cluster("karpenter_cluster_state_synced", then(steady(0, 5), steady(1, 85)))},
    ),
)

CASES = (*SLURM, *KUBERNETES)
