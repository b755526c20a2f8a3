"""EFA and NCCL."""

from collections.abc import Sequence

from ultracluster.telemetry.dashboards.limits import ANY_IS_BAD, EFA_EVENTS, EFA_RETRANSMITS
from ultracluster.telemetry.dashboards.panels import TO_NODE, Board, Column, Lines, Query, Row, Table, Value

LINE_RATE = "node:efa_rx_line_rate:ratio{groups}"
"""Received by each node, over the line rate of its instance type."""
ERRORS = (
    ("Timeouts", "retrans_timeout_events"),
    ("Unresponsive", "unresponsive_remote_events"),
    ("Impaired", "impaired_remote_conn_events"),
    ("Dropped", "rx_drops"),
    ("Read errors", "rdma_read_wr_err"),
    ("Write errors", "rdma_write_wr_err"),
)


def _devices_missing(efa_groups: Sequence[str]) -> Value:
    """A type that can have EFA devices has none in a node group without EFA."""
    nodes = f'up{{groups, job="node", node_group=~"{"|".join(efa_groups)}"}}'
    expected = (
        f"count by (instance_type) ({nodes}) * on (instance_type) group_left () instance_type:efa_devices:expected"
    )
    return Value(
        title="EFA devices missing",
        query=Query(f"sum({expected}) - (count(node_amazonefa_port_state{{groups}} == 4) or vector(0))"),
        help="Devices that the instance types of node groups with EFA have, less those whose port is active.",
        limits=ANY_IS_BAD,
    )


def _now(efa_groups: Sequence[str]) -> Row:
    return Row(
        "",
        (
            Value(
                title="EFA traffic",
                query=Query("sum(node:efa_rx_bits:rate{groups})"),
                help="Received by all nodes.",
                unit="bps",
            ),
            Value(
                title="Busiest node against line rate",
                query=Query(f"max({LINE_RATE})"),
                help="Received by the node with most traffic, over the line rate of its instance type.",
                unit="percentunit",
                decimals=0,
            ),
            _devices_missing(efa_groups),
            Value(
                title="Retransmitted, 5 min",
                query=Query("300 * sum(rate(node_amazonefa_retrans_pkts{groups}[$__rate_interval]))"),
                help="Packets that EFA sent again.",
                decimals=0,
                limits=EFA_RETRANSMITS,
            ),
            Value(
                title="Remote nodes unresponsive, 5 min",
                query=Query("300 * sum(rate(node_amazonefa_unresponsive_remote_events{groups}[$__rate_interval]))"),
                help="Times that a node gave up on another.",
                decimals=0,
                limits=EFA_EVENTS,
            ),
            Value(
                title="NCCL bus bandwidth, all-reduce",
                query=Query('avg(nccl_bus_bandwidth_gbs{groups, collective="AllReduce"}) * 1e9'),
                help="Mean of the communicators that NCCL Inspector reports.",
                unit="Bps",
            ),
        ),
    )


TRAFFIC = Row(
    "Traffic",
    (
        Lines(
            title="EFA received, eight busiest nodes",
            help="All EFA devices of a node together.",
            queries=(Query("topk(8, sum by (node) (node:efa_rx_bits:rate{groups}))", "{{node}}"),),
            unit="bps",
            link=TO_NODE,
            width=12,
        ),
        Lines(
            title="EFA against line rate: busiest, mean and quietest node",
            help="Nodes without traffic are left out. Nodes of one job lie close together; one far below is cut off.",
            queries=(
                Query(f"max({LINE_RATE})", "busiest", "blue"),
                Query(f"avg({LINE_RATE} > 0.005)", "mean", "green"),
                Query(f"min({LINE_RATE} > 0.005)", "quietest", "orange"),
            ),
            unit="percentunit",
            width=12,
        ),
        Lines(
            title="RDMA and send traffic",
            help="What NCCL uses: RDMA writes with most versions of the plugin.",
            queries=(
                Query("8 * sum(rate(node_amazonefa_rdma_write_bytes{groups}[$__rate_interval]))", "RDMA write"),
                Query("8 * sum(rate(node_amazonefa_rdma_read_bytes{groups}[$__rate_interval]))", "RDMA read"),
                Query("8 * sum(rate(node_amazonefa_send_bytes{groups}[$__rate_interval]))", "send"),
            ),
            unit="bps",
            stack=True,
            width=12,
        ),
        Lines(
            title="Active EFA devices of a node: fewest and most",
            help="Of the chosen node groups. Where the lines part, a node has lost a device, or instance types differ.",
            queries=(
                Query("min(count by (node) (node_amazonefa_port_state{groups} == 4))", "fewest", "orange"),
                Query("max(count by (node) (node_amazonefa_port_state{groups} == 4))", "most", "blue"),
            ),
            decimals=0,
            calculations=("min", "lastNotNull"),
            width=12,
        ),
    ),
)

FAULTS = Row(
    "Errors",
    (
        Lines(
            title="Packets retransmitted in 5 minutes, ten worst nodes",
            help="Loss in the fabric. One node: its device or cable. Many at once: a switch, or congestion.",
            queries=(
                Query(
                    "topk(10, 300 * sum by (node) (rate(node_amazonefa_retrans_pkts{groups}[$__rate_interval])) > 0)",
                    "{{node}}",
                ),
            ),
            decimals=0,
            limits=EFA_RETRANSMITS,
            link=TO_NODE,
            width=12,
        ),
        Table(
            title="Errors in the last 24 hours, by node",
            help="Growth of EFA's counters: retransmit timeouts, unresponsive and impaired remote nodes, packets"
            " received and dropped,"
            " failed RDMA reads and writes. A few are normal; orange: more than the alert allows in five minutes."
            " Nodes without errors are not listed.",
            labels=(("node", "Node"),),
            columns=tuple(
                Column(
                    title,
                    f"sum by (node) (increase(node_amazonefa_{counter}{{groups}}[24h])) > 0",
                    decimals=0,
                    limits=EFA_EVENTS,
                    display="colour",
                )
                for title, counter in ERRORS
            ),
            sort="Timeouts",
            links=(("Node", TO_NODE),),
            width=12,
        ),
    ),
)

NCCL = Row(
    "NCCL, as NCCL Inspector sees it",
    (
        Lines(
            title="Bus bandwidth, by collective",
            help="Mean over the communicators. A drop with unchanged EFA errors points at a straggler.",
            queries=(Query("avg by (collective) (nccl_bus_bandwidth_gbs{groups}) * 1e9", "{{collective}}"),),
            unit="Bps",
        ),
        Lines(
            title="Lowest bus bandwidth of all-reduce, by job",
            help="The slowest rank of each job: all others wait for it.",
            queries=(
                Query(
                    'min by (slurm_job_id) (nccl_bus_bandwidth_gbs{groups, collective="AllReduce"}) * 1e9',
                    "{{slurm_job_id}}",
                ),
            ),
            unit="Bps",
        ),
        Lines(
            title="Time of a collective, slowest rank",
            help="Longest mean time of one operation.",
            queries=(
                Query("max by (collective) (nccl_collective_exec_time_microseconds{groups}) / 1e6", "{{collective}}"),
            ),
            unit="s",
        ),
    ),
)


def board(efa_groups: Sequence[str]) -> Board:
    """The dashboard. `efa_groups` are the node groups whose nodes have EFA."""
    return Board(
        slug="fabric",
        title="EFA and NCCL",
        question="Does the network carry what the jobs need, and who loses packets?",
        rows=(_now(efa_groups), TRAFFIC, FAULTS, NCCL),
        period="24h",
        tags=("network",),
    )
