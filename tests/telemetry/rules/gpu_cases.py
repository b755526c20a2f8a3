"""Alerts on GPUs."""

from dataclasses import replace

from tests.telemetry.rules.case import Case
from tests.telemetry.rules.series import (
    GPU,
    JOB,
    absent,
    burst,
    fault,
    gone,
    on_gpu,
    rising,
    series,
    steady,
    then,
)

_GPU = "GPU 0 (GPU-0) of n1 (p5.48xlarge)"
_COUNT = "DCGM_EXP_XID_ERRORS_COUNT"


def _seen(xid: int, **more: str) -> dict[str, str]:
    """DCGM exporter counts an XID for five minutes."""
    return on_gpu(_COUNT, then(absent(10), steady(1, 5), gone(90)), xid=str(xid), window_size_in_ms="300000", **more)


def _xid(alert: str, xid: int, others: dict[str, int]) -> Case:
    owner = JOB if alert == "GpuXidApplication" else {}
    return Case(
        alert,
        _seen(xid, **JOB),
        fires=13,
        clears=70,
        labels=({**GPU, "xid": str(xid), **owner},),
        summary=f"XID {xid} on {_GPU}",
        look_alikes={
            **{name: _seen(other) for name, other in others.items()},
            "the count fell back to zero": on_gpu(_COUNT, steady(0, 80), xid=str(xid)),
        },
    )


def _gauge(
    alert: str, metric: str, good: float, bad: float, fires: int, clears: int, summary: str, **near: float
) -> Case:
    """A gauge with a bad value from minute 10 to 69; `near` are values that are not bad."""
    alike = {name.replace("_", " "): on_gpu(metric, steady(value, clears)) for name, value in near.items()}
    alike["all is well"] = on_gpu(metric, steady(good, clears))
    flaps = {"one bad sample": on_gpu(metric, fault(good, bad, minutes=1))} if fires > 12 else {}
    gpu = (GPU,)
    return Case(alert, on_gpu(metric, fault(good, bad), **JOB), fires, clears, gpu, summary, {**alike, **flaps})


def _counter(alert: str, metric: str, step: float, fires: int, clears: int, summary: str, small: float) -> Case:
    """A counter that grows by `step` a minute from minute 10 to 69, and one that grows by `small`."""
    alike = {
        "large and constant": on_gpu(metric, steady(5e15, clears)),
        "little growth": on_gpu(metric, burst(small, minutes=200)),
        "reset": on_gpu(metric, then(steady(5e12, 20), steady(0, clears))),
    }
    return Case(alert, on_gpu(metric, burst(step)), fires, clears, (GPU,), summary, alike)


_NS = 60e9
"""Nanoseconds of a minute."""

_DBE = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"
_SBE = "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"
_ROWS = "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"
_NVLINK = "DCGM_FI_DEV_NVLINK_{}_ERROR_COUNT_TOTAL"


def _job_ends_with_the_error() -> dict[str, str]:
    """The job dies of the error, so the series with its labels ends before the counter has moved."""
    return {
        **on_gpu(_DBE, then(steady(0, 10), gone(150)), **JOB),
        **on_gpu(_DBE, then(absent(10), steady(1, 150))),
    }


def _beside(case: Case, name: str, metric: str) -> Case:
    """A look-alike in another metric."""
    return replace(case, look_alikes={**case.look_alikes, name: on_gpu(metric, steady(1, 80))})


