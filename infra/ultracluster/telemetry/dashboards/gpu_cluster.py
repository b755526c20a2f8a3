"""GPU health of all nodes."""

import re

from ultracluster.telemetry.dashboards.limits import (
    ANY_IS_BAD,
    ANY_IS_WORTH_A_LOOK,
    GPU_TEMPERATURE,
    NVLINK_CRC,
    PCIE_REPLAYS,
    SINGLE_BIT,
    THROTTLED,
)
from ultracluster.telemetry.dashboards.panels import (
    TO_NODE,
    Bars,
    Board,
    Column,
    Limits,
    Lines,
    Matrix,
    Query,
    Row,
    Table,
    Value,
)
from ultracluster.telemetry.xids import XIDS

XID_COLOURS = {"critical": "red", "warning": "orange", "info": "text"}
MEANINGS = tuple((str(xid.code), f"{xid.code}  {re.split('[:;]', xid.meaning)[0]}") for xid in XIDS.values())

NOW = Row(
    "",
    (
        Value(
            title="GPUs reporting",
            query=Query("sum(node:gpus:count{groups})"),
            help="GPUs that DCGM exporter reports on.",
            width=3,
        ),
        Value(
            title="GPUs missing",
            query=Query(
                'sum(count by (instance_type) (up{groups, job="node"}) * on (instance_type) group_left'
                " instance_type:gpus:expected) - (sum(node:gpus:count{groups}) or vector(0))"
            ),
            help="GPUs that the instance types have, less those that report. Every node with a missing GPU needs"
            " replacing.",
            limits=ANY_IS_BAD,
            width=3,
        ),
        Value(
            title="GPUs with an XID, 1 h",
            query=Query(
                "count(max by (node, gpu) (max_over_time(DCGM_EXP_XID_ERRORS_COUNT{groups}[1h])) > 0) or vector(0)"
            ),
            help="GPUs on which the driver reported any XID in the last hour, those of faulty programs (13, 31,"
            " 43) among them.",
            limits=ANY_IS_WORTH_A_LOOK,
            width=3,
        ),
        Value(
            title="Double-bit ECC",
            query=Query("count(max by (node, gpu) (DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{groups}) > 0) or vector(0)"),
            help="GPUs with uncorrected memory errors since their driver was loaded. One error ends the job.",
            limits=ANY_IS_BAD,
            course=False,
            width=3,
        ),
        Value(
            title="Row remap failures",
            query=Query("sum(DCGM_FI_DEV_ROW_REMAP_FAILURE{groups})"),
            help="GPUs without a spare row for a faulty one. Replace the node.",
            limits=ANY_IS_BAD,
            course=False,
            width=3,
        ),
        Value(
            title="Row remaps pending",
            query=Query("sum(DCGM_FI_DEV_ROW_REMAP_PENDING{groups})"),
            help="GPUs that remap a row at their next reset. Reset them after the job.",
            limits=ANY_IS_WORTH_A_LOOK,
            course=False,
            width=3,
        ),
        Value(
            title="Hottest GPU",
            query=Query("max(DCGM_FI_DEV_GPU_TEMP{groups})"),
            help="Highest GPU temperature.",
            unit="celsius",
            decimals=0,
            limits=GPU_TEMPERATURE,
            course=False,
            width=3,
        ),
        Value(
            title="GPUs slowed by heat",
            query=Query("count(rate(DCGM_FI_DEV_THERMAL_VIOLATION{groups}[15m]) / 1e9 > 0.05) or vector(0)"),
            help="GPUs that spent more than 5 % of the last 15 minutes below their clocks because of heat.",
            limits=ANY_IS_WORTH_A_LOOK,
            course=False,
            width=3,
        ),
    ),
)

