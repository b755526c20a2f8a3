"""Lustre and its S3 links, and OpenZFS."""

from dataclasses import replace

from ultracluster.telemetry.dashboards.limits import ANY_IS_BAD, BUSY_PERCENT, FILL
from ultracluster.telemetry.dashboards.panels import TO_NODE, Board, CloudWatch, Limits, Lines, Query, Row, Value

SYSTEM = ("FileSystemId", "$file_system")
SERVERS = (SYSTEM, ("FileServer", "*"))

NOW = Row(
    "",
    (
        Value(
            title="Space in use",
            query=Query("1 - min(lustre_available_kibibytes{groups} / lustre_capacity_kibibytes{groups})"),
            help="Share of the file system that is full. Writes fail at 100 %, and slow down before.",
            unit="percentunit",
            decimals=0,
            limits=FILL,
        ),
        Value(
            title="Full in",
            query=Query(
                "min((lustre_available_kibibytes{groups} > 0) / (-deriv(lustre_available_kibibytes{groups}[6h]) > 0))"
            ),
            help="Time until the file system is full at the growth of the last six hours.",
            unit="dtdurations",
            limits=Limits(warning=86400, critical=21600, above=False),
            course=False,
        ),
        Value(
            title="Read by the nodes",
            query=Query("sum(node:lustre_read_bytes:rate{groups})"),
            help="All clients together.",
            unit="Bps",
        ),
        Value(
            title="Written by the nodes",
            query=Query("sum(node:lustre_write_bytes:rate{groups})"),
            help="All clients together.",
            unit="Bps",
        ),
        Value(
            title="Nodes on TCP",
            query=Query(
                'count(count by (node) (lustre_import_network{groups, network=~"tcp.*", server=~".*OST.*"}))'
                " or vector(0)"
            ),
            help="Clients that fell back to TCP: a tenth of the throughput of EFA. On a file system without EFA"
            " all nodes use TCP.",
            limits=Limits(warning=1),
        ),
        Value(
            title="Connections lost",
            query=Query("count(lustre_import_full{groups} == 0) or vector(0)"),
            help="Connections of nodes to object or metadata servers that are neither FULL nor idle.",
            limits=ANY_IS_BAD,
        ),
    ),
)

SPACE = Row(
    "Space and throughput",
    (
        Lines(
            title="Space in use, by mount",
            help="By mount, as the clients see it.",
            queries=(
                Query(
                    "1 - max by (target) (lustre_available_kibibytes{groups}) / max by (target)"
                    " (lustre_capacity_kibibytes{groups})",
                    "{{target}}",
                ),
            ),
            unit="percentunit",
            maximum=1,
            limits=FILL,
        ),
        Lines(
            title="Throughput of all nodes",
            help="Bytes per second as the clients see them. Steps in writes are checkpoints.",
            queries=(
                Query("sum(node:lustre_read_bytes:rate{groups})", "read"),
                Query("sum(node:lustre_write_bytes:rate{groups})", "written"),
            ),
            unit="Bps",
        ),
        Lines(
            title="Throughput, eight busiest nodes",
            help="Reads and writes. One client gets at most 700 Gbps over EFA and 100 Gbps over TCP.",
            queries=(
                Query(
                    "topk(8, sum by (node) (node:lustre_read_bytes:rate{groups} +"
                    " node:lustre_write_bytes:rate{groups}))",
                    "{{node}}",
                ),
            ),
            unit="Bps",
            link=TO_NODE,
        ),
        Lines(
            title="Free space of storage targets",
            help="FSx spreads files over storage targets. A full one fails writes although others have space.",
            queries=(
                CloudWatch("AWS/FSx", "FreeDataStorageCapacity", "Minimum", (SYSTEM,), "fullest target"),
                CloudWatch("AWS/FSx", "FreeDataStorageCapacity", "Average", (SYSTEM,), "mean of the targets"),
            ),
            unit="decbytes",
            calculations=("min", "lastNotNull"),
        ),
        Lines(
            title="File operations of the nodes",
            help="Operations per second of all clients, the six most frequent kinds.",
            queries=(
                Query(
                    "topk(6, sum by (operation) (rate(lustre_stats_total{groups}[$__rate_interval])))", "{{operation}}"
                ),
            ),
            unit="ops",
        ),
        Lines(
            title="LNet messages, by network",
            help="Messages on tcp beside efa are metadata; many of them mean that clients fell back to TCP.",
            queries=(
                Query(
                    "sum by (network) (rate(lustre_lnet_receive_messages_total{groups}[$__rate_interval]))",
                    "{{network}} received",
                ),
                Query(
                    "sum by (network) (rate(lustre_lnet_send_messages_total{groups}[$__rate_interval]))",
                    "{{network}} sent",
                ),
            ),
            unit="ops",
        ),
    ),
)

