"""GPU health of one node."""

from ultracluster.telemetry.dashboards.fabric import ERRORS
from ultracluster.telemetry.dashboards.limits import (
    ANY_IS_BAD,
    ANY_IS_WORTH_A_LOOK,
    DISK,
    EFA_EVENTS,
    GPU_TEMPERATURE,
    SINGLE_BIT,
    THROTTLED,
)
from ultracluster.telemetry.dashboards.panels import TO_WORK, Board, Column, Limits, Lines, Query, Row, Table, Value

GPU = "GPU {{gpu}}"
NO_LIMITS = Limits()


def _by_gpu(
    title: str, expr: str, help: str, unit: str, *, limits: Limits = NO_LIMITS, maximum: float | None = None
) -> Lines:
    """A line for each GPU of the node."""
    return Lines(
        title=title, help=help, queries=(Query(expr, GPU),), unit=unit, limits=limits, maximum=maximum, calculations=()
    )


NOW = Row(
    "",
    (
        Value(
            title="GPUs reporting",
            query=Query("count(DCGM_FI_DEV_GPU_TEMP{node})"),
            help="GPUs that DCGM exporter reports on.",
            width=3,
        ),
        Value(
            title="EFA devices up",
            query=Query("count(node_amazonefa_port_state{node} == 4)"),
            help="EFA devices whose port is active.",
            width=3,
        ),
        Value(
            title="Up for",
            query=Query("time() - max(node_boot_time_seconds{node})"),
            help="Time since the node booted.",
            unit="dtdurations",
            course=False,
            width=3,
        ),
        Value(
            title="Power of the GPUs",
            query=Query("sum(DCGM_FI_DEV_POWER_USAGE{node})"),
            help="Power of all GPUs of the node.",
            unit="watt",
            width=3,
        ),
        Value(
            title="Hottest GPU",
            query=Query("max(DCGM_FI_DEV_GPU_TEMP{node})"),
            help="Highest GPU temperature of the node.",
            unit="celsius",
            decimals=0,
            limits=GPU_TEMPERATURE,
            width=3,
        ),
        Value(
            title="Tensor activity",
            query=Query("avg(DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{node})"),
            help="Share of cycles in which tensor cores work, mean of the GPUs.",
            unit="percentunit",
            decimals=0,
            width=3,
        ),
        Value(
            title="XIDs, 24 h",
            query=Query("sum(max_over_time(DCGM_EXP_XID_ERRORS_COUNT{node}[24h])) or vector(0)"),
            help="Most XIDs within any 5 minutes of the last 24 hours, summed over GPUs and codes.",
            limits=ANY_IS_WORTH_A_LOOK,
            decimals=0,
            width=3,
        ),
        Value(
            title="Double-bit ECC",
            query=Query("sum(max by (gpu) (DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{node}))"),
            help="Uncorrected memory errors since the driver was loaded.",
            limits=ANY_IS_BAD,
            decimals=0,
            width=3,
        ),
    ),
)

ALERTS = Row(
    "What fires on this node",
    (
        Table(
            title="Alerts of the node",
            help="Critical and warning alerts that fire; docs/runbooks has a page for each. No data: none fires.",
            labels=(
                ("severity", "Severity"),
                ("alertname", "Alert"),
                ("gpu", "GPU"),
                ("team", "Team"),
                ("workload", "Job"),
            ),
            columns=(
                Column(
                    "For",
                    "time() - min by (severity, alertname, gpu, team, workload) (ALERTS_FOR_STATE{node} and"
                    ' ignoring (alertstate) ALERTS{node, alertstate="firing", severity=~"critical|warning"})',
                    "dtdurations",
                ),
            ),
            sort="Severity",
            descending=False,
            colours=(("Severity", (("critical", "red"), ("warning", "orange"))),),
            links=(("Job", TO_WORK),),
            width=24,
            height=5,
        ),
    ),
)