XID = Row(
    "XID: what the driver reported",
    (
        Table(
            title="Errors by GPU, last 24 h",
            help="XIDs that DCGM exporter counted. Red: critical. Orange: look at it after the job. The others come"
            " from programs. Actions are in the runbook of the alert.",
            labels=(("node", "Node"), ("gpu", "GPU"), ("xid", "XID")),
            columns=(
                Column(
                    "Most in 5 min",
                    "max by (node, gpu, xid) (max_over_time(DCGM_EXP_XID_ERRORS_COUNT{groups}[24h])) > 0",
                    limits=ANY_IS_WORTH_A_LOOK,
                    decimals=0,
                ),
            ),
            sort="Most in 5 min",
            links=(("Node", TO_NODE),),
            names=(("XID", MEANINGS),),
            colours=(("XID", tuple((str(xid.code), XID_COLOURS[xid.severity]) for xid in XIDS.values())),),
            width=12,
            height=9,
        ),
        Lines(
            title="XIDs in 5 minutes, by node",
            help="Errors in a sliding window of 5 minutes, so 0 five minutes after the last error.",
            queries=(Query("sum by (node, xid) (DCGM_EXP_XID_ERRORS_COUNT{groups}) > 0", "{{node}} XID {{xid}}"),),
            calculations=("max",),
            bars=True,
            decimals=0,
            link=TO_NODE,
            width=12,
            height=9,
        ),
    ),
)

MEMORY = Row(
    "Memory: ECC and row remapping",
    (
        Lines(
            title="Single-bit ECC errors per hour, ten worst GPUs",
            help="Corrected errors. A GPU that accelerates fails next: drain it after the job.",
            queries=(
                Query(
                    "topk(10, sum by (node, gpu) (increase(DCGM_FI_DEV_ECC_SBE_VOL_TOTAL{groups}[1h])) >= 1)",
                    "{{node}} GPU {{gpu}}",
                ),
            ),
            limits=SINGLE_BIT,
            decimals=0,
            link=TO_NODE,
        ),
        Lines(
            title="Remapped rows, by node",
            help="Rows replaced by spares since the GPU was made. Uncorrectable ones that rise mean a failing"
            " stack of HBM.",
            queries=(
                Query("sum by (node) (DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS{groups}) > 0", "{{node}} uncorrectable"),
                Query("sum by (node) (DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS{groups}) > 0", "{{node}} correctable"),
            ),
            calculations=("min", "lastNotNull"),
            decimals=0,
            link=TO_NODE,
        ),
        Table(
            title="GPUs to reset or replace",
            help="State of row remapping, spare rows and ECC of each GPU that is not clean.",
            labels=(("node", "Node"), ("gpu", "GPU")),
            columns=(
                Column(
                    "Double-bit",
                    "sum by (node, gpu) (DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{groups}) > 0",
                    limits=ANY_IS_BAD,
                    display="colour",
                ),
                Column(
                    "Remap pending",
                    "max by (node, gpu) (DCGM_FI_DEV_ROW_REMAP_PENDING{groups}) > 0",
                    limits=ANY_IS_WORTH_A_LOOK,
                    display="colour",
                ),
                Column(
                    "Remap failed",
                    "max by (node, gpu) (DCGM_FI_DEV_ROW_REMAP_FAILURE{groups}) > 0",
                    limits=ANY_IS_BAD,
                    display="colour",
                ),
                Column(
                    "SRAM threshold",
                    "max by (node, gpu) (DCGM_FI_DEV_THRESHOLD_SRM{groups}) > 0",
                    limits=ANY_IS_BAD,
                    display="colour",
                ),
            ),
            sort="Remap pending",
            links=(("Node", TO_NODE),),
        ),
    ),
)

