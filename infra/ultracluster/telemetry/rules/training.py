"""Metrics that training jobs report: goodput, checkpoints, steps and collectives.

A file that a job wrote stays on its node when the job ends, so every alert asks that the job still holds GPUs.
"""

from collections.abc import Iterator

from ultracluster.telemetry.rules.model import CLUSTER, JOB, OF_JOB, Alert, Group, Recording, Severity
from ultracluster.telemetry.rules.site import Site
from ultracluster.telemetry.thresholds import CHECKPOINT_AGE, DATA_WAIT, GOODPUT, NCCL_DROP, RESTARTS

_NCCL = f"{CLUSTER}, slurm_job_id, collective"
_GPUS = "job:gpus_allocated:count"
_CHECKPOINT = "training_checkpoint_timestamp_seconds"


def group(site: Site) -> Group:
    """Recorded goodput and collectives, and alerts."""
    return Group("training", (*_recordings(site), *_progress(site), *_checkpoints(site), _collectives(site)))


def _own(site: Site) -> str:
    """Labels of the series that jobs report. On PCS they have no team; Slurm's job IDs are unique."""
    return f"{CLUSTER}, workload" if site.plane == "pcs" else JOB


def _running(site: Site, expr: str) -> str:
    """`expr` for jobs that hold GPUs, with the label `team`, which on PCS comes from the GPUs."""
    if site.plane != "pcs":
        return f"{expr}\nand on ({JOB})\n{_GPUS}"
    return f"({expr})\n* on ({_own(site)}) group_left (team)\n(topk by ({_own(site)}) (1, {_GPUS}) ^ 0)"


def _recordings(site: Site) -> Iterator[Recording]:
    own = _own(site)
    for what in ("productive", "lost"):
        grown = f"increase(training_{what}_seconds_total[1h])"
        yield Recording(f"job:training_{what}_seconds:increase1h", f"sum by ({own}) ({grown})")
    productive, lost = "job:training_productive_seconds:increase1h", "job:training_lost_seconds:increase1h"
    yield Recording("job:training_goodput:ratio", f"{productive}\n/ ({productive} + ({lost} or {productive} * 0) > 0)")
    age = f"time() - max by ({own}) ({_CHECKPOINT})"
    yield Recording("job:training_checkpoint_age:seconds", _running(site, age))
    yield Recording("job:nccl_bus_bandwidth_gbs:avg", f"avg by ({_NCCL}) (nccl_bus_bandwidth_gbs)")


def _alert(name: str, expr: str, severity: Severity, sustained: str, texts: tuple[str, str, str]) -> Alert:
    summary, description, action = texts
    return Alert(name, expr, severity, "job", "job", summary, description, action, sustained, "5m")


def _progress(site: Site) -> Iterator[Alert]:
    own = _own(site)
    yield _alert(
        "TrainingGoodputLow",
        _running(site, f"job:training_goodput:ratio\n< {GOODPUT.value}"),
        "warning",
        "30m",
        (
            f"Goodput of {OF_JOB} is {{{{ $value | humanizePercentage }}}}",
            "In the last hour the job spent the rest of its time on starts, restarts, checkpoints, stalls or work that "
            "it had to do again.",
            "Look at training_lost_seconds_total by reason.",
        ),
    )
    step, earlier = f"max by ({own}) (training_step)", f"max by ({own}) (training_step offset 20m)"
    yield _alert(
        "TrainingStalled",
        _running(site, f"{step}\n- {earlier}\n== 0"),
        "warning",
        "10m",
        (
            f"{OF_JOB} makes no step",
            "The job reports the same step as 20 minutes ago. It hangs, writes a long checkpoint, or waits for data.",
            "Look at the log of rank 0, and at the alert JobHung.",
        ),
    )
    yield _alert(
        "TrainingLossNotFinite",
        _running(site, f"max by ({own}) (training_loss != training_loss or abs(training_loss) == Inf)"),
        "warning",
        "5m",
        (
            f"The loss of {OF_JOB} is {{{{ $value }}}}",
            "The model has diverged, or a GPU computed wrong numbers. More steps are wasted.",
            "Stop the job and go back to a checkpoint; test the nodes when it happens again at another step.",
        ),
    )
    wait, time = f"max by ({own}) (training_data_wait_seconds)", f"(max by ({own}) (training_step_time_seconds) > 0)"
    yield _alert(
        "TrainingWaitsForData",
        _running(site, f"{wait} / {time}\n> {DATA_WAIT.value}"),
        "warning",
        "15m",
        (
            f"{OF_JOB} waits for data in {{{{ $value | humanizePercentage }}}} of each step",
            "The data loader of at least one rank is slower than its GPU, and all ranks wait for it.",
            "Add data loader workers, or look at the throughput of the file system.",
        ),
    )
    restarts = f"max by ({own}) (increase(training_restarts_total[{site.window(60)}]))"
    yield _alert(
        "TrainingRestartsOften",
        _running(site, f"{restarts}\n> {RESTARTS.value}"),
        "warning",
        "0m",
        (
            f"{OF_JOB} restarted {{{{ $value | humanize }}}} times in an hour",
            "Each restart costs the time to start, and the steps since the last checkpoint.",
            "Find the first error of each attempt in the logs; the same node in all of them should be drained.",
        ),
    )


def _checkpoints(site: Site) -> Iterator[Alert]:
    own = _own(site)
    first, last = (f"max by ({own}) ({how}_over_time({_CHECKPOINT}[1d]))" for how in ("min", "max"))
    interval = f"({last} - {first})\n/ (max by ({own}) (changes({_CHECKPOINT}[1d])) > 0)"
    yield _alert(
        "CheckpointOverdue",
        f"job:training_checkpoint_age:seconds\n> on ({own}) group_left ()\n{CHECKPOINT_AGE.value} * ({interval})",
        "warning",
        "5m",
        (
            f"The last checkpoint of {OF_JOB} is {{{{ $value | humanizeDuration }}}} old",
            f"The age is more than {CHECKPOINT_AGE.value} times the mean interval between the job's checkpoints of the "
            "last day. A failure now would cost all work since then.",
            "Look at the log of rank 0 and at the free space of the file system.",
        ),
    )
    yield _alert(
        "CheckpointFailed",
        _running(site, f"max by ({own}) (increase(training_checkpoint_failures_total[30m]))\n> 0"),
        "warning",
        "0m",
        (
            f"{{{{ $value | humanize }}}} checkpoints of {OF_JOB} failed",
            "The job goes on without a checkpoint that it tried to write in the last half hour.",
            "Look at the log of rank 0, and at the space and the mounts of the file system.",
        ),
    )


def _collectives(site: Site) -> Alert:
    """NCCL's inspector has the job's ID under a name of its own."""
    bandwidth = "job:nccl_bus_bandwidth_gbs:avg"
    dropped = f"{bandwidth}\n< {NCCL_DROP.value} * avg_over_time({bandwidth}[6h] offset 30m)"
    named = f'label_replace({dropped}, "workload", "$1", "slurm_job_id", "(.*)")'
    return _alert(
        "NcclBandwidthDropped",
        _running(site, named) if site.plane == "pcs" else named,
        "warning",
        "15m",
        (
            f"{{{{ $labels.collective }}}} of {OF_JOB} has {{{{ $value | humanize }}}} GB/s bus bandwidth",
            "It is less than half of the mean of the six hours before. A link, a card or a node of the job became "
            "slow.",
            "Look for alerts on EFA, NVLink and clocks of the job's nodes.",
        ),
    )
