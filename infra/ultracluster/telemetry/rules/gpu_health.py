"""Alerts on broken GPUs: memory, XIDs and the NVLink fabric."""

from collections.abc import Iterator

from ultracluster.telemetry.rules.expressions import either, grown, worst
from ultracluster.telemetry.rules.model import GPU, Alert, Group, Repair, Severity
from ultracluster.telemetry.thresholds import SINGLE_BIT_ACCELERATION, SINGLE_BIT_ERRORS, SINGLE_BIT_NOISE, SPARE_BANKS
from ultracluster.telemetry.xids import XIDS, Xid, xid_pattern

_WHERE = "GPU {{ $labels.gpu }} ({{ $labels.UUID }}) of {{ $labels.node }} ({{ $labels.instance_type }})"
_FABRIC_FIELDS = 4
"""Two-bit fields at the low end of DCGM_FI_DEV_FABRIC_HEALTH_MASK, in which 1 is a fault and 2 is healthy."""


def group() -> Group:
    """Alerts on GPUs that need a reset, a reboot or a replacement, now or soon."""
    return Group("gpu-health", (*_xids(), *_memory(), *_fabric()))


def _xids() -> Iterator[Alert]:
    listed = tuple(XIDS.values())
    critical = tuple(xid for xid in listed if xid.severity == "critical")
    replace = tuple(xid for xid in critical if xid.action == "replace")
    reset = tuple(xid for xid in critical if xid.action != "replace")
    warning = tuple(xid for xid in listed if xid.severity == "warning")
    info = tuple(xid for xid in listed if xid.severity == "info")
    text = "The GPU is broken, or its instance is."
    yield _xid("GpuXidReplace", _in(replace), text, "Drain the node and replace its instance.", "critical", "replace")
    text = "The GPU works again after a reset."
    yield _xid(
        "GpuXidReset", _in(reset), text, "Drain the node, then reset its GPUs or reboot it.", "critical", "reset"
    )
    text = "The job may go on; the GPU needs a reset or a test afterwards."
    yield _xid("GpuXidWarning", _in(warning), text, "Test the node when its job has ended.", "warning")
    text = "It is usually a fault of the program."
    yield _xid(
        "GpuXidApplication", _in(info), text, "Tell the owner of the job.", "info", labels=f"{GPU}, xid, team, workload"
    )
    text = "The XID is not in this project's table."
    unknown = f'xid!~"{xid_pattern(listed)}"'
    yield _xid("GpuXidUnknown", unknown, text, "Look the XID up in NVIDIA's catalogue.", "warning")


def _in(xids: tuple[Xid, ...]) -> str:
    return f'xid=~"{xid_pattern(xids)}"'


def _xid(
    name: str,
    which: str,
    meaning: str,
    action: str,
    severity: Severity,
    repair: Repair | None = None,
    labels: str = f"{GPU}, xid",
) -> Alert:
    return Alert(
        name=name,
        expr=f"{worst(f'max_over_time(DCGM_EXP_XID_ERRORS_COUNT{{{which}}}[10m])', labels)}\n> 0",
        severity=severity,
        component="gpu",
        scope="gpu",
        keep="30m" if severity == "critical" else "0m",
        repair=repair,
        summary=f"XID {{{{ $labels.xid }}}} on {_WHERE}",
        description=f"The driver reported XID {{{{ $labels.xid }}}} within the last ten minutes. {meaning}",
        action=action,
    )


