"""Queues and jobs on Kubernetes, by the software that queues them."""

from ultracluster.telemetry.dashboards.limits import ANY_IS_BAD, ANY_IS_WORTH_A_LOOK
from ultracluster.telemetry.dashboards.panels import Board, Column, Limits, Lines, Query, Row, Table, Value

GPU = 'resource="nvidia.com/gpu"'

NOW = Row(
    "",
    (
        Value(
            title="GPUs requested by pods",
            query=Query(
                'sum(kube_pod_container_resource_requests{fleet, resource="nvidia_com_gpu", node!=""})'
                ' / sum(kube_node_status_allocatable{fleet, resource="nvidia_com_gpu"})'
            ),
            help="Share of the GPUs that nodes offer which pods on nodes request.",
            unit="percentunit",
            decimals=0,
            limits=Limits(0.8, 0.5, above=False),
        ),
        Value(
            title="GPUs that nodes offer",
            query=Query('sum(kube_node_status_allocatable{fleet, resource="nvidia_com_gpu"})'),
            help="GPUs that the kubelets offer to pods.",
            decimals=0,
        ),
        Value(
            title="Nodes not ready",
            query=Query(
                'count(kube_node_info{fleet}) - (sum(kube_node_status_condition{fleet, condition="Ready",'
                ' status="true"}) or vector(0))'
            ),
            help="Nodes whose kubelet does not report that it is ready.",
            decimals=0,
            limits=ANY_IS_BAD,
        ),
        Value(
            title="Nodes cordoned",
            query=Query("sum(kube_node_spec_unschedulable{fleet}) or vector(0)"),
            help="Nodes that take no new pods: drained by a person, by auto repair or by Karpenter.",
            decimals=0,
            limits=ANY_IS_WORTH_A_LOOK,
        ),
        Value(
            title="Pods that no node can take",
            query=Query("sum(kube_pod_status_unschedulable{fleet}) or vector(0)"),
            help="Pods that the scheduler could not place.",
            decimals=0,
            limits=Limits(warning=1),
        ),
        Value(
            title="Containers waiting after a failure",
            query=Query(
                "sum(kube_pod_container_status_waiting_reason{fleet,"
                ' reason=~"CrashLoopBackOff|ImagePullBackOff|ErrImagePull"})'
                " or vector(0)"
            ),
            help="Containers that crash again and again, or whose image cannot be pulled.",
            decimals=0,
            limits=ANY_IS_WORTH_A_LOOK,
        ),
    ),
)

KUEUE = (
    Row(
        "Queues (Kueue)",
        (
            Lines(
                title="GPUs in use, by queue",
                help="GPUs that the workloads of each team hold, borrowed ones among them.",
                queries=(
                    Query(
                        f"sum by (cluster_queue) (kueue_cluster_queue_resource_usage{{fleet, {GPU}}})",
                        "{{cluster_queue}}",
                    ),
                    Query(f"sum(kueue_cluster_queue_nominal_quota{{fleet, {GPU}}})", "all quotas", "#8e9299"),
                ),
                decimals=0,
            ),
            Lines(
                title="Workloads waiting, by queue",
                help="inadmissible: Kueue could not admit the workload, and tries again when quotas or nodes change.",
                queries=(
                    Query(
                        "sum by (cluster_queue, status) (kueue_pending_workloads{fleet})",
                        "{{cluster_queue}} {{status}}",
                    ),
                ),
                decimals=0,
            ),
            Table(
                title="Queues",
                help="Use above the quota is borrowed from other teams.",
                labels=(("cluster_queue", "Queue"),),
                columns=(
                    Column(
                        "Quota",
                        f"sum by (cluster_queue) (kueue_cluster_queue_nominal_quota{{fleet, {GPU}}})",
                        decimals=0,
                    ),
                    Column(
                        "GPUs in use",
                        f"sum by (cluster_queue) (kueue_cluster_queue_resource_usage{{fleet, {GPU}}})",
                        decimals=0,
                    ),
                    Column(
                        "Of quota",
                        f"sum by (cluster_queue) (kueue_cluster_queue_resource_usage{{fleet, {GPU}}})"
                        f" / sum by (cluster_queue) (kueue_cluster_queue_nominal_quota{{fleet, {GPU}}})",
                        "percentunit",
                        decimals=0,
                        display="gauge",
                        maximum=1,
                    ),
                    Column("Running", "sum by (cluster_queue) (kueue_admitted_active_workloads{fleet})", decimals=0),
                    Column("Waiting", "sum by (cluster_queue) (kueue_pending_workloads{fleet})", decimals=0),
                ),
                sort="GPUs in use",
            ),
            Lines(
                title="Wait for admission, p50 and p95",
                help="Time from the creation of a workload to its admission.",
                queries=tuple(
                    Query(
                        f"histogram_quantile({quantile}, sum by (le, cluster_queue)"
                        " (rate(kueue_admission_wait_time_seconds_bucket{fleet}[1h])))",
                        f"{{{{cluster_queue}}}} p{100 * quantile:g}",
                    )
                    for quantile in (0.5, 0.95)
                ),
                unit="s",
            ),
            Lines(
                title="From admission to all pods ready, p95",
                help="Images, volumes and new nodes. Long: pull images beforehand.",
                queries=(
                    Query(
                        "histogram_quantile(0.95, sum by (le, cluster_queue)"
                        " (rate(kueue_admitted_until_ready_wait_time_seconds_bucket{fleet}[1h])))",
                        "{{cluster_queue}}",
                    ),
                ),
                unit="s",
            ),
            Lines(
                title="Workloads evicted in an hour, by reason",
                help="Preempted: a team took its quota back, or a more important workload came.",
                queries=(
                    Query(
                        "sum by (cluster_queue, reason) (increase(kueue_evicted_workloads_total{fleet}[1h]))",
                        "{{cluster_queue}} {{reason}}",
                    ),
                ),
                decimals=0,
                calculations=("max", "lastNotNull"),
            ),
        ),
    ),
)

