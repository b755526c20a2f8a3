"""Limits of panels, from those of the alert rules. Orange is what warns, red what pages."""

from ultracluster.telemetry import thresholds
from ultracluster.telemetry.dashboards.panels import Limits

ANY_IS_BAD = Limits(critical=1)
ANY_IS_WORTH_A_LOOK = Limits(warning=1)

GPU_TEMPERATURE = Limits(warning=thresholds.GPU_TEMPERATURE.value)
THROTTLED = Limits(warning=thresholds.THROTTLED_TIME.value)
SINGLE_BIT = Limits(warning=thresholds.SINGLE_BIT_ERRORS.value)
NVLINK_CRC = Limits(warning=thresholds.NVLINK_CRC.value)
PCIE_REPLAYS = Limits(warning=thresholds.PCIE_REPLAYS.value)
EFA_EVENTS = Limits(warning=thresholds.EFA_EVENTS.value)
EFA_RETRANSMITS = Limits(warning=thresholds.EFA_RETRANSMITS.value)
FILL = Limits(thresholds.LUSTRE_FULL.value, thresholds.LUSTRE_ALMOST_FULL.value)
BUSY_PERCENT = Limits(warning=100 * thresholds.LUSTRE_SATURATED.value)
DISK = Limits(warning=thresholds.DISK_FULL.value)
SLURM_CYCLE = Limits(warning=thresholds.SLURM_CYCLE.value)
SLURM_THREADS = Limits(warning=thresholds.SLURM_THREADS.value)
DATA_WAIT = Limits(warning=thresholds.DATA_WAIT.value)
SLURM_DBD_QUEUE = Limits(warning=thresholds.SLURM_DBD_QUEUE.value)
GOODPUT = Limits(warning=thresholds.GOODPUT.value, above=False)

IDLE = thresholds.IDLE_GPU.value
"""SM activity below which a GPU is idle."""
