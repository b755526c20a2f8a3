"""How well jobs train."""

from ultracluster.telemetry.dashboards.limits import ANY_IS_WORTH_A_LOOK, DATA_WAIT, GOODPUT
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

JOB = "{{workload}} {{team}}"
"""Name of a job: two teams may each have one of the same name. On PCS, jobs report without their team."""

RATIO_SCALE = (
    (0, "#b3263a"),
    (0.5, "#b5562a"),
    (0.8, "#a07f2e"),
    (0.95, "#3f8f5f"),
    (1.05, "#2aa198"),
)

NOW = Row(
    "",
    (
        Value(
            title="Lowest goodput, last hour",
            query=Query("min(job:training_goodput:ratio{work})"),
            help="Share of time in steps whose result was kept, of the job with least. Jobs report it: training_*.",
            unit="percentunit",
            limits=GOODPUT,
        ),
        Value(
            title="Model FLOPS utilisation, mean",
            query=Query("avg(training_mfu_ratio{work})"),
            help="Model FLOPS over the dense peak of the GPUs at the job's precision, mean of the jobs.",
            unit="percentunit",
        ),
        Value(
            title="Tokens per second",
            query=Query("sum(rate(training_tokens_total{work}[$__rate_interval]))"),
            help="Tokens that the jobs process.",
        ),
        Value(
            title="Slowest rank against the median",
            query=Query(
                "max(max by (team, workload) (training_step_time_seconds{work})"
                " / on (team, workload) quantile by (team, workload) (0.5, training_step_time_seconds{work}))"
            ),
            help="Step time of the slowest rank over that of the median rank, of the job where it is largest.",
            limits=Limits(1.1, 1.5),
            decimals=2,
        ),
        Value(
            title="Oldest last checkpoint",
            query=Query("max(job:training_checkpoint_age:seconds{work})"),
            help="Work that a failure would cost now.",
            unit="s",
            limits=Limits(3600, 3 * 3600),
        ),
        Value(
            title="Restarts, 24 h",
            query=Query("sum(increase(training_restarts_total{work}[24h]))"),
            help="Restarts of all jobs.",
            decimals=0,
            limits=ANY_IS_WORTH_A_LOOK,
        ),
    ),
)

PROGRESS = Row(
    "Progress",
    (
        Lines(
            title="Model FLOPS utilisation, by job",
            help="Model FLOPS over the dense peak of the GPUs. A step down that stays: look for a straggler below.",
            queries=(Query("max by (team, workload) (training_mfu_ratio{work})", JOB),),
            unit="percentunit",
        ),
        Lines(
            title="Time of a step, by job",
            help="Slowest rank of each job: all others wait for it.",
            queries=(Query("max by (team, workload) (training_step_time_seconds{work})", JOB),),
            unit="s",
        ),
        Lines(
            title="Loss, by job",
            help="Loss of the last step. NaN leaves a gap.",
            queries=(Query("max by (team, workload) (training_loss{work})", JOB),),
            minimum=None,
            calculations=("max", "min", "lastNotNull"),
        ),
        Lines(
            title="Time lost, by reason",
            help="Share of time in which jobs do nothing useful, mean of the jobs that report.",
            queries=(
                Query(
                    "sum by (reason) (rate(training_lost_seconds_total{work}[$__rate_interval]))"
                    " / scalar(count(count by (team, workload) (training_lost_seconds_total{work})))",
                    "{{reason}}",
                ),
            ),
            unit="percentunit",
            stack=True,
        ),
        Lines(
            title="Age of the last checkpoint, by job",
            help="A saw: it falls to 0 with each checkpoint. A line that only rises means that checkpoints fail.",
            queries=(Query("max by (team, workload) (job:training_checkpoint_age:seconds{work})", JOB),),
            unit="s",
            calculations=("max", "lastNotNull"),
        ),
        Lines(
            title="Waiting for data, share of a step",
            help="Slowest rank of each job, as all others wait for it: its data loader or the file system holds the"
            " GPUs up.",
            queries=(
                Query(
                    "max by (team, workload) (training_data_wait_seconds{work}) / max by (team, workload)"
                    " (training_step_time_seconds{work})",
                    JOB,
                ),
            ),
            unit="percentunit",
            limits=DATA_WAIT,
        ),
    ),
)

HARDWARE = Row(
    "What the GPUs do for it",
    (
        Lines(
            title="Tensor-core activity, median node of each job",
            help="0 while the GPUs are held: the job hangs.",
            queries=(Query("job:tensor_active:median{work}", JOB),),
            unit="percentunit",
            width=12,
        ),
        Lines(
            title="EFA traffic of each job, sent",
            help="Bits per second of all nodes of a job. 0 in a job that keeps its GPUs: a rank left the collective.",
            queries=(Query("job:efa_tx_bits:rate{work}", JOB),),
            unit="bps",
            width=12,
        ),
    ),
)

STRAGGLERS = Row(
    "Stragglers",
    (
        Matrix(
            title="SM clock of each GPU over the median of its job",
            help="1 is the median. Red: the GPU is throttled and holds up its whole job.",
            query=Query(
                'max by (node, gpu, team, workload) (DCGM_FI_DEV_SM_CLOCK{work, workload!=""})'
                " / on (team, workload) group_left () max by (team, workload) (job:sm_clock_mhz:median{work})"
            ),
            rows="node",
            columns="gpu",
            link=TO_NODE,
            decimals=2,
            scale=RATIO_SCALE,
            width=10,
            height=14,
        ),
        Bars(
            title="Least tensor activity against the job's median, by node",
            help="A node far below 1 does less than the others, or waits for its CPU, its disk or the network.",
            query=Query(
                "bottomk(8, max by (node, team, workload) (job_node:tensor_active:avg{work})"
                " / on (team, workload) group_left ()"
                " (max by (team, workload) (job:tensor_active:median{work}) > 0.05))",
                f"{{{{node}}}}  job {JOB}",
            ),
            decimals=2,
            maximum=1.2,
            limits=Limits(0.8, 0.5, above=False),
            width=14,
            height=7,
        ),
        Table(
            title="Jobs",
            help="Jobs that hold GPUs now.",
            labels=(("team", "Team"), ("workload", "Job")),
            columns=(
                Column("GPUs", "sum by (team, workload) (job:gpus_allocated:count{work})", decimals=0),
                Column("Nodes", "sum by (team, workload) (job:nodes:count{work})", decimals=0),
                Column(
                    "Tensor",
                    "max by (team, workload) (job:tensor_active:median{work})",
                    "percentunit",
                    decimals=0,
                    display="gauge",
                    maximum=0.6,
                ),
                Column("EFA sent", "max by (team, workload) (job:efa_tx_bits:rate{work})", "bps"),
            ),
            sort="GPUs",
            width=14,
            height=7,
        ),
    ),
)

BOARD = Board(
    slug="training",
    title="Training efficiency",
    question="How much of the time goes into the model, and what holds the jobs up?",
    rows=(NOW, PROGRESS, HARDWARE, STRAGGLERS),
    variables=("workload",),
    period="24h",
    tags=("jobs",),
)