VOLCANO = (
    Row(
        "Queues (Volcano)",
        (
            Lines(
                title="GPUs in use, by queue",
                help="GPUs allocated to each queue.",
                queries=(
                    Query(
                        f"sum by (queue_name) (volcano_queue_allocated_scalar_resources{{fleet, {GPU}}}) / 1000",
                        "{{queue_name}}",
                    ),
                ),
                decimals=0,
            ),
            Lines(
                title="Pod groups waiting and running, by queue",
                help="A pod group starts as a whole.",
                queries=(
                    Query(
                        "sum by (queue_name) (volcano_queue_pod_group_pending_count{fleet})", "{{queue_name}} waiting"
                    ),
                    Query(
                        "sum by (queue_name) (volcano_queue_pod_group_running_count{fleet})", "{{queue_name}} running"
                    ),
                ),
                decimals=0,
            ),
            Lines(
                title="Time of a scheduling session, p95",
                help="A session looks at all queues, jobs and nodes.",
                queries=(
                    Query(
                        "histogram_quantile(0.95, sum by (le)"
                        " (rate(volcano_e2e_scheduling_latency_milliseconds_bucket{fleet}[$__rate_interval]))) / 1000",
                        "session",
                    ),
                ),
                unit="s",
            ),
        ),
    ),
)

KAI = (
    Row(
        "Queues (KAI)",
        (
            Lines(
                title="GPUs in use and fair share, by queue",
                help="GPUs allocated to each queue, and what the queue would get if all asked for everything.",
                queries=(
                    Query("sum by (queue_name) (kai_queue_allocated_gpus{fleet})", "{{queue_name}}"),
                    Query("sum by (queue_name) (kai_queue_fair_share_gpu{fleet})", "{{queue_name}} fair share"),
                ),
                decimals=0,
                width=12,
            ),
            Lines(
                title="Time of a scheduling session",
                help="A session looks at all queues, jobs and nodes.",
                queries=(Query("max(kai_e2e_scheduling_latency_milliseconds{fleet}) / 1000", "session"),),
                unit="s",
                width=12,
            ),
        ),
    ),
)

JOBS = Row(
    "Pods and jobs",
    (
        Lines(
            title="Pods, by phase",
            help="Pods of the whole cluster.",
            queries=(
                Query('sum(kube_pod_status_phase{fleet, phase="Running"})', "running", "green"),
                Query('sum(kube_pod_status_phase{fleet, phase="Pending"})', "pending", "orange"),
                Query('sum(kube_pod_status_phase{fleet, phase="Failed"})', "failed", "red"),
            ),
            decimals=0,
        ),
        Lines(
            title="Container restarts in an hour, by namespace",
            help="A rank that crashes restarts its whole job.",
            queries=(
                Query(
                    "sum by (namespace) (increase(kube_pod_container_status_restarts_total{fleet}[1h])) > 0",
                    "{{namespace}}",
                ),
            ),
            decimals=0,
            calculations=("max", "lastNotNull"),
        ),
        Table(
            title="Containers that ended badly, last reason",
            help="Containers that restarted or failed and still exist. OOMKilled: raise memory, or lower the"
            " data loader's.",
            labels=(("namespace", "Namespace"), ("reason", "Reason")),
            columns=(
                Column(
                    "Containers",
                    "sum by (namespace, reason)"
                    ' (kube_pod_container_status_last_terminated_reason{fleet, reason!="Completed"}) > 0',
                    decimals=0,
                ),
            ),
            sort="Containers",
        ),
    ),
)

KARPENTER = Row(
    "Karpenter",
    (
        Lines(
            title="GPUs of node pools and their limits",
            help="Karpenter launches nodes up to the limit.",
            queries=(
                Query(
                    'sum by (nodepool) (karpenter_nodepools_usage{fleet, resource_type="nvidia.com/gpu"})',
                    "{{nodepool}}",
                ),
                Query(
                    'sum by (nodepool) (karpenter_nodepools_limit{fleet, resource_type="nvidia.com/gpu"})',
                    "{{nodepool}} limit",
                ),
            ),
            decimals=0,
            width=12,
        ),
        Lines(
            title="Errors of EC2 calls",
            help="InsufficientCapacityError: EC2 has no such instance in the zone now.",
            queries=(
                Query(
                    "sum by (error) (increase(karpenter_cloudprovider_errors_total{fleet}[1h])) > 0",
                    "{{error}}",
                ),
            ),
            decimals=0,
            width=12,
        ),
    ),
)


def board(scheduler: str, *, karpenter: bool) -> Board:
    """The dashboard for the software that queues and places pods, a value of the key scheduler."""
    parts: dict[str, tuple[Row, ...]] = {"kueue": KUEUE, "volcano": VOLCANO, "kai": KAI}
    queues = tuple(row for name, rows in parts.items() if name in scheduler.split("_") for row in rows)
    return Board(
        slug="queues",
        title="Kubernetes queues",
        question="Do jobs start, which team uses what, and what do the others wait for?",
        rows=(NOW, *queues, JOBS, *((KARPENTER,) if karpenter else ())),
        variables=(),
        period="24h",
        tags=("scheduler",),
    )
