"""The whole fleet on one screen."""

from ultracluster.telemetry.dashboards.limits import ANY_IS_BAD, ANY_IS_WORTH_A_LOOK, FILL
from ultracluster.telemetry.dashboards.panels import (
    TO_NODE,
    TO_WORK,
    Board,
    CloudWatch,
    Column,
    Limits,
    Lines,
    Matrix,
    Query,
    Row,
    Table,
    Value,
)

TENSOR_SCALE = (
    (0, "#3a3f4b"),
    (2, "#7a1f3d"),
    (10, "#a8553a"),
    (18, "#8a8a3a"),
    (26, "#3f8f5f"),
    (38, "#2aa198"),
)

GPUS = "sum(node:gpus:count{groups})"
HELD = "(sum(job_node:gpus_allocated:count{groups}) or vector(0))"
ALERT = "severity, alertname, node, gpu, team, workload"
FIRING = 'ignoring (alertstate) ALERTS{alerts, alertstate="firing", severity=~"critical|warning"}'

NOW = Row(
    "",
    (
        Value(
            title="GPUs in use by jobs",
            query=Query(f"{HELD} / {GPUS}"),
            help="Share of GPUs that a job holds.",
            unit="percentunit",
            decimals=0,
            limits=Limits(0.8, 0.5, above=False),
        ),
        Value(
            title="Tensor-core activity",
            query=Query("avg(node:tensor_active:avg{groups})"),
            help="Share of cycles in which tensor cores work, mean of all GPUs. 0.35 to 0.5 is good for large models.",
            unit="percentunit",
            decimals=0,
            limits=Limits(0.25, 0.1, above=False),
        ),
        Value(
            title="GPUs missing",
            query=Query(
                'sum(count by (instance_type) (up{groups, job="node"}) * on (instance_type) group_left ()'
                " instance_type:gpus:expected) - (sum(node:gpus:count{groups}) or vector(0))"
            ),
            help="GPUs that the instance types have, less those that report.",
            limits=ANY_IS_BAD,
        ),
        Value(
            title="Nodes silent",
            query=Query('count(up{groups, job="node"} == 0) or vector(0)'),
            help="Nodes whose node exporter does not answer.",
            limits=ANY_IS_BAD,
        ),
        Value(
            title="Critical alerts",
            query=Query('count(ALERTS{alerts, alertstate="firing", severity="critical"}) or vector(0)'),
            help="Alerts of severity critical that fire now.",
            limits=ANY_IS_BAD,
        ),
        Value(
            title="GPU power",
            query=Query("sum(node:power_watts:avg{groups} * node:gpus:count{groups})"),
            help="Power of all GPUs.",
            unit="watt",
        ),
    ),
)

BROKEN = Row(
    "Is anything broken?",
    (
        Table(
            title="Alerts that fire",
            help="Follow the runbook that the alert names: docs/runbooks.",
            labels=(
                ("severity", "Severity"),
                ("alertname", "Alert"),
                ("node", "Node"),
                ("gpu", "GPU"),
                ("team", "Team"),
                ("workload", "Job"),
            ),
            columns=(
                Column("For", f"time() - min by ({ALERT}) (ALERTS_FOR_STATE{{alerts}} and {FIRING})", "dtdurations"),
            ),
            sort="Severity",
            descending=False,
            links=(("Node", TO_NODE), ("Job", TO_WORK)),
            colours=(("Severity", (("critical", "red"), ("warning", "orange"))),),
            width=14,
            height=13,
        ),
        Lines(
            title="Alerts that fire, by severity",
            help="Number of alerts over time.",
            queries=(
                Query(
                    'count(ALERTS{alerts, alertstate="firing", severity="critical"}) or vector(0)', "critical", "red"
                ),
                Query(
                    'count(ALERTS{alerts, alertstate="firing", severity="warning"}) or vector(0)', "warning", "orange"
                ),
            ),
            decimals=0,
            stack=True,
            calculations=("max", "lastNotNull"),
            width=10,
            height=13,
        ),
    ),
)

