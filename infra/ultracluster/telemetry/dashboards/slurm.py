"""The Slurm queue and the controller."""

from ultracluster.telemetry.dashboards.limits import ANY_IS_BAD, IDLE, SLURM_CYCLE, SLURM_DBD_QUEUE, SLURM_THREADS
from ultracluster.telemetry.dashboards.panels import Board, Column, Limits, Lines, Query, Row, Table, Value

NODE_STATES = (
    ("allocated", "slurm_nodes_alloc", "green"),
    ("partly allocated", "slurm_nodes_mixed", "semi-dark-green"),
    ("idle", "slurm_nodes_idle", "blue"),
    ("draining", "slurm_nodes_draining", "yellow"),
    ("drained", "slurm_nodes_drained", "orange"),
    ("down", "slurm_nodes_down", "red"),
    ("powered down", "slurm_nodes_powered_down", "#8e9299"),
)

NOW = Row(
    "",
    (
        Value(
            title="GPUs allocated",
            query=Query("sum(slurm_node_gpus_alloc{fleet}) / sum(slurm_node_gpus{fleet})"),
            help="Share of the GPUs that Slurm knows which jobs hold. Needs Slurm 26.05.",
            unit="percentunit",
            decimals=0,
            limits=Limits(0.8, 0.5, above=False),
        ),
        Value(
            title="Jobs running", query=Query("max(slurm_jobs_running{fleet})"), help="Jobs that run now.", decimals=0
        ),
        Value(title="Jobs pending", query=Query("max(slurm_jobs_pending{fleet})"), help="Jobs that wait.", decimals=0),
        Value(
            title="GPUs idle while jobs wait",
            query=Query(
                "(sum(slurm_node_gpus{fleet}) - sum(slurm_node_gpus_alloc{fleet})) *"
                " (max(slurm_jobs_pending{fleet}) > bool 0)"
            ),
            help="Idle GPUs while jobs are pending: jobs larger than what is free, a limit of a QOS, or drained nodes.",
            decimals=0,
            limits=Limits(warning=8),
        ),
        Value(
            title="Nodes down or drained",
            query=Query("max(slurm_nodes_down{fleet}) + max(slurm_nodes_drained{fleet})"),
            help="Nodes that take no job. sinfo -R prints the reasons.",
            decimals=0,
            limits=ANY_IS_BAD,
        ),
        Value(
            title="Jobs that lost a node",
            query=Query("max(slurm_jobs_node_failed{fleet})"),
            help="Jobs in state NODE_FAIL that the controller still holds.",
            decimals=0,
            limits=ANY_IS_BAD,
        ),
    ),
)

FLEET = Row(
    "Nodes and GPUs",
    (
        Lines(
            title="Nodes, by state",
            help="All nodes that Slurm knows.",
            queries=tuple(Query(f"max({metric}{{fleet}})", name, colour) for name, metric, colour in NODE_STATES),
            stack=True,
            decimals=0,
            calculations=("max", "lastNotNull"),
            width=12,
            height=10,
        ),
        Lines(
            title="GPUs allocated and in use",
            help="What Slurm allocated, and how much of it works: the gap is held and idle.",
            queries=(
                Query("sum(slurm_node_gpus{fleet})", "installed", "#8e9299"),
                Query("sum(slurm_node_gpus_alloc{fleet})", "allocated", "blue"),
                Query(f"count(DCGM_FI_PROF_SM_ACTIVE{{fleet}} > {IDLE}) or vector(0)", "working", "green"),
            ),
            decimals=0,
            calculations=("mean", "lastNotNull"),
            width=12,
            height=10,
        ),
    ),
)

