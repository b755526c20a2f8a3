"""Queues and inference servers of an EKS cluster with Kueue, with a day of work.

Two teams share 128 GPUs. research borrows at night and is preempted when pretrain asks for its quota at -6 h. The cache
of a chat model fills in the afternoon, so its requests wait.
"""

from collections.abc import Callable, Iterator

from scripts.observe.course import Day, counter, gauge, ramp, steps, tide
from scripts.observe.fleet import Labels, Series, noise_at

CLUSTER = {"cluster": "staging", "environment": "staging"}
NODES = 16
BOUNDS = (
    0.001,
    0.005,
    0.01,
    0.02,
    0.04,
    0.06,
    0.08,
    0.1,
    0.25,
    0.5,
    0.75,
    1.0,
    2.5,
    5.0,
    7.5,
    10.0,
    20.0,
    40.0,
    80.0,
    300.0,
    900.0,
    3600.0,
)


class KubernetesFleet:
    """All series of the cluster. `wanted` are names of metrics; others are not made."""

    def __init__(self, day: Day, wanted: set[str]) -> None:
        self.day, self.wanted, self.times = day, wanted, day.times

    def series(self) -> Iterator[Series]:
        """Every series."""
        for job in ("kube-state-metrics", "kueue", "jobset"):
            yield {"__name__": "up", "job": job, **CLUSTER}, [1.0] * len(self.times)
        yield from self._cluster()
        yield from self._kueue()
        yield from self._other_schedulers()
        yield from self._karpenter()
        yield from self._vllm()
        yield from self._sglang()

    def _make(
        self, name: str, labels: Labels, level: Callable[[int], float | None], spread: float = 0.0
    ) -> Iterator[Series]:
        if name in self.wanted:
            key = "/".join((name, *labels.values()))
            yield {"__name__": name, **CLUSTER, **labels}, gauge(key, self.times, level, spread=spread)

    def _count(self, name: str, labels: Labels, rate: Callable[[int], float], spread: float = 0.0) -> Iterator[Series]:
        if name in self.wanted:
            key = "/".join((name, *labels.values()))
            yield {"__name__": name, **CLUSTER, **labels}, counter(key, self.times, rate, start=1000, spread=spread)

    def _histogram(
        self, name: str, labels: Labels, rate: Callable[[int], float], typical: Callable[[int], float]
    ) -> Iterator[Series]:
        """A histogram whose values lie around `typical`, a fifth of them above 2.5 times as much."""
        if f"{name}_bucket" not in self.wanted:
            return
        for bound in (*BOUNDS, float("inf")):

            def below(time: int, bound: float = bound) -> float:
                share = 1 - 2.718 ** -((bound / typical(time)) ** 1.6) if bound != float("inf") else 1.0
                return rate(time) * share

            le = "+Inf" if bound == float("inf") else f"{bound:g}"
            yield {"__name__": f"{name}_bucket", **CLUSTER, **labels, "le": le}, counter("", self.times, below)

    # --- cluster and queues

    def _used(self, time: int) -> tuple[float, float]:
        """GPUs that pretrain and research hold."""
        pretrain = steps((self.day.ago(21), 64.0), (self.day.ago(12), 32.0), (self.day.ago(6), 96.0))(time)
        research = steps(
            (self.day.ago(20), 48.0),
            (self.day.ago(11), 88.0),
            (self.day.ago(6), 32.0),
            (self.day.ago(1), 24.0),
            before=32.0,
        )(time)
        return pretrain, research

    def _cluster(self) -> Iterator[Series]:
        job = {"job": "kube-state-metrics"}
        bad = self.day.ago(2.2)
        for number in range(NODES):
            node = {**job, "node": f"i-0{number:016x}"}
            yield from self._make("kube_node_info", {**node, "kubelet_version": "v1.35.6"}, lambda _: 1.0)
            ready = {**node, "condition": "Ready", "status": "true"}
            yield from self._make(
                "kube_node_status_condition", ready, lambda time, n=number: float(not (n == 11 and time >= bad))
            )
            gpus = {**node, "resource": "nvidia_com_gpu", "unit": "integer"}
            yield from self._make("kube_node_status_allocatable", gpus, lambda _: 8.0)
            yield from self._make(
                "kube_node_spec_unschedulable", node, lambda time, n=number: float(n == 11 and time >= bad)
            )
            held = lambda time, n=number: 8.0 if 8 * n < sum(self._used(time)) else None
            yield from self._make(
                "kube_pod_container_resource_requests",
                {**gpus, "namespace": "pretrain", "pod": f"worker-{number}", "container": "main", "uid": f"u{number}"},
                held,
            )
        for phase, level in (
            ("Running", lambda time: 140 + sum(self._used(time)) / 8),
            ("Pending", lambda time: float(round(6 + 6 * noise_at("pods", time)))),
            ("Failed", steps((self.day.ago(2.2), 1.0), before=0.0)),
        ):
            labels = {**job, "namespace": "pretrain", "pod": f"all-{phase}", "uid": phase, "phase": phase}
            yield from self._make("kube_pod_status_phase", labels, level)
        pod = {**job, "namespace": "research", "pod": "sweep-7-abcde", "uid": "s7"}
        yield from self._make(
            "kube_pod_status_unschedulable", pod, lambda time: 1.0 if time >= self.day.ago(5) else None
        )
        waiting = {**pod, "container": "main", "reason": "CrashLoopBackOff"}
        yield from self._make(
            "kube_pod_container_status_waiting_reason", waiting, lambda time: 1.0 if time >= self.day.ago(1) else None
        )
        for namespace, reason, number in (
            ("research", "OOMKilled", 3),
            ("research", "Error", 5),
            ("pretrain", "Error", 1),
        ):
            for index in range(number):
                labels = {
                    **job,
                    "namespace": namespace,
                    "pod": f"{reason.lower()}-{index}",
                    "uid": f"{namespace}{index}",
                    "container": "main",
                    "reason": reason,
                }
                yield from self._make("kube_pod_container_status_last_terminated_reason", labels, lambda _: 1.0)
        for namespace, start, hours in (("research", 9.0, 1.5), ("pretrain", 2.2, 0.3), ("research-dev", 1.0, 1.0)):
            labels = {**job, "namespace": namespace, "pod": "main-0", "container": "main", "uid": namespace}
            begin, end = self.day.ago(start), self.day.ago(start - hours)
            yield from self._count(
                "kube_pod_container_status_restarts_total",
                labels,
                lambda time, b=begin, e=end: 5 / 3600 if b <= time < e else 0.0,
            )

    def _kueue(self) -> Iterator[Series]:
        for index, (queue, quota) in enumerate((("pretrain", 96.0), ("research", 32.0))):
            labels = {"job": "kueue", "cluster_queue": queue, "replica_role": "leader"}
            gpus = {**labels, "cohort": "teams", "flavor": "train", "resource": "nvidia.com/gpu"}
            used = lambda time, index=index: self._used(time)[index]
            yield from self._make("kueue_cluster_queue_resource_usage", gpus, used)
            yield from self._make("kueue_cluster_queue_nominal_quota", gpus, lambda _, quota=quota: quota)
            yield from self._make(
                "kueue_admitted_active_workloads", labels, lambda time, used=used: float(round(used(time) / 16))
            )
            queued = (
                steps((self.day.ago(6), 7.0), (self.day.ago(3), 4.0), before=1.0)
                if queue == "research"
                else steps((self.day.ago(7), 2.0), (self.day.ago(6), 0.0))
            )
            yield from self._make("kueue_pending_workloads", {**labels, "status": "active"}, queued)
            yield from self._make(
                "kueue_pending_workloads",
                {**labels, "status": "inadmissible"},
                steps((self.day.ago(5), 1.0)) if queue == "research" else steps(),
            )
            wait = (
                ramp(self.day.ago(7), self.day.ago(3), 25, 1400)
                if queue == "research"
                else ramp(self.day.ago(9), self.day.ago(7), 9, 40)
            )
            rates = lambda _: 6 / 3600
            yield from self._histogram("kueue_admission_wait_time_seconds", labels, rates, wait)
            yield from self._histogram(
                "kueue_admitted_until_ready_wait_time_seconds",
                labels,
                rates,
                lambda time: 45 + 20 * noise_at(queue, time),
            )
            evicted = {**labels, "reason": "Preempted", "underlying_cause": "", "priority_class": ""}
            begin = self.day.ago(6)
            yield from self._count(
                "kueue_evicted_workloads_total",
                evicted,
                lambda time, q=queue: 4 / 600 if q == "research" and begin <= time < begin + 600 else 0.0,
            )

    def _other_schedulers(self) -> Iterator[Series]:
        """What Volcano or KAI would report of the same teams."""
        for index, queue in enumerate(("pretrain", "research")):
            used = lambda time, index=index: self._used(time)[index]
            volcano = {"job": "volcano", "queue_name": queue}
            thousandths = lambda time, used=used: 1000 * used(time)
            gpus = {**volcano, "resource": "nvidia.com/gpu"}
            yield from self._make("volcano_queue_allocated_scalar_resources", gpus, thousandths)
            yield from self._make("volcano_queue_pod_group_pending_count", volcano, lambda _: 2.0)
            yield from self._make("volcano_queue_pod_group_running_count", volcano, lambda time: used(time) // 16)
            kai = {"job": "kai", "queue_name": queue}
            yield from self._make("kai_queue_allocated_gpus", kai, used)
            yield from self._make("kai_queue_fair_share_gpu", kai, lambda _: 64.0)
        sessions = lambda _: 1.0
        yield from self._histogram(
            "volcano_e2e_scheduling_latency_milliseconds", {"job": "volcano"}, sessions, lambda _: 40.0
        )
        yield from self._make("kai_e2e_scheduling_latency_milliseconds", {"job": "kai"}, lambda _: 55.0, 0.2)

    def _karpenter(self) -> Iterator[Series]:
        pool = {"job": "karpenter", "nodepool": "elastic", "resource_type": "nvidia.com/gpu"}
        yield from self._make("karpenter_nodepools_limit", pool, lambda _: 64.0)
        yield from self._make("karpenter_nodepools_usage", pool, steps((self.day.ago(5), 32.0), before=16.0))
        errors = {"job": "karpenter", "error": "InsufficientCapacityError", "controller": "nodeclaim.lifecycle"}
        yield from self._count("karpenter_cloudprovider_errors_total", errors, lambda _: 2 / 3600)

    # --- inference

    def _vllm(self) -> Iterator[Series]:
        labels = {"job": "pods", "model_name": "llama-3.3-70b", "engine": "0", "namespace": "chat"}
        rate = lambda time: 34 * tide(time, peak_hour=13, depth=0.75)
        full = lambda time: max(0.0, tide(time, peak_hour=13, depth=0.75) - 0.88) / 0.12
        yield from self._histogram(
            "vllm:time_to_first_token_seconds", labels, rate, lambda time: 0.16 + 1.4 * full(time) ** 2
        )
        yield from self._histogram(
            "vllm:inter_token_latency_seconds", labels, rate, lambda time: 0.017 + 0.012 * full(time)
        )
        yield from self._histogram("vllm:e2e_request_latency_seconds", labels, rate, lambda time: 5.2 + 5 * full(time))
        yield from self._make("vllm:num_requests_running", labels, lambda time: float(round(6.1 * rate(time))), 0.05)
        yield from self._make("vllm:num_requests_waiting", labels, lambda time: float(round(46 * full(time) ** 2)), 0.1)
        yield from self._make(
            "vllm:kv_cache_usage_perc", labels, lambda time: min(0.995, 0.98 * tide(time, peak_hour=13, depth=0.6))
        )
        yield from self._count("vllm:num_preemptions_total", labels, lambda time: 0.08 * full(time) ** 2, 0.3)
        yield from self._count("vllm:prompt_tokens_total", labels, lambda time: 900 * rate(time), 0.05)
        yield from self._count("vllm:generation_tokens_total", labels, lambda time: 260 * rate(time), 0.05)
        yield from self._count("vllm:prefix_cache_queries_total", labels, lambda time: 900 * rate(time))
        yield from self._count("vllm:prefix_cache_hits_total", labels, lambda time: 520 * rate(time), 0.05)
        for reason, share in (("stop", 0.9), ("length", 0.07), ("abort", 0.03)):
            yield from self._count(
                "vllm:request_success_total",
                {**labels, "finished_reason": reason},
                lambda time, share=share: share * rate(time),
                0.05,
            )

    def _sglang(self) -> Iterator[Series]:
        labels = {"job": "pods", "model_name": "qwen3-32b", "namespace": "agents"}
        rate = lambda time: 11 * tide(time, peak_hour=4, depth=0.5)
        yield from self._histogram(
            "sglang:time_to_first_token_seconds", labels, rate, lambda time: 0.11 + 0.02 * noise_at("sg", time)
        )
        yield from self._histogram("sglang:inter_token_latency_seconds", labels, rate, lambda _: 0.011)
        yield from self._histogram("sglang:e2e_request_latency_seconds", labels, rate, lambda _: 3.4)
        yield from self._make("sglang:num_running_reqs", labels, lambda time: float(round(4 * rate(time))), 0.08)
        yield from self._make("sglang:num_queue_reqs", labels, lambda _: 0.0)
        yield from self._make("sglang:token_usage", labels, lambda time: 0.05 * rate(time), 0.05)
        yield from self._make("sglang:cache_hit_rate", labels, lambda _: 0.34, 0.08)
        yield from self._count("sglang:prompt_tokens_total", labels, lambda time: 700 * rate(time), 0.05)
        yield from self._count("sglang:generation_tokens_total", labels, lambda time: 310 * rate(time), 0.05)
