"""Figures of the catalogue as recorded series, so that expressions compare measured with expected values."""

from ultracluster.catalog import InstanceType, catalog
from ultracluster.telemetry.rules.model import Group, Recording

GPUS = "instance_type:gpus:expected"
EFA_DEVICES = "instance_type:efa_devices:expected"
EFA_LINE_RATE = "instance_type:efa_bits:line_rate"
"""EFA bandwidth of one node in bits per second, one direction."""


def group() -> Group:
    """Expected GPUs, EFA devices and EFA bandwidth of every instance type in the catalogue."""
    return Group("catalogue", tuple(rule for each in catalog.values() for rule in _expected(each)))


def _expected(hardware: InstanceType) -> tuple[Recording, ...]:
    label = {"instance_type": hardware.name}
    devices = len(hardware.efa.cards)
    return (
        Recording(GPUS, f"vector({hardware.gpu_count})", label),
        Recording(EFA_DEVICES, f"vector({devices})", label),
        Recording(EFA_LINE_RATE, f"vector({devices * hardware.efa.gbps_per_card}e9)", label),
    )
