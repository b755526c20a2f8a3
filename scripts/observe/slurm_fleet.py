"""Sixteen p5en.48xlarge nodes under Slurm, with a day of work and faults.

The faults: a straggler (train-5, GPU 3 throttles from -5 h), an ECC storm (train-16, GPU 2 from -6 h, drained at -3 h),
a GPU that falls off the bus (train-14, GPU 6 at -1.2 h), a job that hangs (4720 from -1.5 h), a file system that fills,
and packet loss of one EFA device (train-3 at -4 h).
"""

from collections.abc import Iterator

from scripts.observe.course import Day
from scripts.observe.fleet import Part, Series, nodes_of
from scripts.observe.gpu_series import Gpus
from scripts.observe.host_series import Hosts
from scripts.observe.job_series import Slurm, Training
from scripts.observe.service_series import Services

PARTS: tuple[type[Part], ...] = (Gpus, Hosts, Slurm, Training, Services)


def series(day: Day, wanted: set[str]) -> Iterator[Series]:
    """Every series of the cluster. `wanted` are names of metrics; others are not made."""
    nodes = nodes_of(day)
    for part in PARTS:
        yield from part(day, wanted, nodes).series()