def _memory() -> Iterator[Alert]:
    yield Alert(
        name="GpuRowRemapFailed",
        expr=f"{worst('DCGM_FI_DEV_ROW_REMAP_FAILURE')}\n== 1",
        severity="critical",
        component="gpu",
        scope="gpu",
        keep="10m",
        repair="replace",
        summary=f"Row remapping failed on {_WHERE}",
        description="The GPU could not replace a broken row of its memory. A reset does not help.",
        action="Drain the node and replace its instance.",
    )
    yield Alert(
        name="GpuSramThresholdExceeded",
        expr=f"{worst('DCGM_FI_DEV_THRESHOLD_SRM')}\n== 1",
        severity="critical",
        component="gpu",
        scope="gpu",
        keep="10m",
        repair="replace",
        summary=f"SRAM errors exceed NVIDIA's threshold on {_WHERE}",
        description="Uncorrectable errors of the GPU's SRAM passed the number above which NVIDIA replaces a GPU.",
        action="Drain the node and replace its instance.",
    )
    yield Alert(
        name="GpuDoubleBitErrors",
        expr=f"{grown('DCGM_FI_DEV_ECC_DBE_VOL_TOTAL', 10)}\n> 0",
        severity="critical",
        component="gpu",
        scope="gpu",
        keep="30m",
        repair="reset",
        summary=f"{{{{ $value }}}} double-bit ECC errors on {_WHERE}",
        description="The GPU's memory had errors that ECC cannot correct within the last ten minutes. The process that "
        "used the memory was ended.",
        action="Drain the node, reset its GPUs, and check that no row remapping failed.",
    )
    hour = "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"
    last, before = f"({grown(hour, 60)})", f"({grown(hour, 60, until=60)})"
    yield Alert(
        name="GpuSingleBitErrorsHigh",
        expr=f"{grown(hour, 60)}\n> {SINGLE_BIT_ERRORS.value}",
        severity="warning",
        component="gpu",
        scope="gpu",
        sustained="5m",
        summary=f"{{{{ $value }}}} single-bit ECC errors in an hour on {_WHERE}",
        description="ECC corrected the errors, and no job was hurt. Many of them often come before a double-bit error.",
        action="Test the node with DCGM diagnostics when its job has ended.",
    )
    yield Alert(
        name="GpuSingleBitErrorsAccelerating",
        expr=f"{last}\n>= {SINGLE_BIT_NOISE.value}\nand\n{before} > 0\nand\n"
        f"{last}\n>= {SINGLE_BIT_ACCELERATION.value} * {before}",
        severity="warning",
        component="gpu",
        scope="gpu",
        sustained="15m",
        summary=f"Single-bit ECC errors accelerate on {_WHERE}",
        description=f"{{{{ $value }}}} errors in the last hour, at least {SINGLE_BIT_ACCELERATION.value} times those "
        "of the hour before. Memory that is about to fail does this.",
        action="Test the node with DCGM diagnostics when its job has ended.",
    )
    yield Alert(
        name="GpuRowRemapPending",
        expr=f"{worst('DCGM_FI_DEV_ROW_REMAP_PENDING')}\n== 1",
        severity="warning",
        component="gpu",
        scope="gpu",
        sustained="5m",
        summary=f"Row remapping waits for a reset of {_WHERE}",
        description="A broken row of memory is replaced at the next reset of the GPU. The job may go on until then.",
        action="Reset the GPUs of the node when its job has ended.",
    )
    yield Alert(
        name="GpuUncorrectableRowsRemapped",
        expr=f"{grown('DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS', 60)}\n> 0",
        severity="warning",
        component="gpu",
        scope="gpu",
        sustained="5m",
        summary=f"{{{{ $value }}}} rows remapped after uncorrectable errors on {_WHERE}",
        description="Rows of the GPU's memory had errors that ECC cannot correct, and were replaced within the last "
        "hour.",
        action="Reset the GPUs of the node when its job has ended, and watch for more.",
    )
    yield Alert(
        name="GpuSpareRowsExhausted",
        expr=f"{worst('DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE')}\n>= {SPARE_BANKS.value}",
        severity="warning",
        component="gpu",
        scope="gpu",
        sustained="15m",
        summary=f"{{{{ $value }}}} memory banks without a spare row on {_WHERE}",
        description="The next broken row in one of these banks cannot be replaced, so its remapping will fail.",
        action="Replace the instance at the next chance.",
    )


def _fabric() -> Iterator[Alert]:
    yield Alert(
        name="GpuFabricManagerFailed",
        expr=f"{worst('DCGM_FI_DEV_FABRIC_MANAGER_STATUS')}\n>= 4",
        severity="critical",
        component="gpu",
        scope="gpu",
        sustained="1m",
        keep="10m",
        repair="reset",
        summary=f"Fabric manager failed (status {{{{ $value }}}}) on {_WHERE}",
        description="The GPU did not join the NVLink fabric of its node or UltraServer. 4: failure, 5: state not "
        "recognised, 6: the driver is too old. CUDA programs with several GPUs fail at their start.",
        action="Drain the node and restart nvidia-fabricmanager, or reboot the node.",
    )
    mask = worst("DCGM_FI_DEV_FABRIC_HEALTH_MASK")
    faults = [f"floor({mask} / {4**field}) % 4 == 1" for field in range(_FABRIC_FIELDS)]
    yield Alert(
        name="GpuFabricUnhealthy",
        expr=either(*faults, f"floor({mask} / {4**_FABRIC_FIELDS}) % 16 >= 2"),
        severity="critical",
        component="gpu",
        scope="gpu",
        sustained="1m",
        keep="10m",
        repair="reset",
        summary=f"NVLink fabric unhealthy at {_WHERE}",
        description="The fabric health mask reports degraded bandwidth, a route that recovers or failed, access "
        "timeouts, or a wrong configuration. Collectives are slow or hang.",
        action="Drain the node and reset its GPUs; replace it when the fault returns.",
    )
    yield Alert(
        name="GpuRecoveryRequired",
        expr=f"{worst('DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION')}\n> 0",
        severity="critical",
        component="gpu",
        scope="gpu",
        sustained="1m",
        keep="10m",
        repair="reset",
        summary=f"The driver asks for recovery action {{{{ $value }}}} on {_WHERE}",
        description="1: reset the GPU, 2: reboot the node, 3: drain peer-to-peer traffic, 4: drain and reset.",
        action="Drain the node and do what the driver asks for.",
    )