WORK = Row(
    "Work",
    (
        _by_gpu(
            "Tensor-core activity",
            "max by (gpu) (DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{node})",
            "Share of cycles in which tensor cores work.",
            "percentunit",
            maximum=1,
        ),
        _by_gpu(
            "SM activity",
            "max by (gpu) (DCGM_FI_PROF_SM_ACTIVE{node})",
            "Share of cycles in which an SM has a warp.",
            "percentunit",
            maximum=1,
        ),
        _by_gpu(
            "DRAM activity",
            "max by (gpu) (DCGM_FI_PROF_DRAM_ACTIVE{node})",
            "Share of cycles in which HBM sends or receives data.",
            "percentunit",
            maximum=1,
        ),
        _by_gpu(
            "GPU memory in use",
            "max by (gpu) (DCGM_FI_DEV_FB_USED{node}) * 1024 * 1024",
            "Memory that programs hold.",
            "bytes",
        ),
        _by_gpu(
            "NVLink, sent and received",
            "max by (gpu) (DCGM_FI_PROF_NVLINK_TX_BYTES{node} + DCGM_FI_PROF_NVLINK_RX_BYTES{node})",
            "Traffic of all NVLinks of a GPU.",
            "Bps",
        ),
        _by_gpu(
            "PCIe, sent and received",
            "max by (gpu) (DCGM_FI_PROF_PCIE_TX_BYTES{node} + DCGM_FI_PROF_PCIE_RX_BYTES{node})",
            "Traffic between GPU and host, EFA included.",
            "Bps",
        ),
    ),
)

HEALTH = Row(
    "Health",
    (
        _by_gpu(
            "GPU temperature",
            "max by (gpu) (DCGM_FI_DEV_GPU_TEMP{node})",
            "Temperature of the GPU core.",
            "celsius",
            limits=GPU_TEMPERATURE,
        ),
        _by_gpu(
            "HBM temperature",
            "max by (gpu) (DCGM_FI_DEV_MEMORY_TEMP{node})",
            "Temperature of the GPU's memory.",
            "celsius",
            limits=Limits(warning=95),
        ),
        _by_gpu("Power", "max by (gpu) (DCGM_FI_DEV_POWER_USAGE{node})", "Power of each GPU.", "watt"),
        _by_gpu(
            "SM clock",
            "max by (gpu) (DCGM_FI_DEV_SM_CLOCK{node}) * 1e6",
            "A GPU below the others is throttled: see the time lost beside.",
            "hertz",
        ),
        _by_gpu(
            "Time lost to heat",
            "max by (gpu) (rate(DCGM_FI_DEV_THERMAL_VIOLATION{node}[$__rate_interval])) / 1e9",
            "Share of time below the clocks because of temperature.",
            "percentunit",
            limits=THROTTLED,
        ),
        _by_gpu(
            "Single-bit ECC errors per hour",
            "sum by (gpu) (increase(DCGM_FI_DEV_ECC_SBE_VOL_TOTAL{node}[1h]))",
            "Corrected memory errors.",
            "short",
            limits=SINGLE_BIT,
        ),
        Table(
            title="GPUs of the node",
            help="Counters since the driver was loaded, and what uses each GPU.",
            labels=(("gpu", "GPU"), ("team", "Team"), ("workload", "Job")),
            columns=(
                Column(
                    "Tensor",
                    "max by (gpu, team, workload) (DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{node})",
                    "percentunit",
                    decimals=0,
                    display="gauge",
                    maximum=1,
                ),
                Column(
                    "Temperature",
                    "max by (gpu, team, workload) (DCGM_FI_DEV_GPU_TEMP{node})",
                    "celsius",
                    GPU_TEMPERATURE,
                    "colour",
                    decimals=0,
                ),
                Column("Power", "max by (gpu, team, workload) (DCGM_FI_DEV_POWER_USAGE{node})", "watt", decimals=0),
                Column(
                    "Single-bit",
                    "max by (gpu, team, workload) (DCGM_FI_DEV_ECC_SBE_VOL_TOTAL{node})",
                    limits=SINGLE_BIT,
                    display="colour",
                ),
                Column(
                    "Double-bit",
                    "max by (gpu, team, workload) (DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{node})",
                    limits=ANY_IS_BAD,
                    display="colour",
                ),
                Column(
                    "Remapped",
                    "max by (gpu, team, workload) (DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS{node})",
                    limits=ANY_IS_WORTH_A_LOOK,
                    display="colour",
                ),
                Column("PCIe replays", "max by (gpu, team, workload) (DCGM_FI_DEV_PCIE_REPLAY_COUNTER{node})"),
            ),
            sort="Single-bit",
            width=16,
            height=10,
        ),
        Lines(
            title="XIDs in 5 minutes",
            help="What the driver reported, in a sliding window of 5 minutes.",
            queries=(Query("sum by (gpu, xid) (DCGM_EXP_XID_ERRORS_COUNT{node}) > 0", "GPU {{gpu}} XID {{xid}}"),),
            decimals=0,
            calculations=("max",),
            bars=True,
            height=10,
        ),
    ),
)