SERVER = Row(
    "File servers, from CloudWatch",
    (
        Lines(
            title="Disk throughput in use, by server",
            help="Share of the provisioned disk throughput of each object server.",
            queries=(
                CloudWatch(
                    "AWS/FSx", "FileServerDiskThroughputUtilization", "Maximum", SERVERS, "${PROP('Dim.FileServer')}"
                ),
            ),
            unit="percent",
            maximum=100,
            limits=BUSY_PERCENT,
        ),
        Lines(
            title="Network throughput in use, by server",
            help="Share of the network throughput of each object server.",
            queries=(
                CloudWatch("AWS/FSx", "NetworkThroughputUtilization", "Maximum", SERVERS, "${PROP('Dim.FileServer')}"),
            ),
            unit="percent",
            maximum=100,
            limits=BUSY_PERCENT,
        ),
        Lines(
            title="CPU of the metadata server",
            help="A metadata server at its limit makes all file operations slow: raise metadata_iops.",
            queries=(CloudWatch("AWS/FSx", "CPUUtilization", "Maximum", SERVERS, "${PROP('Dim.FileServer')}"),),
            unit="percent",
            maximum=100,
            limits=BUSY_PERCENT,
        ),
    ),
)

LINKS = Row(
    "S3 links",
    (
        Lines(
            title="Oldest message waiting, by direction",
            help="How far S3 is behind the file system (AutoExport) or the file system behind S3 (AutoImport).",
            queries=(
                CloudWatch(
                    "AWS/FSx",
                    "AgeOfOldestQueuedMessage",
                    "Maximum",
                    (SYSTEM, ("Publisher", "*")),
                    "${PROP('Dim.Publisher')}",
                ),
            ),
            unit="s",
            limits=Limits(900, 3600),
            width=12,
        ),
        Lines(
            title="Renames in linked buckets",
            help="Each rename of an exported file is a copy and a delete in S3.",
            queries=(
                CloudWatch(
                    "AWS/FSx",
                    "RepositoryRenameOperations",
                    "Sum",
                    (SYSTEM, ("Publisher", "*")),
                    "${PROP('Dim.Publisher')}",
                ),
            ),
            width=12,
        ),
    ),
)

OF_EACH = ((("FileSystemId", "*"),), "${PROP('Dim.FileSystemId')}")

OPENZFS = Row(
    "OpenZFS: homes and further file systems",
    (
        Lines(
            title="OpenZFS, space in use",
            help="Bytes in use of each OpenZFS file system of the account, compressed. An alarm goes off at 80 %.",
            queries=(CloudWatch("AWS/FSx", "UsedStorageCapacity", "Average", *OF_EACH),),
            unit="decbytes",
            width=12,
        ),
        Lines(
            title="Clients, by file system of FSx",
            help="Clients of OpenZFS over NFS, and of Lustre: nodes, and on EKS nodes with pods that mount it.",
            queries=(CloudWatch("AWS/FSx", "ClientConnections", "Maximum", *OF_EACH),),
            width=12,
        ),
    ),
)


def board(*, openzfs: bool) -> Board:
    """The dashboard, with OpenZFS where the environment has it."""
    return replace(BOARD, rows=(*BOARD.rows, OPENZFS)) if openzfs else BOARD


BOARD = Board(
    slug="storage",
    title="Lustre and S3 links",
    question="Will a checkpoint be written in time, and is there space for it?",
    rows=(NOW, SPACE, SERVER, LINKS),
    variables=("node_group", "file_system"),
    period="24h",
    tags=("storage",),
)