QUEUE = Row(
    "Queue",
    (
        Lines(
            title="Jobs running and pending",
            help="A queue that only grows needs nodes, or holds jobs that can never start.",
            queries=(
                Query("max(slurm_jobs_running{fleet})", "running", "green"),
                Query("max(slurm_jobs_pending{fleet})", "pending", "orange"),
                Query("max(slurm_jobs_hold{fleet})", "held", "red"),
            ),
            decimals=0,
        ),
        Lines(
            title="Jobs that did not finish well",
            help="Jobs by end state, as long as the controller holds them (MinJobAge).",
            queries=(
                Query("max(slurm_jobs_failed{fleet})", "failed"),
                Query("max(slurm_jobs_node_failed{fleet})", "lost a node", "red"),
                Query("max(slurm_jobs_timeout{fleet})", "time limit"),
                Query("max(slurm_jobs_outofmemory{fleet})", "out of memory"),
                Query("max(slurm_jobs_requeued{fleet})", "requeued"),
            ),
            decimals=0,
            calculations=("max", "lastNotNull"),
        ),
        Table(
            title="Partitions",
            help="A queue of the environment file is a partition.",
            labels=(("partition", "Partition"),),
            columns=(
                Column("Nodes", "max by (partition) (slurm_partition_nodes{fleet})", decimals=0),
                Column("Idle", "max by (partition) (slurm_partition_nodes_idle{fleet})", decimals=0),
                Column(
                    "Down",
                    "max by (partition) (slurm_partition_nodes_down{fleet})",
                    decimals=0,
                    limits=ANY_IS_BAD,
                    display="colour",
                ),
                Column("Running", "max by (partition) (slurm_partition_jobs_running{fleet})", decimals=0),
                Column("Pending", "max by (partition) (slurm_partition_jobs_pending{fleet})", decimals=0),
                Column("GPUs in use", "max by (partition) (slurm_partition_jobs_gpus_alloc{fleet})", decimals=0),
            ),
            sort="Pending",
        ),
    ),
)

CONTROLLER = Row(
    "Controller",
    (
        Lines(
            title="Time of a scheduling cycle",
            help="While a main cycle runs, slurmctld answers slowly. Lower default_queue_depth, or ask users"
            " for job arrays.",
            queries=(
                Query("max(slurm_sched_mean_cycle{fleet}) / 1e6", "main, mean"),
                Query("max(slurm_schedule_cycle_last{fleet}) / 1e6", "main, last"),
                Query("max(slurm_bf_cycle_last{fleet}) / 1e6", "backfill, last"),
            ),
            unit="s",
            limits=SLURM_CYCLE,
            width=6,
        ),
        Lines(
            title="Backfill: jobs in the last cycle",
            help="Backfill starts small jobs in gaps. Few started with a long queue: raise bf_max_job_test or"
            " bf_window.",
            queries=(
                Query("max(slurm_bf_last_depth{fleet})", "examined"),
                Query("max(slurm_last_backfilled_jobs{fleet})", "started"),
                Query("max(slurm_bf_queue_len{fleet})", "queue"),
            ),
            decimals=0,
            width=6,
        ),
        Lines(
            title="Threads of slurmctld",
            help="256 threads serve requests; above 200 commands time out.",
            queries=(Query("max(slurm_server_thread_cnt{fleet})", "threads"),),
            decimals=0,
            limits=SLURM_THREADS,
            width=6,
        ),
        Lines(
            title="Messages of slurmctld that wait",
            help="Those to slurmdbd are accounting records: records are lost when 10,000 wait.",
            queries=(
                Query("max(slurm_agent_queue_size{fleet})", "to nodes"),
                Query("max(slurm_slurmdbd_queue_size{fleet})", "to slurmdbd"),
            ),
            decimals=0,
            limits=SLURM_DBD_QUEUE,
            width=6,
        ),
    ),
)

BOARD = Board(
    slug="slurm",
    title="Slurm",
    question="Do jobs start, and if not, what do they wait for?",
    rows=(NOW, FLEET, QUEUE, CONTROLLER),
    variables=(),
    period="24h",
    tags=("scheduler",),
)