HOST = Row(
    "Host",
    (
        Lines(
            title="CPU in use",
            help="Share of all CPUs that is not idle.",
            queries=(Query('1 - avg(rate(node_cpu_seconds_total{node, mode="idle"}[$__rate_interval]))', "CPU"),),
            unit="percentunit",
            maximum=1,
        ),
        Lines(
            title="Memory in use",
            help="Memory that cannot be had without swapping; data loaders and page cache pressure show here.",
            queries=(
                Query("node_memory_MemTotal_bytes{node} - node_memory_MemAvailable_bytes{node}", "in use"),
                Query("node_memory_MemTotal_bytes{node}", "installed"),
            ),
            unit="bytes",
        ),
        Lines(
            title="EFA traffic",
            help="All EFA devices of the node together.",
            queries=(
                Query("8 * sum(rate(node_amazonefa_rx_bytes{node}[$__rate_interval]))", "received"),
                Query("8 * sum(rate(node_amazonefa_tx_bytes{node}[$__rate_interval]))", "sent"),
            ),
            unit="bps",
        ),
        Lines(
            title="Local NVMe",
            help="Reads and writes of the local disks.",
            queries=(
                Query("sum(rate(node_disk_read_bytes_total{node}[$__rate_interval]))", "read"),
                Query("sum(rate(node_disk_written_bytes_total{node}[$__rate_interval]))", "written"),
            ),
            unit="Bps",
        ),
        Lines(
            title="Space in use, by mount",
            help="Local file systems. A full root volume stops the container runtime.",
            queries=(
                Query("1 - node_filesystem_avail_bytes{node} / node_filesystem_size_bytes{node}", "{{mountpoint}}"),
            ),
            unit="percentunit",
            maximum=1,
            limits=DISK,
        ),
        Lines(
            title="Packets over an allowance of the instance",
            help="Packets that EC2 queued or dropped because the instance exceeded its bandwidth, packet or"
            " connection allowance.",
            queries=(
                Query("rate(node_ethtool_bw_in_allowance_exceeded{node}[$__rate_interval])", "{{device}} bandwidth in"),
                Query(
                    "rate(node_ethtool_bw_out_allowance_exceeded{node}[$__rate_interval])", "{{device}} bandwidth out"
                ),
                Query("rate(node_ethtool_pps_allowance_exceeded{node}[$__rate_interval])", "{{device}} packets"),
            ),
            unit="pps",
        ),
        Lines(
            title="EFA errors in 5 minutes",
            help="Of all EFA devices of the node. A few are normal. One node: its devices, or the peer that its job"
            " waits for. Many nodes: the network.",
            queries=tuple(
                Query(f"300 * sum(rate(node_amazonefa_{counter}{{node}}[$__rate_interval]))", title.lower())
                for title, counter in ERRORS
            ),
            decimals=0,
            limits=EFA_EVENTS,
            width=24,
            height=7,
        ),
    ),
)

BOARD = Board(
    slug="gpu-node",
    title="GPU health - node",
    question="What is wrong with this node, and since when?",
    rows=(NOW, ALERTS, WORK, HEALTH, HOST),
    variables=("node",),
    period="24h",
    tags=("gpu",),
)
