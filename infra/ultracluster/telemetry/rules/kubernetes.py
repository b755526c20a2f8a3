"""Kubernetes: nodes, the software that makes GPUs available, queues and jobs."""

from collections.abc import Iterator

from ultracluster.catalog import catalog
from ultracluster.telemetry.rules.model import CLUSTER, Alert, Component, Group, Severity
from ultracluster.telemetry.rules.site import Site
from ultracluster.telemetry.thresholds import PENDING_WITH_IDLE

_KUBERNETES: Component = "kubernetes"
_NODE = f"{CLUSTER}, node"
_OF = "of {{ $labels.environment }}"
_PLATFORM = f'unless on ({CLUSTER}, namespace)\nkube_namespace_labels{{label_ultracluster_team!=""}}'
"""Leaves out the namespaces of teams: their pods may crash."""


def group(site: Site) -> Group:
    """Alerts on nodes, platform, queues and jobs."""
    rules = [*_nodes(), *_platform()]
    if site.scheduler.startswith("kueue"):
        rules += _kueue()
    rules.append(_pods_wait())
    if site.jobset:
        rules.append(_jobset())
    if site.karpenter:
        rules += _karpenter()
    return Group("kubernetes", tuple(rules))


def _condition(name: str, status: str = "true") -> str:
    return f'max by ({_NODE}) (kube_node_status_condition{{condition="{name}", status="{status}"}})'


def _nodes() -> Iterator[Alert]:
    yield Alert(
        name="KubeNodeNotReady",
        expr=f"{_condition('Ready')}\n== 0",
        severity="critical",
        component=_KUBERNETES,
        scope="node",
        sustained="10m",
        keep="5m",
        summary="{{ $labels.node }} is not ready",
        description="The kubelet of the node reports a problem, or nothing. Pods of the node are evicted after five "
        "minutes.",
        action="Run `kubectl describe node` for the reason; EKS replaces the node after 30 minutes where node repair "
        "is on.",
    )
    yield Alert(
        name="KubeNodeHardwareFailed",
        expr=f"{_condition('AcceleratedHardwareReady')}\n== 0",
        severity="critical",
        component=_KUBERNETES,
        scope="node",
        sustained="1m",
        keep="5m",
        summary="The node monitoring agent found a hardware fault on {{ $labels.node }}",
        description="The condition AcceleratedHardwareReady is false. Its reason decides what is due: for most XIDs a "
        "reboot or a new instance, for DCGMError a look at DCGM.",
        action="Run `kubectl describe node` for the reason, and do what the runbook says of it.",
    )
    yield Alert(
        name="KubeNodePressure",
        expr=f"max by ({_NODE}, condition)"
        ' (kube_node_status_condition{condition=~"DiskPressure|MemoryPressure|PIDPressure", status="true"})\n== 1',
        severity="warning",
        component=_KUBERNETES,
        scope="node",
        sustained="10m",
        keep="5m",
        summary="{{ $labels.node }} has {{ $labels.condition }}",
        description="The kubelet evicts pods to get back what the node is short of.",
        action="Find the pods with the highest use of memory, disk or processes on the node.",
    )
    gap = [f"max by ({_NODE}, resource) (kube_node_status_{what}{{%s}})" for what in ("capacity", "allocatable")]
    devices = 'resource=~"nvidia_com_gpu|vpc_amazonaws_com_efa"'
    yield Alert(
        name="KubeDevicesUnhealthy",
        expr=f"{gap[0] % devices}\n- {gap[1] % devices}\n> 0",
        severity="warning",
        component=_KUBERNETES,
        scope="node",
        sustained="10m",
        keep="5m",
        summary="{{ $value }} devices {{ $labels.resource }} of {{ $labels.node }} cannot be allocated",
        description="The device plugin reports devices as unhealthy, so pods that need a whole node do not start on "
        "it.",
        action="Look for XIDs on the node, and at the log of its device plugin.",
    )
    yield Alert(
        name="KubeNodeNotAccepted",
        expr=f'max by ({_NODE}) (kube_node_spec_taint{{key="ultracluster/not-accepted"}})',
        severity="warning",
        component=_KUBERNETES,
        scope="node",
        sustained="45m",
        keep="5m",
        summary="{{ $labels.node }} is not accepted and takes no pods",
        description="The checks of the new node fail, or cannot run. The node keeps its taint until they pass or a "
        "person acts, and costs as much as a working one.",
        action="Read the reason with `kubectl get events`, and do what it says.",
    )
    types = "|".join(each.name.replace(".", "\\\\.") for each in catalog.values() if each.topology_depth)
    unlabelled = f'label_node_kubernetes_io_instance_type=~"{types}", label_topology_k8s_aws_network_node_layer_1=""'
    yield Alert(
        name="KubeNodeWithoutTopology",
        expr=f"max by ({_NODE}) (kube_node_labels{{{unlabelled}}})",
        severity="warning",
        component=_KUBERNETES,
        scope="node",
        sustained="30m",
        summary="{{ $labels.node }} has no topology labels",
        description="The scheduler does not know the node's switch. Jobs that ask for nodes close to each other never "
        "get it.",
        action="Check that the cloud controller may call ec2:DescribeInstanceTopology, then replace the node.",
    )