HEAT = Row(
    "Heat and power",
    (
        Matrix(
            title="Temperature of each GPU (°C)",
            help="GPU core temperature now.",
            query=Query("max by (node, gpu) (DCGM_FI_DEV_GPU_TEMP{groups})"),
            rows="node",
            columns="gpu",
            link=TO_NODE,
            decimals=0,
            scale=(
                (0, "#27425f"),
                (45, "#2b6a77"),
                (60, "#4f7d4a"),
                (70, "#a07f2e"),
                (80, "#b5562a"),
                (85, "#b3263a"),
            ),
            width=10,
            height=14,
        ),
        Lines(
            title="Time lost to heat, ten worst GPUs",
            help="Share of time below the clocks because of temperature. More than 5 % slows the whole job:"
            " check the node.",
            queries=(
                Query(
                    "topk(10, rate(DCGM_FI_DEV_THERMAL_VIOLATION{groups}[$__rate_interval]) / 1e9 > 0.001)",
                    "{{node}} GPU {{gpu}}",
                ),
            ),
            unit="percentunit",
            limits=THROTTLED,
            link=TO_NODE,
            width=14,
            height=7,
        ),
        Lines(
            title="Time lost to the power limit",
            help="Share of time below the clocks because of the power limit. Usual at full load on all GPUs alike.",
            queries=(
                Query("max(rate(DCGM_FI_DEV_POWER_VIOLATION{groups}[$__rate_interval])) / 1e9", "highest GPU"),
                Query("avg(rate(DCGM_FI_DEV_POWER_VIOLATION{groups}[$__rate_interval])) / 1e9", "mean"),
            ),
            unit="percentunit",
            width=7,
            height=7,
        ),
        Bars(
            title="Hottest HBM, by node",
            help="Highest temperature of the memory of a node's GPUs.",
            query=Query("topk(8, max by (node) (DCGM_FI_DEV_MEMORY_TEMP{groups}))", "{{node}}"),
            unit="celsius",
            decimals=0,
            maximum=110,
            limits=Limits(warning=95),
            width=7,
            height=7,
        ),
    ),
)

LINKS = Row(
    "NVLink and PCIe",
    (
        Lines(
            title="NVLink errors per second, by node",
            help="CRC errors of flits and data, replays and recoveries. Any that last point at a link or switch.",
            queries=(
                Query(
                    "sum by (node) (rate(DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL{groups}[$__rate_interval])) > 0",
                    "{{node}} CRC flit",
                ),
                Query(
                    "sum by (node) (rate(DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL{groups}[$__rate_interval])) > 0",
                    "{{node}} CRC data",
                ),
                Query(
                    "sum by (node) (rate(DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL{groups}[$__rate_interval])) > 0",
                    "{{node}} replay",
                ),
                Query(
                    "sum by (node) (rate(DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL{groups}[$__rate_interval])) > 0",
                    "{{node}} recovery",
                ),
            ),
            limits=NVLINK_CRC,
            link=TO_NODE,
        ),
        Lines(
            title="PCIe replays in 30 minutes, by node",
            help="Packets sent again. More than 5 in 30 minutes mean a bad connection.",
            queries=(Query("sum by (node) (increase(DCGM_FI_DEV_PCIE_REPLAY_COUNTER{groups}[30m])) > 0", "{{node}}"),),
            limits=PCIE_REPLAYS,
            decimals=0,
            link=TO_NODE,
        ),
        Lines(
            title="GPUs with a degraded PCIe link or fabric",
            help="PCIe links narrower than the slot allows, and GPUs that the fabric manager did not bring up.",
            queries=(
                Query(
                    "count(max by (node, gpu) (DCGM_FI_DEV_PCIE_LINK_WIDTH{groups})"
                    " < max by (node, gpu) (DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH{groups})) or vector(0)",
                    "PCIe link below maximum width",
                ),
                Query("count(DCGM_FI_DEV_FABRIC_MANAGER_STATUS{groups} >= 4) or vector(0)", "fabric manager failed"),
            ),
            limits=ANY_IS_BAD,
            decimals=0,
            calculations=("max", "lastNotNull"),
        ),
    ),
)

BOARD = Board(
    slug="gpu-cluster",
    title="GPU health - cluster",
    question="Which GPUs are failing, and is it memory, heat, a link or the driver?",
    rows=(NOW, XID, MEMORY, HEAT, LINKS),
    period="24h",
    tags=("gpu",),
)
