"""Alerts on GPUs that work, but slower than they should: heat, power, NVLink and PCIe."""

from collections.abc import Iterator

from ultracluster.catalog import catalog
from ultracluster.telemetry.rules.expressions import either, grown, worst
from ultracluster.telemetry.rules.model import Alert, Group
from ultracluster.telemetry.thresholds import GPU_TEMPERATURE, NVLINK_CRC, PCIE_REPLAYS, THROTTLED_TIME

_WHERE = "GPU {{ $labels.gpu }} ({{ $labels.UUID }}) of {{ $labels.node }} ({{ $labels.instance_type }})"
_MINUTES = 15
_ON_NVLINK_C2C = "|".join(each.name.replace(".", "[.]") for each in catalog.values() if each.gpu.model.startswith("GB"))
"""Types whose GPUs have their host behind NVLink-C2C. What DCGM reports there as PCIe link is not verified."""


def group() -> Group:
    """Alerts on heat, power, NVLink and PCIe. All are warnings: the job goes on, at the speed of its slowest GPU."""
    return Group("gpu-performance", (*_throttling(), *_links()))


def _throttling() -> Iterator[Alert]:
    yield Alert(
        name="GpuHot",
        expr=f"{worst('DCGM_FI_DEV_GPU_TEMP')}\n> {GPU_TEMPERATURE.value}",
        severity="warning",
        component="gpu",
        scope="gpu",
        sustained="15m",
        keep="5m",
        summary=f"{{{{ $value }}}} degrees Celsius at {_WHERE}",
        description="The GPU is close to the temperature at which the hardware reduces its clocks.",
        action="Compare with the other GPUs of the node; replace the instance if it is the only hot one.",
    )
    yield _slowed(
        "GpuThermalSlowdown",
        "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS",
        "Heat reduced the clocks of",
        "The hardware halved the clocks, or worse, because of temperature.",
    )
    yield _slowed(
        "GpuPowerBrake",
        "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS",
        "The power brake reduced the clocks of",
        "The power supply of the server asserted the power brake, so the hardware halved the clocks or worse. The "
        "power limit of the GPU, which a training job reaches all the time, does not count.",
    )
    yield Alert(
        name="GpuReliabilityThrottled",
        expr=either(
            *(
                f"({grown(metric, _MINUTES)}) / 1e9 / {_MINUTES * 60}\n> {THROTTLED_TIME.value}"
                for metric in ("DCGM_FI_DEV_RELIABILITY_VIOLATION", "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION")
            )
        ),
        severity="warning",
        component="gpu",
        scope="gpu",
        sustained="5m",
        summary=f"Board limits reduced the clocks of {_WHERE}",
        description="The GPU ran below its clocks because of a limit of voltage or of the board, for "
        f"{{{{ $value | humanizePercentage }}}} of the last {_MINUTES} minutes.",
        action="Replace the instance if its jobs are slower than others.",
    )


def _slowed(name: str, metric: str, what: str, why: str) -> Alert:
    return Alert(
        name=name,
        expr=f"({grown(metric, _MINUTES)}) / 1e9 / {_MINUTES * 60}\n> {THROTTLED_TIME.value}",
        severity="warning",
        component="gpu",
        scope="gpu",
        sustained="5m",
        summary=f"{what} {_WHERE}",
        description=f"{why} It lasted {{{{ $value | humanizePercentage }}}} of the last {_MINUTES} minutes.",
        action="Replace the instance if the fault returns after a reboot.",
    )


def _links() -> Iterator[Alert]:
    replay, recovery = "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"
    data, flit = "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"
    failed = "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS"
    integrity = "DCGM_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS"
    seconds = _MINUTES * 60
    yield Alert(
        name="GpuNvlinkErrors",
        expr=either(
            *(f"{grown(metric, _MINUTES)}\n> 0" for metric in (replay, recovery, failed, integrity)),
            *(f"({grown(metric, _MINUTES)}) / {seconds}\n> {NVLINK_CRC.value}" for metric in (data, flit)),
        ),
        severity="warning",
        component="gpu",
        scope="gpu",
        sustained="5m",
        summary=f"NVLink errors at {_WHERE}",
        description=f"Within {_MINUTES} minutes NVLink replayed, recovered or lost a link, or had more than "
        f"{NVLINK_CRC.value} CRC errors per second. Collectives within the node slow down.",
        action="Test NVLink with DCGM diagnostics when the job has ended.",
    )
    yield Alert(
        name="GpuPcieReplays",
        expr=f"{grown('DCGM_FI_DEV_PCIE_REPLAY_COUNTER', 30)}\n> {PCIE_REPLAYS.value}",
        severity="warning",
        component="gpu",
        scope="gpu",
        sustained="15m",
        summary=f"{{{{ $value }}}} PCIe replays in 30 minutes at {_WHERE}",
        description="The PCIe link to the GPU repeats packets. Copies between host and GPU slow down.",
        action="Replace the instance when the job has ended.",
    )
    on_pcie = f'{{instance_type!~"{_ON_NVLINK_C2C}"}}'
    width, widest = worst(f"DCGM_FI_DEV_PCIE_LINK_WIDTH{on_pcie}"), worst("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH")
    speed, fastest = worst(f"DCGM_FI_DEV_PCIE_LINK_GEN{on_pcie}"), worst("DCGM_FI_DEV_PCIE_MAX_LINK_GEN")
    busy = f"{worst('DCGM_FI_DEV_GPU_UTIL')} > 10"
    yield Alert(
        name="GpuPcieLinkDegraded",
        expr=f"({width} > 0)\n< {widest}\nor\n(({speed} > 0)\n< {fastest}\nand\n{busy})",
        severity="warning",
        component="gpu",
        scope="gpu",
        sustained="15m",
        summary=f"PCIe link below its maximum at {_WHERE}",
        description="The link to the GPU has fewer lanes than it should, or a lower generation while the GPU is busy. "
        "An idle GPU may lower the generation to save power.",
        action="Reboot the node when its job has ended, and replace the instance if that does not help.",
    )
