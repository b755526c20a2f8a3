"""Alerts on jobs: stragglers, hung jobs, idle GPUs, checkpoints and goodput."""

from collections.abc import Iterator

from ultracluster.telemetry.rules.catalogue import EFA_LINE_RATE
from ultracluster.telemetry.rules.model import CLUSTER, GPU, JOB, NODE, OF_JOB, Alert, Group, Recording, Severity
from ultracluster.telemetry.rules.site import Site
from ultracluster.telemetry.thresholds import BUSY, HUNG_EFA, HUNG_TENSOR, IDLE_GPU, SLOW_CLOCK, STRAGGLER

_ON = f"on ({JOB})"
"""A job's own labels, the team among them: on Kubernetes, two teams may each have a job of the same name."""
_UNEVEN = "job:uneven_work:count"


def group(site: Site) -> Group:
    """Recorded traffic and kinds of jobs, and alerts."""
    return Group("jobs", (*_recordings(site), *_stragglers(site), _hung(site), _idle(), _over_tcp(site)))


def _recordings(site: Site) -> Iterator[Recording]:
    part = "(job_node:gpus_allocated:count * 0 + 1)"
    node = f"on ({CLUSTER}, node) group_left ()"
    yield Recording("job:efa_tx_bits:rate", f"sum by ({JOB}) ({part}\n* {node}\nnode:efa_tx_bits:rate)")
    rate = f"({part}\n* on (instance_type) group_left ()\n{EFA_LINE_RATE})"
    yield Recording("job:efa_bits:line_rate", f"sum by ({JOB}) ({rate})")
    yield Recording("job:nodes:count", f"count by ({JOB}) (job_node:gpus_allocated:count)")
    if site.plane == "eks":
        yield Recording(_UNEVEN, _uneven())


def _uneven() -> str:
    """Jobs whose pods are known to have different work: inference servers, Ray, and JobSets with several roles.

    A role is a replicated job of a JobSet whose pods run and hold GPUs. A Ray cluster is what its program makes of it,
    such as the generation and the training of reinforcement learning.
    """
    serving = (f"count by ({JOB}) ({metric})" for metric in ("vllm:num_requests_running", "sglang:num_running_reqs"))
    ray = _named('kube_pod_labels{label_ray_io_cluster!=""}', "workload", "label_ray_io_cluster", "(.+)")
    sets = 'kube_pod_labels{label_jobset_sigs_k8s_io_jobset_name!=""}'
    pod = f"{CLUSTER}, namespace, pod"
    running = f'{sets}\nand on ({pod})\nkube_pod_status_phase{{phase="Running"}} == 1'
    with_gpus = f'{running}\nand on ({pod})\nkube_pod_container_resource_requests{{resource="nvidia_com_gpu"}} > 0'
    workload = _named(with_gpus, "workload", "label_jobset_sigs_k8s_io_jobset_name", "(.+)")
    role = _named(workload, "role", "label_batch_kubernetes_io_job_name", "(.+)-[0-9]+")
    roles = f"count by ({JOB}) (count by ({JOB}, role) ({role})) > 1"
    return "\nor\n".join((*serving, f"count by ({JOB}) ({ray})", roles))


def _named(vector: str, label: str, source: str, pattern: str) -> str:
    return f'label_replace({vector}, "{label}", "$1", "{source}", "{pattern}")'


def _even(site: Site) -> str:
    """Leaves out jobs whose pods are known to have different work."""
    return f"\nunless {_ON}\n{_UNEVEN}" if site.plane == "eks" else ""


def _alert(name: str, expr: str, severity: Severity, sustained: str, texts: tuple[str, str, str]) -> Alert:
    summary, description, action = texts
    return Alert(name, expr, severity, "job", "job", summary, description, action, sustained, "5m")


