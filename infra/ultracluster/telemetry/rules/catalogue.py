"""Figures of instance types as recorded series, so that expressions compare measured with expected values."""

from collections.abc import Iterator

from ultracluster.catalog import InstanceType
from ultracluster.telemetry.rules.model import Group, Recording
from ultracluster.telemetry.rules.site import Site

GPUS = "instance_type:gpus:expected"
EFA_DEVICES = "instance_type:efa_devices:expected"
EFA_LINE_RATE = "instance_type:efa_bits:line_rate"
"""EFA bandwidth of one node in bits per second, one direction."""


def group(site: Site) -> Group:
    """Expected GPUs, EFA devices and EFA bandwidth of the catalogue's instance types and of others in the fleet."""
    return Group("catalogue", tuple(rule for each in site.types for rule in _expected(each)))


def _expected(hardware: InstanceType) -> Iterator[Recording]:
    label = {"instance_type": hardware.name}
    if hardware.gpu_count:
        yield Recording(GPUS, f"vector({hardware.gpu_count})", label)
    if hardware.efa:
        devices = len(hardware.efa.cards)
        yield Recording(EFA_DEVICES, f"vector({devices})", label)
        yield Recording(EFA_LINE_RATE, f"vector({devices * hardware.efa.gbps_per_card:g}e9)", label)
