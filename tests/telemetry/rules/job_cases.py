"""Alerts on jobs: what GPUs and networks say of them, and what they say of themselves."""

from tests.telemetry.rules.case import Case
from tests.telemetry.rules.series import (
    CLUSTER,
    GPU,
    JOB,
    NODE,
    Series,
    absent,
    fault,
    gone,
    rising,
    series,
    steady,
    then,
)

_JOB = {**CLUSTER, **JOB}
_WORKLOAD = {**CLUSTER, "workload": "42"}
_END = 190


def _on(node: str, metric: str, values: str) -> dict[str, str]:
    return {series(metric, {**GPU, "node": node, "UUID": f"GPU-{node}"}, **JOB): values}


def _job(metric: str, *values: str) -> dict[str, str]:
    """One GPU each on the nodes n1, n2 ..."""
    return {
        name: text for number, each in enumerate(values, 1) for name, text in _on(f"n{number}", metric, each).items()
    }


def _namesake(metric: str, value: float) -> dict[str, str]:
    """A job of another team with the same name, on two nodes."""
    return {
        series(metric, {**GPU, "node": node, "UUID": f"GPU-{node}"}, team="x", workload="42"): steady(value, _END)
        for node in ("n8", "n9")
    }


def _util(*values: str) -> dict[str, str]:
    return _job("DCGM_FI_DEV_GPU_UTIL", *values)


def _tensor(*values: str) -> dict[str, str]:
    return _job("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", *values)


def _sent(bytes_a_second: float, then_a_second: float, before: int, minutes: int) -> dict[str, str]:
    """EFA traffic of n1 and n2."""
    first = rising(0, bytes_a_second * 60, before)
    second = rising(bytes_a_second * 60 * before, then_a_second * 60, minutes)
    rest = rising(bytes_a_second * 60 * before + then_a_second * 60 * minutes, bytes_a_second * 60, 120)
    return {
        series("node_amazonefa_tx_bytes", {**NODE, "node": node}, device="rdmap0", port="1"): then(first, second, rest)
        for node in ("n1", "n2")
    }


_BUSY = steady(99, 300)

_HANGS = {
    **_util(_BUSY, _BUSY),
    **_tensor(fault(0.4, 0.0, after=60, minutes=180), fault(0.4, 0.0, after=60, minutes=180)),
    **_sent(50e9, 0, 60, 180),
}