def _alert(name: str, expr: str, severity: Severity, sustained: str, texts: tuple[str, str, str]) -> Alert:
    summary, description, action = texts
    return Alert(name, expr, severity, _KUBERNETES, "cluster", summary, description, action, sustained, "5m")


def _platform() -> Iterator[Alert]:
    daemonset = f"({CLUSTER}, namespace, daemonset)"
    yield _alert(
        "KubeDaemonSetNotReady",
        f"max by {daemonset} (kube_daemonset_status_desired_number_scheduled)\n"
        f"- max by {daemonset} (kube_daemonset_status_number_ready)\n> 0",
        "warning",
        "30m",
        (
            f"{{{{ $labels.daemonset }}}} {_OF} is missing on {{{{ $value }}}} nodes",
            "Nodes without their device plugin, network or storage software run no jobs.",
            "Run `kubectl -n NAMESPACE get pods -o wide` and describe the pods that are not ready.",
        ),
    )
    crashing = 'kube_pod_container_status_waiting_reason{reason="CrashLoopBackOff"} == 1'
    yield _alert(
        "KubePlatformCrashing",
        f"count by ({CLUSTER}, namespace, container) ({crashing})\n{_PLATFORM}",
        "warning",
        "15m",
        (
            f"{{{{ $labels.container }}}} in {{{{ $labels.namespace }}}} {_OF} crashes in {{{{ $value }}}} pods",
            "A container of the cluster's own software starts and ends again and again.",
            "Read its log with `kubectl logs --previous`.",
        ),
    )
    yield _alert(
        "KubeDeploymentUnavailable",
        f"max by ({CLUSTER}, namespace, deployment) (kube_deployment_status_replicas_unavailable)\n> 0\n{_PLATFORM}",
        "warning",
        "15m",
        (
            f"{{{{ $labels.deployment }}}} in {{{{ $labels.namespace }}}} {_OF} lacks {{{{ $value }}}} replicas",
            "A part of the cluster's own software runs with fewer replicas than it should, or not at all.",
            "Run `kubectl describe deployment`, and check that the system nodes have room.",
        ),
    )


_IDLE_GPUS = (
    "1 - (cluster:gpus_allocated:count or cluster:gpus:count * 0) / cluster:gpus:count\n"
    f"> {PENDING_WITH_IDLE.value}\nand on ({CLUSTER})\n"
)
"""Share of idle GPUs where it is large, if what follows is so too."""


def _pods_wait() -> Alert:
    """Pods that a scheduler tried and did not place, whichever it is, and groups for which Volcano makes no pods yet.

    KAI has no metric of what waits. A pod that Kueue holds back is not tried.
    """
    pod = f"{CLUSTER}, namespace, pod"
    pods = (
        f"sum by ({CLUSTER}) (max by ({pod}) (kube_pod_status_unschedulable)\nand on ({pod})\n"
        'kube_pod_container_resource_requests{resource="nvidia_com_gpu"} > 0) > 0'
    )
    groups = f"sum by ({CLUSTER}) (max by ({CLUSTER}, queue_name) (volcano_queue_pod_group_pending_count)) > 0"
    return _alert(
        "PodsPendingWithIdleGpus",
        f"{_IDLE_GPUS}({pods}\nor\n{groups})",
        "warning",
        "30m",
        (
            f"Pods wait for GPUs while {{{{ $value | humanizePercentage }}}} of the GPUs {_OF} are idle",
            "The scheduler, KAI, Volcano or Kubernetes' own, did not place pods that ask for GPUs: shares of queues, "
            "taints, topology or GPUs that are scattered over nodes hold them.",
            "Run `kubectl describe pod` and read the event FailedScheduling; for Volcano, `kubectl describe podgroup`.",
        ),
    )


