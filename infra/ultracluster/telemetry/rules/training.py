"""What training jobs tell of themselves: goodput, checkpoints, steps and collectives.

A file that a job wrote stays on its node when the job ends, so every alert asks that the job still holds GPUs.
"""

from collections.abc import Iterator

from ultracluster.telemetry.rules.model import CLUSTER, Alert, Group, Recording, Severity
from ultracluster.telemetry.rules.site import Site
from ultracluster.telemetry.thresholds import CHECKPOINT_AGE, DATA_WAIT, GOODPUT, NCCL_DROP, RESTARTS

_JOB = f"{CLUSTER}, workload"
_NCCL = f"{CLUSTER}, slurm_job_id, collective"
_RUNS = f"and on ({_JOB})\njob:gpus_allocated:count"
_OF = "job {{ $labels.workload }}"
_CHECKPOINT = "training_checkpoint_timestamp_seconds"


def group(site: Site) -> Group:
    """Recorded goodput and collectives, and alerts."""
    return Group("training", (*_recordings(), *_progress(site), *_checkpoints(), _collectives()))


def _recordings() -> Iterator[Recording]:
    for what in ("productive", "lost"):
        grown = f"increase(training_{what}_seconds_total[1h])"
        yield Recording(f"job:training_{what}_seconds:increase1h", f"sum by ({_JOB}) ({grown})")
    productive, lost = "job:training_productive_seconds:increase1h", "job:training_lost_seconds:increase1h"
    yield Recording("job:training_goodput:ratio", f"{productive}\n/ ({productive} + ({lost} or {productive} * 0) > 0)")
    yield Recording("job:training_checkpoint_age:seconds", f"time() - max by ({_JOB}) ({_CHECKPOINT})\n{_RUNS}")
    yield Recording("job:nccl_bus_bandwidth_gbs:avg", f"avg by ({_NCCL}) (nccl_bus_bandwidth_gbs)")


def _alert(name: str, expr: str, severity: Severity, sustained: str, texts: tuple[str, str, str]) -> Alert:
    summary, description, action = texts
    return Alert(name, expr, severity, "job", "job", summary, description, action, sustained, "5m")


def _progress(site: Site) -> Iterator[Alert]:
    yield _alert(
        "TrainingGoodputLow",
        f"job:training_goodput:ratio\n< {GOODPUT.value}\n{_RUNS}",
        "warning",
        "30m",
        (
            f"Goodput of {_OF} is {{{{ $value | humanizePercentage }}}}",
            "In the last hour the job spent the rest of its time on starts, restarts, checkpoints, stalls or work that "
            "it had to do again.",
            "Look at training_lost_seconds_total by reason.",
        ),
    )
    step = f"max by ({_JOB}) (training_step)"
    yield _alert(
        "TrainingStalled",
        f"{step}\n- max by ({_JOB}) (training_step offset 20m)\n== 0\n{_RUNS}",
        "warning",
        "10m",
        (
            f"{_OF} makes no step",
            "The job reports the same step as 20 minutes ago. It hangs, writes a long checkpoint, or waits for data.",
            "Look at the log of rank 0, and at the alert JobHung.",
        ),
    )
    yield _alert(
        "TrainingLossNotFinite",
        f"max by ({_JOB}) (training_loss != training_loss or abs(training_loss) == Inf)\n{_RUNS}",
        "warning",
        "5m",
        (
            f"The loss of {_OF} is {{{{ $value }}}}",
            "The model has diverged, or a GPU computed wrong numbers. More steps are wasted.",
            "Stop the job and go back to a checkpoint; test the nodes when it happens again at another step.",
        ),
    )
    wait, time = f"max by ({_JOB}) (training_data_wait_seconds)", f"(max by ({_JOB}) (training_step_time_seconds) > 0)"
    yield _alert(
        "TrainingWaitsForData",
        f"{wait} / {time}\n> {DATA_WAIT.value}\n{_RUNS}",
        "warning",
        "15m",
        (
            f"{_OF} waits for data in {{{{ $value | humanizePercentage }}}} of each step",
            "The data loader of at least one rank is slower than its GPU, and all ranks wait for it.",
            "Add data loader workers, or look at the throughput of the file system.",
        ),
    )
    restarts = f"max by ({_JOB}) (increase(training_restarts_total[{max(60, int(site.window(60)[:-1]))}m]))"
    yield _alert(
        "TrainingRestartsOften",
        f"{restarts}\n> {RESTARTS.value}\n{_RUNS}",
        "warning",
        "0m",
        (
            f"{_OF} restarted {{{{ $value | humanize }}}} times in an hour",
            "Each restart costs the time to start, and the steps since the last checkpoint.",
            "Find the first error of each attempt in the logs; the same node in all of them should be drained.",
        ),
    )


def _checkpoints() -> Iterator[Alert]:
    first, last = (f"max by ({_JOB}) ({how}_over_time({_CHECKPOINT}[1d]))" for how in ("min", "max"))
    interval = f"({last} - {first})\n/ (max by ({_JOB}) (changes({_CHECKPOINT}[1d])) > 0)"
    yield _alert(
        "CheckpointOverdue",
        f"job:training_checkpoint_age:seconds\n> {CHECKPOINT_AGE.value} * ({interval})",
        "warning",
        "5m",
        (
            f"The last checkpoint of {_OF} is {{{{ $value | humanizeDuration }}}} old",
            f"The age is more than {CHECKPOINT_AGE.value} times the mean interval between the job's checkpoints of the "
            "last day. A failure now would cost all work since then.",
            "Look at the log of rank 0 and at the free space of the file system.",
        ),
    )
    yield _alert(
        "CheckpointFailed",
        f"max by ({_JOB}) (increase(training_checkpoint_failures_total[30m]))\n> 0\n{_RUNS}",
        "warning",
        "0m",
        (
            f"{{{{ $value | humanize }}}} checkpoints of {_OF} failed",
            "The job goes on without a checkpoint that it tried to write in the last half hour.",
            "Look at the log of rank 0, and at the space and the mounts of the file system.",
        ),
    )


def _collectives() -> Alert:
    bandwidth = "job:nccl_bus_bandwidth_gbs:avg"
    return _alert(
        "NcclBandwidthDropped",
        f"{bandwidth}\n< {NCCL_DROP.value} * avg_over_time({bandwidth}[6h] offset 30m)",
        "warning",
        "15m",
        (
            "{{ $labels.collective }} of job {{ $labels.slurm_job_id }} has {{ $value | humanize }} GB/s bus bandwidth",
            "It is less than half of the mean of the six hours before. A link, a card or a node of the job became "
            "slow.",
            "Look for alerts on EFA, NVLink and clocks of the job's nodes.",
        ),
    )