GPU_JOBS = (
    Case(
        "JobStraggler",
        {
            **_util(*[steady(99, _END)] * 4),
            **_tensor(fault(0.4, 0.1), *[steady(0.4, _END)] * 3),
            **_namesake("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.3),
        },
        fires=30,
        clears=100,
        labels=({**NODE, **JOB},),
        summary="n1 slows job 42 of vision",
        look_alikes={
            "all nodes slow down, as in an evaluation": {
                **_util(*[steady(99, 100)] * 4),
                **_tensor(*[fault(0.4, 0.02)] * 4),
            },
            "a little less": {**_util(*[steady(99, 100)] * 4), **_tensor(steady(0.3, 100), *[steady(0.4, 100)] * 3)},
            "another job on the node": {
                **_util(*[steady(99, 100)] * 2),
                **_tensor(*[steady(0.4, 100)] * 2),
                series("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", {**GPU, "node": "n3"}, team="x", workload="43"): steady(
                    0.1, 100
                ),
            },
        },
    ),
    Case(
        "JobSlowGpu",
        {
            **_job("DCGM_FI_DEV_SM_CLOCK", fault(1900, 1000), *[steady(1900, _END)] * 3),
            **_job("DCGM_FI_PROF_SM_ACTIVE", *[steady(0.8, _END)] * 4),
            **_namesake("DCGM_FI_DEV_SM_CLOCK", 1500),
        },
        fires=30,
        clears=100,
        labels=({**GPU, "UUID": "GPU-n1", **JOB},),
        summary="GPU 0 of n1 slows job 42 of vision",
        look_alikes={
            "an idle GPU of the job": {
                **_job("DCGM_FI_DEV_SM_CLOCK", steady(300, 100), *[steady(1900, 100)] * 3),
                **_job("DCGM_FI_PROF_SM_ACTIVE", steady(0.0, 100), *[steady(0.8, 100)] * 3),
            },
            "all at the power limit": {
                **_job("DCGM_FI_DEV_SM_CLOCK", *[fault(1900, 1200)] * 4),
                **_job("DCGM_FI_PROF_SM_ACTIVE", *[steady(0.8, 190)] * 4),
            },
        },
    ),
    Case(
        "JobHung",
        _HANGS,
        fires=230,
        clears=260,
        labels=(_JOB,),
        summary="job 42 of vision hangs",
        look_alikes={
            "a checkpoint: GPUs are idle": {
                **_util(*[fault(99, 0, after=60)] * 2),
                **_tensor(*[fault(0.4, 0, after=60)] * 2),
                **_sent(50e9, 0, 60, 60),
            },
            "computes without Tensor Cores": {
                **_util(_BUSY, _BUSY),
                **_tensor(steady(0, 140), steady(0, 140)),
                **_sent(0, 0, 60, 60),
            },
            "sends without Tensor Cores": {
                **_util(_BUSY, _BUSY),
                **_tensor(*[fault(0.4, 0, after=60)] * 2),
                **_sent(50e9, 50e9, 60, 60),
            },
            "a few minutes": {
                **_util(_BUSY, _BUSY),
                **_tensor(*[fault(0.4, 0.0, after=60, minutes=9)] * 2),
                **_sent(50e9, 0, 60, 9),
            },
        },
    ),
    Case(
        "JobHung",
        {
            **_util(*[_BUSY] * 8, steady(0, 300)),
            **_tensor(*[fault(0.4, 0.0, after=60, minutes=180)] * 9),
            **_sent(50e9, 0, 60, 180),
        },
        fires=230,
        clears=260,
        labels=(_JOB,),
        summary="job 42 of vision hangs",
        look_alikes={
            "one rank computes and the others wait for it": {
                **_util(*[_BUSY] * 9),
                **_tensor(steady(0.4, 240), *[fault(0.4, 0.0, after=60, minutes=180)] * 8),
                **_sent(50e9, 0, 60, 180),
            },
            "most nodes are idle": {
                **_util(_BUSY, *[steady(0, 300)] * 2),
                **_tensor(*[fault(0.4, 0.0, after=60, minutes=180)] * 3),
                **_sent(50e9, 0, 60, 180),
            },
        },
    ),
    Case(
        "JobIdle",
        {
            **_util(steady(0, 300)),
            **_job("DCGM_FI_PROF_SM_ACTIVE", then(steady(0.5, 10), steady(0, 180), steady(0.5, 110))),
        },
        fires=150,
        clears=240,
        labels=(_JOB,),
        summary="job 42 of vision has used none of its 1 GPUs for two hours",
        look_alikes={
            "a GPU that nobody holds": {series("DCGM_FI_PROF_SM_ACTIVE", GPU, team="", workload=""): steady(0, 240)},
            "a pause of an hour": {
                **_util(steady(0, 240)),
                **_job("DCGM_FI_PROF_SM_ACTIVE", fault(0.5, 0, minutes=60)),
            },
            "a job with little activity": {
                **_util(steady(9, 240)),
                **_job("DCGM_FI_PROF_SM_ACTIVE", steady(0.05, 240)),
            },
        },
    ),
    Case(
        "JobOverTcp",
        {
            **_util(*[then(steady(99, 90), gone(90))] * 2),
            **_sent(0, 0, 60, 60),
            **{
                series("node_network_transmit_bytes_total", {**NODE, "node": node}, device="ens5"): rising(0, 60e9, 180)
                for node in ("n1", "n2")
            },
        },
        fires=40,
        clears=130,
        labels=(_JOB,),
        summary="job 42 of vision talks over TCP instead of EFA",
        look_alikes={
            "over EFA, and data over TCP": {
                **_util(*[_BUSY] * 2),
                **_sent(50e9, 50e9, 60, 60),
                **{
                    series("node_network_transmit_bytes_total", {**NODE, "node": node}, device="ens5"): rising(
                        0, 60e9, 130
                    )
                    for node in ("n1", "n2")
                },
            },
            "one node": {
                **_util(_BUSY),
                **_sent(0, 0, 60, 60),
                series("node_network_transmit_bytes_total", NODE, device="ens5"): rising(0, 60e9, 130),
            },
        },
    ),
)


def _of(metric: str, values: str, minutes: int = 400, **more: str) -> Series:
    """What the running job tells of itself."""
    return {series(f"training_{metric}", _WORKLOAD, **more): values, **_util(steady(99, minutes))}


def _after_the_job(metric: str, values: str) -> Series:
    """The file that the job wrote stays on the node."""
    return {series(f"training_{metric}", _WORKLOAD): values, **_util(then(steady(99, 5), gone(400)))}


def _checkpoints(interval: int, count: int, rest: int) -> str:
    """Times of checkpoints, one each `interval` minutes; then none for `rest` minutes, then one again."""
    done = [steady(number * interval * 60, interval) for number in range(count)]
    last = steady((count - 1) * interval * 60, rest)
    return then(*done, last, steady((count * interval + rest) * 60, interval))


TRAINING = (
    Case(
        "TrainingGoodputLow",
        {
            **_of("productive_seconds_total", then(rising(0, 60, 70), rising(4170, 30, 120), rising(7770, 60, 200))),
            series("training_lost_seconds_total", _WORKLOAD, reason="restart"): then(
                steady(0, 70), rising(30, 30, 120), steady(3600, 200)
            ),
        },
        fires=170,
        clears=300,
        labels=(_JOB,),
        summary="Goodput of job 42 of vision is 50%",
        look_alikes={
            "90 %": {
                **_of("productive_seconds_total", rising(0, 54, 300)),
                series("training_lost_seconds_total", _WORKLOAD, reason="checkpoint"): rising(0, 6, 300),
            },
            "nothing lost yet": _of("productive_seconds_total", rising(0, 60, 300)),
        },
    ),
    Case(
        "TrainingStalled",
        _of("step", then(rising(0, 5, 60), steady(295, 60), rising(300, 5, 100))),
        fires=100,
        clears=140,
        labels=(_JOB,),
        summary="job 42 of vision makes no step",
        look_alikes={
            "slow steps": _of("step", then(*(steady(number, 15) for number in range(9)))),
            "a restart from a checkpoint": _of("step", then(rising(0, 5, 60), rising(100, 5, 80))),
            "the job has ended": _after_the_job("step", steady(500, 140)),
        },
    ),
    Case(
        "TrainingLossNotFinite",
        _of("loss", then(steady(2.5, 10), "NaN " * 59 + "NaN", steady(2.5, 60))),
        fires=20,
        clears=90,
        labels=(_JOB,),
        summary="The loss of job 42 of vision is NaN",
        look_alikes={"a spike": _of("loss", fault(2.5, 900)), "zero": _of("loss", steady(0, 90))},
    ),
    Case(
        "TrainingWaitsForData",
        {
            **_of("data_wait_seconds", fault(0.1, 2), rank="7"),
            series("training_step_time_seconds", _WORKLOAD, rank="0"): steady(5, 190),
        },
        fires=30,
        clears=90,
        labels=(_JOB,),
        summary="job 42 of vision waits for data in 40% of each step",
        look_alikes={
            "an epoch begins": {
                **_of("data_wait_seconds", fault(0.1, 2, minutes=5), rank="7"),
                series("training_step_time_seconds", _WORKLOAD, rank="0"): steady(5, 90),
            },
        },
    ),
    Case(
        "TrainingRestartsOften",
        _of("restarts_total", then(steady(0, 30), rising(1, 0.25, 30), steady(8.25, 200))),
        fires=60,
        clears=160,
        labels=(_JOB,),
        summary="job 42 of vision restarted 8.25 times in an hour",
        look_alikes={"twice": _of("restarts_total", then(steady(0, 30), steady(2, 130)))},
    ),
    Case(
        "CheckpointOverdue",
        _of("checkpoint_timestamp_seconds", _checkpoints(20, 6, 180), 500),
        fires=200,
        clears=315,
        labels=(_JOB,),
        summary="The last checkpoint of job 42 of vision is 1h 40m 0s old",
        look_alikes={
            "one is late": _of("checkpoint_timestamp_seconds", _checkpoints(60, 4, 60), 500),
            "the job has ended": _after_the_job("checkpoint_timestamp_seconds", _checkpoints(20, 6, 180)),
        },
    ),
    Case(
        "CheckpointFailed",
        _of("checkpoint_failures_total", then(steady(0, 30), steady(1, 170))),
        fires=35,
        clears=80,
        labels=(_JOB,),
        summary="1 checkpoints of job 42 of vision failed",
        look_alikes={"long ago": _of("checkpoint_failures_total", steady(4, 80))},
    ),
    Case(
        "NcclBandwidthDropped",
        {
            series("nccl_bus_bandwidth_gbs", NODE, slurm_job_id="42", collective="AllReduce"): then(
                steady(400, 60), steady(120, 40), steady(400, 100)
            ),
            **_util(_BUSY),
        },
        fires=90,
        clears=120,
        labels=({**_JOB, "slurm_job_id": "42", "collective": "AllReduce"},),
        summary="AllReduce of job 42 of vision has 120 GB/s bus bandwidth",
        look_alikes={
            "a slower collective": {
                series("nccl_bus_bandwidth_gbs", NODE, slurm_job_id="42", collective="AllGather"): steady(50, 120)
            },
            "a new job": {
                series("nccl_bus_bandwidth_gbs", NODE, slurm_job_id="43", collective="AllReduce"): then(
                    absent(60), steady(90, 60)
                )
            },
        },
    ),
)


def _two_teams(vision: str, speech: str) -> Series:
    """Steps of jobs of the same name in two namespaces, which both hold GPUs."""
    steps = {"vision": vision, "speech": speech}
    return {
        name: values
        for team, text in steps.items()
        for name, values in {
            series("training_step", CLUSTER, namespace=team, pod="p", team=team, workload="42"): text,
            series("DCGM_FI_DEV_GPU_UTIL", {**GPU, "node": team, "UUID": team}, team=team, workload="42"): _BUSY,
        }.items()
    }


def _pods(label: str, names: tuple[str, ...]) -> Series:
    """Pods that run and hold GPUs, one for each job name."""
    pods = {f"p{number}": name for number, name in enumerate(names)}
    return {
        text: steady(1, 300)
        for pod, name in pods.items()
        for own in ({**CLUSTER, "namespace": "vision", "pod": pod, "team": "vision"},)
        for text in (
            series("kube_pod_labels", own, label_batch_kubernetes_io_job_name=name, **{label: "42"}),
            series("kube_pod_status_phase", own, phase="Running"),
            series("kube_pod_container_resource_requests", own, resource="nvidia_com_gpu", container="c"),
        )
    }


_SERVES = {series("vllm:num_requests_running", _JOB, model_name="llama", engine="0"): steady(3, 300)}
_ROLES = _pods("label_jobset_sigs_k8s_io_jobset_name", ("42-actor-0", "42-rollout-0", "42-rollout-1"))
_RAY = _pods("label_ray_io_cluster", ("", ""))
_ONE_ROLE = {
    **_pods("label_jobset_sigs_k8s_io_jobset_name", ("42-node-0", "42-node-1")),
    **{
        series(metric, CLUSTER, namespace="vision", pod="done", team="vision", **more): steady(1, 300)
        for metric, more in (
            (
                "kube_pod_labels",
                {
                    "label_jobset_sigs_k8s_io_jobset_name": "42",
                    "label_batch_kubernetes_io_job_name": "42-dataset-initializer-0",
                },
            ),
            ("kube_pod_status_phase", {"phase": "Running"}),
        )
    },
}
"""A training job of Kubeflow: pods that load data hold no GPUs."""
_STOPS = {
    **_util(_BUSY, _BUSY),
    **_tensor(*[fault(0.4, 0.0, after=20, minutes=60, rest=40)] * 2),
    **_sent(50e9, 0, 20, 60),
}
_SLOW = {**_util(*[steady(99, _END)] * 4), **_tensor(fault(0.4, 0.1), *[steady(0.4, _END)] * 3)}

KUBERNETES = (
    Case(
        "TrainingStalled",
        _two_teams(then(rising(0, 5, 60), steady(295, 60), rising(300, 5, 100)), rising(0, 5, 220)),
        fires=100,
        clears=140,
        labels=(_JOB,),
        summary="job 42 of vision makes no step",
        look_alikes={"both make steps": _two_teams(rising(0, 5, 140), rising(0, 3, 140))},
        plane="eks",
    ),
    Case(
        "JobStraggler",
        {**_SLOW, **_ONE_ROLE},
        fires=30,
        clears=100,
        labels=({**NODE, **JOB},),
        summary="n1 slows job 42 of vision",
        look_alikes={
            "prefill and decode of an inference server": {**_SLOW, **_SERVES},
            "a JobSet of several roles": {**_SLOW, **_ROLES},
            "a Ray cluster": {**_SLOW, **_RAY},
        },
        plane="eks",
    ),
    Case(
        "JobHung",
        {**_STOPS, **_ONE_ROLE},
        fires=60,
        clears=100,
        labels=(_JOB,),
        summary="job 42 of vision hangs",
        look_alikes={
            "an inference server without requests": {**_STOPS, **_SERVES},
            "reinforcement learning: trainers wait for rollouts": {**_STOPS, **_ROLES},
        },
        plane="eks",
    ),
)

CASES = (*GPU_JOBS, *TRAINING, *KUBERNETES)