CASES = (
    _xid("GpuXidReplace", 79, {"an XID of the program": 31, "a remapping was recorded": 63, "a reset helps": 48}),
    _xid("GpuXidReset", 95, {"the memory error was contained": 94, "an XID of the program": 13, "replace": 64}),
    _xid("GpuXidWarning", 63, {"the remapping failed": 64, "an XID of the program": 43}),
    _xid("GpuXidApplication", 31, {"fallen off the bus": 79, "NVLink": 74}),
    _xid("GpuXidUnknown", 999, {"known": 31, "known and fatal": 79}),
    _beside(
        _gauge("GpuRowRemapFailed", "DCGM_FI_DEV_ROW_REMAP_FAILURE", 0, 1, 12, 85, f"Row remapping failed on {_GPU}"),
        "a remapping is pending",
        "DCGM_FI_DEV_ROW_REMAP_PENDING",
    ),
    _gauge(
        "GpuSramThresholdExceeded",
        "DCGM_FI_DEV_THRESHOLD_SRM",
        0,
        1,
        12,
        85,
        f"SRAM errors exceed NVIDIA's threshold on {_GPU}",
    ),
    Case(
        "GpuDoubleBitErrors",
        _job_ends_with_the_error(),
        fires=12,
        clears=60,
        labels=(GPU,),
        summary=f"1 double-bit ECC errors on {_GPU}",
        look_alikes={
            "an old error": on_gpu(_DBE, steady(3, 100)),
            "the driver was loaded again": on_gpu(_DBE, then(steady(3, 20), steady(0, 80))),
            "a job took an idle GPU with an old error": {
                **on_gpu(_DBE, then(steady(3, 20), gone(80))),
                **on_gpu(_DBE, then(absent(20), steady(3, 80)), **JOB),
            },
        },
    ),
    Case(
        "GpuSingleBitErrorsHigh",
        on_gpu(_SBE, then(steady(50, 70), rising(53, 3, 60), steady(230, 120))),
        fires=118,
        clears=200,
        labels=(GPU,),
        summary=f"147 single-bit ECC errors in an hour on {_GPU}",
        look_alikes={"one a minute": on_gpu(_SBE, rising(1000, 1, 200)), "old errors": on_gpu(_SBE, steady(9e5, 200))},
    ),
    Case(
        "GpuSingleBitErrorsAccelerating",
        on_gpu(_SBE, then(rising(0, 0.1, 70), rising(7, 1, 60), steady(67, 200))),
        fires=138,
        clears=220,
        labels=(GPU,),
        summary=f"Single-bit ECC errors accelerate on {_GPU}",
        look_alikes={
            "a constant rate": on_gpu(_SBE, rising(0, 1, 300)),
            "one burst, once": on_gpu(_SBE, then(steady(0, 100), steady(60, 200))),
            "noise": on_gpu(_SBE, then(rising(0, 0.02, 100), rising(2, 0.1, 150))),
        },
    ),
    _gauge(
        "GpuRowRemapPending",
        "DCGM_FI_DEV_ROW_REMAP_PENDING",
        0,
        1,
        18,
        75,
        f"Row remapping waits for a reset of {_GPU}",
    ),
    Case(
        "GpuUncorrectableRowsRemapped",
        on_gpu(_ROWS, then(steady(1, 65), steady(3, 200))),
        fires=75,
        clears=140,
        labels=(GPU,),
        summary=f"2 rows remapped after uncorrectable errors on {_GPU}",
        look_alikes={
            "rows of an earlier year": on_gpu(_ROWS, steady(3, 200)),
            "a new node with old rows": on_gpu(_ROWS, then(absent(60), steady(3, 140))),
        },
    ),
    _gauge(
        "GpuSpareRowsExhausted",
        "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE",
        0,
        2,
        28,
        75,
        f"2 memory banks without a spare row on {_GPU}",
    ),
    _gauge(
        "GpuFabricManagerFailed",
        "DCGM_FI_DEV_FABRIC_MANAGER_STATUS",
        3,
        4,
        13,
        85,
        f"Fabric manager failed (status 4) on {_GPU}",
        in_progress=2,
        not_supported=0,
        success=3,
    ),
    _gauge(
        "GpuFabricUnhealthy",
        "DCGM_FI_DEV_FABRIC_HEALTH_MASK",
        0b10101010,
        0b10011010,
        13,
        85,
        f"NVLink fabric unhealthy at {_GPU}",
        all_healthy=0b10101010,
        not_applicable=0,
        configuration_right=0b0001_10101010,
    ),
    _gauge(
        "GpuRecoveryRequired",
        "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION",
        0,
        2,
        13,
        85,
        f"The driver asks for recovery action 2 on {_GPU}",
    ),
    _gauge("GpuHot", "DCGM_FI_DEV_GPU_TEMP", 70, 91, 28, 80, f"91 degrees Celsius at {_GPU}", warm=85),
    _counter(
        "GpuThermalSlowdown",
        "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS",
        0.2 * _NS,
        32,
        90,
        f"Heat reduced the clocks of {_GPU}",
        small=0.01 * _NS,
    ),
    _counter(
        "GpuPowerBrake",
        "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS",
        0.2 * _NS,
        32,
        90,
        f"The power brake reduced the clocks of {_GPU}",
        small=0.01 * _NS,
    ),
    _counter(
        "GpuReliabilityThrottled",
        "DCGM_FI_DEV_RELIABILITY_VIOLATION",
        0.2 * _NS,
        32,
        90,
        f"Board limits reduced the clocks of {_GPU}",
        small=0.01 * _NS,
    ),
    _counter("GpuNvlinkErrors", _NVLINK.format("CRC_DATA"), 60 * 200, 32, 90, f"NVLink errors at {_GPU}", small=60),
    _counter(
        "GpuPcieReplays",
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
        1,
        45,
        110,
        f"30 PCIe replays in 30 minutes at {_GPU}",
        small=0.1,
    ),
    Case(
        "GpuPcieLinkDegraded",
        {
            **on_gpu("DCGM_FI_DEV_PCIE_LINK_WIDTH", fault(16, 8)),
            **on_gpu("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", steady(16, 190)),
        },
        fires=28,
        clears=75,
        labels=(GPU,),
        summary=f"PCIe link below its maximum at {_GPU}",
        look_alikes={
            "an idle GPU saves power": {
                **on_gpu("DCGM_FI_DEV_PCIE_LINK_GEN", steady(1, 80)),
                **on_gpu("DCGM_FI_DEV_PCIE_MAX_LINK_GEN", steady(5, 80)),
                **on_gpu("DCGM_FI_DEV_GPU_UTIL", steady(0, 80)),
            },
            "no such link, as on GB200": {
                **on_gpu("DCGM_FI_DEV_PCIE_LINK_WIDTH", steady(0, 80)),
                **on_gpu("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", steady(16, 80)),
            },
            "GB200, whose GPUs are not behind PCIe alone": {
                series(metric, {**GPU, "instance_type": "p6e-gb200.36xlarge"}): steady(value, 80)
                for metric, value in (
                    ("DCGM_FI_DEV_PCIE_LINK_WIDTH", 1),
                    ("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", 16),
                    ("DCGM_FI_DEV_PCIE_LINK_GEN", 1),
                    ("DCGM_FI_DEV_PCIE_MAX_LINK_GEN", 5),
                    ("DCGM_FI_DEV_GPU_UTIL", 90),
                )
            },
        },
    ),
)
MORE_CASES = (
    _counter("GpuNvlinkErrors", _NVLINK.format("RECOVERY"), 1, 20, 95, f"NVLink errors at {_GPU}", small=0),
    Case(
        "GpuPcieLinkDegraded",
        {
            **on_gpu("DCGM_FI_DEV_PCIE_LINK_GEN", fault(5, 3)),
            **on_gpu("DCGM_FI_DEV_PCIE_MAX_LINK_GEN", steady(5, 190)),
            **on_gpu("DCGM_FI_DEV_GPU_UTIL", steady(90, 190)),
        },
        fires=28,
        clears=75,
        labels=(GPU,),
        summary=f"PCIe link below its maximum at {_GPU}",
    ),
)
"""Further ways in which an alert fires."""