WORK = Row(
    "Do the GPUs work?",
    (
        Matrix(
            title="Tensor-core activity of each GPU (%)",
            help="Grey: no work. A dashed cell: a GPU that other nodes have and this one does not report. Click"
            " a node for its details.",
            query=Query("100 * max by (node, gpu) (DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{groups})"),
            rows="node",
            columns="gpu",
            link=TO_NODE,
            decimals=0,
            scale=TENSOR_SCALE,
            width=10,
            height=16,
        ),
        Lines(
            title="GPUs by team",
            help="GPUs that the jobs of each team hold.",
            queries=(
                Query("sum by (team) (job_node:gpus_allocated:count{groups})", "{{team}}"),
                Query(f"{GPUS} - {HELD}", "idle", "#8e9299"),
            ),
            stack=True,
            decimals=0,
            width=14,
        ),
        Lines(
            title="Tensor-core activity, by job",
            help="Mean of the GPUs of each job. A job that drops to 0 and keeps its GPUs hangs.",
            queries=(
                Query("topk(8, avg by (team, workload) (job_node:tensor_active:avg{groups}))", "{{workload}} {{team}}"),
            ),
            unit="percentunit",
            link=TO_WORK,
            width=14,
        ),
    ),
)

EFA = Lines(
    title="EFA traffic against line rate, by node group",
    help="Bits per second received by all nodes, over the line rate of their instance types.",
    queries=(
        Query(
            "sum by (node_group) (node:efa_rx_bits:rate{groups}) / sum by"
            " (node_group)"
            ' (count by (node_group, instance_type) (up{groups, job="node"}) * on (instance_type) group_left ()'
            " instance_type:efa_bits:line_rate)",
            "{{node_group}}",
        ),
    ),
    unit="percentunit",
)

LUSTRE = (
    Lines(
        title="Lustre throughput of the nodes",
        help="Reads and writes of all clients together.",
        queries=(
            Query("sum(node:lustre_read_bytes:rate{groups})", "read"),
            Query("sum(node:lustre_write_bytes:rate{groups})", "written"),
        ),
        unit="Bps",
    ),
    Lines(
        title="Lustre space in use",
        help="Share of the file system that is full.",
        queries=(Query("filesystem:lustre_used:ratio{fleet}", "{{target}}"),),
        unit="percentunit",
        maximum=1,
        limits=FILL,
    ),
)

OTHERS = (
    Lines(
        title="GPU power, by node group",
        help="Power of all GPUs. It falls when GPUs have no work, and stays when a job hangs.",
        queries=(
            Query(
                "sum by (node_group) (node:power_watts:avg{groups} * node:gpus:count{groups})",
                "{{node_group}}",
            ),
        ),
        unit="watt",
    ),
    Lines(
        title="Scrape targets that do not answer, by job",
        help="Exporters that are silent. Alerts that need them cannot fire.",
        queries=(Query("count by (job) (up{fleet} == 0) or count by (job) (up{fleet}) * 0", "{{job}}"),),
        decimals=0,
        limits=ANY_IS_WORTH_A_LOOK,
        calculations=("max", "lastNotNull"),
    ),
    Lines(
        title="Active series in AMP",
        help="Series of the account's workspaces in this Region, against the quota of 50 million a workspace.",
        queries=(
            CloudWatch(
                "AWS/Usage",
                "ResourceCount",
                "Maximum",
                (
                    ("Service", "Prometheus"),
                    ("Resource", "ActiveSeries"),
                    ("Type", "Resource"),
                    ("Class", "None"),
                    ("ResourceId", "*"),
                ),
                "${PROP('Dim.ResourceId')}",
            ),
        ),
    ),
)


def board(*, lustre: bool) -> Board:
    """The overview, with the file system if there is one."""
    resources = Row("Network, storage and power", (EFA, *(LUSTRE if lustre else ()), *OTHERS))
    return Board(
        slug="fleet",
        title="Fleet overview",
        question="Do the GPUs work, and is anything broken?",
        rows=(NOW, BROKEN, WORK, resources),
        period="24h",
        tags=("start",),
    )
