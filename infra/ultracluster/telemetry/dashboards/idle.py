"""What idle GPUs cost."""

from ultracluster.telemetry.dashboards.limits import IDLE as IDLE_BELOW
from ultracluster.telemetry.dashboards.panels import TO_WORK, Board, Column, Limits, Lines, Query, Row, Table, Value

HELD = 'DCGM_FI_PROF_SM_ACTIVE{fleet, workload!=""}'
HELD_IDLE = f"{HELD} < {IDLE_BELOW}"
ALL = "sum(cluster:gpus:count{fleet})"
FREE_COUNT = f"({ALL} - (sum(cluster:gpus_allocated:count{{fleet}}) or vector(0)))"
HELD_COUNT = "(sum(team:gpus_idle:count{fleet}) or vector(0))"
HOURS = "sum by (team) (sum_over_time({}[$__range:5m])) / 12"
IDLE_COUNT = f"({FREE_COUNT} + {HELD_COUNT})"
WASTE = Limits(warning=0.1, critical=0.25)

NOW = Row(
    "",
    (
        Value(
            title="Idle now",
            query=Query(f"{IDLE_COUNT} / {ALL}"),
            help="Share of GPUs whose SMs are active less than 2 % of the time.",
            unit="percentunit",
            decimals=0,
            limits=WASTE,
        ),
        Value(
            title="Not allocated",
            query=Query(FREE_COUNT),
            help="GPUs that no job holds.",
            decimals=0,
        ),
        Value(
            title="Held by jobs, idle",
            query=Query(HELD_COUNT),
            help="GPUs that a job holds and does not use.",
            decimals=0,
            limits=Limits(warning=1, critical=16),
        ),
        Value(
            title="Cost of idle GPUs per hour",
            query=Query(f"{IDLE_COUNT} * $gpu_hour"),
            help="Idle GPUs times your price of a GPU hour, set at the top.",
            unit="currencyUSD",
            decimals=0,
        ),
        Value(
            title="Idle GPU hours, in this period",
            query=Query(f"sum_over_time({IDLE_COUNT}[$__range:5m]) / 12"),
            help="GPU hours idle within the chosen time.",
            decimals=0,
            course=False,
        ),
        Value(
            title="Cost of idle GPUs, in this period",
            query=Query(f"sum_over_time({IDLE_COUNT}[$__range:5m]) / 12 * $gpu_hour"),
            help="GPU hours idle within the chosen time, times your price of a GPU hour.",
            unit="currencyUSD",
            decimals=0,
            course=False,
        ),
    ),
)

COURSE = Row(
    "Where it goes",
    (
        Lines(
            title="GPUs: working, held and idle, not allocated",
            help="All GPUs by what they do.",
            queries=(
                Query(f"{ALL} - {IDLE_COUNT}", "working", "green"),
                Query(HELD_COUNT, "held by a job, idle", "red"),
                Query(FREE_COUNT, "not allocated", "#8e9299"),
            ),
            stack=True,
            decimals=0,
            calculations=("mean", "lastNotNull"),
            width=12,
            height=10,
        ),
        Lines(
            title="Cost per hour, by reason",
            help="Idle GPUs times your price of a GPU hour.",
            queries=(
                Query(f"{HELD_COUNT} * $gpu_hour", "held by a job, idle", "red"),
                Query(f"{FREE_COUNT} * $gpu_hour", "not allocated", "#8e9299"),
            ),
            unit="currencyUSD",
            stack=True,
            decimals=0,
            calculations=("mean", "max", "lastNotNull"),
            width=12,
            height=10,
        ),
    ),
)

WHO = Row(
    "Who holds idle GPUs",
    (
        Table(
            title="Jobs that hold idle GPUs now",
            help="Ask the owner, or let the queue reclaim the GPUs.",
            labels=(("team", "Team"), ("workload", "Job")),
            columns=(
                Column("GPUs held", f"count by (team, workload) ({HELD})", decimals=0),
                Column(
                    "Idle",
                    f"count by (team, workload) ({HELD_IDLE})",
                    decimals=0,
                    limits=Limits(1, 16),
                    display="colour",
                ),
                Column(
                    "USD per hour",
                    f"count by (team, workload) ({HELD_IDLE}) * $gpu_hour",
                    "currencyUSD",
                    decimals=0,
                ),
                Column(
                    "SM activity",
                    f"avg by (team, workload) ({HELD})",
                    "percentunit",
                    decimals=0,
                    display="gauge",
                    maximum=1,
                ),
            ),
            sort="USD per hour",
            links=(("Job", TO_WORK),),
            width=12,
            height=8,
        ),
        Lines(
            title="SM activity of held GPUs, by team",
            help="Mean over the GPUs of a team's jobs.",
            queries=(Query("team:sm_active:avg{fleet}", "{{team}}"),),
            unit="percentunit",
            maximum=1,
            width=12,
            height=8,
        ),
        Table(
            title="Teams, in this period",
            help="GPU hours that each team's jobs held, and how many of them were idle.",
            labels=(("team", "Team"),),
            columns=(
                Column(
                    "GPU hours held",
                    HOURS.format("team:gpus_allocated:count{fleet}"),
                    decimals=0,
                ),
                Column(
                    "GPU hours idle",
                    HOURS.format("team:gpus_idle:count{fleet}"),
                    decimals=0,
                ),
                Column(
                    "USD idle",
                    HOURS.format("team:gpus_idle:count{fleet}") + " * $gpu_hour",
                    "currencyUSD",
                    decimals=0,
                ),
            ),
            sort="USD idle",
            width=12,
            height=8,
        ),
        Lines(
            title="SM activity, by node group",
            help="Mean of all GPUs, those without a job among them.",
            queries=(Query("avg by (node_group) (node:sm_active:avg{fleet})", "{{node_group}}"),),
            unit="percentunit",
            maximum=1,
            width=12,
        ),
    ),
)

BOARD = Board(
    slug="idle",
    title="Cost of idle GPUs",
    question="What do GPUs cost that do nothing, and who holds them?",
    rows=(NOW, COURSE, WHO),
    variables=("gpu_hour",),
    period="24h",
    tags=("cost",),
)