def _stragglers(site: Site) -> Iterator[Alert]:
    several = f"and {_ON}\njob:nodes:count >= 2"
    median = "job:tensor_active:median"
    yield _alert(
        "JobStraggler",
        f"job_node:tensor_active:avg\n/ {_ON} group_left ()\n({median} > {BUSY.value})\n< {STRAGGLER.value}\n"
        f"{several}{_even(site)}",
        "warning",
        "15m",
        (
            f"{{{{ $labels.node }}}} slows {OF_JOB}",
            "Tensor Cores of the node are {{ $value | humanizePercentage }} as active as those of the job's median "
            "node, so the other nodes wait for it.",
            "Compare clocks, CPU and the data loader of the node with others; exclude the node if it stays slow.",
        ),
    )
    clock = f'max by ({GPU}, team, workload) (DCGM_FI_DEV_SM_CLOCK{{workload!=""}})'
    active = f'max by ({GPU}, team, workload) (DCGM_FI_PROF_SM_ACTIVE{{workload!=""}}) > 0.1'
    yield _alert(
        "JobSlowGpu",
        f"({clock}\nand\n{active})\n/ {_ON} group_left ()\n(job:sm_clock_mhz:median > 0)\n< {SLOW_CLOCK.value}",
        "warning",
        "15m",
        (
            f"GPU {{{{ $labels.gpu }}}} of {{{{ $labels.node }}}} slows {OF_JOB}",
            "The GPU works at {{ $value | humanizePercentage }} of the clock of the job's median GPU, so the other "
            "GPUs wait for it.",
            "Look for throttling of the GPU; drain the node when its job has ended.",
        ),
    )


def _hung(site: Site) -> Alert:
    communicates = f"job:efa_tx_bits:rate\n/ (job:efa_bits:line_rate > 0)\n>= {HUNG_EFA.value}"
    tensor = f"avg by ({JOB}) (job_node:tensor_active:avg)"
    # the median of use, for a crashed rank leaves its node idle; the mean of Tensor Cores, for one busy rank is no hang
    busy = f"quantile by ({JOB}) (0.5, job_node:gpu_utilization:avg)"
    return _alert(
        "JobHung",
        f"{busy}\n>= 90\nand\n{tensor}\n< {HUNG_TENSOR.value}\nand\n"
        f"max_over_time(job:tensor_active:median[1d])\n> {BUSY.value}\nunless\n{communicates}{_even(site)}",
        "critical",
        "15m",
        (
            f"{OF_JOB} hangs",
            "Most of the job's GPUs run a kernel all the time and draw power, but Tensor Cores and EFA have stood "
            "still for 15 minutes, though the job computed before. A rank most likely waits in a collective for one "
            "that crashed or is stuck.",
            "Find the rank that left the collective in NCCL's flight recorder or the logs, then restart the job.",
        ),
    )


def _idle() -> Alert:
    idle = f"max by ({JOB}) (job_node:sm_active:avg)\n< {IDLE_GPU.value}"
    return _alert(
        "JobIdle",
        f"job:gpus_allocated:count\nand\n({idle})",
        "info",
        "2h",
        (
            f"{OF_JOB} has used none of its {{{{ $value }}}} GPUs for two hours",
            "The job holds GPUs that others could use.",
            "Ask the owner whether the job may end.",
        ),
    )


def _over_tcp(site: Site) -> Alert:
    cards = 'device!~"lo|veth.*|eni.*"'
    sent = f"sum by ({NODE}) (rate(node_network_transmit_bytes_total{{{cards}}}[{site.window(5)}]))"
    part = "(job_node:gpus_allocated:count * 0 + 1)"
    tcp = f"8 * sum by ({JOB}) ({part}\n* on ({CLUSTER}, node) group_left ()\n{sent})"
    return _alert(
        "JobOverTcp",
        f"({tcp})\n> job:nodes:count * 2e9\nand\njob:nodes:count >= 2\nand\n"
        f"job:efa_tx_bits:rate\n/ (job:efa_bits:line_rate > 0)\n< {HUNG_EFA.value}",
        "warning",
        "15m",
        (
            f"{OF_JOB} talks over TCP instead of EFA",
            "The job's nodes send {{ $value | humanize }}bit/s over TCP and nothing over EFA. NCCL fell back to "
            "sockets.",
            "Look for `NET/OFI` in the job's log with NCCL_DEBUG=INFO, and set NCCL_NET so that NCCL fails instead.",
        ),
    )
