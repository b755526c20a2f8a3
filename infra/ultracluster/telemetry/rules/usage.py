"""Recorded use of GPUs: by cluster, team, job and node. Dashboards and alerts on jobs read these."""

from collections.abc import Iterator

from ultracluster.telemetry.rules.model import CLUSTER, JOB, NODE, Group, Recording
from ultracluster.telemetry.thresholds import IDLE_GPU

_TEAM = f"{CLUSTER}, team"
JOB_NODE = f"{NODE}, team, workload"
"""A job's part on one node."""

ACTIVITY = {
    "sm_active": "DCGM_FI_PROF_SM_ACTIVE",
    "tensor_active": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "dram_active": "DCGM_FI_PROF_DRAM_ACTIVE",
    "gpu_utilization": "DCGM_FI_DEV_GPU_UTIL",
    "power_watts": "DCGM_FI_DEV_POWER_USAGE",
    "sm_clock_mhz": "DCGM_FI_DEV_SM_CLOCK",
}
"""Measures of GPUs that are recorded as means for a cluster, a team, a node and a job's part on a node."""


def group() -> Group:
    """Counts of GPUs and means of their activity."""
    return Group("usage", (*_counts(), *_activity()))


def _counts() -> Iterator[Recording]:
    used = 'DCGM_FI_DEV_GPU_UTIL{workload!=""}'
    idle = f'DCGM_FI_PROF_SM_ACTIVE{{workload!=""}} < {IDLE_GPU.value}'
    yield Recording("cluster:gpus:count", f"count by ({CLUSTER}) (DCGM_FI_DEV_GPU_UTIL)")
    yield Recording("cluster:gpus_allocated:count", f"count by ({CLUSTER}) ({used})")
    yield Recording("team:gpus_allocated:count", f"count by ({_TEAM}) ({used})")
    yield Recording("job:gpus_allocated:count", f"count by ({JOB}) ({used})")
    yield Recording("job_node:gpus_allocated:count", f"count by ({JOB_NODE}) ({used})")
    yield Recording("team:gpus_idle:count", f"count by ({_TEAM}) ({idle})\nor\nteam:gpus_allocated:count * 0")
    yield Recording("cluster:gpus_idle:count", f"sum by ({CLUSTER}) (team:gpus_idle:count)")


def _activity() -> Iterator[Recording]:
    for name, metric in ACTIVITY.items():
        per_job = f'avg by ({JOB_NODE}) ({metric}{{workload!=""}})'
        yield Recording(f"job_node:{name}:avg", per_job)
        yield Recording(f"node:{name}:avg", f"avg by ({NODE}) ({metric})")
        yield Recording(f"team:{name}:avg", f'avg by ({_TEAM}) ({metric}{{workload!=""}})')
        yield Recording(f"cluster:{name}:avg", f"avg by ({CLUSTER}) ({metric})")
    for name in ("sm_active", "tensor_active"):
        yield Recording(f"job:{name}:median", f"quantile by ({JOB}) (0.5, job_node:{name}:avg)")
    yield Recording("job:sm_clock_mhz:median", f'quantile by ({JOB}) (0.5, DCGM_FI_DEV_SM_CLOCK{{workload!=""}})')
