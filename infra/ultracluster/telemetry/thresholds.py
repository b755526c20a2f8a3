"""Limits that alert rules and dashboards share, each with its unit and source.

Limits without a published source are our judgement; their source says so.
"""

from typing import NamedTuple

_NMA = "EKS node monitoring agent, bursts of its EFA counters (v1.7, 2026), here over five minutes; our judgement"
_OWN = "our judgement"


class Threshold(NamedTuple):
    """A limit of a metric. `unit` is that of the compared value."""

    value: float
    unit: str
    source: str


GPU_TEMPERATURE = Threshold(85, "celsius", f"common in public rule sets; {_OWN}")
THROTTLED_TIME = Threshold(0.05, "ratio of time", _OWN)
SINGLE_BIT_ERRORS = Threshold(100, "errors per hour", f"a public rule set; {_OWN}")
SINGLE_BIT_ACCELERATION = Threshold(2, "times the hour before", _OWN)
SINGLE_BIT_NOISE = Threshold(20, "errors per hour", f"below it growth is noise; {_OWN}")
NVLINK_CRC = Threshold(100, "errors per second", "DCGM, limit of its health check")
PCIE_REPLAYS = Threshold(5, "replays in 30 minutes", f"a public rule set; {_OWN}")
SPARE_BANKS = Threshold(1, "memory banks without a spare row", _OWN)

EFA_EVENTS = Threshold(100, "events in five minutes", _NMA)
EFA_RETRANSMITS = Threshold(1000, "packets in five minutes", _NMA)

LUSTRE_FULL = Threshold(0.80, "ratio of capacity", _OWN)
LUSTRE_ALMOST_FULL = Threshold(0.90, "ratio of capacity", "FSx slows down as storage targets fill; our judgement")
LUSTRE_SATURATED = Threshold(0.90, "ratio of throughput", _OWN)
DISK_FULL = Threshold(0.90, "ratio of capacity", _OWN)
CLOCK_OFFSET = Threshold(0.05, "seconds", "Amazon Time Sync keeps nodes within a millisecond; our judgement")

SLURM_DOWN = Threshold(0.05, "ratio of nodes", _OWN)
SLURM_DRAINED = Threshold(0.25, "ratio of nodes", f"above repairs of single nodes; {_OWN}")
SLURM_TOGETHER = Threshold(3, "nodes", f"fewer are no common cause, whatever the size of the cluster; {_OWN}")
SLURM_CYCLE = Threshold(5, "seconds", f"a public rule set; {_OWN}")
SLURM_DBD_QUEUE = Threshold(1000, "messages", f"MaxDBDMsgs, where records are lost, is 10,000; {_OWN}")
SLURM_THREADS = Threshold(200, "threads", "slurmctld serves 256 by default; our judgement")
PENDING_WITH_IDLE = Threshold(0.10, "ratio of GPUs", _OWN)

STRAGGLER = Threshold(0.5, "times the job's median", _OWN)
SLOW_CLOCK = Threshold(0.8, "times the job's median", _OWN)
HUNG_TENSOR = Threshold(0.01, "ratio of cycles", "tensor activity of a job that waits; our judgement")
HUNG_EFA = Threshold(0.001, "ratio of line rate", _OWN)
BUSY = Threshold(0.05, "ratio of cycles", "tensor activity of a job that computes; our judgement")
IDLE_GPU = Threshold(0.02, "ratio of cycles", "SM activity of a GPU that nobody uses; our judgement")
NCCL_DROP = Threshold(0.5, "times the mean of the hours before", _OWN)
RESTARTS = Threshold(3, "restarts in an hour", _OWN)
DATA_WAIT = Threshold(0.2, "ratio of the step", _OWN)
CHECKPOINT_AGE = Threshold(3, "times the checkpoint interval", _OWN)
GOODPUT = Threshold(0.8, "ratio of time", "Llama 3 reached over 0.9 on 16,384 GPUs (Meta, 2024); our judgement")
TARGETS_DOWN = Threshold(0.10, "ratio of targets", _OWN)