def _kueue() -> Iterator[Alert]:
    queue = f"{CLUSTER}, cluster_queue"
    # BestEffortFIFO parks a workload that it could not admit as inadmissible
    waiting = 'kueue_pending_workloads{status=~"active|inadmissible"}'
    pending = f"sum by ({CLUSTER}) (max by ({queue}, status) ({waiting}))"
    yield _alert(
        "KueuePendingWithIdleGpus",
        f"{_IDLE_GPUS}{pending} > 0",
        "warning",
        "30m",
        (
            f"Workloads wait while {{{{ $value | humanizePercentage }}}} of the GPUs {_OF} are idle",
            "Kueue does not admit the workloads: their size, quotas, flavors, borrowing limits or topology hold them.",
            "Run `kubectl describe workload` and read the condition QuotaReserved.",
        ),
    )
    yield _alert(
        "KueueQueueInactive",
        f'max by ({queue}) (kueue_cluster_queue_status{{status="active"}})\n== 0',
        "critical",
        "10m",
        (
            f"Queue {{{{ $labels.cluster_queue }}}} {_OF} admits nothing",
            "The ClusterQueue is not active: a resource flavor, an admission check or a topology that it names is "
            "missing.",
            "Run `kubectl describe clusterqueue` and read the condition Active.",
        ),
    )
    late = 'kueue_evicted_workloads_total{reason="PodsReadyTimeout"}'
    yield _alert(
        "KueueWorkloadsNotStarting",
        f"sum by ({queue}) (increase({late}[1h]))\n> 3",
        "warning",
        "0m",
        (
            f"{{{{ $value | humanize }}}} workloads of {{{{ $labels.cluster_queue }}}} {_OF} were evicted before they "
            "ran",
            "Kueue admitted workloads whose pods did not get ready in time, and put them back into the queue.",
            "Look at events of the pods: images that cannot be pulled and nodes without room are the usual causes.",
        ),
    )


def _jobset() -> Alert:
    job = f"{CLUSTER}, namespace, jobset_name"
    failed = f"max by ({job}) (jobset_failed_total)"
    return Alert(
        name="JobSetFailed",
        expr=f"{failed}\n- (max by ({job}) (jobset_failed_total offset 10m) or {failed} * 0)\n> 0",
        severity="info",
        component="job",
        scope="job",
        keep="10m",
        summary="JobSet {{ $labels.jobset_name }} in {{ $labels.namespace }} failed",
        description="The JobSet used up its restarts, or its failure policy ended it.",
        action="Tell the owner; the log of the failing rank is in the cluster's log group.",
    )


def _karpenter() -> Iterator[Alert]:
    errors = 'karpenter_cloudprovider_errors_total{error="InsufficientCapacityError"}'
    yield _alert(
        "KarpenterNoCapacity",
        f"sum by ({CLUSTER}) (increase({errors}[30m]))\n> 0",
        "warning",
        "15m",
        (
            f"EC2 has no capacity for nodes {_OF}",
            "Karpenter asked for nodes, and EC2 has none of the types in the zones of the pool. Pods wait.",
            "Allow more instance types, zones or Spot in a pool of the environment file, or reserve capacity.",
        ),
    )
    yield _alert(
        "KarpenterOutOfSync",
        f"min by ({CLUSTER}) (karpenter_cluster_state_synced)\n== 0",
        "warning",
        "10m",
        (
            f"Karpenter {_OF} does not know the state of the cluster",
            "While its state differs from the cluster, Karpenter adds and removes no node.",
            "Read the log of Karpenter's controller, and check its rights.",
        ),
    )
